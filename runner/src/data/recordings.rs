//! Windows of recordings: rows in the order of time become samples, channels first.
//!
//! A window lies in one recording (`data.series_column`), on one device and in one class: where any
//! of them changes from a row to the next, a new window begins, and rows that fill no window are
//! left out. Windows do not overlap.

use super::dataset::{Dataset, DatasetError, Features, Groups, Names, Targets};
use super::table::encoding::{Encoding, FeatureColumn};

/// How rows become windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recordings {
    /// Rows of a window, at least 2.
    pub window: u32,
    /// Of a window's rows, each of this number's multiples is kept, from the first on: 1 for all.
    /// It divides the rows of a window.
    pub every: u32,
}

/// Why rows make no windows.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingsError {
    /// Nothing is as long as a window.
    #[error(
        "at most {longest} rows in a row belong to one recording, device and class, but a window \
         has {window}: choose a smaller `data.window`"
    )]
    TooShort {
        /// Rows of the longest recording.
        longest: usize,
        /// Rows of a window.
        window: u32,
    },
    /// The test part has no window.
    #[error("no recording of `data.test_path` is as long as a window of {window} rows")]
    NoTest {
        /// Rows of a window.
        window: u32,
    },
    /// Targets that are no classes.
    #[error("windows of a recording have a class: leave `data.window` out to predict numbers")]
    NoClasses,
    /// The windows cannot be learned from.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

impl Recordings {
    /// The windows of rows, and how many of them are the test part; the last `test_rows` rows are
    /// that part. `series` has the number of each row's recording, or is empty.
    ///
    /// # Errors
    /// [`RecordingsError`].
    pub(super) fn windows(
        self,
        data: &Dataset,
        series: &[u32],
        test_rows: usize,
    ) -> Result<(Dataset, usize), RecordingsError> {
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
        let window = self.window as usize;
        let (mut starts, mut first, mut longest) = (Vec::new(), 0, 0);
        for row in 1..=data.len() {
            if row == data.len() || place(row) != place(first) {
                let length = row - first;
                longest = longest.max(length);
                starts.extend((0..length / window).map(|at| first + at * window));
                first = row;
            }
        }
        let window = self.window;
        if starts.is_empty() {
            return Err(RecordingsError::TooShort { longest, window });
        }
        let in_test = starts.iter().filter(|start| **start >= first_test).count();
        if test_rows > 0 && in_test == 0 {
            return Err(RecordingsError::NoTest { window });
        }
        let targets = Targets::Classes {
            labels: starts.iter().map(|start| labels[*start]).collect(),
            class_count: *class_count,
        };
        Ok((self.cut(data, &starts, targets)?, in_test))
    }

    /// The windows that begin at these rows.
    fn cut(
        self,
        data: &Dataset,
        starts: &[usize],
        targets: Targets,
    ) -> Result<Dataset, DatasetError> {
        let (channels, steps) = (data.feature_count(), (self.window / self.every) as usize);
        let every = self.every as usize;
        let width = channels * steps;
        let mut features = Vec::with_capacity(starts.len() * width);
        let mut missing = Vec::new();
        for start in starts {
            for channel in 0..channels {
                for step in 0..steps {
                    let place = (start + step * every) * channels + channel;
                    if data.is_missing(place) {
                        missing.push(features.len());
                    }
                    features.push(data.features().get(place));
                }
            }
        }
        let names = names(data, steps);
        let windows = Dataset::new(Features::from(features), width, targets)?
            .with_axes(vec![channels, 1, steps])?
            .with_names(names)
            .with_missing(missing);
        match data.groups() {
            None => Ok(windows),
            Some(groups) => {
                let devices = starts.iter().map(|start| groups.device_of_row()[*start]);
                windows.with_groups(Groups::new(devices.collect(), groups.names().to_vec())?)
            }
        }
    }
}

