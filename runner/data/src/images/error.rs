//! Errors in a folder of images: unreadable folders, unsupported files, images of different sizes,
//! unknown classes, no image.

use std::io;
use std::path::PathBuf;

use crate::missing_feature::MissingFeature;

/// Errors in a folder of images.
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
        /// The error of the operating system.
        reason: io::Error,
    },
    /// A file is not a supported image.
    #[error("{}: is not a PNG or JPEG image ({reason})", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// The error of the decoder.
        reason: String,
    },
    /// An image has another size.
    #[error(
        "{}: has {found} pixels, but {expected} are expected (`data.axes`); make all images the \
         same size",
        path.display()
    )]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: String,
        /// The expected size.
        expected: String,
    },
    /// The class of a folder is not listed.
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
    /// There is no image.
    #[error("{}: has no PNG or JPEG images in {layout}", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
        /// The expected locations.
        layout: &'static str,
    },
}
