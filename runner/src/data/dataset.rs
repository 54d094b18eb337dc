//! A data set in memory: one row a sample, shared by all devices, and views of some of its rows.

use std::fmt;

/// Most classes of a data set: labels are `u16`.
pub const MAX_CLASSES: usize = 1 << 16;
/// Most rows of a data set: rows are numbered by `u32`.
pub const MAX_ROWS: usize = u32::MAX as usize;

/// What can be wrong with the content of a data set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// There is no sample.
    #[error("holds no sample")]
    NoSamples,
    /// There is no feature.
    #[error("holds no feature column: every column is the label, the device or ignored")]
    NoFeatures,
    /// More rows than can be numbered.
    #[error("holds {found} rows; at most {MAX_ROWS} can be numbered")]
    TooManyRows {
        /// Number of rows.
        found: usize,
    },
    /// Parts that must have one entry a row do not.
    #[error("has {found} {part} for {expected} rows")]
    Length {
        /// Which part.
        part: &'static str,
        /// Rows of the data set.
        expected: usize,
        /// Entries of the part.
        found: usize,
    },
    /// A feature is NaN or infinite.
    #[error("row {row}, feature {feature} is {value}, but every feature must be finite")]
    FeatureNotFinite {
        /// Row, from 0.
        row: usize,
        /// Feature, from 0.
        feature: usize,
        /// The value.
        value: f32,
    },
    /// A regression target is NaN or infinite.
    #[error("the target of row {row} is {value}, but must be finite")]
    TargetNotFinite {
        /// Row, from 0.
        row: usize,
        /// The value.
        value: f32,
    },
    /// A label is not one of the classes.
    #[error("row {row} has label {label}, but labels go from 0 to {}", class_count.saturating_sub(1))]
    Label {
        /// Row, from 0.
        row: usize,
        /// The label.
        label: u32,
        /// Number of classes.
        class_count: usize,
    },
    /// More classes than a label can number.
    #[error("has {found} classes; at most {MAX_CLASSES} are possible (is this regression?)")]
    TooManyClasses {
        /// Number of classes.
        found: usize,
    },
    /// All samples have one label.
    #[error("all samples have the label `{label}`; classification needs at least two classes")]
    OneClass {
        /// Name or number of the only class.
        label: String,
    },
    /// Two parts that must describe the same features do not.
    #[error("the test part has {found} features a row, but the training part has {expected}")]
    FeatureCount {
        /// Features of the training part.
        expected: usize,
        /// Features of the test part.
        found: usize,
    },
    /// The axes do not multiply to the number of features.
    #[error("`axes` = {axes:?} describe {} features, but a row has {feature_count}", axes.iter().product::<usize>())]
    Axes {
        /// Lengths of the axes.
        axes: Vec<usize>,
        /// Features a row.
        feature_count: usize,
    },
}

/// What is to be predicted, one entry a row.
#[derive(Clone, PartialEq)]
pub enum Targets {
    /// Classification.
    Classes {
        /// Label of each row, below `class_count`.
        labels: Vec<u16>,
        /// Number of classes C, at least 2.
        class_count: usize,
    },
    /// Regression: one finite value a row.
    Values(Vec<f32>),
}

impl Targets {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes { labels, .. } => labels.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Classification targets from labels of any size.
    ///
    /// # Errors
    /// [`DatasetError::TooManyClasses`], [`DatasetError::Label`] if a label is not below
    /// `class_count`, [`DatasetError::OneClass`] if all rows have the same label.
    pub fn classes(labels: &[u32], class_count: usize) -> Result<Self, DatasetError> {
        if class_count > MAX_CLASSES {
            return Err(DatasetError::TooManyClasses { found: class_count });
        }
        let mut narrow = Vec::with_capacity(labels.len());
        for (row, &label) in labels.iter().enumerate() {
            match u16::try_from(label) {
                Ok(small) if usize::from(small) < class_count => narrow.push(small),
                _ => {
                    return Err(DatasetError::Label {
                        row,
                        label,
                        class_count,
                    });
                }
            }
        }
        match narrow.split_first() {
            Some((first, rest)) if rest.iter().all(|label| label == first) => {
                Err(DatasetError::OneClass {
                    label: first.to_string(),
                })
            }
            _ => Ok(Self::Classes {
                labels: narrow,
                class_count,
            }),
        }
    }
}

