//! A view of some rows of a data set, such as the samples of one device, without a copy.

use std::fmt;
use std::ops::Range;

use smolfed_simd::Rows;

use super::targets::Targets;

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

/// The target of a sample: a class (`u16`) or a value (`f32`).
pub trait SampleTarget: Copy + Default {
    /// Returns the samples with such targets, or none if the task has others.
    fn rows<'a>(view: &DatasetView<'a>) -> Rows<'a, Self>;
}

impl SampleTarget for u16 {
    fn rows<'a>(view: &DatasetView<'a>) -> Rows<'a, Self> {
        view.classes()
    }
}

impl SampleTarget for f32 {
    fn rows<'a>(view: &DatasetView<'a>) -> Rows<'a, Self> {
        view.values()
    }
}

/// Some rows of shared data or of a buffer, in their own order, without a copy: the samples of one
/// device, or the test samples of a model.
#[derive(Clone, Copy)]
pub struct DatasetView<'a> {
    features: &'a [f32],
    feature_count: usize,
    targets: TargetsView<'a>,
    rows: &'a [u32],
}

impl<'a> DatasetView<'a> {
    /// Creates a view of the given rows of data whose parts have consistent lengths.
    pub(crate) fn new(
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

    /// Creates a view without samples.
    pub fn empty(feature_count: usize) -> Self {
        Self {
            features: &[],
            feature_count,
            targets: TargetsView::Values(&[]),
            rows: &[],
        }
    }

    /// Returns the number of samples, which may be 0.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns some of the samples.
    ///
    /// # Panics
    /// If `range` ends beyond [`len`](Self::len).
    #[must_use]
    pub fn piece(&self, range: Range<usize>) -> Self {
        Self {
            rows: &self.rows[range],
            ..*self
        }
    }

    /// Returns the number of features per sample.
    pub fn feature_count(&self) -> usize {
        self.feature_count
    }

    /// Returns the features of sample `i`.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[inline]
    pub fn features(&self, i: usize) -> &'a [f32] {
        let start = self.rows[i] as usize * self.feature_count;
        &self.features[start..start + self.feature_count]
    }

    /// Returns the label of sample `i`, or 0 for regression.
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

    /// Returns the regression target of sample `i`. For classification, its label as a number.
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

    /// Returns the samples with their classes, as read by models, or none for regression.
    #[must_use]
    pub fn classes(&self) -> Rows<'a, u16> {
        match self.targets {
            TargetsView::Classes(labels) => self.rows_with(labels),
            TargetsView::Values(_) => Rows::new(&[], self.feature_count, &[], &[]),
        }
    }

    /// Returns the samples with their values, as read by models, or none for classification.
    #[must_use]
    pub fn values(&self) -> Rows<'a, f32> {
        match self.targets {
            TargetsView::Classes(_) => Rows::new(&[], self.feature_count, &[], &[]),
            TargetsView::Values(values) => self.rows_with(values),
        }
    }

    fn rows_with<T>(&self, targets: &'a [T]) -> Rows<'a, T> {
        Rows::new(self.features, self.feature_count, targets, self.rows)
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
