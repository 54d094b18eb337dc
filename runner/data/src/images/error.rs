//! What can be wrong with a folder of images.

use std::io;
use std::path::PathBuf;

use crate::missing_feature::MissingFeature;

/// What can be wrong with a folder of images.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImagesError {
    /// This program was compiled without images.
    #[error(transparent)]
    Missing(MissingFeature),
    /// A folder cannot be read.
    #[error("{}: cannot be read ({reason})", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// What the operating system says.
        reason: io::Error,
    },
    /// A file is no such image.
    #[error("{}: is not a PNG or JPEG image ({reason})", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// What the decoder says.
        reason: String,
    },
    /// An image of another size.
    #[error(
        "{}: has {found} pixels, but {expected} are expected (`data.axes`); make all images of one \
         size",
        path.display()
    )]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: String,
        /// The size of all.
        expected: String,
    },
    /// A folder of a class that is not listed.
    #[error(
        "the folder `{class}` is not among `data.classes` ({classes}); add it, or leave it out \
         with `data.unknown_labels = \"drop\"`"
    )]
    UnknownClass {
        /// The folder.
        class: String,
        /// The first classes.
        classes: String,
    },
    /// No image anywhere.
    #[error("{}: holds no PNG or JPEG images in {layout}", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
        /// Where they were looked for.
        layout: &'static str,
    },
}
