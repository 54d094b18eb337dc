//! A data set in memory: one row per sample, shared by all devices, and views of some of its rows.

mod buffer;
mod error;
mod features;
mod order;
mod targets;
mod view;

use std::fmt;

use smolfed_core::clip::clip_l2;
use smolfed_simd::bytes::write_bytes;

use crate::column::FeatureColumn;

pub use buffer::DeviceBuffer;
pub use error::{DatasetError, MAX_CLASSES, MAX_ROWS};
pub use features::Features;
pub(super) use order::places;
pub use targets::{Targets, TaskKind};
pub use view::{DatasetView, SampleTarget};

/// The natural device of each row.
#[derive(Clone, PartialEq)]
pub struct Groups {
    device_of_row: Vec<u32>,
    names: Vec<String>,
}

impl Groups {
    /// Creates groups from the device of each row, an index into `names`.
    ///
    /// # Errors
    /// [`DatasetError::Label`] if an index has no name.
    pub fn new(device_of_row: Vec<u32>, names: Vec<String>) -> Result<Self, DatasetError> {
        let class_count = names.len();
        match device_of_row
            .iter()
            .position(|&device| device as usize >= class_count)
        {
            Some(row) => Err(DatasetError::Label {
                row,
                label: device_of_row[row],
                class_count,
            }),
            None => Ok(Self {
                device_of_row,
                names,
            }),
        }
    }

    /// Returns the natural device of each row.
    pub fn device_of_row(&self) -> &[u32] {
        &self.device_of_row
    }

    /// Returns the name of each device, as in the file.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Number of devices only: device data never reach a log.
impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Groups({} rows, {} devices)",
            self.device_of_row.len(),
            self.names.len()
        )
    }
}

/// The names known to a source. Unknown ones are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Name of each feature.
    pub features: Vec<String>,
    /// Name of each class.
    pub classes: Vec<String>,
    /// The columns of a table, from which the features were made.
    pub columns: Vec<FeatureColumn>,
}

/// Samples in memory: finite features row by row, with one target and optionally a natural device
/// per row.
///
/// Features that the source left open (an empty cell) are listed in [`Dataset::missing`] and are 0
/// until [`impute`](super::missing::impute) fills them.
#[derive(Clone, PartialEq)]
pub struct Dataset {
    pub(super) features: Features,
    pub(super) targets: Targets,
    pub(super) missing: Vec<usize>,
    /// The digits of large numbers that `features` loses: place and rest, ascending. Scaling
    /// consumes them.
    pub(super) rests: Vec<(usize, f64)>,
    feature_count: usize,
    groups: Option<Groups>,
    axes: Vec<usize>,
    maximum: Option<f32>,
    names: Names,
}

impl Dataset {
    /// Creates a data set from `features`, row after row, and one target per row.
    ///
    /// # Errors
    /// [`DatasetError`] if there is no row or no feature, if the lengths do not agree, or if a
    /// feature or a regression target is not finite.
    pub fn new(
        features: impl Into<Features>,
        feature_count: usize,
        targets: Targets,
    ) -> Result<Self, DatasetError> {
        let features = features.into();
        let rows = targets.len();
        if rows == 0 {
            return Err(DatasetError::NoSamples);
        }
        if feature_count == 0 {
            return Err(DatasetError::NoFeatures);
        }
        if rows > MAX_ROWS {
            return Err(DatasetError::TooManyRows { found: rows });
        }
        if rows.checked_mul(feature_count) != Some(features.len()) {
            let found = features.len() / feature_count;
            return Err(DatasetError::Length {
                part: "feature rows",
                expected: rows,
                found,
            });
        }
        if let Some(place) = features.first_not_finite() {
            return Err(DatasetError::FeatureNotFinite {
                row: place / feature_count,
                feature: place % feature_count,
                value: features.get(place),
            });
        }
        if let Targets::Values(values) = &targets
            && let Some(row) = values.iter().position(|value| !value.is_finite())
        {
            return Err(DatasetError::TargetNotFinite {
                row,
                value: values[row],
            });
        }
        Ok(Self {
            features,
            targets,
            missing: Vec::new(),
            rests: Vec::new(),
            feature_count,
            groups: None,
            axes: Vec::new(),
            maximum: None,
            names: Names::default(),
        })
    }

    /// Adds the natural device of each row.
    ///
    /// # Errors
    /// [`DatasetError::Length`] unless there is one device per row.
    pub fn with_groups(mut self, groups: Groups) -> Result<Self, DatasetError> {
        let (expected, found) = (self.len(), groups.device_of_row.len());
        if expected != found {
            return Err(DatasetError::Length {
                part: "devices",
                expected,
                found,
            });
        }
        self.groups = Some(groups);
        Ok(self)
    }

    /// Sets the grid of a row, slowest axis first: `[28, 28]`, or `[channels, time]`. Empty for no
    /// grid.
    ///
    /// # Errors
    /// [`DatasetError::Axes`] unless the lengths multiply to the number of features.
    pub fn with_axes(mut self, axes: Vec<usize>) -> Result<Self, DatasetError> {
        let size = axes
            .iter()
            .try_fold(1usize, |size, &length| size.checked_mul(length));
        if !axes.is_empty() && size != Some(self.feature_count) {
            return Err(DatasetError::Axes {
                axes,
                feature_count: self.feature_count,
            });
        }
        self.axes = axes;
        Ok(self)
    }

