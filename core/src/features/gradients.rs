//! Histograms of an image's gradients by cell and direction (HOG), as features in `f32` or in
//! integers: the number of directions, and colour planes.

use core::mem;

use super::cells::Cells;
use super::error::{FeatureError, has_length};
use super::shares;
use crate::format::{Feature, FeatureScale};

/// Directions of gradients: 0 is +x (to the right), 1 is +x+y, 2 is +y (down), .., 7 is +x−y.
pub const DIRECTIONS: usize = 8;

/// Histograms of an image's gradients. [`features`](super) has the formulas.
///
/// Features are ordered cell by cell in rows, eight directions per cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Gradients {
    cells: Cells,
}

impl Gradients {
    /// Creates the histograms for images with these cells.
    #[must_use]
    pub const fn new(cells: Cells) -> Self {
        Self { cells }
    }

    /// Returns the number of features of an image.
    #[must_use]
    pub const fn feature_count(&self) -> usize {
        self.cells.count() * DIRECTIONS
    }

    /// Writes the features of an image.
    ///
    /// * Shape: `planes` are one plane of rows × columns pixels, row by row, or the three planes of
    ///   a colour image. Each pixel then uses the plane with the largest magnitude. `features` has
    ///   [`feature_count`](Self::feature_count) entries.
    /// * Units: roots of shares of the image's gradients. Their squares add up to a quarter of
    ///   their number.
    /// * Cost: O(pixels) in integers, then a division, a root and a product for each feature.
    ///
    /// # Errors
    /// [`FeatureError::Length`]. Nothing is then written.
    pub fn features_into<const PLANES: usize>(
        &self,
        planes: [&[u8]; PLANES],
        features: &mut [f32],
    ) -> Result<(), FeatureError> {
        self.checked(&planes, features.len())?;
        features.fill(0.0);
        self.add(planes, features, shares::add_in_place);
        shares::roots_in_place(features);
        Ok(())
    }

    /// Writes the features of an image as integers times 2^−F, rounded half away from zero, and
    /// returns the number of saturated features.
    ///
    /// * Shape: as [`features_into`](Self::features_into), and `sums` as working memory with one
    ///   entry for each feature.
    /// * Error: half a unit, without rounding errors of `f32`.
    /// * Cost: no floating point. One division of 64 bits for the image, a product and a root of 32
    ///   bits for each feature.
    ///
    /// # Errors
    /// [`FeatureError::Length`]. Nothing is then written.
    pub fn quantised_into<X: Feature, const PLANES: usize>(
        &self,
        planes: [&[u8]; PLANES],
        scale: FeatureScale,
        sums: &mut [u32],
        features: &mut [X],
    ) -> Result<usize, FeatureError> {
        self.checked(&planes, features.len())?;
        has_length(sums.len(), features.len())?;
        sums.fill(0);
        self.add(planes, sums, |sum, magnitude| *sum += magnitude);
        Ok(shares::quantise(sums, scale, features))
    }

    fn checked(&self, planes: &[&[u8]], features: usize) -> Result<(), FeatureError> {
        for plane in planes {
            self.cells.checked(plane)?;
        }
        has_length(features, self.feature_count())
    }

    /// Adds the magnitude of each pixel to the sum of its cell and direction.
    #[inline(always)]
    fn add<T, const PLANES: usize>(
        &self,
        planes: [&[u8]; PLANES],
        sums: &mut [T],
        add: impl Fn(&mut T, u32),
    ) {
        let (cells, size) = (self.cells, self.cells.cell());
        let in_a_row = sums.chunks_exact_mut(cells.across() * DIRECTIONS);
        for (row, sums) in in_a_row.enumerate() {
            for row in row * size..(row + 1) * size {
                let mut rows = planes.map(|plane| Row::new(cells, plane, row));
                let mut column = 0;
                for sums in sums.chunks_exact_mut(DIRECTIONS) {
                    for _ in 0..size {
                        let gradients = rows.iter_mut().map(|row| row.gradient(column));
                        let steepest = gradients.reduce(Gradient::steeper);
                        column += 1;
                        if let Some(gradient) = steepest
                            && !gradient.is_zero()
                            && let Some(sum) = sums.get_mut(gradient.direction())
                        {
                            add(sum, gradient.magnitude());
                        }
                    }
                }
            }
        }
    }
}

/// The gradients of a row of an image, pixel by pixel. There is no vertical gradient in the first
/// and last row, and no horizontal one in the first and last column: both neighbours are then the
/// same pixel.
struct Row<'a> {
    above: &'a [u8],
    here: &'a [u8],
    below: &'a [u8],
    /// The left neighbour of the next pixel.
    left: u8,
    /// The next pixel.
    middle: u8,
}

impl<'a> Row<'a> {
    #[inline(always)]
    fn new(cells: Cells, pixels: &'a [u8], row: usize) -> Self {
        let is_inside = row > 0 && row + 1 < cells.rows();
        let away = usize::from(is_inside);
        let here = cells.row(pixels, row);
        let middle = here.first().copied().unwrap_or_default();
        Self {
            above: cells.row(pixels, row - away),
            below: cells.row(pixels, row + away),
            left: here.get(1).copied().unwrap_or(middle),
            middle,
            here,
        }
    }

    /// Returns the gradient of a pixel. Columns must be asked for in turn, from 0.
    #[inline(always)]
    fn gradient(&mut self, column: usize) -> Gradient {
        let right = self.here.get(column + 1).copied().unwrap_or(self.left);
        let left = mem::replace(&mut self.left, mem::replace(&mut self.middle, right));
        let difference = |a: u8, b: u8| i32::from(b) - i32::from(a);
        Gradient {
            x: difference(left, right),
            y: match (self.above.get(column), self.below.get(column)) {
                (Some(above), Some(below)) => difference(*above, *below),
                _ => 0,
            },
        }
    }
}

/// The gradient of a pixel, from −255 to 255 in each direction.
#[derive(Clone, Copy)]
struct Gradient {
    x: i32,
    y: i32,
}

impl Gradient {
    #[inline(always)]
    const fn is_zero(self) -> bool {
        self.x | self.y == 0
    }

    /// Returns the larger and the smaller of both magnitudes.
    #[inline(always)]
    fn sides(self) -> (u32, u32) {
        let (x, y) = (self.x.unsigned_abs(), self.y.unsigned_abs());
        (x.max(y), x.min(y))
    }

    /// Returns the magnitude, at most 255 + 95.
    #[inline(always)]
    fn magnitude(self) -> u32 {
        let (larger, smaller) = self.sides();
        larger + (3 * smaller) / 8
    }

    /// Returns the gradient with the larger magnitude, or the first of equal ones.
    #[inline(always)]
    fn steeper(self, other: Self) -> Self {
        match other.magnitude() > self.magnitude() {
            true => other,
            false => self,
        }
    }

    /// Returns the direction, from 0 to 7. It is arbitrary for a gradient of zero.
    #[inline(always)]
    fn direction(self) -> usize {
        let (larger, smaller) = self.sides();
        let (is_right, is_down) = (self.x > 0, self.y > 0);
        if 29 * smaller > 12 * larger {
            return match (is_right, is_down) {
                (true, true) => 1,
                (false, true) => 3,
                (false, false) => 5,
                (true, false) => 7,
            };
        }
        match (self.x.unsigned_abs() == larger, is_right, is_down) {
            (true, true, _) => 0,
            (true, false, _) => 4,
            (false, _, true) => 2,
            (false, _, false) => 6,
        }
    }
}
