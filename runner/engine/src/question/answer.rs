//! The released answer to a question, for files and pages: its estimates with their intervals, and
//! the number of devices that answered.

use serde::{Deserialize, Serialize};

use super::ratio::Interval;
use crate::tables::question::QuestionKind;

/// The public answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Index of the question in the experiment, from 0.
    pub question: u8,
    /// Its kind.
    pub kind: QuestionKind,
    /// Its name.
    pub name: String,
    /// Confidence of each individual interval.
    pub confidence: f64,
    /// Number of devices that answered.
    pub answered: Estimate,
    /// The estimates, the most important first.
    pub estimates: Vec<Estimate>,
}

/// One figure of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Its name: `accuracy`, or `class 3`.
    pub name: String,
    /// The estimate, or `null` if it is unknown.
    pub value: Option<f64>,
    /// Its interval, with `null` for an open end.
    pub interval: [Option<f64>; 2],
}

impl Estimate {
    /// Creates a figure with its interval, mapped by a non-decreasing function.
    #[must_use]
    pub fn of(name: impl Into<String>, found: Interval, map: impl Fn(f64) -> f64) -> Self {
        let finite = |x: f64| Some(map(x)).filter(|x| x.is_finite());
        Self {
            name: name.into(),
            value: finite(found.value),
            interval: [finite(found.low), finite(found.high)],
        }
    }

    /// Returns whether the interval contains a value.
    #[must_use]
    pub fn covers(&self, truth: f64) -> bool {
        let [low, high] = self.interval;
        low.is_none_or(|low| low <= truth) && high.is_none_or(|high| truth <= high)
    }
}
