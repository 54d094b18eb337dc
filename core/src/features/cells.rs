//! An image in square cells: its rows, its columns and the side of a cell, with their limits.

use super::error::{FeatureError, has_length};

/// Maximum number of rows and of columns of an image. All sums then fit 32 bits.
pub const MAX_SIDE: usize = 1_024;

/// The rows and columns of an image, and the side of its square cells. Rows and columns after the
/// last whole cell are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Cells {
    rows: u16,
    columns: u16,
    cell: u16,
}

impl Cells {
    /// Divides an image of `rows` × `columns` pixels into cells of `cell` × `cell` pixels.
    ///
    /// # Errors
    /// [`FeatureError::Size`] and [`FeatureError::Cell`].
    pub const fn new(rows: usize, columns: usize, cell: usize) -> Result<Self, FeatureError> {
        if rows == 0 || columns == 0 || rows > MAX_SIDE || columns > MAX_SIDE {
            let max = MAX_SIDE;
            return Err(FeatureError::Size { rows, columns, max });
        }
        let side = if rows < columns { rows } else { columns };
        if cell == 0 || cell > side {
            return Err(FeatureError::Cell { cell, side });
        }
        Ok(Self {
            rows: rows as u16,
            columns: columns as u16,
            cell: cell as u16,
        })
    }

    /// Returns the rows of the image.
    #[must_use]
    pub const fn rows(self) -> usize {
        self.rows as usize
    }

    /// Returns the columns of the image.
    #[must_use]
    pub const fn columns(self) -> usize {
        self.columns as usize
    }

    /// Returns the side of a cell in pixels.
    #[must_use]
    pub const fn cell(self) -> usize {
        self.cell as usize
    }

    /// Returns the number of cells in a row.
    #[must_use]
    pub const fn across(self) -> usize {
        (self.columns / self.cell) as usize
    }

    /// Returns the number of cells in the image, at least 1.
    #[must_use]
    pub const fn count(self) -> usize {
        (self.rows / self.cell) as usize * self.across()
    }

    /// Checks the number of pixels of an image.
    pub(super) fn checked(self, pixels: &[u8]) -> Result<(), FeatureError> {
        has_length(pixels.len(), self.rows() * self.columns())
    }

    /// Returns a row of an image of this size, or the nearest row if it is outside.
    #[inline(always)]
    pub(super) fn row(self, pixels: &[u8], row: usize) -> &[u8] {
        let start = row.min(self.rows() - 1) * self.columns();
        pixels
            .get(start..start + self.columns())
            .unwrap_or_default()
    }
}
