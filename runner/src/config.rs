//! The experiment file: TOML, complete with its defaults.
//!
//! [`Config`] is what a file says, each key of the right type and every unknown key refused. What
//! the keys mean together, and for a federation of a certain size, is settled once by
//! [`crate::experiment::Experiment`].

mod contrast;
mod overrides;
mod personalise;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::config::DataConfig;
use crate::privacy::accountant::Accountant;
use crate::privacy::params::DeltaSpec;

pub use contrast::{AlphaName, AugmentConfig, ContrastConfig, ExchangeTime, MatrixPrivacyConfig};
pub use overrides::Override;
pub use personalise::{
    FineTuneKind, NoiseScale, NoiseTime, PersonaliseConfig, PmtlUpdateName, PrivatePart,
};

/// The experiment that runs when none is given.
pub const DEFAULT: &str = include_str!("../assets/default.toml");

/// Why an experiment file was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the experiment {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not TOML, or a key is unknown, missing or of the wrong type.
    #[error("{origin}: {message}")]
    Parse {
        /// The file, or where else the text came from.
        origin: String,
        /// What the parser says, with the line.
        message: String,
    },
    /// A sweep where one experiment is expected.
    #[error("{origin} has a table [sweep], so that it is many experiments: smolfed sweep {origin}")]
    IsSweep {
        /// The file.
        origin: String,
    },
    /// `--set` with something else than `key=value`.
    #[error("`--set {text}`: expected KEY=VALUE, for example `--set privacy.epsilon=6`")]
    Override {
        /// What was given.
        text: String,
    },
    /// `--set` reaches into something that is not a table.
    #[error("`--set {key}=..`: `{part}` is a value, not a table")]
    NotATable {
        /// The dotted key.
        key: String,
        /// The part of it that has no keys.
        part: String,
    },
}

/// How the server and the devices learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Private federated averaging.
    DpFed,
    /// Private federated averaging with Laplacian smoothing (Liang et al. 2020).
    DpFedLs,
    /// Private federated averaging, each device pulled back to the global model (Li et al. 2020).
    Fedprox,
    /// A personal model on each device, pulled to a shared one (Hu, Wu, Smith 2023).
    Pmtl,
    /// A shared encoder below a private part of each device (Wu, Chen, Wang 2020).
    Dpfedmtl,
    /// A shared model and an offset of each device's own (Bietti et al. 2022).
    PpSgd,
    /// Each device by itself: nothing is shared.
    Local,
    /// An encoder that learns without labels, with correlation matrices that are shared (Jing et al. 2024).
    Fedsc,
    /// The same without matrices: federated averaging of the spectral contrastive loss.
    FedavgSc,
    /// The same on all samples in one place, to compare with.
    CentralSc,
}

impl Method {
    /// The name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DpFed => "dp-fed",
            Self::DpFedLs => "dp-fed-ls",
            Self::Fedprox => "fedprox",
            Self::Pmtl => "pmtl",
            Self::Dpfedmtl => "dpfedmtl",
            Self::PpSgd => "pp-sgd",
            Self::Local => "local",
            Self::Fedsc => "fedsc",
            Self::FedavgSc => "fedavg-sc",
            Self::CentralSc => "central-sc",
        }
    }

    /// Whether it learns an encoder without labels.
    #[must_use]
    pub const fn is_contrastive(self) -> bool {
        matches!(self, Self::Fedsc | Self::FedavgSc | Self::CentralSc)
    }
}

/// The kind of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The kind; by default linear for values, softmax for classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ModelKind>,
    /// Units of a hidden layer below the softmax; without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<u32>,
    /// What a hidden unit does to its sum; tanh by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<ActivationName>,
}

/// What a hidden unit does to its sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActivationName {
    /// Hyperbolic tangent.
    Tanh,
    /// max(x, 0).
    Relu,
}

/// How the cohort of a round comes about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplingScheme {
    /// A fixed number of devices, without replacement.
    #[default]
    Uniform,
    /// Each device independently.
    Poisson,
    /// All devices.
    Full,
}

/// What the sum of a round is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Denominator {
    /// The cohort size, or its expectation τN under Poisson sampling: known beforehand.
    #[default]
    Expected,
    /// The number of devices drawn, as the paper prints it; under Poisson sampling that reveals it.
    Realised,
}

/// `[cohort]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CohortConfig {
    /// The scheme.
    pub sampling: SamplingScheme,
    /// S: devices in a round; give this or the sampling rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohort_size: Option<u32>,
    /// τ = S / N.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<f64>,
    /// What the sum is divided by.
    pub denominator: Denominator,
    /// How much an update counts in the sum; by "samples" for encoders without labels, whose updates are not
    /// clipped, and else "uniform".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighting: Option<Weighting>,
    /// The number of samples from which on a device counts no more; needed to weigh private updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_cap: Option<u32>,
}

/// How much an update counts in the sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// All the same.
    #[default]
    Uniform,
    /// By the device's number of samples, over the cap: from just above 0 to 1.
    Samples,
}

/// When an update is clipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClipTime {
    /// After every local step (the paper).
    #[default]
    EveryStep,
    /// Once, at the end of local training.
    Final,
}

/// `[train]`: local training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Passes over the local samples.
    pub epochs: u32,
    /// Samples in a batch.
    pub batch_size: u32,
    /// Step size in the first round.
    pub learning_rate: f64,
    /// Factor on the step size from one round to the next.
    pub learning_rate_decay: f64,
    /// Adds `weight_decay · w` to the gradient.
    pub weight_decay: f64,
    /// Adds `proximal · (w − w_global)` to the gradient (FedProx).
    pub proximal: f64,
    /// When the update is clipped.
    pub clip: ClipTime,
    /// Smoothing factor of the local gradient (LSGD); 0 is none.
    pub gradient_smoothing: f64,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            epochs: 5,
            batch_size: 10,
            learning_rate: 0.1,
            learning_rate_decay: 0.99,
            weight_decay: 4e-5,
            proximal: 0.0,
            clip: ClipTime::default(),
            gradient_smoothing: 0.0,
        }
    }
}

