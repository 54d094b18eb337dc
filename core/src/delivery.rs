//! Finished models for a device that only infers: it has a key and a number, and neither a ledger
//! nor random streams, so it cannot take part in a round.
//!
//! A publisher signs a [model file](mod@file). A device accepts a file only with the publisher's
//! signature, with the shape and the features of its firmware, and with a version above its
//! current one. It therefore does not matter who carries the file: a coordinator
//! ([`Receiver`]), an update of the firmware, or a phone ([`ModelSlots::install`]).
//!
//! A file is written to the [slot](slots) without the current model. A slot counts only if the
//! signature over it holds, so a device that loses power at any time keeps its last good model.
//!
//! ```
//! # use smolfed_core::delivery::{Accepted, DeliveryError, ModelSlots};
//! # use embedded_storage::nor_flash::NorFlash;
//! /// Installs a file that a phone has brought, and loads the newest model.
//! fn update(
//!     flash: impl NorFlash,
//!     accepted: Accepted,
//!     file: &[u8],
//!     parameters: &mut [f32],
//! ) -> Result<Option<u32>, DeliveryError> {
//!     let mut slots = ModelSlots::open(flash, accepted)?;
//!     if let Err(refused) = slots.install(file) {
//!         // The last good model is still there.
//!         println!("{refused}");
//!     }
//!     slots.load(parameters)
//! }
//! ```

pub mod file;
pub mod receiver;
pub mod slots;

#[cfg(test)]
mod tests;

pub use file::{Accepted, Encoding, FileDigest, Header, PublisherKey};
pub use receiver::Receiver;
pub use slots::ModelSlots;

/// Why a device refuses a model file, or cannot store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum DeliveryError {
    /// The bytes are not a model file of this version of the format, or a parameter is not finite.
    Format,
    /// The length does not fit the model.
    Length,
    /// The file is for a model of another shape.
    Shape,
    /// The file is for other features.
    Recipe,
    /// The signature is not the publisher's, or the file is damaged.
    Signature,
    /// The device has this version or a newer one.
    Old,
    /// The file is larger than a slot, or the words of the flash do not fit the format.
    Room,
    /// The flash fails.
    Flash,
}

impl core::fmt::Display for DeliveryError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Format => "not a model file of this version, or a parameter is not a number",
            Self::Length => "the length of the file does not fit the model",
            Self::Shape => "the file is for a model of another shape",
            Self::Recipe => "the file is for other features",
            Self::Signature => "the signature is not the publisher's, or the file is damaged",
            Self::Old => "the device has this version or a newer one",
            Self::Room => "the file does not fit in a slot of the flash",
            Self::Flash => "the flash of the models fails",
        })
    }
}

impl core::error::Error for DeliveryError {}
