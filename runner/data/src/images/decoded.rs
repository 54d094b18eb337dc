//! Decoding of one image file to grey levels or colours, with a limit on its memory.

use std::path::Path;

use image::{DynamicImage, ImageReader};

use super::error::ImagesError;

/// An image in memory.
pub(super) struct Decoded(DynamicImage);

impl Decoded {
    /// Reads an image. The decoder's limits bound the memory that a header can request.
    ///
    /// # Errors
    /// [`ImagesError`].
    pub(super) fn read(path: &Path) -> Result<Self, ImagesError> {
        let refuse = |reason| ImagesError::Read {
            path: path.to_path_buf(),
            reason,
        };
        let reader = ImageReader::open(path).map_err(refuse)?;
        let reader = reader.with_guessed_format().map_err(refuse)?;
        let image = reader.decode().map_err(|reason| ImagesError::Decode {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        });
        image.map(Self)
    }

    /// Returns the numbers of rows and columns.
    pub(super) fn size(&self) -> [usize; 2] {
        [self.0.height() as usize, self.0.width() as usize]
    }

    /// Returns whether it has colours.
    pub(super) fn is_coloured(&self) -> bool {
        self.0.color().has_color()
    }

    /// Returns its grey levels, row by row.
    pub(super) fn into_grey(self) -> Vec<u8> {
        self.0.into_luma8().into_raw()
    }

    /// Returns red, green and blue of each pixel, row by row.
    pub(super) fn into_colours(self) -> Vec<u8> {
        self.0.into_rgb8().into_raw()
    }
}
