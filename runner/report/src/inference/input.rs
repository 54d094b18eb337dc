//! New rows for a model: read in parts, prepared as rows were in training.
//!
//! Files are read whole, plain or gzipped, and become features part by part. Columns of tables and
//! texts are found by name. If features are computed from windows, a table of recordings is cut as
//! in training. The features of IDX, NumPy and LEAF files and of images have no names, and are
//! taken in order.

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
    /// Number of rows read so far.
    done: usize,
    /// Format in which boards store features that they compute in integers.
    integers: Option<FeatureFormat>,
}

enum Kind<'a> {
    Table(Box<Table<'a>>),
    Array(Array),
    Recording(Recording),
}

impl<'a> Kind<'a> {
    /// Recognises the kind of a file by its contents.
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

/// Rows prepared for the model.
pub struct Part {
    /// Name of each row: its number from 1, or its entry in the name column.
    pub ids: Vec<String>,
    data: Dataset,
    rows: Vec<u32>,
}

impl Part {
    /// Returns the rows as samples. Their targets are 0 unless requested.
    #[must_use]
    pub fn samples(&self) -> DatasetView<'_> {
        let shared = self.data.shared_view(&self.rows);
        // Features of a part are numbers.
        shared.unwrap_or_else(|| DatasetView::empty(self.data.feature_count()))
    }
}

impl<'a> Input<'a> {
    /// Opens a file, or standard input for `-`. The format is recognised by the contents.
    ///
    /// # Errors
    /// [`InferenceError`] if it cannot be read, or lacks the model's columns.
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

    /// Reads a table in a program's memory, called `origin` in errors.
    ///
    /// # Errors
    /// [`InferenceError`] if it lacks the model's columns, or if the model reads texts or windows
    /// of recordings.
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

    /// Makes computed features round to the integers of boards.
    #[must_use]
    pub const fn for_integers(mut self, format: FeatureFormat) -> Self {
        self.integers = Some(format);
        self
    }

    /// Returns the name of the file, for errors.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the number of rows so far with a category unknown to the model, if ignored.
    #[must_use]
    pub fn unknown_rows(&self) -> u64 {
        match &self.kind {
            Kind::Table(table) => table.unknown_rows(),
            Kind::Array(_) | Kind::Recording(_) => 0,
        }
    }

    /// Returns surprising facts about the rows so far, as sentences that quote them.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        match &self.kind {
            Kind::Table(table) => table.remarks(&self.origin),
            Kind::Array(_) | Kind::Recording(_) => Vec::new(),
        }
    }

    /// Returns the next rows, at most `count`, or `None` after the last.
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
            // Encoders read samples like models of classes.
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
