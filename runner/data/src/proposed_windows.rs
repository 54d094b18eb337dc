//! Proposed windows for rows that may be readings of a sensor.
//!
//! They are only a comment of `smolfed init`: the rows do not show whether they are in the order of
//! time, and windows of other rows are wrong.

use crate::dataset::TaskKind;
use crate::suggestion::{Suggestion, Use, plain};
use crate::table::profile::{CellKind, ColumnProfile, Profile};

/// Usual names of columns of recordings and of times, as letters and digits. The name of a time may
/// end in a unit.
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

/// Maximum number of channels. Sensors rarely have more.
const MAX_CHANNELS: usize = 16;

/// Number of rows of the shortest and of the longest proposed window.
const LENGTHS: [usize; 2] = [16, 128];

/// Windows for rows that may be readings of a sensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedWindows {
    /// The column that names recordings.
    pub series: Option<String>,
    /// The column of times, which is not a channel.
    pub time: Option<String>,
    /// Number of channels.
    pub channels: usize,
    /// Average number of rows from one change of recording, device or class to the next.
    pub run: usize,
    /// Number of rows of a window, a power of two.
    pub length: usize,
}

impl ProposedWindows {
    /// Number of features of each channel: four of the values, and three bands.
    const FEATURES: usize = 7;

    /// Proposes windows for rows of numbers that have long runs of one class and device. A column
    /// must have the name of a time or a recording, or classes must occur again: a table sorted by
    /// its classes is not a recording.
    #[must_use]
    pub fn of(suggestion: &Suggestion, profile: &Profile) -> Option<Self> {
        if suggestion.task != TaskKind::Classification || suggestion.has_missing {
            return None;
        }
        let column = |name: &String| profile.column(name);
        let label = column(&suggestion.label)?;
        let device = suggestion.device_column.as_ref().and_then(column);
        let uses = suggestion.uses.iter();
        let others: Vec<(&ColumnProfile, &Use)> = uses
            .filter(|(_, used)| !matches!(used, Use::Label | Use::Device | Use::Unnamed))
            .filter_map(|(name, used)| Some((column(name)?, used)))
            .collect();
        let named = |is_named: fn(&ColumnProfile) -> bool| {
            let columns = others.iter().map(|(column, _)| *column);
            columns
                .filter(|column| column.changes > 0)
                .find(|x| is_named(x))
        };
        let (series, time) = (named(is_series), named(is_time));
        let borders = [Some(label), device, series].into_iter().flatten();
        let changes = borders.map(|column| column.changes).max()?;
        let (run, shortest) = (profile.rows / (changes + 1), 2 * LENGTHS[0]);
        let is_taken = |name: &str| [series, time].iter().flatten().any(|x| x.name == name);
        let features: Vec<&Use> = others
            .iter()
            .filter(|(column, used)| !matches!(used, Use::Ignored(_)) && !is_taken(&column.name))
            .map(|(_, used)| *used)
            .collect();
        let are_numbers = features.iter().all(|used| **used == Use::Number);
        let is_recording = series.is_some() || time.is_some() || label.changes >= label.distinct;
        let channels = features.len();
        let fits = run >= shortest && (1..=MAX_CHANNELS).contains(&channels);
        if !(are_numbers && is_recording && fits) {
            return None;
        }
        let name = |column: Option<&ColumnProfile>| column.map(|column| column.name.clone());
        // Two windows per run, so that few rows are left out.
        let length = (run / 2 + 1).next_power_of_two() / 2;
        Some(Self {
            series: name(series),
            time: name(time),
            channels,
            run,
            length: length.clamp(LENGTHS[0], LENGTHS[1]),
        })
    }

    /// Returns the boundaries of the bands: the slow, the middle and the fast frequencies.
    #[must_use]
    pub const fn bands(&self) -> [usize; 4] {
        [1, 3, self.length / 8, self.length / 2 + 1]
    }

    /// Returns the number of features of a window.
    #[must_use]
    pub const fn features(&self) -> usize {
        self.channels * Self::FEATURES
    }
}

/// Returns whether a column has the name of a recording.
fn is_series(column: &ColumnProfile) -> bool {
    SERIES.contains(&plain(&column.name).as_str())
}

/// Returns whether a column has the name of a time and contains times or numbers.
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

    fn proposed(text: &str) -> Option<ProposedWindows> {
        let profile = Profile::new(TableFormat::Csv, text.as_bytes()).unwrap();
        let suggestion = Suggestion::new(&profile, &Choices::default()).unwrap();
        ProposedWindows::of(&suggestion, &profile)
    }

    /// Proposes windows for two phones with two recordings of 100 rows each, of two classes, and
    /// one more column.
    fn of_phones(header: &str, cell: impl Fn(usize) -> String) -> Option<ProposedWindows> {
        let row = |at: usize| {
            let (phone, class) = (at / 200, ["sit", "walk"][at / 100 % 2]);
            format!(
                "{phone},{class},{},{}.5,{}\n",
                cell(at),
                at * 7 % 31,
                at % 13
            )
        };
        let rows: String = (0..400).map(row).collect();
        proposed(&format!("phone,class,{header},x,y\n{rows}"))
    }

    #[test]
    fn times_and_recordings_are_found_by_their_names() {
        for header in ["time_ms", "t", "Timestamp"] {
            let found = of_phones(header, |at| (at % 100 * 20).to_string()).unwrap();
            assert_eq!((found.channels, found.run), (2, 100), "{header}");
            assert_eq!((found.length, found.bands()), (32, [1, 3, 4, 17]));
            assert_eq!(found.features(), 14);
            assert_eq!((found.time.as_deref(), found.series), (Some(header), None));
        }
        let found = of_phones("Recording ID", |at| format!("r{}", at / 50)).unwrap();
        assert_eq!(found.series.as_deref(), Some("Recording ID"));
        assert_eq!((found.channels, found.run, found.length), (2, 50, 16));
        // Without either, there are three numbers.
        assert_eq!(
            of_phones("z", |at| (at % 3).to_string()).unwrap().channels,
            3
        );
    }

    #[test]
    fn other_tables_have_no_windows() {
        let colours = of_phones("colour", |at| ["red", "blue"][at % 2].to_owned());
        assert_eq!(colours, None);
        let table = |class: fn(usize) -> usize| {
            let row = |at: usize| format!("{},{}\n", at * 7 % 31, class(at));
            let rows: String = (0..400).map(row).collect();
            proposed(&format!("x,class\n{rows}"))
        };
        assert_eq!(table(|at| at % 2), None, "in no order");
        assert_eq!(table(|at| at / 100), None, "sorted by class");
        assert!(table(|at| at / 100 % 2).is_some(), "each class twice");
    }
}
