//! `[privacy]`: clipping, noise and accounting.

use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use smolfed_accounting::{Accountant, DeltaSpec, TrustModel};

/// `[privacy]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrivacyConfig {
    /// Target ε: the noise is calibrated to it. One of three ways to say how much noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// Noise std over clip norm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// Noise std on the sum of a cohort's updates (on each device's update with local trust).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_std: Option<f64>,
    /// ε that the run must not exceed, when the noise is given: it stops before that round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_epsilon: Option<f64>,
    /// δ, as a number or like "1/N^1.1".
    pub delta: DeltaSpec,
    /// L; needed wherever there is noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// Computes ε and calibrates the noise; the tightest sound accountant by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accountant: Option<Accountant>,
    /// A ledger that several runs on one population share, so that their costs add up; by default
    /// each run has its own ledger, in its directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<PathBuf>,
    /// Who adds the noise: the server (central) or each device (local).
    #[serde(deserialize_with = "central_or_local")]
    pub trust: TrustModel,
    /// Bits b of the integer grid, whose step is clip_norm · 2^-b.
    pub grid_bits: u32,
    /// k: a user has up to so many of the devices, and ε protects all of them together; 1 by
    /// default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices_per_user: Option<u32>,
}

/// The trust models that an experiment can have.
fn central_or_local<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TrustModel, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.parse() {
        Ok(trust @ (TrustModel::Central | TrustModel::Local)) => Ok(trust),
        _ if text.starts_with("distributed") => Err(D::Error::custom(format!(
            "`{text}` trust is supported by `smolfed account` and `smolfed plan`, but not by \
             runs: expected `central` or `local`"
        ))),
        _ => Err(D::Error::unknown_variant(&text, &["central", "local"])),
    }
}

impl PrivacyConfig {
    /// Whether updates get noise.
    #[must_use]
    pub fn asks_for_noise(&self) -> bool {
        self.epsilon.is_some_and(f64::is_finite)
            || self.noise_multiplier.is_some_and(|z| z > 0.0)
            || self.noise_std.is_some_and(|std| std > 0.0)
    }
}

impl Default for PrivacyConfig {
    fn default() -> Self {
        Self {
            epsilon: None,
            noise_multiplier: None,
            noise_std: None,
            max_epsilon: None,
            delta: DeltaSpec::PowerOfDevices { power: 1.1 },
            clip_norm: None,
            accountant: None,
            ledger: None,
            trust: TrustModel::default(),
            grid_bits: smolfed_core::quantize::DEFAULT_BITS,
            devices_per_user: None,
        }
    }
}
