//! What the formats of tables have in common: a header, then rows of cells as text.

use std::fmt;

use csv::StringRecord;

use super::encoding::Encoding;
use super::error::TableError;
#[cfg(feature = "parquet")]
use super::parquet;
use super::{arff, delimited, text};

/// The formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Text with a header line: CSV, TSV and their kin.
    Csv,
    /// Attribute-relation files of Weka and OpenML.
    Arff,
    /// Columns of Apache Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl TableFormat {
    /// The format of an unpacked file, by its content; delimited text if it is nothing else.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        #[cfg(feature = "parquet")]
        if bytes.starts_with(parquet::MAGIC) {
            return Self::Parquet;
        }
        match text::decode(bytes) {
            Ok((text, _)) if arff::is_begun_by(&text) => Self::Arff,
            _ => Self::Csv,
        }
    }

    /// The name in configurations, which is also how file names end.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Arff => "arff",
            #[cfg(feature = "parquet")]
            Self::Parquet => "parquet",
        }
    }
}

/// Where a row is in its file, counted from 1. There are fewer than 2³², as files are bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text; the header is line 1.
    Line(u32),
    /// Row of a file without lines.
    Row(u32),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}

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

    /// How it is written, in a few words.
    fn layout(&self) -> String;

    /// Whether a comma in a number can only be a decimal comma.
    fn has_decimal_commas(&self) -> bool {
        false
    }
}

/// Opens an unpacked file.
pub(super) fn open<'a>(
    format: TableFormat,
    bytes: &'a [u8],
) -> Result<Box<dyn Rows + 'a>, TableError> {
    Ok(match format {
        TableFormat::Csv => {
            let (text, encoding) = text::decode(bytes)?;
            Box::new(delimited::read(text, encoding)?)
        }
        TableFormat::Arff => {
            let (text, encoding) = text::decode(bytes)?;
            Box::new(arff::read(text, encoding)?)
        }
        #[cfg(feature = "parquet")]
        TableFormat::Parquet => Box::new(parquet::read(bytes)?),
    })
}
