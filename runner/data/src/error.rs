//! Errors in data (a file that is not found, not readable or not usable): one sentence that names
//! the file and the correction.

use std::io;
use std::path::PathBuf;

use super::archive::ArchiveError;
use super::array::ArrayError;
use super::cifar::CifarError;
use super::dataset::DatasetError;
use super::features::FeaturesError;
use super::idx::IdxError;
use super::images::ImagesError;
use super::leaf::LeafError;
use super::missing::ImputeError;
use super::npy::NpyError;
use super::partition::PartitionError;
use super::recordings::RecordingsError;
use super::scale::ScaleError;
use super::split::SplitError;
use super::table::TableError;
use super::text::TextError;

/// The reason why data cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file cannot be read.
    #[error("{}: cannot be read ({reason}){}", path.display(), advice(reason))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// A file or folder was not found.
    #[error(
        "{}: found neither at {}; give the right path, or name the folder of your data sets in \
         the environment variable SMOLFED_DATA",
        path.display(),
        tried.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" nor at ")
    )]
    NotFound {
        /// The given path.
        path: PathBuf,
        /// The searched locations.
        tried: Vec<PathBuf>,
    },
    /// A zip file contains several files instead of one.
    #[error("{origin}: has {found} .{extension} files, but exactly one is needed")]
    SeveralMembers {
        /// The file.
        origin: String,
        /// Extension of the members' names.
        extension: &'static str,
        /// Number of members.
        found: usize,
    },
    /// Two related files have different lengths.
    #[error("{origin}: has {found} entries, but {partner} has {expected} samples")]
    Count {
        /// The file with labels or devices.
        origin: String,
        /// Number of its entries.
        found: usize,
        /// The file with features.
        partner: String,
        /// Number of its samples.
        expected: usize,
    },
    /// The samples must come from a program, but there is none.
    #[error(
        "`data.source` is \"memory\": a program passed these samples, for example with Python's \
         `smolfed.Federation.from_arrays`, and they are not in a file; run it from there"
    )]
    InMemory,
    /// A program gives samples to an experiment that reads its own.
    #[error("`data.source` must be \"memory\" for samples passed by a program")]
    NotInMemory,
    /// The content of a file is invalid, or does not match the configuration.
    #[error("{origin}: {reason}")]
    Content {
        /// The file.
        origin: String,
        /// The reason.
        reason: ContentError,
    },
}

/// The reason why the content of a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum ContentError {
    /// A packed file cannot be unpacked.
    Archive(#[from] ArchiveError),
    /// An IDX file is malformed.
    Idx(#[from] IdxError),
    /// A NumPy file is malformed.
    Npy(#[from] NpyError),
    /// A folder of images is invalid.
    Images(#[from] ImagesError),
    /// An array does not fit its use.
    Array(#[from] ArrayError),
    /// A table is malformed.
    Table(#[from] TableError),
    /// Recordings contain no windows.
    Recordings(#[from] RecordingsError),
    /// Texts contain no samples.
    Text(Box<TextError>),
    /// A file of CIFAR-10 is malformed.
    Cifar(#[from] CifarError),
    /// A LEAF file is malformed.
    Leaf(#[from] LeafError),
    /// The content is well-formed but cannot be learned from.
    Dataset(#[from] DatasetError),
    /// Missing values cannot be filled.
    Impute(#[from] ImputeError),
    /// The features cannot be scaled as asked.
    Scale(#[from] ScaleError),
    /// The features of the samples cannot be computed.
    Features(#[from] FeaturesError),
    /// The data cannot be split as asked.
    Split(#[from] SplitError),
    /// The data cannot be dealt to devices as asked.
    Partition(#[from] PartitionError),
}

/// Boxed, since it contains errors of tables.
impl From<TextError> for ContentError {
    fn from(error: TextError) -> Self {
        Self::Text(Box::new(error))
    }
}

impl DataError {
    /// Returns a function for `map_err` that creates the error with `origin` as the file.
    pub fn at<E: Into<ContentError>>(origin: &str) -> impl FnOnce(E) -> Self + use<'_, E> {
        move |reason| Self::Content {
            origin: origin.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Returns advice for a file that cannot be read.
fn advice(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::IsADirectory => "; name a file in it",
        io::ErrorKind::NotFound => "; give the right path",
        _ => "",
    }
}
