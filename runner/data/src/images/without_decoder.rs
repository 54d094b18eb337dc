//! Images in a program that was compiled without them: none can be read.

use std::path::Path;

use super::error::ImagesError;
use crate::missing_feature::MissingFeature;

/// An image in memory, of which there is none.
pub(super) enum Decoded {}

impl Decoded {
    /// Refuses.
    ///
    /// # Errors
    /// [`ImagesError::Missing`].
    pub(super) const fn read(_: &Path) -> Result<Self, ImagesError> {
        Err(ImagesError::Missing(MissingFeature {
            part: "images",
            feature: "images",
        }))
    }

    /// Rows and columns.
    pub(super) const fn size(&self) -> [usize; 2] {
        match *self {}
    }

    /// Whether it has colours.
    pub(super) const fn is_coloured(&self) -> bool {
        match *self {}
    }

    /// Its grey levels.
    pub(super) const fn into_grey(self) -> Vec<u8> {
        match self {}
    }

    /// Its colours.
    pub(super) const fn into_colours(self) -> Vec<u8> {
        match self {}
    }
}
