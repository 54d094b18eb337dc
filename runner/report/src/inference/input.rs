//! New rows for a model: read in parts, prepared as rows were in training.
//!
//! Files are read whole, plain or gzipped, and become features part by part. The columns of tables
//! are found by name, and so is that of texts; where features are computed from windows, a table of
//! recordings is cut as in training. The features of IDX, NumPy and LEAF files and of
//! images have no names, and are taken in order.

mod array;
mod recording;
mod rows;
mod table;

use std::io::{BufReader, stdin};
use std::path::Path;

use smolfed_core::fixed_point::FeatureFormat;

use super::error::InferenceError;
use array::{Array, has_arrays};
use recording::Recording;
use smolfed_data::dataset::{Dataset, DatasetView, Targets};
use smolfed_data::error::DataError;
use smolfed_data::files;
use smolfed_data::table::TableFormat;
use smolfed_data::table::frame::Frame;
use smolfed_data::table::reader::Reader;
use smolfed_engine::preprocessing::{Preprocessing, Target};
use table::Table;

pub use rows::Options;

/// Rows of a file.
pub struct Input<'a> {
    origin: String,
    preprocessing: &'a Preprocessing,
    kind: Kind<'a>,
    /// Rows that have been read.
    done: usize,
    /// How boards store features that they compute in integers.
    integers: Option<FeatureFormat>,
}

enum Kind<'a> {
    Table(Box<Table<'a>>),
    Array(Array),
    Recording(Recording),
}

impl<'a> Kind<'a> {
    /// That of a file, known by its content.
    fn of_file(
        path: &Path,
        origin: &str,
        preprocessing: &'a Preprocessing,
        options: Options<'a>,
    ) -> Result<Self, InferenceError> {
        let bytes = match path == Path::new("-") {
            true => files::read_stream(Box::new(BufReader::new(stdin())), path)?,
            false => files::read_unpacked(path)?,
        };
        Ok(match bytes.as_slice() {
            [0, 0, ..] | [0x93, b'N', b'U', b'M', ..] => {
                Self::Array(Array::of_array(&bytes, origin, preprocessing, options)?)
            }
            [b'P', b'K', 3, 4, ..] if has_arrays(&bytes) => {
                Self::Array(Array::of_array(&bytes, origin, preprocessing, options)?)
            }
            [b'{', ..] | [b'P', b'K', 3, 4, ..]
                if TableFormat::detect(&bytes) != TableFormat::Jsonl =>
            {
                Self::Array(Array::of_leaf(&bytes, origin, options)?)
            }
            bytes if preprocessing.text.is_some() => {
                Self::Array(Array::of_text(bytes, origin, preprocessing, options)?)
            }
            bytes => match Recording::open(bytes, origin, preprocessing, options)? {
                Some(recording) => Self::Recording(recording),
                None => Self::Table(Box::new(Table::new(bytes, origin, preprocessing, options)?)),
            },
        })
    }
}

/// Some rows, prepared for the model.
pub struct Part {
    /// What names each row: its number from 1, or what the column of names has.
    pub ids: Vec<String>,
    data: Dataset,
    rows: Vec<u32>,
}

impl Part {
    /// The rows as samples; their targets are 0 unless they were asked for.
    #[must_use]
    pub fn samples(&self) -> DatasetView<'_> {
        let shared = self.data.shared_view(&self.rows);
        // Features of a part are numbers.
        shared.unwrap_or_else(|| DatasetView::empty(self.data.feature_count()))
    }
}

impl<'a> Input<'a> {
    /// Opens a file, or standard input for `-`; the format is known by the content.
    ///
    /// # Errors
    /// [`InferenceError`] if it cannot be read, or does not have the model's columns.
    pub fn open(
        path: &Path,
        preprocessing: &'a Preprocessing,
        options: Options<'a>,
    ) -> Result<Self, InferenceError> {
        let origin = path.display().to_string();
        let kind = match path.is_dir() {
            true => Kind::Array(Array::of_images(path, &origin, preprocessing, options)?),
            false => Kind::of_file(path, &origin, preprocessing, options)?,
        };
        if let Kind::Array(array) = &kind {
            let (expected, found) = (preprocessing.columns.len(), array.width());
            if found != expected {
                return Err(InferenceError::FeatureCount {
                    origin,
                    expected,
                    found,
                    hint: "",
                });
            }
        }
        Ok(Self {
            origin,
            preprocessing,
            kind,
            done: 0,
            integers: None,
        })
    }

    /// A table that a program has in memory, which errors call `origin`.
    ///
    /// # Errors
    /// [`InferenceError`] if it does not have the model's columns, or if the model reads texts or
    /// windows of recordings.
    pub fn of_frame(
        frame: &Frame,
        origin: &str,
        preprocessing: &'a Preprocessing,
        options: Options<'a>,
    ) -> Result<Self, InferenceError> {
        if preprocessing.text.is_some() || preprocessing.window.is_some() {
            return Err(InferenceError::NoPrediction(
                "the model reads texts or windows of recordings: `smolfed predict` takes files of \
                 these",
            ));
        }
        let table = Table::of_reader(Reader::of_frame(frame), origin, preprocessing, options)?;
        Ok(Self {
            origin: origin.to_owned(),
            preprocessing,
            kind: Kind::Table(Box::new(table)),
            done: 0,
            integers: None,
        })
    }

    /// The same rows, whose computed features round to the integers of boards.
    #[must_use]
    pub const fn for_integers(mut self, format: FeatureFormat) -> Self {
        self.integers = Some(format);
        self
    }

    /// The name of the file, for errors.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Rows so far with a category that the model does not know, where these are ignored.
    #[must_use]
    pub fn unknown_rows(&self) -> u64 {
        match &self.kind {
            Kind::Table(table) => table.unknown_rows(),
            Kind::Array(_) | Kind::Recording(_) => 0,
        }
    }

    /// What the owner of the file may not expect of the rows so far: sentences that quote them.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        match &self.kind {
            Kind::Table(table) => table.remarks(&self.origin),
            Kind::Array(_) | Kind::Recording(_) => Vec::new(),
        }
    }

    /// The next rows, at most `count`; `None` after the last.
    ///
    /// # Errors
    /// [`InferenceError`] with the line and column.
    pub fn next(&mut self, count: usize) -> Result<Option<Part>, InferenceError> {
        let (origin, preprocessing) = (&self.origin, self.preprocessing);
        let rows = match &mut self.kind {
            Kind::Table(table) => table.next(count, origin, preprocessing)?,
            Kind::Array(array) => array.next(count, origin, preprocessing)?,
            Kind::Recording(recording) => recording.next(count),
        };
        if rows.ids.is_empty() {
            return Ok(None);
        }
        let targets = match &preprocessing.target {
            Target::Classes { labels, .. } => Targets::Classes {
                labels: rows.targets.iter().map(|class| *class as u16).collect(),
                class_count: labels.len(),
            },
            Target::Value { .. } => Targets::Values(rows.targets),
            // Encoders read samples as models of classes do.
            Target::Representation => Targets::Classes {
                labels: vec![0; rows.targets.len()],
                class_count: preprocessing.task.output_count(),
            },
        };
        let features = preprocessing.features_of(rows.features, self.done, self.integers);
        let features = features.map_err(DataError::at(origin))?;
        self.done += rows.ids.len();
        let data = Dataset::new(features, preprocessing.feature_count(), targets);
        Ok(Some(Part {
            rows: (0..rows.ids.len() as u32).collect(),
            ids: rows.ids,
            data: data.map_err(DataError::at(origin))?,
        }))
    }
}
