//! Rows of a recording, cut into windows whose features the core computes, as in training.

use super::rows::{Options, Rows, prepare};
use super::table::{by_name, classes, open, read, roles};
use crate::inference::error::InferenceError;
use smolfed_data::column::{Encoding, FeatureColumn, Values};
use smolfed_data::error::DataError;
use smolfed_data::table::reader::{Cells, Reader, Row};
use smolfed_data::window_features::WindowFeaturesError;
use smolfed_engine::preprocessing::{Preprocessing, WindowColumns};

/// The windows of a table, in order.
pub(super) struct Recording {
    windows: Rows,
    width: usize,
    /// Number of windows returned so far.
    done: usize,
}

/// The rows read so far.
#[derive(Default)]
struct Read {
    /// The channels, row after row.
    values: Values,
    /// Contents of the columns that end a window when they change.
    breaks: Vec<Vec<String>>,
    ids: Vec<String>,
    targets: Vec<f32>,
}

/// Indices of the columns of a table.
struct Places {
    channels: Vec<(usize, FeatureColumn)>,
    breaks: Vec<usize>,
    id: Option<usize>,
    target: Option<usize>,
}

impl Recording {
    /// Opens the windows of a table. `None` if the model does not use windows, or the table already
    /// has their features.
    pub(super) fn open(
        bytes: &[u8],
        origin: &str,
        preprocessing: &Preprocessing,
        options: Options<'_>,
    ) -> Result<Option<Self>, InferenceError> {
        let Some(window) = preprocessing.window.as_ref().filter(|_| options.has_header) else {
            return Ok(None);
        };
        let rows = open(bytes, origin, options)?;
        let header = rows.header();
        let names = preprocessing.names().unwrap_or_default();
        let has = |name: &str| header.iter().any(|column| column == name);
        if names.iter().all(|name| has(name)) {
            return Ok(None);
        }
        let channels: Vec<&str> = window.channels.iter().map(String::as_str).collect();
        let channels = by_name(&channels, header, origin)?.into_iter();
        let number = |name: &String| FeatureColumn {
            name: name.clone(),
            encoding: Encoding::Number,
        };
        let (id, target) = roles(header, origin, preprocessing, options)?;
        let place_of = |name: &String| header.iter().position(|column| column == name);
        let places = Places {
            channels: channels.zip(window.channels.iter().map(number)).collect(),
            breaks: window.breaks.iter().filter_map(place_of).collect(),
            id,
            target: target.filter(|_| options.has_targets),
        };
        let read = Read::new(rows, origin, preprocessing, &places)?;
        let windows = read.windows(origin, preprocessing, window)?;
        let width = preprocessing.columns.len();
        Ok(Some(Self {
            windows,
            width,
            done: 0,
        }))
    }

    /// Returns the next windows.
    pub(super) fn next(&mut self, count: usize) -> Rows {
        let end = (self.done + count).min(self.windows.ids.len());
        let places = self.done..end;
        self.done = end;
        let features = places.start * self.width..places.end * self.width;
        Rows {
            ids: self.windows.ids[places.clone()].to_vec(),
            features: self.windows.features[features].to_vec(),
            targets: self.windows.targets[places].to_vec(),
        }
    }
}

impl Read {
    fn new(
        mut rows: Reader,
        origin: &str,
        preprocessing: &Preprocessing,
        places: &Places,
    ) -> Result<Self, InferenceError> {
        let classes = classes(preprocessing);
        let mut all = Self::default();
        while let Some((row, mut numbers)) = rows.next_row().map_err(DataError::at(origin))? {
            all.push(&row, &mut numbers, origin, places)?;
            if let Some(at) = places.target {
                let target = read(preprocessing, &classes, origin, &row, &mut numbers, at)?;
                all.targets.push(target);
            }
        }
        Ok(all)
    }

    /// Adds a row without its target.
    fn push(
        &mut self,
        row: &Row<'_>,
        numbers: &mut Cells<'_>,
        origin: &str,
        places: &Places,
    ) -> Result<(), InferenceError> {
        for (at, column) in &places.channels {
            numbers
                .features(row, *at, column, &mut self.values)
                .map_err(DataError::at(origin))?;
            if !self.values.missing.is_empty() {
                let (row, column) = (self.breaks.len(), column.name.clone());
                return Err(refused(
                    origin,
                    WindowFeaturesError::Missing { row, column },
                ));
            }
        }
        let text = |at: &usize| row.cell(*at, "series").map(str::to_owned);
        let breaks: Result<Vec<String>, _> = places.breaks.iter().map(text).collect();
        self.breaks.push(breaks.map_err(DataError::at(origin))?);
        if let Some(at) = places.id {
            let id = row.text(at, "name").map_err(DataError::at(origin))?;
            self.ids.push(id.to_owned());
        }
        Ok(())
    }

    /// Returns the features of the windows in the model's form.
    fn windows(
        &self,
        origin: &str,
        preprocessing: &Preprocessing,
        window: &WindowColumns,
    ) -> Result<Rows, InferenceError> {
        let place = |row: usize| {
            let target = self.targets.get(row).map(|target| target.to_bits());
            (self.breaks.get(row), target)
        };
        let recordings = &window.recordings;
        let starts = recordings.starts(self.breaks.len(), place);
        let starts = starts.map_err(DataError::at(origin))?;
        let (channels, every) = (window.channels.len(), recordings.every as usize);
        let mut rows = Rows::default();
        for (number, start) in (1..).zip(starts) {
            let at =
                |channel, step| self.values.features[(start + step * every) * channels + channel];
            // Preprocessing has no windows without features.
            let Some(features) = &recordings.features else {
                break;
            };
            let features = features.compute(channels, at, start);
            let features = features.map_err(|error| refused(origin, error))?;
            for (at, value) in features.into_iter().enumerate() {
                let place = || format!("window {number}");
                let value = prepare(preprocessing, at, Some(value.into()), origin, place)?;
                rows.features.push(value);
            }
            let id = self.ids.get(start).cloned();
            rows.ids.push(id.unwrap_or_else(|| number.to_string()));
            rows.targets
                .push(self.targets.get(start).copied().unwrap_or(0.0));
        }
        Ok(rows)
    }
}

fn refused(origin: &str, error: WindowFeaturesError) -> InferenceError {
    DataError::at(origin)(smolfed_data::recordings::RecordingsError::from(error)).into()
}
