//! How rows that are readings of a sensor become windows.

/// Rows that are readings of a sensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The column that names recordings.
    pub series: Option<String>,
    /// The column of times.
    pub time: Option<String>,
    /// Numbers of a row.
    pub channels: usize,
    /// Rows, on average, from one change of recording, device or class to the next.
    pub run: usize,
    /// Rows of a window, a power of two.
    pub length: usize,
}

impl Recording {
    /// Features of each channel: four of the values, and three bands.
    pub const FEATURES: usize = 7;

    /// Whether a column says that the rows are in the order of time.
    #[must_use]
    pub const fn is_sure(&self) -> bool {
        self.series.is_some() || self.time.is_some()
    }

    /// Boundaries of the bands: the slow, the middle and the fast frequencies.
    #[must_use]
    pub const fn bands(&self) -> [usize; 4] {
        [1, 3, self.length / 8, self.length / 2 + 1]
    }
}
