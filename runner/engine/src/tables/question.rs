//! The keys of `[[questions]]`, which devices answer between rounds: kind, interval, bounds and
//! bins, cohort, noise, confidence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smolfed_core::question::Question;

use crate::combinations::{Setting, Settings};

/// One of `[[questions]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionConfig {
    /// `"evaluate"`, `"confusion"`, `"histogram"`, `"moments"`, `"presence"` or `"count"`.
    pub kind: QuestionKind,
    /// A name for reports.
    ///
    /// Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Rounds between two answers. 0 asks only after the last round.
    #[serde(default)]
    pub every: u32,
    /// `evaluate`: cap on a loss or squared error.
    ///
    /// Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_bound: Option<f64>,
    /// Number of a feature, from 0.
    ///
    /// Default: the label, or all features with `moments`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<u16>,
    /// `histogram`, `presence`: up to 16 ascending edges of bins. Not needed for classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<f64>>,
    /// `moments`: smallest and largest value of a feature, such as `[0, 1]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// Devices to ask. `cohort.sampling` draws them.
    ///
    /// Default: as in the rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort_size: Option<u32>,
    /// Noise std divided by the bound on one device's answer.
    ///
    /// Default: from `privacy.questions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// `"local"`: training samples. In simulations also `"validation"`, `"test"`.
    ///
    /// Default: `"local"`.
    #[serde(default, skip_serializing_if = "AskedSamples::is_local")]
    pub samples: AskedSamples,
    /// Confidence level of each single interval.
    ///
    /// Default: 0.99.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// The kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    /// How good the model is: accuracy and loss, or the error of values.
    Evaluate,
    /// Confusions of the model: predicted and true classes.
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

impl From<&Question> for QuestionKind {
    fn from(question: &Question) -> Self {
        match question {
            Question::Evaluate { .. } => Self::Evaluate,
            Question::Confusion => Self::Confusion,
            Question::Histogram(_) => Self::Histogram,
            Question::Moments(_) => Self::Moments,
            Question::Presence(_) => Self::Presence,
            Question::Count => Self::Count,
        }
    }
}

impl QuestionKind {
    /// The name in files.
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