/// Shape only: device data never reach a log.
impl fmt::Debug for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Classes {
                labels,
                class_count,
            } => {
                write!(f, "Classes({} rows, {class_count} classes)", labels.len())
            }
            Self::Values(values) => write!(f, "Values({} rows)", values.len()),
        }
    }
}

/// The natural device of each row.
#[derive(Clone, PartialEq)]
pub struct Groups {
    device_of_row: Vec<u32>,
    names: Vec<String>,
}

impl Groups {
    /// Groups from the device of each row, an index into `names`.
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

    /// Natural device of each row.
    pub fn device_of_row(&self) -> &[u32] {
        &self.device_of_row
    }

    /// Name of each device, as in the file.
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

/// Names that a source knows; empty where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Name of each feature.
    pub features: Vec<String>,
    /// Name of each class.
    pub classes: Vec<String>,
}

/// Samples in memory: finite features row by row, one target and perhaps a natural device a row.
///
/// Features that the source left open (an empty cell) are listed in [`Dataset::missing`] and hold
/// 0 until [`impute`](super::missing::impute) fills them.
#[derive(Clone, PartialEq)]
pub struct Dataset {
    pub(super) features: Vec<f32>,
    pub(super) targets: Targets,
    pub(super) missing: Vec<usize>,
    feature_count: usize,
    groups: Option<Groups>,
    axes: Vec<usize>,
    maximum: Option<f32>,
    names: Names,
}

impl Dataset {
    /// A data set from `features`, row after row, and one target a row.
    ///
    /// # Errors
    /// [`DatasetError`] if there is no row or no feature, if the lengths do not agree, or if a
    /// feature or a regression target is not finite.
    pub fn new(
        features: Vec<f32>,
        feature_count: usize,
        targets: Targets,
    ) -> Result<Self, DatasetError> {
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
        if let Some(index) = features.iter().position(|value| !value.is_finite()) {
            let (row, feature) = (index / feature_count, index % feature_count);
            return Err(DatasetError::FeatureNotFinite {
                row,
                feature,
                value: features[index],
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
            feature_count,
            groups: None,
            axes: Vec::new(),
            maximum: None,
            names: Names::default(),
        })
    }

    /// The same data with the natural device of each row.
    ///
    /// # Errors
    /// [`DatasetError::Length`] unless there is one device a row.
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

    /// The same data with a row seen as a grid, slowest axis first: `[28, 28]`, or
    /// `[channels, time]`. Empty for no grid.
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

    /// The same data with the largest value that a feature can take by its format (255 for
    /// bytes), for scaling to [0, 1].
    pub(super) fn with_maximum(mut self, maximum: Option<f32>) -> Self {
        self.maximum = maximum;
        self
    }

    /// The same data with names.
    pub(super) fn with_names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// The same data with these places of `features` (ascending) known to be open.
    pub(super) fn with_missing(mut self, missing: Vec<usize>) -> Self {
        self.missing = missing;
        self
    }

    /// Number of rows, at least 1.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Always false: a data set has at least one row.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Features a row, at least 1.
    pub fn feature_count(&self) -> usize {
        self.feature_count
    }

    /// Features of row `i`.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    pub fn row(&self, i: usize) -> &[f32] {
        &self.features[i * self.feature_count..][..self.feature_count]
    }

    /// All features, row after row.
    pub fn features(&self) -> &[f32] {
        &self.features
    }

    /// The target of every row.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Number of classes; `None` for regression.
    pub fn class_count(&self) -> Option<usize> {
        match self.targets {
            Targets::Classes { class_count, .. } => Some(class_count),
            Targets::Values(_) => None,
        }
    }

