//! Brightness of an image by cell, as features in `f32` or in integers: sums of the pixels.

use super::cells::Cells;
use super::error::{FeatureError, has_length};
use super::shares;
use crate::format::{Feature, FeatureScale};

/// The brightness of an image's cells. [`features`](super) has the formula. Features are ordered
/// cell by cell in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Pool {
    cells: Cells,
}

impl Pool {
    /// Creates the features for images with these cells.
    #[must_use]
    pub const fn new(cells: Cells) -> Self {
        Self { cells }
    }

    /// Returns the number of features of an image.
    #[must_use]
    pub const fn feature_count(&self) -> usize {
        self.cells.count()
    }

    /// Writes the features of an image of rows × columns pixels, row by row: roots of shares of its
    /// brightness, whose squares add up to a quarter of their number.
    ///
    /// # Errors
    /// [`FeatureError::Length`]. Nothing is then written.
    pub fn features_into(&self, pixels: &[u8], features: &mut [f32]) -> Result<(), FeatureError> {
        self.checked(pixels, features.len())?;
        features.fill(0.0);
        self.add(pixels, features, shares::add_in_place);
        shares::roots_in_place(features);
        Ok(())
    }

    /// Writes the features of an image as integers times 2^−F, rounded half away from zero, and
    /// returns the number of saturated features. `sums` is working memory with one entry for each
    /// feature.
    ///
    /// # Errors
    /// [`FeatureError::Length`]. Nothing is then written.
    pub fn quantised_into<X: Feature>(
        &self,
        pixels: &[u8],
        scale: FeatureScale,
        sums: &mut [u32],
        features: &mut [X],
    ) -> Result<usize, FeatureError> {
        self.checked(pixels, features.len())?;
        has_length(sums.len(), features.len())?;
        sums.fill(0);
        self.add(pixels, sums, |sum, pixel| *sum += pixel);
        Ok(shares::quantise(sums, scale, features))
    }

    fn checked(&self, pixels: &[u8], features: usize) -> Result<(), FeatureError> {
        self.cells.checked(pixels)?;
        has_length(features, self.feature_count())
    }

    /// Adds each pixel to the sum of its cell.
    #[inline(always)]
    fn add<T>(&self, pixels: &[u8], sums: &mut [T], add: impl Fn(&mut T, u32)) {
        let (cells, size) = (self.cells, self.cells.cell());
        for (row, sums) in sums.chunks_exact_mut(cells.across()).enumerate() {
            for row in row * size..(row + 1) * size {
                let of_cells = cells.row(pixels, row).chunks_exact(size);
                for (sum, pixels) in sums.iter_mut().zip(of_cells) {
                    let pixels: u32 = pixels.iter().map(|x| u32::from(*x)).sum();
                    add(sum, pixels);
                }
            }
        }
    }
}
