//! Windows of recordings: rows in the order of time become samples, channels first.
//!
//! A window lies in one recording (`data.series_column`), on one device and in one class. If any of
//! them changes between two rows, a new window begins, and rows that do not fill a window are left
//! out. A sample consists of the rows of a window, or of [features](super::window_features) of
//! them.

use super::dataset::{Dataset, DatasetError, Features, Groups, Names, Targets};
use super::window_features::{WindowFeatures, WindowFeaturesError};
use crate::column::{Encoding, FeatureColumn};

/// The cutting of rows into windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Recordings {
    /// Number of rows of a window, at least 2.
    pub window: u32,
    /// Number of rows between the starts of two windows, at least 1. It equals the number of rows
    /// of a window if windows do not overlap.
    pub step: u32,
    /// Interval of the kept rows of a window, from the first on: 1 for all. It divides the number
    /// of rows of a window.
    pub every: u32,
    /// The features computed from the kept rows. `None` if samples are these rows.
    pub features: Option<WindowFeatures>,
}

/// The reason why rows contain no windows.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingsError {
    /// No run of rows is as long as a window.
    #[error(
        "at most {longest} consecutive rows belong to one recording, device and class, but a \
         window has {window}: choose a smaller `data.window`"
    )]
    TooShort {
        /// Number of rows of the longest run.
        longest: usize,
        /// Number of rows of a window.
        window: u32,
    },
    /// The test part has no window.
    #[error("no recording of `data.test_path` is as long as a window of {window} rows")]
    NoTest {
        /// Number of rows of a window.
        window: u32,
    },
    /// The targets are not classes.
    #[error("windows of a recording have a class: leave `data.window` out to predict numbers")]
    NoClasses,
    /// The features of the windows cannot be computed.
    #[error(transparent)]
    Features(#[from] WindowFeaturesError),
    /// The windows cannot be learned from.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

/// The windows of rows.
#[derive(Debug)]
pub(super) struct Windows {
    /// One sample per window.
    pub data: Dataset,
    /// Number of windows at the end that are the test part.
    pub test: usize,
    /// Number of rows outside all windows.
    pub left_out: usize,
}

impl Recordings {
    /// Returns the windows of rows, of which the last `test_rows` are the test part. `series` has
    /// the number of each row's recording, or is empty.
    ///
    /// # Errors
    /// [`RecordingsError`].
    pub(super) fn windows(
        &self,
        data: &Dataset,
        series: &[u32],
        test_rows: usize,
    ) -> Result<Windows, RecordingsError> {
        let Targets::Classes {
            labels,
            class_count,
        } = data.targets()
        else {
            return Err(RecordingsError::NoClasses);
        };
        let first_test = data.len() - test_rows;
        let groups = data.groups().map(Groups::device_of_row);
        let place = |row: usize| {
            let device = groups.map(|groups| groups[row]);
            (row >= first_test, series.get(row), device, labels[row])
        };
        let starts = self.starts(data.len(), place)?;
        let window = self.window;
        let in_test = starts.iter().filter(|start| **start >= first_test).count();
        if test_rows > 0 && in_test == 0 {
            return Err(RecordingsError::NoTest { window });
        }
        let targets = Targets::Classes {
            labels: starts.iter().map(|start| labels[*start]).collect(),
            class_count: *class_count,
        };
        let windows = match &self.features {
            None => self.cut(data, &starts, targets)?,
            Some(features) => self.compute(features, data, &starts, targets)?,
        };
        let windows = match data.groups() {
            None => windows,
            Some(groups) => {
                let devices = starts.iter().map(|start| groups.device_of_row()[*start]);
                windows.with_groups(Groups::new(devices.collect(), groups.names().to_vec())?)?
            }
        };
        Ok(Windows {
            data: windows,
            test: in_test,
            left_out: data.len() - self.covered(&starts),
        })
    }

    /// Returns the number of rows in at least one window, for windows that begin at `starts`, in
    /// ascending order.
    fn covered(&self, starts: &[usize]) -> usize {
        let window = self.window as usize;
        let after = starts.iter().skip(1).map(|next| Some(*next));
        let pairs = starts.iter().zip(after.chain([None]));
        // Counts up to the start of the next window if it is before the end of this one.
        pairs
            .map(|(start, next)| next.map_or(window, |next| window.min(next - start)))
            .sum()
    }

    /// Returns the first rows of windows, out of `rows` rows. No window contains a change of
    /// `place`.
    ///
    /// # Errors
    /// [`RecordingsError::TooShort`] if there is no window.
    pub fn starts<P: PartialEq>(
        &self,
        rows: usize,
        place: impl Fn(usize) -> P,
    ) -> Result<Vec<usize>, RecordingsError> {
        let (window, step) = (self.window as usize, self.step as usize);
        let (mut starts, mut first, mut longest) = (Vec::new(), 0, 0);
        for row in 1..=rows {
            if row == rows || place(row) != place(first) {
                longest = longest.max(row - first);
                starts.extend((first..row).step_by(step).filter(|at| at + window <= row));
                first = row;
            }
        }
        match starts.is_empty() {
            true => Err(RecordingsError::TooShort {
                longest,
                window: self.window,
            }),
            false => Ok(starts),
        }
    }

    /// Returns the features of the windows that begin at these rows.
    fn compute(
        &self,
        features: &WindowFeatures,
        data: &Dataset,
        starts: &[usize],
        targets: Targets,
    ) -> Result<Dataset, RecordingsError> {
        let channels = data.feature_count();
        let columns = (0..channels).map(|channel| number(data.feature_name(channel)));
        let columns: Vec<FeatureColumn> = columns.collect();
        if let Some(place) = data.missing().first() {
            let (row, column) = (place / channels, columns[place % channels].name.clone());
            return Err(WindowFeaturesError::Missing { row, column }.into());
        }
        let mut values = Vec::new();
        for start in starts {
            let at = |channel, step| {
                let row = start + step * self.every as usize;
                data.features().get(row * channels + channel)
            };
            values.extend(features.compute(channels, at, *start)?);
        }
        let each = features.recipe().feature_count();
        let names = Names {
            features: features.names(columns.iter().map(|column| column.name.as_str())),
            classes: data.names().classes.clone(),
            columns,
        };
        let windows = Dataset::new(Features::from(values), channels * each, targets)?;
        Ok(windows
            .with_axes(vec![channels, 1, each])?
            .with_names(names))
    }

    /// Returns the windows that begin at these rows.
    fn cut(
        &self,
        data: &Dataset,
        starts: &[usize],
        targets: Targets,
    ) -> Result<Dataset, DatasetError> {
        let (channels, steps) = (data.feature_count(), (self.window / self.every) as usize);
        let every = self.every as usize;
        let width = channels * steps;
        let mut features = Vec::with_capacity(starts.len() * width);
        let (mut missing, mut rests) = (Vec::new(), Vec::new());
        for start in starts {
            for channel in 0..channels {
                for step in 0..steps {
                    let place = (start + step * every) * channels + channel;
                    if data.is_missing(place) {
                        missing.push(features.len());
                    }
                    rests.extend(data.rest(place).map(|rest| (features.len(), rest)));
                    features.push(data.features().get(place));
                }
            }
        }
        let names = names(data, steps);
        Ok(Dataset::new(Features::from(features), width, targets)?
            .with_axes(vec![channels, 1, steps])?
            .with_names(names)
            .with_missing(missing)
            .with_rests(rests))
    }
}

/// Creates a column of numbers.
fn number(name: String) -> FeatureColumn {
    FeatureColumn {
        name,
        encoding: Encoding::Number,
    }
}

/// Returns the names of a window's features: `ax_0`, `ax_1`, ..
fn names(data: &Dataset, steps: usize) -> Names {
    let channels = 0..data.feature_count();
    let of_channel = |channel| {
        let name = data.feature_name(channel);
        (0..steps).map(move |step| format!("{name}_{step}"))
    };
    let features: Vec<String> = channels.flat_map(of_channel).collect();
    Names {
        columns: features.iter().cloned().map(number).collect(),
        classes: data.names().classes.clone(),
        features,
    }
}

#[cfg(test)]
mod tests;
