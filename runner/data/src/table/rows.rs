//! The common interface of the formats of tables: a header, then rows of cells as text.

use csv::StringRecord;

use super::error::TableError;
use crate::column::Encoding;
use crate::column::place::Place;

/// A table that is read row by row.
pub(super) trait Rows {
    /// Returns the names of the columns.
    fn header(&self) -> &StringRecord;

    /// Reads the next row into `cells` and returns its place. `None` after the last.
    fn next(&mut self, cells: &mut StringRecord) -> Result<Option<Place>, TableError>;

    /// Returns the default encoding of a column.
    fn usual_encoding(&self, _column: usize) -> Encoding {
        Encoding::Number
    }

    /// Returns whether a column has times that the format stores in UTC, for any original clock.
    fn is_utc(&self, _column: usize) -> bool {
        false
    }

    /// Returns a short description of the format.
    fn layout(&self) -> String;

    /// Returns whether a comma in a number can only be a decimal comma.
    fn has_decimal_commas(&self) -> bool {
        false
    }
}
