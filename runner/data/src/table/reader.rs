//! A table in any format, read row by row, with the names of its columns and the place of each row.

use csv::StringRecord;

use super::columns::place_of;
use super::error::TableError;
use super::format::{self, TableFormat};
use super::frame::Frame;
use super::rows::Rows;
use crate::column::cell::{Notation, is_missing};
use crate::column::error::CellError;
use crate::column::place::Place;
use crate::column::signs::Found;
use crate::column::time::Time;
use crate::column::{Encoding, FeatureColumn, Values};
use crate::remark::Remark;

/// Reads a table row by row.
pub struct Reader {
    rows: Box<dyn Rows>,
    header: StringRecord,
    record: StringRecord,
    notation: Notation,
    /// The place of `record`, if it has been read but not returned.
    ahead: Option<Place>,
}

impl Reader {
    /// Reads the header of an unpacked file.
    ///
    /// # Errors
    /// [`TableError`] if the file does not have this format.
    pub fn new(format: TableFormat, bytes: &[u8]) -> Result<Self, TableError> {
        Ok(Self::of_rows(format::open(format, bytes)?))
    }

    /// Reads a table in the memory of a program.
    #[must_use]
    pub fn of_frame(frame: &Frame) -> Self {
        Self::of_rows(frame.rows())
    }

    fn of_rows(rows: Box<dyn Rows>) -> Self {
        Self {
            header: rows.header().clone(),
            record: StringRecord::new(),
            notation: Notation::new(rows.has_decimal_commas()),
            ahead: None,
            rows,
        }
    }

    /// Reads delimited text without a header line. Its columns are called 1, 2, 3 and so on.
    ///
    /// # Errors
    /// The errors of [`Self::new`].
    pub fn without_header(bytes: &[u8]) -> Result<Self, TableError> {
        let reader = Self::new(TableFormat::Csv, bytes)?;
        let names = (1..=reader.header.len()).map(|number| number.to_string());
        Ok(Self {
            header: names.collect(),
            // An empty file has no row.
            ahead: (!reader.header.is_empty()).then_some(Place::Line(1)),
            record: reader.header,
            ..reader
        })
    }

    /// Returns the names of the columns.
    #[must_use]
    pub const fn header(&self) -> &StringRecord {
        &self.header
    }

    /// Returns the position of the column with this name. `key` is the configuration key that names
    /// it.
    ///
    /// # Errors
    /// [`TableError`] if there is no header, or no such column.
    pub fn place_of(&self, column: &str, key: &'static str) -> Result<usize, TableError> {
        place_of(&self.header, column, key)
    }

    /// Returns whether a column has times that the format stores in UTC.
    pub(super) fn is_utc(&self, column: usize) -> bool {
        self.rows.is_utc(column)
    }

    /// Returns the remarks on numbers with signs, such as `$` and `%`, so far, one sentence each.
    /// They quote the file.
    #[must_use]
    pub fn remarks(&self, origin: &str) -> Vec<String> {
        let remarks = self.signs().cloned().map(Remark::Signs);
        remarks
            .map(|remark| format!("{origin}: {remark}"))
            .collect()
    }

    /// Iterates over the signs removed from numbers so far.
    pub(super) fn signs(&self) -> impl Iterator<Item = &Found> {
        self.notation.signs().found()
    }

    /// Returns the default encoding of a column.
    pub(super) fn usual_encoding(&self, column: usize) -> Encoding {
        self.rows.usual_encoding(column)
    }

    /// Returns the next row, with the notation of numbers. `None` after the last.
    ///
    /// # Errors
    /// [`TableError`] with the place, if it is ragged or not text.
    pub fn next_row(&mut self) -> Result<Option<(Row<'_>, Cells<'_>)>, TableError> {
        let place = match self.ahead.take() {
            Some(place) => Some(place),
            None => self.rows.next(&mut self.record)?,
        };
        let Some(place) = place else {
            return Ok(None);
        };
        if self.record.len() != self.header.len() {
            return Err(TableError::ragged(place, self.header.len(), &self.record));
        }
        let row = Row {
            header: &self.header,
            record: &self.record,
            place,
        };
        Ok(Some((row, Cells(&mut self.notation))))
    }
}

