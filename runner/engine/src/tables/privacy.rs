//! `[privacy]`: clipping, noise and accounting, with ε, δ, the limit on ε, the ledger, the trust
//! model and private selection.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smolfed_accounting::correlated::Family;
use smolfed_accounting::{Accountant, DeltaSpec, TrustModel};

use super::number_or_name::number_or;
use crate::combinations::{Setting, Settings};

/// `[privacy]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrivacyConfig {
    /// Target ε for all rounds. The noise is calibrated to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// Noise std divided by the clip norm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// Noise std on the sum of a cohort's updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_std: Option<f64>,
    /// Limit on ε with given noise. The run stops before the round that would exceed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_epsilon: Option<f64>,
    /// δ: a number, or a power of 1/N.
    #[schemars(with = "crate::config::schema::NumberOrText")]
    pub delta: DeltaSpec,
    /// L, or `"adaptive"`. Required with noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::config::schema::NumberOrText>")]
    pub clip_norm: Option<ClipNormSetting>,
    /// How an adaptive clip norm changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<AdaptiveConfig>,
    /// Computes ε (docs/accounting.md#events-and-accountants).
    ///
    /// Default: the tightest sound one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub accountant: Option<Accountant>,
    /// A privacy ledger (docs/releases.md#the-ledger) shared by runs on the same devices. Their
    /// costs add up.
    ///
    /// Default: `ledger.jsonl` in the run directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<PathBuf>,
    /// `"central"`: the server adds the noise. `"local"`: each device adds the full noise to its
    /// own update. `"distributed"`: the server and a helper add noise to masked updates
    /// (docs/masked.md). `"distributed=3/2"`: three helpers. Any two of the four parties may
    /// collude. Without `/2`: any three.
    #[serde(serialize_with = "as_text", deserialize_with = "trust_model")]
    #[schemars(with = "String")]
    pub trust: TrustModel,
    /// The grid's step is `clip_norm · 2^-grid_bits`.
    pub grid_bits: u32,
    /// Maximum number of devices per user. ε protects them together
    /// (docs/accounting-mechanisms.md#users-with-several-devices).
    ///
    /// Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices_per_user: Option<u32>,
    /// A private selection (docs/experiments-privacy.md#privacyselection): the run is the best of a
    /// random number of trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionConfig>,
    /// The share of `epsilon` for `[[questions]]`.
    ///
    /// Default: 0.1, or 1 if devices send no updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<f64>,
    /// `"independent"` or `"correlated"`.
    ///
    /// Default: `"independent"`.
    #[serde(skip_serializing_if = "MechanismName::is_independent")]
    pub mechanism: MechanismName,
    /// b: the minimum distance between two rounds of a device. With `"buffered"` and independent
    /// noise: 1 by default.
    ///
    /// Default: required, or 1 with `sampling = "full"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separation: Option<u32>,
    /// k: the maximum number of rounds per device, at most ⌈n / b⌉ of n rounds, or ⌈n / (b + s)⌉ of
    /// n windows.
    ///
    /// Default: as many as possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participations: Option<u32>,
    /// `"identity"` (independent noise), `"tree"`, `"square-root"`, `"square-root-banded"`,
    /// `"banded-optimal-mean"` or `"banded-optimal-max"`.
    ///
    /// Default: `"banded-optimal-mean"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub family: Option<Family>,
}

/// How the noise of one round is related to the noise of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MechanismName {
    /// Fresh noise on the sum of every round.
    #[default]
    Independent,
    /// Fresh noise on combinations of the sums of several rounds: for devices that are not drawn
    /// at random.
    Correlated,
}

impl MechanismName {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    fn is_independent(&self) -> bool {
        *self == Self::Independent
    }
}

/// `[privacy.selection]`: the trials of a sweep with `choose = "private"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SelectionConfig {
    /// Distribution of the number of trials, truncated to at least one. `"poisson"`: possibly zero.
    pub trials: TrialsName,
    /// The expected number of trials, from 2 to 100.
    pub mean: f64,
    /// η of the negative binomial, from 0 to 10. 0: logarithmic, costs least. 1: geometric, fewer
    /// very small and very large numbers.
    ///
    /// Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<f64>,
    /// Noise std on the sum of the scores, each between −1 and 1. On the mean accuracy, the std is
    /// half of this, divided by N.
    pub score_noise_multiplier: f64,
    /// Draw the trials from `seed`, not the operating system, for reproductions.
    pub seeded: bool,
    /// Written by the sweep. `"secret"`: randomness of the operating system, not kept. With
    /// `seeded`: a number which, with the experiment's `seed`, determines cohorts, noise and score
    /// of the chosen trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<TrialSeed>,
}

/// `privacy.selection.seed`: a number, or "secret". The secret itself belongs to the experiment
/// that runs, as a root without a text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a whole number or \"secret\"")]
pub enum TrialSeed {
    /// Together with the experiment's seed, this number determines the trial.
    Known(u64),
    /// The randomness came from the operating system, and was not kept.
    Unknown(SecretSeed),
}

