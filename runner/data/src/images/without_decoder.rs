//! Replacement for the decoder of images in a program that was compiled without them. None can be
//! read.

use std::path::Path;

use super::error::ImagesError;
use crate::missing_feature::MissingFeature;

/// An image in memory. No value exists.
pub(super) enum Decoded {}

impl Decoded {
    /// Always fails.
    ///
    /// # Errors
    /// [`ImagesError::Missing`].
    pub(super) const fn read(_: &Path) -> Result<Self, ImagesError> {
        Err(ImagesError::Missing(MissingFeature {
            part: "images",
            feature: "images",
        }))
    }

    /// Returns the numbers of rows and columns.
    pub(super) const fn size(&self) -> [usize; 2] {
        match *self {}
    }

    /// Returns whether it has colours.
    pub(super) const fn is_coloured(&self) -> bool {
        match *self {}
    }

    /// Returns its grey levels.
    pub(super) const fn into_grey(self) -> Vec<u8> {
        match self {}
    }

    /// Returns its colours.
    pub(super) const fn into_colours(self) -> Vec<u8> {
        match self {}
    }
}
