//! What can be wrong with data: one sentence that names the file and what would be right.

use std::io;
use std::path::PathBuf;

use super::archive::ArchiveError;
use super::csv::CsvError;
use super::dataset::DatasetError;
use super::idx::IdxError;
use super::leaf::LeafError;
use super::missing::ImputeError;
use super::partition::PartitionError;
use super::scale::ScaleError;
use super::split::SplitError;

/// Why data cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file cannot be read.
    #[error("{}: cannot be read ({reason})", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        reason: io::Error,
    },
    /// A file or folder is nowhere to be found.
    #[error(
        "{}: found neither at {}; give the right path, or name the folder of your data sets in \
         the environment variable SMOLFED_DATA",
        path.display(),
        tried.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" nor at ")
    )]
    NotFound {
        /// The path as it was given.
        path: PathBuf,
        /// Where it was looked for.
        tried: Vec<PathBuf>,
    },
    /// A packed file cannot be unpacked.
    #[error("{origin}: {reason}")]
    Archive {
        /// The file.
        origin: String,
        /// What is wrong.
        reason: ArchiveError,
    },
    /// A zip file holds several files where one is needed.
    #[error("{origin}: holds {found} .{extension} files, but exactly one is needed")]
    SeveralMembers {
        /// The file.
        origin: String,
        /// Ending of the members' names.
        extension: &'static str,
        /// How many there are.
        found: usize,
    },
    /// An IDX file is malformed.
    #[error("{origin}: {reason}")]
    Idx {
        /// The file.
        origin: String,
        /// What is wrong.
        reason: IdxError,
    },
    /// A CSV file is malformed.
    #[error("{origin}: {reason}")]
    Csv {
        /// The file.
        origin: String,
        /// What is wrong.
        reason: CsvError,
    },
    /// A LEAF file is malformed.
    #[error("{origin}: {reason}")]
    Leaf {
        /// The file.
        origin: String,
        /// What is wrong.
        reason: LeafError,
    },
    /// Two files that belong together have different lengths.
    #[error("{origin}: has {found} entries, but {partner} has {expected} samples")]
    Count {
        /// The file with labels or devices.
        origin: String,
        /// Its entries.
        found: usize,
        /// The file with features.
        partner: String,
        /// Its samples.
        expected: usize,
    },
    /// The content is well-formed but cannot be learned from.
    #[error("{origin}: {reason}")]
    Content {
        /// The file.
        origin: String,
        /// What is wrong.
        reason: DatasetError,
    },
    /// Missing values cannot be filled.
    #[error("{origin}: {reason}")]
    Impute {
        /// The file.
        origin: String,
        /// What is wrong.
        reason: ImputeError,
    },
    /// The features cannot be scaled as asked.
    #[error("{origin}: {reason}")]
    Scale {
        /// The file.
        origin: String,
        /// What is wrong.
        reason: ScaleError,
    },
    /// The data cannot be split as asked.
    #[error("{origin}: {reason}")]
    Split {
        /// The file.
        origin: String,
        /// What is wrong.
        reason: SplitError,
    },
    /// The data cannot be dealt to devices as asked.
    #[error("{origin}: {reason}")]
    Partition {
        /// The file.
        origin: String,
        /// What is wrong.
        reason: PartitionError,
    },
}
