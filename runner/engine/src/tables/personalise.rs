//! The keys of `[personalise]` for personal models: regularisation, local steps, fine-tuning, and
//! the number of evaluated devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[personalise]`. Keys that the method does not use have no effect, so that a sweep can set them
/// for all methods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PersonaliseConfig {
    /// λ of `pmtl` and `fedprox`: adds `λ·(w − w_shared)` to the gradient of the mean loss in
    /// **every** step.
    ///
    /// Default: 0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    /// The reference for the difference that `pmtl` sends: the shared model. `"as-printed"`: the
    /// device's last personal model, averaged over the cohort, as in the paper, which overshoots by
    /// N/S (docs/papers.md#p1). `"mean-over-all"`: the same, averaged over all devices.
    ///
    /// Default: `"from-global"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<PmtlUpdateName>,
    /// `pp-sgd`: step size of the offset relative to the step size of the shared model.
    ///
    /// Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The personal part of `dpfedmtl`. `"head"` requires `model.hidden` or `model.layers`.
    /// `"biases"`: a personal intercept. `"nothing"`: everything is shared, for comparison.
    ///
    /// Default: `"head"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private: Option<PrivatePart>,
    /// H, the number of local steps, instead of `train.epochs`, for `pmtl`, `pp-sgd`, `dpfedmtl`
    /// and `local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_steps: Option<u32>,
    /// `"each-step"`: `dpfedmtl` as in the paper, where each local step clips the shared gradient
    /// and adds noise on the device. Requires `privacy.trust = "local"`, `local_steps` and a clip
    /// norm.
    ///
    /// Default: `"each-round"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseTime>,
    /// `"as-printed"`: std σ·2CK/M instead of z·C, with σ from `privacy.noise_multiplier`
    /// (docs/papers.md#d2).
    ///
    /// Default: `"sound"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_scale: Option<NoiseScale>,
    /// Fine-tuning on each device after training: `"plain"`, `"mean-regularised"`,
    /// `"symmetrised-kl"`, `"ewc"` (Hu, Wu, Smith 2023, Section 5).
    ///
    /// Default: `"none"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_tune: Option<FineTuneKind>,
    /// Strength of the regulariser in fine-tuning.
    ///
    /// Default: 0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_tune_lambda: Option<f64>,
    /// Epochs of fine-tuning.
    ///
    /// Default: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_tune_epochs: Option<u32>,
    /// Number of evaluated devices, spread evenly over the federation.
    ///
    /// Default: 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluate_devices: Option<u32>,
}

/// The update of a `pmtl` device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PmtlUpdateName {
    /// The new personal model minus the shared one: the authors' code.
    #[default]
    FromGlobal,
    /// The new personal model minus its last one, averaged over the cohort: the paper.
    AsPrinted,
    /// The same, averaged over all devices.
    MeanOverAll,
}

/// The part of the model that stays on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrivatePart {
    /// The layer above the hidden one.
    #[default]
    Head,
    /// The last biases: for values, a personal intercept.
    Biases,
    /// Nothing: federated averaging, for comparison.
    Nothing,
}

/// When a device clips and adds its noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseTime {
    /// Once, on the update of the round.
    #[default]
    EachRound,
    /// On the shared gradient of each local step, as the paper has it.
    EachStep,
}

/// The scale of DPFedMTL's noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseScale {
    /// Noise std = noise multiplier · clip norm, as everywhere in smolfed.
    #[default]
    Sound,
    /// Noise std = σ · 2·C·K/M for a cohort of K of M devices: the paper's scale, which falls with
    /// the number of devices although the sensitivity of one upload does not (docs/papers.md, D2).
    AsPrinted,
}

/// The objective of fine-tuning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FineTuneKind {
    /// None.
    #[default]
    None,
    /// The loss alone.
    Plain,
    /// With λ/2 · ‖w − w̃‖².
    MeanRegularised,
    /// With λ times the symmetrised Kullback-Leibler divergence from the shared model's
    /// predictions.
    SymmetrisedKl,
    /// With λ/2 · Σ Fᵢ (wᵢ − w̃ᵢ)², F the Fisher information at the shared model.
    Ewc,
}
