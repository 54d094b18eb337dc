//! `[contrast]`: learning without labels.

use serde::{Deserialize, Serialize};

use crate::privacy::accountant::Accountant;

/// `[contrast]`. Keys that the method does not use have no effect, so that a sweep can set them for all
/// methods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContrastConfig {
    /// H: numbers of a representation; 16 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Views of a sample, an even number; 2 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub views: Option<u32>,
    /// How much of the repulsion comes from a device's own samples; "decay" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<AlphaName>,
    /// μ: representations are clipped to norm √μ, which also keeps large steps from diverging; half the width by
    /// default where matrices get noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub norm_bound: Option<f64>,
    /// The first round in which devices share correlation matrices, from 0; all devices do in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_from: Option<u32>,
    /// From then on, the cohort of every so many rounds does; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_every: Option<u32>,
    /// When a device sends its matrix; "before-training" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangeTime>,
    /// Most matrices that one device sends; by default as many as there are rounds in which it could.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_releases: Option<u32>,
    /// Neighbours that vote in the evaluation; 5 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<u32>,
    /// Samples of a device whose labels its own head learns from; 10 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<u32>,
    /// Noise on the matrices.
    pub privacy: MatrixPrivacyConfig,
    /// How views differ from their sample.
    pub augment: AugmentConfig,
}

impl ContrastConfig {
    /// Whether no key is given.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// α, the part of the repulsion that comes from a device's own samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlphaName {
    /// From 1 in the first round to 0.2 in the last (FedSC, Appendix C).
    #[default]
    Decay,
    /// The device's share of all samples: the loss of all devices together is then that of their pooled
    /// samples.
    Share,
}

/// When a device sends its correlation matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExchangeTime {
    /// In a message of its own, before it trains: the paper.
    #[default]
    BeforeTraining,
    /// Together with the update, so that a device transmits once a round; what it trains with is a round old.
    WithUpdate,
}

/// `[contrast.privacy]`: what a device adds to its correlation matrix. One example of a device is protected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MatrixPrivacyConfig {
    /// Target ε for all matrices of a device together: the noise is calibrated to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// Noise std on the mean over a device's samples, over μ / samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// δ; 1e-5 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Who counts ε and calibrates the noise; by default the tightest sound one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accountant: Option<Accountant>,
}

impl MatrixPrivacyConfig {
    /// Whether matrices get noise, if some are sent.
    #[must_use]
    pub fn asks_for_noise(&self) -> bool {
        self.epsilon.is_some_and(f64::is_finite) || self.noise_multiplier.is_some_and(|z| z > 0.0)
    }
}

/// `[contrast.augment]`: how views differ from their sample. 0 is none; if no key is given, the kind of data
/// decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentConfig {
    /// Std of noise on each value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
    /// Each channel times a factor up to this far from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<f64>,
    /// Each channel is set to 0 with this probability; without axes, each feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_drop: Option<f64>,
    /// A window (channels × time) is shifted in time by up to so many values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_shift: Option<u32>,
    /// The three axes of a window are turned by up to so many degrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<f64>,
    /// An image is shifted by up to so many pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<u32>,
    /// An image is turned by up to so many degrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<f64>,
    /// A square of up to so many pixels a side is erased from an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase: Option<u32>,
}