impl TrialSeed {
    /// The value of a trial with secret randomness.
    pub const SECRET: Self = Self::Unknown(SecretSeed::Secret);
}

/// The word for an unknown seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSeed {
    /// Secret.
    Secret,
}

impl Default for SelectionConfig {
    fn default() -> Self {
        Self {
            trials: TrialsName::default(),
            mean: 8.0,
            shape: None,
            score_noise_multiplier: 10.0,
            seeded: false,
            seed: None,
        }
    }
}

/// The distribution of a number of trials, as written in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialsName {
    /// Truncated negative binomial: at least one trial.
    #[default]
    NegativeBinomial,
    /// Poisson: perhaps no trial.
    Poisson,
}

/// `privacy.clip_norm`: a number, or "adaptive".
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClipNormSetting {
    /// L of all rounds.
    Fixed(f64),
    /// L follows a quantile of the norms of the updates.
    Adaptive,
}

impl ClipNormSetting {
    /// L, if it is the same in all rounds.
    #[must_use]
    pub const fn fixed(self) -> Option<f64> {
        match self {
            Self::Fixed(value) => Some(value),
            Self::Adaptive => None,
        }
    }
}

/// The name of an adaptive clip norm in files.
const ADAPTIVE: &str = "adaptive";

impl Serialize for ClipNormSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(value) => serializer.serialize_f64(*value),
            Self::Adaptive => serializer.serialize_str(ADAPTIVE),
        }
    }
}

impl<'de> Deserialize<'de> for ClipNormSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = number_or(ADAPTIVE, deserializer)?;
        Ok(number.map_or(Self::Adaptive, Self::Fixed))
    }
}

/// `[privacy.adaptive]`: how an adaptive clip norm changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdaptiveConfig {
    /// γ: the target share of unclipped updates.
    pub quantile: f64,
    /// η.
    pub learning_rate: f64,
    /// L of the first round, from 2⁻³⁰ to 2³⁰.
    pub initial: f64,
    /// σ_b: noise std on the number of clipped updates, above z / 2. With local trust: noise std on
    /// the bit of each device, by default a twentieth of the square root of the expected cohort, at
    /// least 2z.
    ///
    /// Default: a twentieth of the expected cohort, at least 2z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bit_noise: Option<f64>,
}

impl Default for AdaptiveConfig {
    /// The paper's.
    fn default() -> Self {
        Self {
            quantile: 0.5,
            learning_rate: 0.2,
            initial: 0.1,
            bit_noise: None,
        }
    }
}

/// A trust model, as written in files.
fn trust_model<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TrustModel, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(D::Error::custom)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn as_text<S: Serializer>(trust: &TrustModel, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(trust)
}

impl PrivacyConfig {
    /// The family of correlated noise.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family.unwrap_or(Family::BandedOptimalMean)
    }

    /// The settings that it declares ([`crate::combinations`]).
    pub(crate) fn settings(&self) -> Settings {
        let is_adaptive = self.clip_norm == Some(ClipNormSetting::Adaptive);
        let is_correlated = self.mechanism == MechanismName::Correlated;
        let selection = self.selection.as_ref();
        let is_poisson = |of: &SelectionConfig| of.trials == TrialsName::Poisson;
        Settings::of([
            (Setting::Noise, self.asks_for_noise()),
            (Setting::Target, self.epsilon.is_some()),
            (Setting::Multiplier, self.noise_multiplier.is_some()),
            (Setting::NoiseStd, self.noise_std.is_some()),
            (Setting::MaxEpsilon, self.max_epsilon.is_some()),
            (Setting::QuestionShare, self.questions.is_some()),
            (Setting::AdaptiveClipNorm, is_adaptive),
            (Setting::FixedClipNorm, !is_adaptive),
            (Setting::AdaptiveKeys, self.adaptive.is_some()),
            (Setting::CentralTrust, self.trust == TrustModel::Central),
            (Setting::LocalTrust, self.trust == TrustModel::Local),
            (
                Setting::DistributedTrust,
                matches!(self.trust, TrustModel::Distributed(_)),
            ),
            (Setting::Independent, !is_correlated),
            (Setting::Correlated, is_correlated),
            (Setting::Separation, self.separation.is_some()),
            (Setting::Participations, self.participations.is_some()),
            (Setting::Family, self.family.is_some()),
            (Setting::Tree, self.family == Some(Family::Tree)),
            (Setting::Ledger, self.ledger.is_some()),
            (
                Setting::OtherAccountant,
                !matches!(self.accountant, None | Some(Accountant::Rdp)),
            ),
            (Setting::Selection, selection.is_some()),
            (
                Setting::SelectionShape,
                selection.is_some_and(|of| of.shape.is_some()),
            ),
            (Setting::PoissonTrials, selection.is_some_and(is_poisson)),
        ])
    }

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
            adaptive: None,
            accountant: None,
            ledger: None,
            trust: TrustModel::default(),
            grid_bits: smolfed_core::quantize::DEFAULT_BITS,
            devices_per_user: None,
            selection: None,
            questions: None,
            mechanism: MechanismName::default(),
            separation: None,
            participations: None,
            family: None,
        }
    }
}
