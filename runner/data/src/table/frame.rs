//! A table in the memory of a program: columns of cells as text, read like those of a file.

use std::sync::Arc;

use csv::StringRecord;

use super::error::TableError;
use super::rows::Rows;
use crate::column::place::Place;

/// Columns of cells as text. Clones share them.
#[derive(Clone)]
pub struct Frame {
    header: StringRecord,
    columns: Arc<[Vec<String>]>,
    row_count: usize,
}

/// Shape only: cells are private.
impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.columns.len();
        write!(f, "Frame({} rows of {columns} columns)", self.row_count)
    }
}

impl Frame {
    /// Creates a table from columns by name, with one cell per row. An empty cell is missing.
    ///
    /// # Errors
    /// [`TableError::Columns`] for columns of different lengths.
    pub fn new(columns: Vec<(String, Vec<String>)>) -> Result<Self, TableError> {
        let row_count = columns.first().map_or(0, |(_, cells)| cells.len());
        if let Some((column, cells)) = columns.iter().find(|(_, cells)| cells.len() != row_count) {
            return Err(TableError::Columns {
                column: column.clone(),
                found: cells.len(),
                expected: row_count,
            });
        }
        let header = columns.iter().map(|(name, _)| name.as_str()).collect();
        let columns = columns.into_iter().map(|(_, cells)| cells).collect();
        Ok(Self {
            header,
            columns,
            row_count,
        })
    }

    /// Returns the number of rows.
    #[must_use]
    pub const fn row_count(&self) -> usize {
        self.row_count
    }

    /// Returns its rows, from the first on.
    pub(super) fn rows(&self) -> Box<dyn Rows> {
        Box::new(Cursor {
            frame: self.clone(),
            done: 0,
        })
    }
}

/// The rows that have not been read yet.
struct Cursor {
    frame: Frame,
    done: usize,
}

impl Rows for Cursor {
    fn header(&self) -> &StringRecord {
        &self.frame.header
    }

    fn next(&mut self, cells: &mut StringRecord) -> Result<Option<Place>, TableError> {
        if self.done == self.frame.row_count {
            return Ok(None);
        }
        cells.clear();
        let columns = self.frame.columns.iter();
        columns.for_each(|column| cells.push_field(&column[self.done]));
        self.done += 1;
        Ok(Some(Place::Row(
            u32::try_from(self.done).unwrap_or(u32::MAX),
        )))
    }

    fn layout(&self) -> String {
        "a table in memory".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Columns;
    use crate::table::profile::Profile;
    use crate::table::{Table, TableFormat};

    fn frame() -> Frame {
        let column =
            |name: &str, cells: [&str; 4]| (name.to_owned(), cells.map(str::to_owned).to_vec());
        Frame::new(vec![
            column("a", ["1.5", "", "-2", "1e3"]),
            column("colour", ["red", "blue; \"light\"", "", "red"]),
            column("label", ["x", "y", "x", "y"]),
        ])
        .unwrap()
    }

    /// The same table as a file.
    const FILE: &[u8] =
        b"a,colour,label\n1.5,red,x\n,\"blue; \"\"light\"\"\",y\n-2,,x\n1e3,red,y\n";

    fn columns() -> Columns {
        let categories = ["blue; \"light\"", "red"].map(str::to_owned).to_vec();
        let encoding = crate::column::Encoding::Categories(categories);
        Columns {
            label: "label".to_owned(),
            encodings: [("colour".to_owned(), encoding)].into(),
            ..Columns::default()
        }
    }

    #[test]
    fn cells_are_read_as_those_of_a_file() {
        let found = Table::of_frame(&frame(), &columns()).unwrap();
        let file = crate::table::parse(TableFormat::Csv, FILE, &columns()).unwrap();
        let [found, file] = [found, file].map(|table| table.into_dataset().unwrap());
        assert_eq!(found.names(), file.names());
        assert_eq!(found.targets(), file.targets());
        assert_eq!((found.missing(), file.missing()), (&[3][..], &[3][..]));
        for row in 0..4 {
            let [found, file] = [&found, &file].map(|data| data.row(row).collect::<Vec<f32>>());
            assert_eq!(found, file);
        }
        let profile = Profile::of_frame(&frame()).unwrap();
        let of_file = Profile::new(TableFormat::Csv, FILE).unwrap();
        assert_eq!(
            (profile.rows, profile.columns),
            (of_file.rows, of_file.columns)
        );
    }

    #[test]
    fn errors_name_the_row() {
        let mut columns = columns();
        columns.encodings.clear();
        let error = Table::of_frame(&frame(), &columns).unwrap_err().to_string();
        assert!(
            error.contains("row 1") && error.contains("colour"),
            "{error}"
        );
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        let cells = |count| vec!["1".to_owned(); count];
        let error = Frame::new(vec![("a".into(), cells(3)), ("b".into(), cells(2))]).unwrap_err();
        assert!(error.to_string().contains("`b` has 2 cells"), "{error}");
        assert_eq!(Frame::new(Vec::new()).unwrap().row_count(), 0);
    }
}
