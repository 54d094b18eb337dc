//! Errors in texts: no text, a character that is not in the alphabet, texts that are too short for
//! a sample or for the model.

use crate::dataset::DatasetError;
use crate::table::{Place, TableError};

/// Errors in texts.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The table of the texts is invalid.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The samples cannot be learned from.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A table has no rows.
    #[error("has no text: give a row for each text below the header line")]
    NoText,
    /// A character has no symbol.
    #[error(
        "{place}, column `{column}`: the character {character:?} (U+{:04X}) is not in the \
         alphabet; add it to `data.alphabet`, or give all such characters one symbol with \
         `data.unknown_characters = \"replace\"`",
        u32::from(*character)
    )]
    Character {
        /// The row.
        place: Place,
        /// Name of the column.
        column: String,
        /// The character.
        character: char,
    },
    /// No device has enough text.
    #[error(
        "the longest text has {longest} characters, but {samples} {} of a device need {needed}; \
         choose a smaller `data.length`, `data.stride` or `data.min_samples`",
        if *samples == 1 { "sample" } else { "samples" }
    )]
    TooShort {
        /// Number of characters of the longest text of a device.
        longest: usize,
        /// Minimum number of samples of a device.
        samples: usize,
        /// Number of characters of this many samples, including the one after the last.
        needed: usize,
    },
    /// A text is shorter than the input of the model.
    #[error(
        "{place}, column `{column}`: has {found} {}, but the model reads {length}; give a longer \
         text",
        if *found == 1 { "character" } else { "characters" }
    )]
    Short {
        /// The row.
        place: Place,
        /// Name of the column.
        column: String,
        /// Number of characters of the text.
        found: usize,
        /// Number of characters that the model reads.
        length: usize,
    },
    /// No text is long enough to evaluate a model.
    #[error(
        "the longest text has {longest} characters, but the model is evaluated on texts of \
         {needed} or more; give longer texts"
    )]
    NoSample {
        /// Number of characters of the longest text.
        longest: usize,
        /// Number of characters that a model reads, plus one.
        needed: usize,
    },
    /// There are more samples than fit in memory.
    #[error("makes {sample_count} samples, too many for the memory; choose a larger `data.stride`")]
    TooManySamples {
        /// Number of samples of all devices.
        sample_count: usize,
    },
}
