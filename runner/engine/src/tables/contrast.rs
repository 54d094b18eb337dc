//! `[contrast]`: learning without labels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use smolfed_accounting::accountant::Accountant;

use crate::combinations::{Setting, Settings};

/// `[contrast]`. Keys that the method does not use have no effect, so that a sweep can set them for
/// all methods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContrastConfig {
    /// H: dimension of the representations. The default is 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Number of views of a sample, even. The default is 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub views: Option<u32>,
    /// α: the fraction of the repulsion that comes from the device's local samples. The default is
    /// "decay".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<AlphaName>,
    /// μ: representations are clipped to norm √μ, which also keeps large steps from diverging. The
    /// default is half the width where matrices get noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub norm_bound: Option<f64>,
    /// The first round, counted from 0, in which devices share correlation matrices. All devices
    /// share them in that round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_from: Option<u32>,
    /// From then on, the cohort shares its matrices once in this many rounds. The default is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_every: Option<u32>,
    /// When a device sends its matrix. The default is "before-training".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangeTime>,
    /// The largest number of matrices that one device sends. The default is the number of rounds in
    /// which it can send one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_releases: Option<u32>,
    /// k of the k-nearest-neighbour evaluation. The default is 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<u32>,
    /// Labelled samples of a device, from which its personal head is trained. The default is 10.
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
    /// Target ε for all matrices of a device together: the noise is calibrated to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// Noise std on the mean over a device's samples, over μ / samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// δ. The default is 1e-5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Computes ε and calibrates the noise. The default is the tightest sound accountant.
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
    /// Std of noise on each value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
    /// Each channel times a factor up to this far from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<f64>,
    /// Each channel is set to 0 with this probability. Without axes, this applies to each feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_drop: Option<f64>,
    /// A window (channels × time) is shifted in time by up to this many values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_shift: Option<u32>,
    /// The three axes of a window are turned by up to this many degrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<f64>,
    /// An image is shifted by up to this many pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<u32>,
    /// An image is turned by up to this many degrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<f64>,
    /// A square with sides of up to this many pixels is erased from an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase: Option<u32>,
}
