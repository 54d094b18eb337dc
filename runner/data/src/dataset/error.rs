//! Errors in samples, independent of their file format: no samples or features, numbers that are
//! not finite, too many rows or classes, a single class.

/// The largest number of rows of a data set: rows are numbered by `u32`.
pub const MAX_ROWS: usize = u32::MAX as usize;

/// The largest number of classes of a data set: labels are `u16`.
pub const MAX_CLASSES: usize = 1 << 16;

/// Errors in the content of a data set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// There is no sample.
    #[error("has no samples: a sample is a row below the header, an image or an entry")]
    NoSamples,
    /// There is no feature.
    #[error("has no feature column: every column is the label, the device or ignored")]
    NoFeatures,
    /// There are more rows than can be numbered.
    #[error("has {found} rows; at most {MAX_ROWS} can be numbered")]
    TooManyRows {
        /// Number of rows.
        found: usize,
    },
    /// A part does not have one entry per row.
    #[error("has {found} {part} for {expected} rows")]
    Length {
        /// The part.
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
    #[error(
        "row {row} has label {label}, but labels go from 0 to {}",
        class_count.saturating_sub(1)
    )]
    Label {
        /// Row, from 0.
        row: usize,
        /// The label.
        label: u32,
        /// Number of classes.
        class_count: usize,
    },
    /// There are more classes than a label can number.
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
    /// The targets are of another kind than configured.
    #[error("`task` is \"{task}\", but the targets are {targets}")]
    Task {
        /// The configured kind.
        task: &'static str,
        /// The kind of the targets.
        targets: &'static str,
    },
    /// The number of classes differs from the configured one.
    #[error("has {found} classes, but `classes` lists {expected}")]
    ClassCount {
        /// Classes of the configuration.
        expected: usize,
        /// Classes of the targets.
        found: usize,
    },
    /// The configuration does not list a class.
    #[error("has the class `{found}`, which `classes` does not list")]
    ClassName {
        /// Its name.
        found: String,
    },
    /// Two parts have different features.
    #[error("the test part has {found} features a row, but the training part has {expected}")]
    FeatureCount {
        /// Features of the training part.
        expected: usize,
        /// Features of the test part.
        found: usize,
    },
    /// The axes do not multiply to the number of features.
    #[error("the product of `axes` = {axes:?} is not {feature_count}, the features of a row")]
    Axes {
        /// Lengths of the axes.
        axes: Vec<usize>,
        /// Number of features per row.
        feature_count: usize,
    },
}