    /// The natural device of each row, where the source has one.
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// Lengths of the axes of a row that is a grid, slowest first; empty otherwise.
    pub fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// Largest value of a feature by its format, where known.
    pub fn maximum(&self) -> Option<f32> {
        self.maximum
    }

    /// Names of features and classes, where known.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Places in [`features`](Self::features) that the source left open, ascending.
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// The given rows as samples.
    pub fn view<'a>(&'a self, rows: &'a [u32]) -> DatasetView<'a> {
        DatasetView::new(&self.features, self.feature_count, &self.targets, rows)
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

#[derive(Clone, Copy)]
enum TargetsView<'a> {
    Classes(&'a [u16]),
    Values(&'a [f32]),
}

impl<'a> TargetsView<'a> {
    fn of(targets: &'a Targets) -> Self {
        match targets {
            Targets::Classes { labels, .. } => Self::Classes(labels),
            Targets::Values(values) => Self::Values(values),
        }
    }
}

/// Some rows of shared data, in their own order, without a copy: what one device holds, or what a
/// model is tested on.
#[derive(Clone, Copy)]
pub struct DatasetView<'a> {
    features: &'a [f32],
    feature_count: usize,
    targets: TargetsView<'a>,
    rows: &'a [u32],
}

impl<'a> DatasetView<'a> {
    /// The given rows of data whose parts agree in length.
    pub(super) fn new(
        features: &'a [f32],
        feature_count: usize,
        targets: &'a Targets,
        rows: &'a [u32],
    ) -> Self {
        Self {
            features,
            feature_count,
            targets: TargetsView::of(targets),
            rows,
        }
    }

    /// No sample of any kind.
    pub(super) fn empty(feature_count: usize) -> Self {
        Self {
            features: &[],
            feature_count,
            targets: TargetsView::Values(&[]),
            rows: &[],
        }
    }

    /// Number of samples; 0 is possible.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Features a sample.
    pub fn feature_count(&self) -> usize {
        self.feature_count
    }

    /// Features of sample `i`.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[inline]
    pub fn features(&self, i: usize) -> &'a [f32] {
        let start = self.rows[i] as usize * self.feature_count;
        &self.features[start..start + self.feature_count]
    }

    /// Label of sample `i`, 0 where the task is regression.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[inline]
    pub fn label(&self, i: usize) -> u16 {
        match self.targets {
            TargetsView::Classes(labels) => labels[self.rows[i] as usize],
            TargetsView::Values(_) => 0,
        }
    }

    /// Regression target of sample `i`; where the task is classification, its label as a number.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[inline]
    pub fn value(&self, i: usize) -> f32 {
        match self.targets {
            TargetsView::Classes(labels) => f32::from(labels[self.rows[i] as usize]),
            TargetsView::Values(values) => values[self.rows[i] as usize],
        }
    }

    /// Row of sample `i` in the shared data.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    pub fn row(&self, i: usize) -> u32 {
        self.rows[i]
    }
}

