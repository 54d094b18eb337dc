//! Questions: a device answers a question about its samples with a vector of norm at most 1.
//!
//! The vector is processed like an update: it is rounded onto a grid of bound 1, checked in
//! integers and summed exactly, and the noise of a round covers the sum. The weight of a device
//! does not depend on the number of its samples, so its bound is 1.
//!
//! Every answer is a ratio of two released sums, one of which counts devices. Parts of a vector
//! with weights w of sum 1 are scaled by √w, so that the norm of the whole is at most 1.
//!
//! | question | vector |
//! | --- | --- |
//! | [`Evaluate`](Question::Evaluate), classes | √½ (a, 1 − a, l, 1 − l): accuracy, and mean loss |
//! | [`Evaluate`](Question::Evaluate), values | (e, 1 − e): mean squared error |
//! | [`Confusion`](Question::Confusion) | shares of samples by true and predicted class |
//! | [`Histogram`](Question::Histogram) | shares of samples by bin |
//! | [`Moments`](Question::Moments) | means of x and 2x² − 1, x from −1 to 1, and 1 |
//! | [`Presence`](Question::Presence) | presence of samples in each bin, and 1 |
//! | [`Count`](Question::Count) | 1 |
//!
//! Losses and squared errors are clipped to a public bound and divided by it. A device without
//! samples answers with zeros, as if it were absent.
//!
//! ```
//! use smolfed_core::question::{Dimensions, Question, Sample, Target};
//!
//! let (question, of) = (Question::Count, Dimensions { features: 2, classes: 3 });
//! let mut answer = [0.0; 1];
//! let sample = Sample { features: |_: usize| 0.5, target: Target::Class(2), judged: None };
//! question.add(&of, &sample, &mut answer);
//! question.finish(&of, 1, &mut answer);
//! assert_eq!((question.length(&of), answer), (1, [1.0]));
//! ```

mod confusion;
mod count;
mod evaluate;
mod histogram;
mod kinds;
mod moments;
mod presence;
mod terms;

pub use kinds::Kinds;
pub use moments::MomentScales;
pub use presence::PresenceScales;
pub use terms::{
    Bins, Dimensions, Edges, Features, Judged, MAX_EDGES, QuestionError, Sample, Target,
};

use crate::samples::is_finite;
use terms::divide;

/// A question. All its fields are public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// What are the accuracy and the loss of the model?
    Evaluate {
        /// Upper bound to which losses, or squared errors, are clipped. Above 0.
        bound: f32,
    },
    /// Which classes does the model confuse?
    Confusion,
    /// How are samples distributed?
    Histogram(Bins),
    /// What are the means and deviations of features?
    Moments(Features),
    /// How many devices have samples in a bin?
    Presence(Bins),
    /// How many devices answer?
    Count,
}

impl Question {
    /// Checks whether samples of these sizes can answer the question.
    ///
    /// # Errors
    /// [`QuestionError`].
    pub fn check(&self, of: &Dimensions) -> Result<(), QuestionError> {
        match self {
            Self::Evaluate { bound } if !(is_finite(*bound) && *bound > 0.0) => {
                Err(QuestionError::LossBound)
            }
            Self::Confusion if of.classes == 0 => Err(QuestionError::NoClasses),
            Self::Histogram(bins) | Self::Presence(bins) => bins.check(of),
            Self::Moments(features) => {
                let end = usize::from(features.first()) + usize::from(features.count());
                match end <= of.features {
                    true => Ok(()),
                    false => Err(QuestionError::Feature),
                }
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of entries of the vector.
    #[must_use]
    pub const fn length(&self, of: &Dimensions) -> usize {
        match self {
            Self::Evaluate { .. } => evaluate::length(of),
            Self::Confusion => confusion::length(of),
            Self::Histogram(bins) => bins.count(of),
            Self::Moments(features) => moments::length(features),
            Self::Presence(bins) => presence::length(bins, of),
            Self::Count => count::LENGTH,
        }
    }

    /// Returns whether the question needs the model's prediction for each sample.
    #[must_use]
    pub const fn needs_model(&self) -> bool {
        matches!(self, Self::Evaluate { .. } | Self::Confusion)
    }

    /// Adds a sample to a vector that started from zeros.
    pub fn add<F>(&self, of: &Dimensions, sample: &Sample<F>, vector: &mut [f32])
    where
        F: Fn(usize) -> f32,
    {
        match self {
            Self::Evaluate { bound } => evaluate::add(*bound, sample, vector),
            Self::Confusion => confusion::add(of, sample, vector),
            Self::Histogram(bins) => histogram::add(bins, sample, vector),
            Self::Moments(features) => moments::add(features, sample, vector),
            Self::Presence(bins) => presence::add(bins, sample, vector),
            Self::Count => {}
        }
    }

    /// Completes the answer of a device with `samples` samples, all of them already
    /// [added](Self::add).
    pub fn finish(&self, of: &Dimensions, samples: u32, vector: &mut [f32]) {
        if samples == 0 {
            return vector.fill(0.0);
        }
        let samples = samples as f32;
        match self {
            Self::Evaluate { .. } => evaluate::finish(of, samples, vector),
            Self::Confusion | Self::Histogram(_) => divide(vector, samples),
            Self::Moments(features) => moments::finish(features, samples, vector),
            Self::Presence(bins) => presence::finish(bins, of, vector),
            Self::Count => vector.fill(1.0),
        }
    }
}

impl Kinds {
    /// Returns whether a question is of one of these kinds.
    #[must_use]
    pub const fn has(self, question: &Question) -> bool {
        self.bits() & 1 << (question.number() - 1) != 0
    }
}

impl Question {
    /// Returns the number of the kind, from 1.
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::Evaluate { .. } => 1,
            Self::Confusion => 2,
            Self::Histogram(_) => 3,
            Self::Moments(_) => 4,
            Self::Presence(_) => 5,
            Self::Count => 6,
        }
    }
}

#[cfg(test)]
mod tests;
