//! What can be wrong with texts.

use crate::dataset::DatasetError;
use crate::table::{Place, TableError};

/// What can be wrong with texts.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The table of the texts.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The samples cannot be learned from.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A table without rows.
    #[error("has no text: give a row for each text below the line with the names of the columns")]
    NoText,
    /// A character that has no symbol.
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
        /// Characters of the longest text of a device.
        longest: usize,
        /// Samples that a device must have.
        samples: usize,
        /// Characters of so many samples, with the one that follows the last.
        needed: usize,
    },
    /// A text for a model that reads more of it.
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
        /// Characters of the text.
        found: usize,
        /// Characters that the model reads.
        length: usize,
    },
    /// No text by which a model can be evaluated.
    #[error(
        "the longest text has {longest} characters, but the model is evaluated on texts of \
         {needed} or more; give longer texts"
    )]
    NoSample {
        /// Characters of the longest text.
        longest: usize,
        /// Characters that a model reads, and the one after them.
        needed: usize,
    },
    /// More than fit in memory.
    #[error("makes {sample_count} samples, too many for the memory; choose a larger `data.stride`")]
    TooManySamples {
        /// Samples of all devices.
        sample_count: usize,
    },
}
