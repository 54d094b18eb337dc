//! What was released of the answers to a question, as files and pages have it.

use serde::{Deserialize, Serialize};

use super::ratio::Interval;
use crate::tables::question::QuestionKind;

/// The answer to a question: public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Which question of the experiment, from 0.
    pub question: u8,
    /// Its kind.
    pub kind: QuestionKind,
    /// Its name.
    pub name: String,
    /// The confidence of each interval by itself.
    pub confidence: f64,
    /// The number of devices that answered.
    pub answered: Estimate,
    /// What is asked, the most important first.
    pub estimates: Vec<Estimate>,
}

/// One figure of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// What it is: `accuracy`, or `class 3`.
    pub name: String,
    /// The estimate; `null` if nothing is known.
    pub value: Option<f64>,
    /// Its interval; `null` for an open end.
    pub interval: [Option<f64>; 2],
}

impl Estimate {
    /// A figure with its interval, mapped by a function that does not decrease.
    #[must_use]
    pub fn of(name: impl Into<String>, found: Interval, map: impl Fn(f64) -> f64) -> Self {
        let finite = |x: f64| Some(map(x)).filter(|x| x.is_finite());
        Self {
            name: name.into(),
            value: finite(found.value),
            interval: [finite(found.low), finite(found.high)],
        }
    }

    /// Whether the interval has a value in it.
    #[must_use]
    pub fn covers(&self, truth: f64) -> bool {
        let [low, high] = self.interval;
        low.is_none_or(|low| low <= truth) && high.is_none_or(|high| truth <= high)
    }
}
