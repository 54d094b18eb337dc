//! Why somebody will not: one byte each. A reason that this version does not know is `Other`.

/// One byte on the line; see the variants. What is a constant has a text and no variant, which
/// every board would have to tell from the others.
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$about:meta])* $variant:ident = $code:literal, $text:literal;)*
    } $($(#[$late_about:meta])* $late:ident = $late_code:literal, $late_text:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        // A variant is its code, and no board has a table of them.
        #[repr(u8)]
        pub enum $name {
            $($(#[$about])* $variant = $code,)*
            /// A reason that this version does not know.
            Other(u8) = 0,
        }

        impl $name {
            $($(#[$late_about])* pub const $late: Self = Self::Other($late_code);)*

            /// The reason with this code.
            pub const fn from_code(code: u8) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    other => Self::Other(other),
                }
            }

            /// The code of this reason.
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
    /// Why a device sits a round out.
    Decline {
        /// It has taken part as often as it will.
        Budget = 1, "the device's own budget is spent";
        /// It has used this round's random streams, or those of a later round.
        RoundUsed = 2, "this round or a later one is in the device's ledger";
        /// It trains another model.
        Shape = 3, "the device trains another model";
        /// It requires more noise of its own than it was asked for.
        Noise = 4, "less noise than the device insists on";
        /// It would take more local steps than the device is willing to do.
        Work = 5, "more work than the device is willing to do";
        /// It has no data.
        NoSamples = 6, "the device has no samples, or more than it has memory for";
        /// Training ended in NaN or infinity.
        Diverged = 7, "local training diverged";
        /// The participation could not be recorded, or the personal model read or written, or the
        /// secure element did not answer.
        Storage = 8, "the device's ledger, personal model or secure element failed";
        /// The round number is too far ahead of its ledger.
        TooFar = 9, "the round number is further ahead than the device accepts";
        /// Clip norm, learning rate or a penalty is outside the device's limits.
        Settings = 10, "a clip norm, learning rate or penalty outside the device's limits";
        /// The round number is too close to that of its last participation.
        TooSoon = 11, "the round is closer to the device's last one than it accepts";
        /// It has no place for a personal model, or none that is large enough.
        Personal = 12, "the device has no place for a personal model of this size";
        /// It has too little memory for batches, views or matrices of this size.
        Memory = 13, "the device has too little memory for batches, views or matrices of this size";
        /// Its updates are masked by another number of helpers than it was asked for.
        Helpers = 14, "another number of helpers than the device insists on";
    }
    /// A sample has another length than the model, a value that is not finite, or no class of it.
    SAMPLES = 15, "a sample of the device is damaged";
    /// It was built without `local-noise`, and was asked for noise of its own.
    NO_LOCAL_NOISE = 16, "the device's firmware was built without noise of its own";
    /// It was built without `gradient-smoothing`, and was asked for it.
    NO_SMOOTHING = 17, "the device's firmware was built without smoothing of gradients";
    /// It was built without `adaptive-bit`, and the clip norm is adaptive.
    NO_BIT = 18, "the device's firmware was built without the bit of an adaptive clip norm";
    /// It answers no such question: it was not provisioned to, or its firmware or model cannot.
    QUESTION = 19, "the device answers no questions of this kind";
    /// It has answered as many questions as it will.
    ANSWERS = 20, "the device has answered as many questions as it will";
    /// The answer has more numbers than the device has memory for: those of an update.
    LONG_ANSWER = 21, "the answer is longer than an update of the device";
    /// The round may take longer than the device stays awake.
    AWAKE = 22, "the device is not awake long enough for the round";
}

reasons! {
    /// Why a coordinator gives a round up.
    Abort {
        /// The device took too long.
        Late = 1, "the device took too long";
        /// The values exceed the bound of a clipped update.
        OutOfBound = 2, "the update exceeds its bound";
        /// The coordinator stops.
        Stopping = 3, "the coordinator stops";
    }
}

reasons! {
    /// Why a coordinator does not work with a device.
    WhyRefused {
        /// There is no version of the protocol that both support.
        Version = 1, "no common version of the protocol";
        /// The federation trains another model.
        Shape = 2, "the federation trains another model";
        /// The federation has another trust model than the device insists on.
        Trust = 3, "the federation's devices add no noise";
        /// The device was known with another ledger: its count of participations is lost.
        Ledger = 4, "the device has another ledger than before: provision it again";
    }
    /// The coordinator opens sessions with a handshake only.
    HANDSHAKE = 5, "the coordinator requires greetings with X25519";
    /// The device computes other features of its samples than the experiment does.
    RECIPE = 6, "the experiment has another recipe of features";
}
