//! The keys of `[train]` for local training: epochs, batch size, learning rate and its decay, and
//! the time of clipping.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::number_or_name::number_or;
use crate::combinations::{Setting, Settings};

/// When an update is clipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClipTime {
    /// After every local step (the paper).
    #[default]
    EveryStep,
    /// Once, at the end of local training.
    Final,
}

/// `train.learning_rate`: a number, or "auto".
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LearningRateSetting {
    /// The step size.
    Fixed(f64),
    /// From the largest length of a sample ([`crate::experiment::step`]).
    Auto,
}

/// The name of an automatic step size in files.
const AUTO: &str = "auto";

impl Serialize for LearningRateSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(value) => serializer.serialize_f64(*value),
            Self::Auto => serializer.serialize_str(AUTO),
        }
    }
}

impl<'de> Deserialize<'de> for LearningRateSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = number_or(AUTO, deserializer)?;
        Ok(number.map_or(Self::Auto, Self::Fixed))
    }
}

/// `[train]`: local training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Passes over the local samples.
    pub epochs: u32,
    /// Samples per batch.
    pub batch_size: u32,
    /// Step size in the first round. `"auto"`: from the largest length of a sample
    /// (docs/features.md#samples-of-bounded-length).
    #[schemars(with = "crate::config::schema::NumberOrText")]
    pub learning_rate: LearningRateSetting,
    /// Factor applied to the step size after each round.
    pub learning_rate_decay: f64,
    /// Adds `weight_decay · w` to the gradient.
    pub weight_decay: f64,
    /// Adds `proximal · (w − w_global)` to the gradient (FedProx).
    pub proximal: f64,
    /// `"every-step"`: project after every step, as in the paper. `"final"`: clip once, after the
    /// last.
    pub clip: ClipTime,
    /// Smoothing factor for the local gradient, at most 256.
    pub gradient_smoothing: f64,
}

impl TrainConfig {
    /// The settings that it declares ([`crate::combinations`]).
    pub(crate) fn settings(&self) -> Settings {
        Settings::of([
            (Setting::Proximal, self.proximal != 0.0),
            (Setting::GradientSmoothing, self.gradient_smoothing > 0.0),
        ])
    }
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            epochs: 5,
            batch_size: 10,
            learning_rate: LearningRateSetting::Fixed(0.1),
            learning_rate_decay: 0.99,
            weight_decay: 4e-5,
            proximal: 0.0,
            clip: ClipTime::default(),
            gradient_smoothing: 0.0,
        }
    }
}
