//! `[[questions]]`: what devices are asked between rounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::combinations::{Setting, Settings};

/// One of `[[questions]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionConfig {
    /// What is asked.
    pub kind: QuestionKind,
    /// A name in reports; that of the kind by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// It is asked after every so many rounds; 0 is after the last only.
    #[serde(default)]
    pub every: u32,
    /// `evaluate`: the loss (of values, the squared error) from which on all count the same; 5 by
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_bound: Option<f64>,
    /// `histogram` and `presence`: the number of a feature, from 0; the label by default.
    /// `moments`: the same; all features by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<u16>,
    /// `histogram` and `presence`: edges of the bins, ascending; none for classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<f64>>,
    /// `moments`: the smallest and the largest value of a feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// Devices that are asked, by the sampling of `[cohort]`; as many as train in a round by
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort_size: Option<u32>,
    /// Noise std over the bound on one device's answer; by default all questions share
    /// `privacy.questions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// The samples of a device.
    #[serde(default, skip_serializing_if = "AskedSamples::is_local")]
    pub samples: AskedSamples,
    /// The confidence of intervals; 0.99 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    /// How good the model is: accuracy and loss, or the error of values.
    Evaluate,
    /// Which classes the model takes for which.
    Confusion,
    /// How samples are distributed over bins or classes.
    Histogram,
    /// Means and deviations of features.
    Moments,
    /// The share of devices with samples in a bin or of a class.
    Presence,
    /// How many devices answer.
    Count,
}

impl QuestionKind {
    /// As files have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evaluate => "evaluate",
            Self::Confusion => "confusion",
            Self::Histogram => "histogram",
            Self::Moments => "moments",
            Self::Presence => "presence",
            Self::Count => "count",
        }
    }

    /// Whether the answer depends on the model.
    #[must_use]
    pub const fn is_of_model(self) -> bool {
        matches!(self, Self::Evaluate | Self::Confusion)
    }
}

/// Which samples of a device a question is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AskedSamples {
    /// Those that it trains on: real devices have no others.
    #[default]
    Local,
    /// Those of its validation part, in simulations.
    Validation,
    /// Those of its test part, in simulations.
    Test,
}

impl AskedSamples {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    fn is_local(&self) -> bool {
        *self == Self::Local
    }
}

/// The settings that questions declare.
pub(crate) fn settings(questions: &[QuestionConfig]) -> Settings {
    let any = |is_so: fn(&QuestionConfig) -> bool| questions.iter().any(is_so);
    Settings::of([
        (Setting::Questions, !questions.is_empty()),
        (
            Setting::QuestionsOfModel,
            any(|question| question.kind.is_of_model()),
        ),
        (
            Setting::QuestionCohort,
            any(|question| question.cohort_size.is_some()),
        ),
        (
            Setting::QuestionNoise,
            any(|question| question.noise_multiplier.is_some()),
        ),
        (
            Setting::HeldOutAnswers,
            any(|question| question.samples != AskedSamples::Local),
        ),
    ])
}
