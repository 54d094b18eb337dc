//! What can be wrong with data: one sentence that names the file and what would be right.

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

/// Why data cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file cannot be read.
    #[error("{}: cannot be read ({reason}){}", path.display(), advice(reason))]
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
    /// Samples of a program, where there is none that gives them.
    #[error(
        "`data.source` is \"memory\": these samples were given by a program, such as Python's \
         `smolfed.Federation.from_arrays`, and are in no file; run it from there"
    )]
    InMemory,
    /// Samples of a program for an experiment that reads its own.
    #[error("`data.source` must be \"memory\" for samples that a program gives")]
    NotInMemory,
    /// A file's content, or what the configuration asks of it.
    #[error("{origin}: {reason}")]
    Content {
        /// The file.
        origin: String,
        /// What is wrong.
        reason: ContentError,
    },
}

/// Why the content of a file cannot be used.
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
    /// A folder of images.
    Images(#[from] ImagesError),
    /// An array is not what it is used for.
    Array(#[from] ArrayError),
    /// A table is malformed.
    Table(#[from] TableError),
    /// Recordings that make no windows.
    Recordings(#[from] RecordingsError),
    /// Texts that make no samples.
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
    /// No features are computed of the samples.
    Features(#[from] FeaturesError),
    /// The data cannot be split as asked.
    Split(#[from] SplitError),
    /// The data cannot be dealt to devices as asked.
    Partition(#[from] PartitionError),
}

/// Behind a pointer, since it holds errors of tables.
impl From<TextError> for ContentError {
    fn from(error: TextError) -> Self {
        Self::Text(Box::new(error))
    }
}

impl DataError {
    /// For `map_err`: the error that names the file as `origin`.
    pub fn at<E: Into<ContentError>>(origin: &str) -> impl FnOnce(E) -> Self + use<'_, E> {
        move |reason| Self::Content {
            origin: origin.to_owned(),
            reason: reason.into(),
        }
    }
}

/// What to give in the place of a file that cannot be read.
fn advice(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::IsADirectory => "; name a file in it",
        io::ErrorKind::NotFound => "; give the right path",
        _ => "",
    }
}
