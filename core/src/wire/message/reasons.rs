//! Reasons to decline, abort or refuse, with their codes of one byte and their texts. A reason
//! unknown to this version is `Other`.

/// A reason of one byte: see the variants. Reasons that are constants have a text but no variant,
/// which every board would have to distinguish.
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$about:meta])* $variant:ident = $code:literal, $text:literal;)*
    } $($(#[$late_about:meta])* $late:ident = $late_code:literal, $late_text:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        // A variant is its code, so boards need no table of them.
        #[repr(u8)]
        pub enum $name {
            $($(#[$about])* $variant = $code,)*
            /// A reason unknown to this version.
            Other(u8) = 0,
        }

        impl $name {
            $($(#[$late_about])* pub const $late: Self = Self::Other($late_code);)*

            /// Returns the reason with this code.
            pub const fn from_code(code: u8) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    other => Self::Other(other),
                }
            }

            /// Returns the code of this reason.
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Other(code) => code,
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $text,)*
                    $(Self::Other($late_code) => $late_text,)*
                    Self::Other(_) => "a reason that this version does not know",
                })
            }
        }
    };
}

reasons! {
    /// Why a device declines a round.
    Decline {
        /// It has reached its own limit of participations.
        Budget = 1, "the device's own budget is spent";
        /// It has used this round's random streams, or those of a later round.
        RoundUsed = 2, "this round or a later one is in the device's ledger";
        /// It trains another model.
        Shape = 3, "the device trains another model";
        /// It requires more noise of its own than the invitation asks for.
        Noise = 4, "less noise than the device insists on";
        /// The round takes more local steps than the device accepts.
        Work = 5, "more work than the device is willing to do";
        /// It has no data.
        NoSamples = 6, "the device has no samples, or more than it has memory for";
        /// Training ended in NaN or infinity.
        Diverged = 7, "local training diverged";
        /// The participation could not be recorded, the personal model could not be read or
        /// written, or the secure element did not answer.
        Storage = 8, "the device's ledger, personal model or secure element failed";
        /// The round number is too far ahead of its ledger.
        TooFar = 9, "the round number is further ahead than the device accepts";
        /// Clip norm, learning rate or a penalty is outside the device's limits.
        Settings = 10, "a clip norm, learning rate or penalty outside the device's limits";
        /// The round number is too close to its last participation.
        TooSoon = 11, "the round is closer to the device's last one than it accepts";
        /// It has no store for a personal model, or too small a store.
        Personal = 12, "the device has no place for a personal model of this size";
        /// It has too little memory for batches, views or matrices of this size.
        Memory = 13, "the device has too little memory for batches, views or matrices of this size";
        /// It requires another number of helpers for its updates.
        Helpers = 14, "another number of helpers than the device insists on";
    }
    /// A sample has the wrong length, a value that is not finite, or a class unknown to the model.
    SAMPLES = 15, "a sample of the device is damaged";
    /// It was built without `local-noise`, but the round needs its own noise.
    NO_LOCAL_NOISE = 16, "the device's firmware was built without noise of its own";
    /// It was built without `gradient-smoothing`, but the round needs it.
    NO_SMOOTHING = 17, "the device's firmware was built without smoothing of gradients";
    /// It was built without `adaptive-bit`, but the clip norm is adaptive.
    NO_BIT = 18, "the device's firmware was built without the bit of an adaptive clip norm";
    /// It does not answer such a question: its provisioning, firmware or model does not allow it.
    QUESTION = 19, "the device answers no questions of this kind";
    /// It has reached its limit of answers.
    ANSWERS = 20, "the device has answered as many questions as it will";
    /// The answer has more numbers than an update, for which the device has memory.
    LONG_ANSWER = 21, "the answer is longer than an update of the device";
    /// The round may take longer than the device stays awake.
    AWAKE = 22, "the device is not awake long enough for the round";
}

reasons! {
    /// Why a coordinator gives up a round.
    Abort {
        /// The device took too long.
        Late = 1, "the device took too long";
        /// The values exceed the bound of a clipped update.
        OutOfBound = 2, "the update exceeds its bound";
        /// The coordinator is stopping.
        Stopping = 3, "the coordinator stops";
    }
}

reasons! {
    /// Why a coordinator does not work with a device.
    WhyRefused {
        /// No version of the protocol is common to both sides.
        Version = 1, "no common version of the protocol";
        /// The federation trains another model.
        Shape = 2, "the federation trains another model";
        /// The trust model of the federation is not the one that the device requires.
        Trust = 3, "the federation's devices add no noise";
        /// The device was known with another ledger, so its count of participations is lost.
        Ledger = 4, "the device has another ledger than before: provision it again";
    }
    /// The coordinator opens sessions only with a handshake.
    HANDSHAKE = 5, "the coordinator requires greetings with X25519";
    /// The device and the experiment compute different features from the samples.
    RECIPE = 6, "the experiment has another recipe of features";
}
