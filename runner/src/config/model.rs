//! `[model]`: the model that is trained.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Linear regression.
    Linear,
    /// Logistic regression, two classes.
    Logistic,
    /// Softmax regression, on top of a hidden layer with `model.hidden`.
    Softmax,
}

impl ModelKind {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Logistic => "logistic",
            Self::Softmax => "softmax",
        }
    }
}

/// `[model]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The kind; by default linear for values, softmax for classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ModelKind>,
    /// Units of a hidden layer below the softmax; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<u32>,
    /// Activation of the hidden units; tanh by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<ActivationName>,
}

/// Activation of the hidden units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActivationName {
    /// Hyperbolic tangent.
    Tanh,
    /// max(x, 0).
    Relu,
}