/// The names of a window's features: `ax_0`, `ax_1`, ..
fn names(data: &Dataset, steps: usize) -> Names {
    let channels = 0..data.feature_count();
    let of_channel = |channel| {
        let name = data.feature_name(channel);
        (0..steps).map(move |step| format!("{name}_{step}"))
    };
    let features: Vec<String> = channels.flat_map(of_channel).collect();
    let column = |name: &String| FeatureColumn {
        name: name.clone(),
        encoding: Encoding::Number,
    };
    Names {
        columns: features.iter().map(column).collect(),
        classes: data.names().classes.clone(),
        features,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of two channels, t and −t at time t.
    fn rows(labels: &[u32], devices: &[u32]) -> Dataset {
        let features = (0..labels.len()).flat_map(|t| [t as f32, -(t as f32)]);
        let features: Vec<f32> = features.collect();
        let targets = Targets::Classes {
            labels: labels.iter().map(|label| *label as u16).collect(),
            class_count: 2,
        };
        let names = vec!["0".into(), "1".into()];
        let groups = Groups::new(devices.to_vec(), names).unwrap();
        let names = Names {
            features: vec!["x".into(), "y".into()],
            ..Names::default()
        };
        let data = Dataset::new(features, 2, targets).unwrap();
        data.with_names(names).with_groups(groups).unwrap()
    }

    fn recordings(window: u32, every: u32) -> Recordings {
        Recordings { window, every }
    }

    #[test]
    fn channels_come_first_and_rows_are_thinned() {
        let data = rows(&[0, 0, 0, 0, 1, 1, 1, 1, 1], &[0, 0, 0, 0, 1, 1, 1, 1, 1]);
        let (windows, in_test) = recordings(4, 2).windows(&data, &[], 0).unwrap();
        assert_eq!((windows.len(), in_test), (2, 0));
        assert_eq!(windows.axes(), [2, 1, 2]);
        assert_eq!(
            windows.features().to_vec(),
            [0.0, 2.0, 0.0, -2.0, 4.0, 6.0, -4.0, -6.0]
        );
        assert_eq!(windows.names().features, ["x_0", "x_1", "y_0", "y_1"]);
        assert_eq!(windows.groups().unwrap().device_of_row(), [0, 1]);
        let (all, _) = recordings(4, 1).windows(&data, &[], 0).unwrap();
        assert!(all.row(0).eq([0.0, 1.0, 2.0, 3.0, 0.0, -1.0, -2.0, -3.0]));
    }

    #[test]
    fn a_window_lies_in_one_recording_device_class_and_part() {
        let starts = |labels: &[u32], devices: &[u32], series: &[u32], test| {
            let data = rows(labels, devices);
            let (windows, in_test) = recordings(2, 1).windows(&data, series, test).unwrap();
            let first = |row| windows.row(row).next().unwrap() as usize;
            ((0..windows.len()).map(first).collect::<Vec<_>>(), in_test)
        };
        assert_eq!(
            starts(&[0, 0, 0, 1, 1, 1], &[0; 6], &[], 0),
            (vec![0, 3], 0)
        );
        assert_eq!(
            starts(&[0, 1, 1, 1, 1], &[0, 0, 0, 1, 1], &[], 0),
            (vec![1, 3], 0)
        );
        let series = [5, 5, 5, 2, 2, 2];
        assert_eq!(starts(&[0; 6], &[0; 6], &series, 0), (vec![0, 3], 0));
        assert_eq!(starts(&[0; 6], &[0; 6], &[], 3), (vec![0, 3], 1));
    }

    #[test]
    fn missing_values_move_with_their_windows() {
        let data = rows(&[0, 0, 0, 0, 0, 1], &[0; 6]).with_missing(vec![1, 4, 9]);
        let (windows, _) = recordings(2, 1).windows(&data, &[], 0).unwrap();
        // Of rows 0 to 3: the second channel of row 0 and the first of row 2.
        assert_eq!(windows.missing(), [2, 4]);
    }

    #[test]
    fn rows_that_fill_no_window_are_refused() {
        let data = rows(&[0, 0, 0, 1, 1], &[0; 5]);
        let error = recordings(4, 1).windows(&data, &[], 0).unwrap_err();
        let (longest, window) = (3, 4);
        assert_eq!(error, RecordingsError::TooShort { longest, window });
        let error = recordings(3, 1).windows(&data, &[], 2).unwrap_err();
        assert_eq!(error, RecordingsError::NoTest { window: 3 });
        let targets = Targets::Values(vec![0.0; 4]);
        let data = Dataset::new(vec![0.0; 4], 1, targets).unwrap();
        let error = recordings(2, 1).windows(&data, &[], 0).unwrap_err();
        assert_eq!(error, RecordingsError::NoClasses);
    }
}