/// One row with the data for its errors.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    header: &'a StringRecord,
    record: &'a StringRecord,
    place: Place,
}

impl<'a> Row<'a> {
    /// Returns its place.
    #[must_use]
    pub const fn place(&self) -> Place {
        self.place
    }

    /// Returns the name of column `at`.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn column(&self, at: usize) -> &'a str {
        &self.header[at]
    }

    /// Returns the cell in column `at`. `what` describes it in errors.
    ///
    /// # Errors
    /// [`TableError::Empty`] if it is missing.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn text(&self, at: usize, what: &'static str) -> Result<&'a str, TableError> {
        match is_missing(&self.record[at]) {
            true => Err(self.empty(at, what)),
            false => Ok(&self.record[at]),
        }
    }

    /// Returns the cell in column `at`, which may be spelt like a missing value: `NA`, `?`. `what`
    /// describes it in errors.
    ///
    /// # Errors
    /// [`TableError::Empty`] if it is empty.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn cell(&self, at: usize, what: &'static str) -> Result<&'a str, TableError> {
        match &self.record[at] {
            "" => Err(self.empty(at, what)),
            cell => Ok(cell),
        }
    }

    fn empty(&self, at: usize, what: &'static str) -> TableError {
        TableError::Empty {
            place: self.place,
            column: self.header[at].to_owned(),
            what,
        }
    }

    fn refuse(&self, at: usize, reason: CellError) -> TableError {
        let cell = &self.record[at];
        TableError::Cell {
            place: self.place,
            column: self.header[at].to_owned(),
            cell: shortened(cell),
            reason: match reason {
                CellError::NotNumber if Time::parse(cell).is_some() => CellError::IsTime,
                CellError::NotNumber | CellError::NotTime if Time::is_ambiguous(cell) => {
                    CellError::DayOrMonth
                }
                reason => reason,
            },
        }
    }
}

/// The notation of the numbers of a table in the rows read so far.
pub struct Cells<'a>(&'a mut Notation);

impl Cells<'_> {
    /// Returns the target in column `at`, a number.
    ///
    /// # Errors
    /// [`TableError`] if it is missing or not a number.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn target(&mut self, row: &Row<'_>, at: usize) -> Result<f32, TableError> {
        let number = self.0.number(row.text(at, "target")?, row.place);
        let number = number.map_err(|reason| match reason {
            CellError::NotNumber => CellError::TargetNotNumber,
            reason => reason,
        });
        let number = number.map_err(|reason| row.refuse(at, reason))?;
        Ok(number.value)
    }

    /// Appends the features of the cell in column `at`. For a missing cell it appends zeros and
    /// records their places.
    ///
    /// # Errors
    /// [`TableError::Cell`].
    ///
    /// # Panics
    /// If there is no such column.
    pub fn features(
        &mut self,
        row: &Row<'_>,
        at: usize,
        column: &FeatureColumn,
        values: &mut Values,
    ) -> Result<(), TableError> {
        column
            .write(&row.record[at], row.place, self.0, values)
            .map_err(|reason| row.refuse(at, reason))
    }
}

/// Returns the beginning of a cell, for errors.
pub(super) fn shortened(cell: &str) -> String {
    cell.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_a_row_where_there_is_no_header() {
        let mut reader = Reader::without_header(b"1;2,5\n3;4\n").unwrap();
        assert_eq!(reader.header(), &StringRecord::from(vec!["1", "2"]));
        let mut rows = Vec::new();
        while let Some((row, mut cells)) = reader.next_row().unwrap() {
            rows.push((row.place(), cells.target(&row, 1).unwrap()));
        }
        assert_eq!(rows, [(Place::Line(1), 2.5), (Place::Line(2), 4.0)]);
        let mut empty = Reader::without_header(b"").unwrap();
        assert!(empty.next_row().unwrap().is_none());
    }
}