/// Shape only: device data never reach a log.
impl fmt::Debug for DatasetView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "DatasetView({} samples of {} features)",
            self.len(),
            self.feature_count
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_rows() -> Dataset {
        let targets = Targets::classes(&[0, 1], 2).unwrap();
        Dataset::new(vec![1.0, 2.0, 3.0, 4.0], 2, targets).unwrap()
    }

    #[test]
    fn rows_and_views_show_the_same_features() {
        let data = two_rows();
        assert_eq!(data.row(1), [3.0, 4.0]);
        let rows = [1, 0, 1];
        let view = data.view(&rows);
        assert_eq!(view.len(), 3);
        assert_eq!(view.features(0), [3.0, 4.0]);
        assert_eq!((view.label(0), view.label(1), view.row(2)), (1, 0, 1));
        assert!(data.view(&[]).is_empty());
    }

    #[test]
    fn values_are_read_as_labels_and_numbers() {
        let data = Dataset::new(vec![1.0], 1, Targets::Values(vec![2.5])).unwrap();
        assert_eq!(
            (data.view(&[0]).value(0), data.view(&[0]).label(0)),
            (2.5, 0)
        );
        assert!(two_rows().view(&[1]).value(0) > 0.5);
        assert_eq!(data.class_count(), None);
    }

    #[test]
    fn nothing_is_no_data_set() {
        let none = Targets::Values(Vec::new());
        assert_eq!(
            Dataset::new(Vec::new(), 3, none).unwrap_err(),
            DatasetError::NoSamples
        );
        let one = Targets::Values(vec![1.0]);
        assert_eq!(
            Dataset::new(Vec::new(), 0, one).unwrap_err(),
            DatasetError::NoFeatures
        );
    }

    #[test]
    fn lengths_must_agree() {
        let targets = Targets::Values(vec![0.0; 3]);
        let error = Dataset::new(vec![0.0; 4], 2, targets).unwrap_err();
        assert_eq!(
            error,
            DatasetError::Length {
                part: "feature rows",
                expected: 3,
                found: 2
            }
        );
        let groups = Groups::new(vec![0], vec!["a".into()]).unwrap();
        let error = two_rows().with_groups(groups).unwrap_err();
        assert_eq!(
            error,
            DatasetError::Length {
                part: "devices",
                expected: 2,
                found: 1
            }
        );
    }

    #[test]
    fn features_and_targets_must_be_finite() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let targets = Targets::Values(vec![0.0; 2]);
            let error = Dataset::new(vec![0.0, 0.0, 0.0, value], 2, targets).unwrap_err();
            assert!(matches!(
                error,
                DatasetError::FeatureNotFinite {
                    row: 1,
                    feature: 1,
                    ..
                }
            ));
            let targets = Targets::Values(vec![0.0, value]);
            let error = Dataset::new(vec![0.0; 2], 1, targets).unwrap_err();
            assert!(matches!(
                error,
                DatasetError::TargetNotFinite { row: 1, .. }
            ));
        }
    }

    #[test]
    fn labels_must_be_classes_and_differ() {
        let error = Targets::classes(&[0, 2], 2).unwrap_err();
        assert_eq!(
            error,
            DatasetError::Label {
                row: 1,
                label: 2,
                class_count: 2
            }
        );
        assert!(error.to_string().contains("from 0 to 1"), "{error}");
        let error = Targets::classes(&[0, 70_000], 1 << 16).unwrap_err();
        assert!(matches!(error, DatasetError::Label { label: 70_000, .. }));
        let error = Targets::classes(&[3, 3], 5).unwrap_err();
        assert_eq!(error, DatasetError::OneClass { label: "3".into() });
        let error = Targets::classes(&[0], 70_000).unwrap_err();
        assert_eq!(error, DatasetError::TooManyClasses { found: 70_000 });
    }

    #[test]
    fn axes_must_multiply_to_the_features() {
        assert_eq!(two_rows().with_axes(vec![1, 2]).unwrap().axes(), [1, 2]);
        for axes in [vec![2, 2], vec![0], vec![usize::MAX, 2]] {
            assert!(matches!(
                two_rows().with_axes(axes),
                Err(DatasetError::Axes { .. })
            ));
        }
    }

    #[test]
    fn groups_must_have_names() {
        let error = Groups::new(vec![0, 1], vec!["a".into()]).unwrap_err();
        assert!(matches!(
            error,
            DatasetError::Label {
                row: 1,
                label: 1,
                class_count: 1
            }
        ));
    }

    #[test]
    fn debug_prints_no_values() {
        let data = Dataset::new(vec![41.5], 1, Targets::Values(vec![42.5])).unwrap();
        let text = format!("{data:?} {:?}", data.view(&[0]));
        assert!(!text.contains("41") && !text.contains("42"), "{text}");
    }
}