    /// Sets the largest value of a feature in its format (255 for bytes), for scaling to [0, 1].
    #[must_use]
    pub fn with_maximum(mut self, maximum: Option<f32>) -> Self {
        self.maximum = maximum;
        self
    }

    /// Adds names.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Replaces the features by others, `feature_count` per row, without axes. The columns of a
    /// table are kept.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub(super) fn with_features(
        self,
        features: Vec<f32>,
        feature_count: usize,
        names: Vec<String>,
    ) -> Result<Self, DatasetError> {
        let data = Self::new(features, feature_count, self.targets)?;
        Ok(Self {
            groups: self.groups,
            names: Names {
                features: names,
                ..self.names
            },
            ..data
        })
    }

    /// Marks these places of `features` (ascending) as open.
    pub(super) fn with_missing(mut self, missing: Vec<usize>) -> Self {
        self.missing = missing;
        self
    }

    /// Adds the rests of large numbers, by ascending places of `features`.
    pub(super) fn with_rests(mut self, rests: Vec<(usize, f64)>) -> Self {
        self.rests = rests;
        self
    }

    /// Returns the rest of a large number at a place of [`features`](Self::features).
    pub(super) fn rest(&self, place: usize) -> Option<f64> {
        let at = self.rests.binary_search_by_key(&place, |(at, _)| *at);
        at.ok().map(|at| self.rests[at].1)
    }

    /// Returns the number at a place of [`features`](Self::features), with all digits.
    pub(super) fn exact(&self, place: usize) -> f64 {
        f64::from(self.features.get(place)) + self.rest(place).unwrap_or(0.0)
    }

    /// Returns [`row`](Self::row) with all digits.
    pub(super) fn exact_row(&self, i: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        let start = i * self.feature_count;
        let before = self.rests.partition_point(|(place, _)| *place < start);
        let mut rests = self.rests[before..].iter().peekable();
        (start..start + self.feature_count).map(move |place| {
            let rest = rests.next_if(|(at, _)| *at == place);
            f64::from(self.features.get(place)) + rest.map_or(0.0, |(_, rest)| *rest)
        })
    }

    /// Returns the number of rows, at least 1.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Always returns false: a data set has at least one row.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns the number of features per row, at least 1.
    pub fn feature_count(&self) -> usize {
        self.feature_count
    }

    /// Returns the features of row `i`.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    pub fn row(&self, i: usize) -> impl Iterator<Item = f32> + Clone + '_ {
        let start = i * self.feature_count;
        (start..start + self.feature_count).map(|place| self.features.get(place))
    }

    /// Returns all features, row after row.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Returns the target of every row.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Returns the number of classes. `None` for regression.
    pub fn class_count(&self) -> Option<usize> {
        match self.targets {
            Targets::Classes { class_count, .. } => Some(class_count),
            Targets::Values(_) => None,
        }
    }

    /// Returns the natural device of each row, if the source has devices.
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// Returns the lengths of the axes of a row if it is a grid, slowest first, and otherwise an
    /// empty slice.
    pub fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// Returns the number of channels of a row that is an image or a window of several: the first
    /// of three axes.
    pub fn channels(&self) -> Option<usize> {
        match *self.axes {
            [channels, _, _] => Some(channels),
            _ => None,
        }
    }

    /// Returns the largest value of a feature in its format, if known.
    pub fn maximum(&self) -> Option<f32> {
        self.maximum
    }

    /// Returns the names of features and classes, if known.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Returns for each feature whether it is 0 or 1 for a category. Empty if no feature is known
    /// to be.
    pub(super) fn indicators(&self) -> Vec<bool> {
        let columns = self.names.columns.iter();
        let indicators: Vec<bool> = columns.flat_map(FeatureColumn::indicators).collect();
        // Columns are kept when other features replace theirs.
        let is_of_columns = indicators.len() == self.feature_count;
        indicators.into_iter().filter(|_| is_of_columns).collect()
    }

    /// Returns the name of a feature, or its number from 0.
    pub(super) fn feature_name(&self, feature: usize) -> String {
        self.names
            .features
            .get(feature)
            .cloned()
            .unwrap_or_else(|| feature.to_string())
    }

    /// Returns the places in [`features`](Self::features) that the source left open and that are
    /// not filled permanently, ascending.
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Returns whether a place of [`features`](Self::features) is open.
    pub(super) fn is_missing(&self, place: usize) -> bool {
        !self.missing.is_empty() && self.missing.binary_search(&place).is_ok()
    }

    /// Removes the rows of the last class, which has all labels outside the known classes. Returns
    /// the rest, and the removed rows, ascending.
    ///
    /// # Errors
    /// [`DatasetError`] if no row, or only one class, is left.
    pub(super) fn without_last_class(self) -> Result<(Self, Vec<u32>), DatasetError> {
        let (labels, class_count) = match &self.targets {
            Targets::Classes {
                labels,
                class_count,
            } => (labels, class_count - 1),
            Targets::Values(_) => return Ok((self, Vec::new())),
        };
        let is_known = |row: &usize| usize::from(labels[*row]) < class_count;
        let (rows, dropped): (Vec<usize>, Vec<usize>) = (0..labels.len()).partition(is_known);
        let kept: Vec<u32> = rows.iter().map(|&row| u32::from(labels[row])).collect();
        let targets = Targets::classes(&kept, class_count)?;
        let width = self.feature_count;
        let mut data = Self::new(self.features.of_rows(&rows, width), width, targets)?
            .with_maximum(self.maximum)
            .with_names(self.names.clone());
        let open = (0..rows.len() * width)
            .filter(|place| self.is_missing(rows[place / width] * width + place % width));
        data.missing = match self.missing.is_empty() {
            true => Vec::new(),
            false => open.collect(),
        };
        // Rows and places keep their order.
        let rests = self.rests.iter().filter_map(|(place, rest)| {
            let row = rows.binary_search(&(place / width)).ok()?;
            Some((row * width + place % width, *rest))
        });
        data.rests = rests.collect();
        data.axes.clone_from(&self.axes);
        data.groups = self.groups.map(|groups| Groups {
            device_of_row: rows.iter().map(|&row| groups.device_of_row[row]).collect(),
            names: groups.names,
        });
        Ok((data, dropped.into_iter().map(|row| row as u32).collect()))
    }

    /// Shortens each row that is longer than `bound`, a normal number above 0, to that length.
    pub(super) fn shorten(&mut self, bound: f32) {
        let width = self.feature_count;
        self.features.edit(|numbers| {
            for row in numbers.chunks_exact_mut(width) {
                shorten(row, bound);
            }
        });
    }

    /// Moves row `order[i]` to place i, for all i. Each row occurs once in `order`.
    pub(super) fn reorder(&mut self, order: &[u32]) {
        let width = self.feature_count;
        self.features.reorder(order, width);
        self.targets.reorder(order);
        if let Some(groups) = &mut self.groups {
            order::reorder(&mut groups.device_of_row, 1, order);
        }
        let places = places(order);
        for place in &mut self.missing {
            *place = places[*place / width] as usize * width + *place % width;
        }
        self.missing.sort_unstable();
    }

    /// Returns the given rows as samples: without a copy, or unpacked into `buffer` if features are
    /// bytes.
    ///
    /// # Panics
    /// If there is no such row and features are bytes.
    pub fn view<'a>(&'a self, rows: &'a [u32], buffer: &'a mut DeviceBuffer) -> DatasetView<'a> {
        match self.shared_view(rows) {
            Some(view) => view,
            None => {
                self.unpack(rows, buffer);
                buffer.view(self.feature_count)
            }
        }
    }

    /// Returns the given rows as samples, without a copy. `None` if features are bytes.
    pub fn shared_view<'a>(&'a self, rows: &'a [u32]) -> Option<DatasetView<'a>> {
        let numbers = self.features.numbers()?;
        let (width, targets) = (self.feature_count, &self.targets);
        Some(DatasetView::new(numbers, width, targets, rows))
    }

    /// Unpacks the given rows into `buffer`, as numbers.
    fn unpack(&self, rows: &[u32], buffer: &mut DeviceBuffer) {
        let read = |start, into: &mut [f32]| self.features.write(start, into);
        self.fill(rows, buffer, read);
    }

    /// Returns the given rows with their bytes, unpacked into `buffer`, instead of the numbers that
    /// they represent. Rows of numbers are returned unchanged.
    ///
    /// # Panics
    /// If there is no such row and features are bytes.
    pub fn view_bytes<'a>(
        &'a self,
        rows: &'a [u32],
        buffer: &'a mut DeviceBuffer,
    ) -> DatasetView<'a> {
        match &self.features {
            Features::Numbers(_) => self.view(rows, buffer),
            Features::Bytes(bytes, _) => {
                let read = |start, into: &mut [f32]| {
                    write_bytes(&bytes[start..start + into.len()], into);
                };
                self.fill(rows, buffer, read);
                buffer.view(self.feature_count)
            }
        }
    }

    /// Fills `buffer` with the given rows. `read` reads features from a place on.
    fn fill(&self, rows: &[u32], buffer: &mut DeviceBuffer, read: impl Fn(usize, &mut [f32])) {
        let width = self.feature_count;
        buffer.features.resize(rows.len() * width);
        for (features, row) in buffer.features.chunks_exact_mut(width).zip(rows) {
            read(*row as usize * width, features);
        }
        buffer.fill(self.targets.of_rows(rows));
    }
}

/// Shortens a sample that is longer than `bound` to that length, as devices clip an update. A
/// sample whose length is not a 32-bit number becomes 0.
pub fn shorten(sample: &mut [f32], bound: f32) {
    if clip_l2(sample, bound).is_err() {
        sample.fill(0.0);
    }
}

/// Shape only: device data never reach a log.
impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset")
            .field("rows", &self.len())
            .field("feature_count", &self.feature_count)
            .field("targets", &self.targets)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
