//! The keys of `[contrast]` for learning without labels (encoders): views, correlation matrices and
//! their noise, evaluation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use smolfed_accounting::accountant::Accountant;

use crate::combinations::{Setting, Settings};

/// `[contrast]`. Keys that the method does not use have no effect, so that a sweep can set them for
/// all methods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContrastConfig {
    /// H, the length of a representation. The encoder is linear, or has `model.hidden` or
    /// `model.layers` (docs/models.md) below a dense layer of H outputs.
    ///
    /// Default: 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Number of views of a sample, even.
    ///
    /// Default: 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub views: Option<u32>,
    /// `"decay"`: from 1 in the first round to 0.2 in the last. `"share"`: the device's share of
    /// all samples.
    ///
    /// Default: `"decay"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<AlphaName>,
    /// μ: clips representations to norm √μ, also in training.
    ///
    /// Default: none, or H/2 if matrices get noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub norm_bound: Option<f64>,
    /// First round with matrices. All devices send one in it.
    ///
    /// Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_from: Option<u32>,
    /// Number of rounds between exchanges of matrices. The cohort sends them, or an independent
    /// draw of the same size (docs/contrastive.md#who-sends-matrices).
    ///
    /// Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_every: Option<u32>,
    /// `"with-update"`: send matrices with updates, and train with the previous round's (not in the
    /// paper).
    ///
    /// Default: `"before-training"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangeTime>,
    /// Largest number of matrices per device. The server keeps the last one.
    ///
    /// Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_releases: Option<u32>,
    /// Neighbours in the evaluation.
    ///
    /// Default: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<u32>,
    /// Labelled samples per device in the evaluation.
    ///
    /// Default: 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<u32>,
    /// Noise on the matrices.
    pub privacy: MatrixPrivacyConfig,
    /// How views differ from their sample.
    pub augment: AugmentConfig,
}

impl ContrastConfig {
    /// The settings that it declares ([`crate::combinations`]).
    pub(crate) fn settings(&self) -> Settings {
        let privacy = &self.privacy;
        Settings::of([
            (Setting::MatrixTarget, privacy.epsilon.is_some()),
            (
                Setting::MatrixMultiplier,
                privacy.noise_multiplier.is_some(),
            ),
        ])
    }

    /// Whether no key is given.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// α: the fraction of the repulsion that comes from the device's local samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlphaName {
    /// From 1 in the first round to 0.2 in the last (FedSC, Appendix C).
    #[default]
    Decay,
    /// The device's fraction of all samples, which makes the sum of the devices' losses the loss on
    /// their pooled samples.
    Share,
}

/// When a device sends its correlation matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExchangeTime {
    /// In a separate message, before it trains: the paper.
    #[default]
    BeforeTraining,
    /// Together with the update, so that a device transmits once a round. It then trains with a
    /// matrix that is one round old.
    WithUpdate,
}

/// `[contrast.privacy]`: the noise of a device on its correlation matrix. It protects one example
/// of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MatrixPrivacyConfig {
    /// ε of all matrices of a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// The noise std on the sum of matrices, divided by μ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// δ for matrices.
    ///
    /// Default: 1e-5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// The accountant for matrices (docs/accounting.md#events-and-accountants).
    ///
    /// Default: the tightest sound one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub accountant: Option<Accountant>,
}

impl MatrixPrivacyConfig {
    /// Whether matrices get noise, if some are sent.
    #[must_use]
    pub fn asks_for_noise(&self) -> bool {
        self.epsilon.is_some_and(f64::is_finite) || self.noise_multiplier.is_some_and(|z| z > 0.0)
    }
}

/// `[contrast.augment]`: how views differ from their sample. 0 turns an augmentation off. If no key
/// is given, the defaults depend on the kind of data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentConfig {
    /// Std of noise added to each value.
    ///
    /// Default: by kind of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
    /// Largest deviation from 1 of a factor for each channel or row.
    ///
    /// Default: by kind of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<f64>,
    /// Probability of setting a channel to 0. Without axes: a feature.
    ///
    /// Default: by kind of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_drop: Option<f64>,
    /// For windows of channels × time: largest shift, in values.
    ///
    /// Default: by kind of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_shift: Option<u32>,
    /// For windows of 3 × time: largest rotation of the three axes, in degrees.
    ///
    /// Default: by kind of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<f64>,
    /// For images: largest shift in pixels.
    ///
    /// Default: by kind of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<u32>,
    /// For images: largest rotation in degrees.
    ///
    /// Default: by kind of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<f64>,
    /// For images: largest side of an erased square, in pixels.
    ///
    /// Default: by kind of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase: Option<u32>,
}