/// What the server does to the noisy average beside or instead of smoothing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DenoiserKind {
    /// Nothing, or Laplacian smoothing with `method = "dp-fed-ls"`.
    #[default]
    None,
    /// James-Stein shrinkage (Balle, Wang 2018).
    JamesStein,
    /// Soft thresholding at ν√(2 ln d) (Balle, Wang 2018).
    SoftThreshold,
}

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Step size η_g on the average.
    pub learning_rate: f64,
    /// σ of the Laplacian smoothing; needs `method = "dp-fed-ls"`.
    pub smoothing_factor: f64,
    /// Smooth weights along these axes of the input instead of as one line; the product is the
    /// number of features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<usize>,
    /// Another denoiser, to compare with.
    pub denoiser: DenoiserKind,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            learning_rate: 1.0,
            smoothing_factor: 0.0,
            axes: Vec::new(),
            denoiser: DenoiserKind::default(),
        }
    }
}

/// Who is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The server adds the noise.
    #[default]
    Central,
    /// Each device adds all of its own noise.
    Local,
}

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
    /// Who counts ε and calibrates the noise; by default the tightest sound one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accountant: Option<Accountant>,
    /// A ledger that is shared with other runs on the same population, whose costs then add; by
    /// default each run has one of its own in its directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<PathBuf>,
    /// Who is trusted.
    pub trust: Trust,
    /// Bits b of the integer grid, whose step is clip_norm · 2^-b.
    pub grid_bits: u32,
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
            trust: Trust::default(),
            grid_bits: smolfed_core::quantize::DEFAULT_BITS,
        }
    }
}

/// A whole experiment file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Names the run directory and the report.
    #[serde(default = "default_name")]
    pub name: String,
    /// The method.
    pub method: Method,
    /// Root of all random streams of the simulation.
    #[serde(default)]
    pub seed: u64,
    /// Communication rounds T.
    pub rounds: u32,
    /// Evaluate after every so many rounds, and always after the last; 0 is the last only.
    #[serde(default = "one")]
    pub evaluate_every: u32,
    /// Data and devices.
    pub data: DataConfig,
    /// The model.
    #[serde(default)]
    pub model: ModelConfig,
    /// Cohorts.
    #[serde(default)]
    pub cohort: CohortConfig,
    /// Local training.
    #[serde(default)]
    pub train: TrainConfig,
    /// The server's step.
    #[serde(default)]
    pub server: ServerConfig,
    /// Models of a device's own.
    #[serde(default)]
    pub personalise: PersonaliseConfig,
    /// Learning without labels.
    #[serde(default, skip_serializing_if = "ContrastConfig::is_default")]
    pub contrast: ContrastConfig,
    /// Clipping, noise and accounting.
    #[serde(default)]
    pub privacy: PrivacyConfig,
}

fn default_name() -> String {
    "experiment".to_owned()
}

const fn one() -> u32 {
    1
}

impl Config {
    /// Reads a file, or takes [`DEFAULT`] when there is none, and applies overrides in order.
    ///
    /// # Errors
    /// [`ConfigError`] naming the file and the key or line.
    pub fn load(path: Option<&Path>, overrides: &[Override]) -> Result<Self, ConfigError> {
        match path {
            None => Self::parse(DEFAULT, "the built-in experiment", overrides),
            Some(path) => {
                let origin = path.display().to_string();
                let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
                    path: origin.clone(),
                    source,
                })?;
                Self::parse(&text, &origin, overrides)
            }
        }
    }

    /// Parses the text of an experiment file; `origin` names it in errors.
    ///
    /// # Errors
    /// [`ConfigError`] naming the origin and the key or line.
    pub fn parse(text: &str, origin: &str, overrides: &[Override]) -> Result<Self, ConfigError> {
        let refuse = |error: toml::de::Error| ConfigError::Parse {
            origin: origin.to_owned(),
            message: sentence(&error, text),
        };
        let whole: Result<toml::Table, _> = toml::from_str(text);
        if whole.is_ok_and(|table| table.contains_key("sweep")) {
            let origin = origin.to_owned();
            return Err(ConfigError::IsSweep { origin });
        }
        if overrides.is_empty() {
            // Straight from the text: errors then name the line.
            return toml::from_str(text).map_err(refuse);
        }
        let mut table: toml::Table = toml::from_str(text).map_err(refuse)?;
        for item in overrides {
            item.apply(&mut table)?;
        }
        table.try_into().map_err(refuse)
    }

    /// The complete file, every default written out: reading it back gives the same.
    ///
    /// # Errors
    /// [`ConfigError::Parse`] if a value has no form in TOML (a path that is not UTF-8).
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string(self).map_err(|error| ConfigError::Parse {
            origin: "the complete experiment".to_owned(),
            message: error.to_string(),
        })
    }
}

/// What a parser's error says, in one line: where it stands in `text`, or below which key.
fn sentence(error: &toml::de::Error, text: &str) -> String {
    let message = error.message().trim_end().replace('\n', ", ");
    if let Some(before) = error.span().and_then(|span| text.get(..span.start)) {
        let line = before.matches('\n').count() + 1;
        return format!("line {line}: {message}");
    }
    // A table has no lines; its errors end with the key that they are about.
    let whole = error.to_string();
    match whole.trim_end().rsplit_once("\nin ") {
        Some((_, key)) => format!("{key}: {message}"),
        None => message,
    }
}

#[cfg(test)]
mod tests;
