//! Whether rows are readings of a sensor in the order of time, and how to cut them into windows.

use crate::dataset::TaskKind;
use crate::suggestion::{Recording, Suggestion, Use, plain};
use crate::table::profile::{CellKind, ColumnProfile, Profile};

/// Names of columns that are taken for those of recordings and of times, as letters and digits
/// alone. A unit may follow the name of a time.
const SERIES: [&str; 7] = [
    "series",
    "seriesid",
    "recording",
    "recordingid",
    "session",
    "sessionid",
    "trial",
];
const TIMES: [&str; 5] = ["time", "timestamp", "t", "elapsed", "datetime"];
const UNITS: [&str; 8] = ["", "s", "ms", "us", "ns", "sec", "seconds", "millis"];

/// A sensor rarely has more channels.
const MAX_CHANNELS: usize = 16;

/// Rows of the shortest and of the longest window that is proposed.
const LENGTHS: [usize; 2] = [16, 128];

impl Suggestion {
    /// With windows, if the rows look like readings of a sensor. Times and recordings are then no
    /// features.
    #[must_use]
    pub fn with_windows(mut self, profile: &Profile) -> Self {
        let Some(recording) = self.recording_of(profile) else {
            return self;
        };
        for (name, used) in &mut self.uses {
            if recording.series.as_ref() == Some(name) {
                *used = Use::Series;
            } else if recording.time.as_ref() == Some(name) {
                *used = Use::Ignored("it is the time of a row".into());
            }
        }
        // Windows that are no more than a comment decide nothing.
        self.uses_are_read |= recording.is_sure();
        self.recording = Some(recording);
        self
    }

    fn recording_of(&self, profile: &Profile) -> Option<Recording> {
        if self.task != TaskKind::Classification || self.has_missing {
            return None;
        }
        let column = |name: &String| profile.column(name);
        let others = self
            .uses
            .iter()
            .filter(|(_, used)| !matches!(used, Use::Label | Use::Device | Use::Unnamed));
        let others: Vec<(&ColumnProfile, &Use)> = others
            .filter_map(|(name, used)| Some((column(name)?, used)))
            .collect();
        let kept = [
            column(&self.label),
            self.device_column.as_ref().and_then(column),
        ];
        let changes = kept.into_iter().flatten().map(|column| column.changes);
        let changes = changes.max().unwrap_or_default();
        let is_long = |changes: usize| profile.rows / (changes + 1) >= 2 * LENGTHS[0];
        let is_series = |column: &ColumnProfile| SERIES.contains(&plain(&column.name).as_str());
        let mut named = others.iter().filter(|(column, _)| is_series(column));
        let series = named.find(|(column, _)| is_long(column.changes));
        let changes = series.map_or(changes, |(column, _)| changes.max(column.changes));
        let mut timed = others.iter().filter(|(column, _)| is_time(column));
        // It begins anew with each recording at most, but for a few rows in the wrong order.
        let backwards = changes + profile.rows / 100;
        let time = timed.find(|(column, _)| column.descents <= backwards);
        let name = |found: Option<&(&ColumnProfile, &Use)>| found.map(|(x, _)| x.name.clone());
        let (series, time) = (name(series), name(time));
        let is_taken = |name: &String| [&series, &time].contains(&&Some(name.clone()));
        let features = others
            .iter()
            .filter(|(column, used)| !matches!(used, Use::Ignored(_)) && !is_taken(&column.name));
        let features: Vec<&&Use> = features.map(|(_, used)| used).collect();
        let are_numbers = features.iter().all(|used| matches!(used, Use::Number));
        let channels = features.len();
        let run = profile.rows / (changes + 1);
        if !are_numbers || !(1..=MAX_CHANNELS).contains(&channels) || !is_long(changes) {
            return None;
        }
        // Two windows in a run, so that little is left out.
        let half = run / 2;
        let length = (half + 1).next_power_of_two() / 2;
        Some(Recording {
            series,
            time,
            channels,
            run,
            length: length.clamp(LENGTHS[0], LENGTHS[1]),
        })
    }
}

/// Whether a column is called a time and holds times or numbers.
fn is_time(column: &ColumnProfile) -> bool {
    let name = plain(&column.name);
    let is_named = TIMES
        .iter()
        .filter_map(|time| name.strip_prefix(time))
        .any(|unit| UNITS.contains(&unit));
    is_named && matches!(column.kind, CellKind::Number | CellKind::Time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suggestion::Choices;
    use crate::table::TableFormat;

    /// Two phones with two recordings of 100 rows each, of two classes.
    fn suggested(header: &str, row: impl Fn(usize) -> String) -> Suggestion {
        let rows: String = (0..400)
            .map(|at| {
                let class = ["sit", "walk"][at / 100 % 2];
                format!(
                    "{},{class},{},{}.5,{}\n",
                    at / 200,
                    row(at),
                    at * 7 % 31,
                    at % 13
                )
            })
            .collect();
        let text = format!("phone,class,{header},x,y\n{rows}");
        let profile = Profile::new(TableFormat::Csv, text.as_bytes()).unwrap();
        Suggestion::new(&profile, &Choices::default())
            .unwrap()
            .with_windows(&profile)
    }

    #[test]
    fn times_and_recordings_say_that_rows_are_readings() {
        for (header, is_series) in [("time_ms", false), ("t", false), ("Recording ID", true)] {
            let found = suggested(header, |at| match is_series {
                true => format!("r{}", at / 100),
                false => (at % 100 * 20).to_string(),
            });
            let recording = found.recording.as_ref().unwrap();
            assert!(recording.is_sure(), "{header}");
            assert_eq!((recording.channels, recording.run), (2, 100), "{header}");
            assert_eq!((recording.length, recording.bands()), (32, [1, 3, 4, 17]));
            let (_, used) = &found.uses[2];
            match is_series {
                true => assert_eq!(*used, Use::Series),
                false => assert_eq!(*used, Use::Ignored("it is the time of a row".into())),
            }
        }
    }

    #[test]
    fn rows_without_a_time_may_be_readings_and_rows_in_no_order_are_none() {
        let sorted = suggested("z", |at| (at % 3).to_string());
        let recording = sorted.recording.as_ref().unwrap();
        assert!(!recording.is_sure());
        assert_eq!(recording.channels, 3);
        assert_eq!(sorted.uses[2].1, Use::Number);
        // Times that go back with each row are no order.
        let shuffled = suggested("time", |at| (at * 37 % 400).to_string());
        assert!(!shuffled.recording.unwrap().is_sure());
        let colours = suggested("colour", |at| ["red", "blue"][at % 2].to_owned());
        assert_eq!(colours.recording, None);
        let rows: String = (0..400)
            .map(|at| format!("{},{}\n", at % 7, at % 2))
            .collect();
        let text = format!("time,class\n{rows}");
        let profile = Profile::new(TableFormat::Csv, text.as_bytes()).unwrap();
        let found = Suggestion::new(&profile, &Choices::default()).unwrap();
        assert_eq!(found.with_windows(&profile).recording, None);
    }
}
