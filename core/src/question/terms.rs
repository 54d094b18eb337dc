//! The parts of questions (samples, bins with edges, features with bounds), the largest number of
//! edges, and the errors of a question.

use crate::samples::is_finite;

/// Maximum number of edges of a histogram.
pub const MAX_EDGES: usize = 16;

/// Sizes of samples, which determine the length of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimensions {
    /// Number of features of a sample.
    pub features: usize,
    /// Number of classes, or 0 if targets are values.
    pub classes: usize,
}

/// Bins for counting samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bins {
    /// One bin for each class.
    Classes,
    /// Bins of the target, which is a value.
    Target(Edges),
    /// Bins of the feature with this number.
    Feature(u16, Edges),
}

/// Ascending edges of bins: there is a bin below the first edge, one from each edge to the next,
/// and one from the last edge on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edges {
    values: [f32; MAX_EDGES],
    count: u8,
}

/// Features for a question about moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Features {
    first: u16,
    count: u16,
    lower: f32,
    upper: f32,
}

/// A sample for a question.
#[derive(Clone, Copy, Debug)]
pub struct Sample<F> {
    /// Function that returns the feature with a given number.
    pub features: F,
    /// Target of the sample.
    pub target: Target,
    /// The model's result, for questions that [need it](super::Question::needs_model).
    pub judged: Option<Judged>,
}

/// The target of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// A class.
    Class(u16),
    /// A value.
    Value(f32),
}

impl From<u16> for Target {
    fn from(class: u16) -> Self {
        Self::Class(class)
    }
}

impl From<f32> for Target {
    fn from(value: f32) -> Self {
        Self::Value(value)
    }
}

/// A model's result for a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Most likely class, or 0 for values.
    pub class: u16,
    /// Loss for classes, or squared error for values. It may be infinite.
    pub loss: f32,
}

impl Judged {
    /// Creates the result of a sample with this target and prediction. `loss` is used for classes.
    #[must_use]
    pub fn new(target: Target, predicted: Target, loss: f32) -> Self {
        match (target, predicted) {
            (Target::Value(value), Target::Value(predicted)) => {
                let error = predicted - value;
                let (class, loss) = (0, error * error);
                Self { class, loss }
            }
            (_, Target::Class(class)) => Self { class, loss },
            (Target::Class(_), Target::Value(_)) => Self { class: 0, loss },
        }
    }
}

/// Reason why a question is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum QuestionError {
    /// Edges are not finite and increasing, or their number is not from 1 to [`MAX_EDGES`].
    Edges,
    /// The lower bound is not below the upper one, or they are not finite.
    Bounds,
    /// The bound of the loss is not finite and above 0.
    LossBound,
    /// The samples do not have these features.
    Feature,
    /// The samples have no classes.
    NoClasses,
    /// The targets are classes, which need no edges.
    NoValues,
}

impl core::fmt::Display for QuestionError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Edges => "edges must be 1 to 16 increasing finite numbers",
            Self::Bounds => "the lower bound must be below the upper one, and both finite",
            Self::LossBound => "the bound of the loss must be finite and above 0",
            Self::Feature => "samples do not have these features",
            Self::NoClasses => "the targets of samples are values, not classes",
            Self::NoValues => "the targets of samples are classes, not values",
        })
    }
}

impl core::error::Error for QuestionError {}

impl Edges {
    /// Creates from one to [`MAX_EDGES`] edges.
    ///
    /// # Errors
    /// [`QuestionError::Edges`] unless the edges are finite and increasing, and their number is in
    /// range.
    pub fn new(edges: &[f32]) -> Result<Self, QuestionError> {
        let is_sorted = edges.windows(2).all(|pair| match pair {
            [left, right] => left < right,
            _ => false,
        });
        let is_valid = is_sorted && edges.iter().all(|x| is_finite(*x)) && !edges.is_empty();
        let mut values = [0.0; MAX_EDGES];
        match (values.get_mut(..edges.len()), is_valid) {
            (Some(place), true) => place.copy_from_slice(edges),
            _ => return Err(QuestionError::Edges),
        }
        // At most 16.
        let count = edges.len() as u8;
        Ok(Self { values, count })
    }

    /// Returns the edges.
    #[must_use]
    pub fn as_slice(&self) -> &[f32] {
        self.values.get(..self.count.into()).unwrap_or_default()
    }

    /// Returns the number of the bin of a value.
    fn bin(&self, x: f32) -> usize {
        self.as_slice().iter().filter(|edge| x >= **edge).count()
    }
}

impl Features {
    /// Selects `count` features from number `first` on, each clipped to these bounds.
    ///
    /// # Errors
    /// [`QuestionError::Bounds`], and [`QuestionError::Feature`] if `count` is 0.
    pub fn new(first: u16, count: u16, lower: f32, upper: f32) -> Result<Self, QuestionError> {
        let is_valid = lower < upper && is_finite(lower) && is_finite(upper - lower);
        match (is_valid, count) {
            (false, _) => Err(QuestionError::Bounds),
            (true, 0) => Err(QuestionError::Feature),
            (true, _) => Ok(Self {
                first,
                count,
                lower,
                upper,
            }),
        }
    }

    /// Returns the number of the first feature.
    #[must_use]
    pub const fn first(&self) -> u16 {
        self.first
    }

    /// Returns the number of features.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// Returns the bounds.
    #[must_use]
    pub const fn bounds(&self) -> (f32, f32) {
        (self.lower, self.upper)
    }
}

impl Bins {
    /// Returns the number of bins.
    #[must_use]
    pub const fn count(&self, of: &Dimensions) -> usize {
        match self {
            Self::Classes => of.classes,
            Self::Target(edges) | Self::Feature(_, edges) => edges.count as usize + 1,
        }
    }

    pub(super) fn check(&self, of: &Dimensions) -> Result<(), QuestionError> {
        match self {
            Self::Classes if of.classes == 0 => Err(QuestionError::NoClasses),
            Self::Target(_) if of.classes > 0 => Err(QuestionError::NoValues),
            Self::Feature(feature, _) if usize::from(*feature) >= of.features => {
                Err(QuestionError::Feature)
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of the bin of a sample.
    pub(super) fn bin<F: Fn(usize) -> f32>(&self, sample: &Sample<F>) -> usize {
        match (self, sample.target) {
            (Self::Classes, Target::Class(class)) => class.into(),
            (Self::Target(edges), Target::Value(value)) => edges.bin(value),
            (Self::Feature(feature, edges), _) => edges.bin((sample.features)((*feature).into())),
            // No such sample passes `check`.
            _ => usize::MAX,
        }
    }
}

/// Adds 1 to an entry, if it exists.
pub(super) fn count_in(vector: &mut [f32], entry: usize) {
    if let Some(entry) = vector.get_mut(entry) {
        *entry += 1.0;
    }
}

/// Divides each entry by `by`.
pub(super) fn divide(vector: &mut [f32], by: f32) {
    vector.iter_mut().for_each(|x| *x /= by);
}
