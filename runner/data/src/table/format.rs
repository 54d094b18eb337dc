//! The formats of tables (CSV, JSON lines, ARFF, Parquet): their detection by content, and the
//! opening of files.

use serde::Serialize;

use super::error::TableError;
#[cfg(feature = "parquet")]
use super::parquet;
use super::rows::Rows;
use super::{arff, delimited, json_lines, text};
#[cfg(not(feature = "parquet"))]
use crate::missing_feature::MissingFeature;

#[cfg(not(feature = "parquet"))]
const NO_PARQUET: MissingFeature = MissingFeature {
    part: "Parquet",
    feature: "parquet",
};

/// The formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TableFormat {
    /// Text with a header line: CSV, TSV and similar formats.
    Csv,
    /// One JSON object per line.
    Jsonl,
    /// Attribute-relation files of Weka and OpenML.
    Arff,
    /// Columns of Apache Parquet.
    Parquet,
}

impl TableFormat {
    /// Detects the format of an unpacked file by its content. The default is delimited text.
    #[must_use]
    pub fn detect(bytes: &[u8]) -> Self {
        if bytes.starts_with(text::PARQUET) {
            return Self::Parquet;
        }
        if json_lines::is_begun_by(bytes) {
            return Self::Jsonl;
        }
        match text::decode(bytes) {
            Ok((text, _)) if arff::is_begun_by(&text) => Self::Arff,
            _ => Self::Csv,
        }
    }

    /// Returns the name in configurations, which is also the file extension.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Arff => "arff",
            Self::Parquet => "parquet",
        }
    }
}

/// Opens an unpacked file. Text is copied.
pub(super) fn open(format: TableFormat, bytes: &[u8]) -> Result<Box<dyn Rows>, TableError> {
    Ok(match format {
        TableFormat::Csv => {
            let (text, encoding) = text::decode(bytes)?;
            Box::new(delimited::read(text.into_owned(), encoding)?)
        }
        TableFormat::Jsonl => {
            let (text, encoding) = text::decode(bytes)?;
            Box::new(json_lines::read(text.into_owned(), encoding)?)
        }
        TableFormat::Arff => {
            let (text, encoding) = text::decode(bytes)?;
            Box::new(arff::read(text, encoding)?)
        }
        #[cfg(feature = "parquet")]
        TableFormat::Parquet => Box::new(parquet::read(bytes)?),
        #[cfg(not(feature = "parquet"))]
        TableFormat::Parquet => return Err(TableError::Missing(NO_PARQUET)),
    })
}
