//! `[personalise]`: personal models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[personalise]`. Keys that the method does not use have no effect, so that a sweep can set them
/// for all methods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PersonaliseConfig {
    /// λ: how strongly `pmtl` and `fedprox` pull a device to the shared model, on the scale of its
    /// mean loss. The default is 0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    /// The update of a `pmtl` device. The default is "from-global".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<PmtlUpdateName>,
    /// How far the offset of `pp-sgd` moves for each step of the shared model. The default is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The part of the model that stays on a device with `dpfedmtl`. The default is the head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private: Option<PrivatePart>,
    /// H: local steps of a round, instead of `train.epochs`. It applies to personal models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_steps: Option<u32>,
    /// When a `dpfedmtl` device with local trust clips and adds its noise. The default is
    /// "each-round".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseTime>,
    /// The scale that the noise multiplier of `dpfedmtl` with "each-step" multiplies. The default
    /// is "sound".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_scale: Option<NoiseScale>,
    /// Local steps after training, on each device, starting from its personal model or, without
    /// one, from the shared model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_tune: Option<FineTuneKind>,
    /// λ of the fine-tuning. The default is 0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_tune_lambda: Option<f64>,
    /// Passes over the local samples. The default is 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_tune_epochs: Option<u32>,
    /// Number of devices whose personal models are evaluated, evenly spread over the federation.
    /// The default is 1000.
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
