//! What the formats of tables have in common: a header, then rows of cells as text.

use csv::StringRecord;

use super::error::TableError;
use crate::column::Encoding;
use crate::column::place::Place;

/// A table that is read row by row.
pub(super) trait Rows {
    /// The names of the columns.
    fn header(&self) -> &StringRecord;

    /// Puts the next row into `cells` and says where it is; `None` after the last.
    fn next(&mut self, cells: &mut StringRecord) -> Result<Option<Place>, TableError>;

    /// What becomes of the cells of a column, unless the configuration says otherwise.
    fn usual_encoding(&self, _column: usize) -> Encoding {
        Encoding::Number
    }

    /// Whether a column has times that the format keeps in UTC, whatever the clock was.
    fn is_utc(&self, _column: usize) -> bool {
        false
    }

    /// How it is written, in a few words.
    fn layout(&self) -> String;

    /// Whether a comma in a number can only be a decimal comma.
    fn has_decimal_commas(&self) -> bool {
        false
    }
}
