//! The experiment file (configuration) in TOML: its tables and top-level keys, such as `rounds` and
//! `seed`, complete with their defaults.
//!
//! [`Config`] is the content of a file, with checked types and no unknown keys.
//! [`crate::experiment::Experiment`] determines once what the keys mean together, for a federation
//! of a certain size.

pub mod asking;
mod error;
pub mod file;
mod overrides;
pub mod schema;

use std::path::Path;

use rand_core::Rng;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smolfed_accounting::TrustModel;
use smolfed_core::stream::{Purpose, Root, StreamId};

use crate::combinations::Settings;
use crate::method::MethodName;
use smolfed_data::catalogue::KnownSet;
use smolfed_data::config::{DataConfig, FeaturesTable};

use smolfed_data::wording::reworded;

pub use crate::check::ExperimentError;
pub use crate::tables::*;
pub use error::ConfigError;
pub use overrides::Override;

/// The default experiment.
pub const DEFAULT: &str = include_str!("../assets/default.toml");

/// A whole experiment file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Config {
    /// Names the run directory and the report.
    #[serde(default = "default_name")]
    pub name: String,
    /// `"dp-fed"`: private federated averaging. `"dp-fed-ls"`: with Laplacian smoothing. Personal
    /// models (docs/personalisation.md): `"fedprox"`, `"pmtl"`, `"dpfedmtl"`, `"pp-sgd"`,
    /// `"local"`. Without labels (docs/contrastive.md): `"fedsc"`, `"fedavg-sc"`, `"central-sc"`.
    /// `"ask"`: questions (docs/answers.md) without training.
    pub method: MethodName,
    /// Seed of all random streams. The same seed gives the same bits.
    #[serde(default)]
    pub seed: u64,
    /// Communication rounds T.
    pub rounds: u32,
    /// Rounds between evaluations. 0: only after the last round.
    #[serde(default = "one")]
    pub evaluate_every: u32,
    /// Data and devices, including the features of `features` once the file is read.
    pub data: DataConfig,
    /// Fixed features of the samples, in the place of `data.scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<FeaturesTable>,
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
    /// Personal models.
    #[serde(default)]
    pub personalise: PersonaliseConfig,
    /// Learning without labels.
    #[serde(default, skip_serializing_if = "ContrastConfig::is_default")]
    pub contrast: ContrastConfig,
    /// Clipping, noise and accounting.
    #[serde(default)]
    pub privacy: PrivacyConfig,
    /// What devices are asked between rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<QuestionConfig>,
    /// How this machine simulates devices.
    #[serde(default, skip_serializing_if = "SimulationConfig::is_default")]
    pub simulation: SimulationConfig,
}

fn default_name() -> String {
    "experiment".to_owned()
}

const fn one() -> u32 {
    1
}

impl Config {
    /// Returns the settings that its tables declare ([`crate::combinations`]). Methods declare
    /// those of `[personalise]`, as the keys have an effect with some methods only.
    pub(crate) fn settings(&self) -> Settings {
        self.cohort
            .settings()
            .and(self.model.settings())
            .and(self.train.settings())
            .and(self.server.settings())
            .and(self.contrast.settings())
            .and(self.privacy.settings())
            .and(question::settings(&self.questions))
            .and(self.simulation.settings())
    }

    /// Returns whether ε relies on secret cohorts. The size of a cohort and the duration of a round
    /// must then stay secret, also from outsiders under distributed trust.
    #[must_use]
    pub fn has_secret_cohorts(&self) -> bool {
        self.privacy.trust != TrustModel::Local
            && matches!(
                self.cohort.sampling,
                CohortSampling::Poisson | CohortSampling::BlockCyclic
            )
    }

    /// Returns the seed of cohorts, training and noise, or `None` if these are secret. Data and
    /// devices always follow from `seed`, so all trials of a private selection have the same ones.
    /// The seed of a trial's run is drawn under `seed`, from the stream that the trial's own seed
    /// names. Another `seed` therefore gives other noise as well: with the same noise on other
    /// data, the difference of two releases would have none.
    #[must_use]
    pub fn run_seed(&self) -> Option<u64> {
        if self.method == MethodName::Ask {
            return Some(self.seed_of_answers());
        }
        let selection = self.privacy.selection.as_ref();
        let trial = match selection.and_then(|selection| selection.seed) {
            None => return Some(self.seed),
            Some(TrialSeed::Known(trial)) => trial,
            Some(TrialSeed::Unknown(_)) => return None,
        };
        let name = StreamId {
            purpose: Purpose::TrialSeed,
            round: trial as u32,
            device: (trial >> 32) as u32,
        };
        Some(Root::from_seed(self.seed).stream(name).next_u64())
    }

    /// Returns the seed of the cohorts and the noise of questions alone. It is drawn under `seed`
    /// from the stream that a checksum of the configuration names. Two questions about the same
    /// devices therefore have different noise: with the same noise, the difference of their answers
    /// would have none.
    fn seed_of_answers(&self) -> u64 {
        let mut config = self.clone();
        // The model's own checksum stays, wherever the file is.
        config.model.init = None;
        // A parsed configuration always has a text.
        let text = config.to_toml().unwrap_or_default();
        let name = StreamId {
            purpose: Purpose::AnswerSeed,
            round: crc32fast::hash(text.as_bytes()),
            device: 0,
        };
        Root::from_seed(self.seed).stream(name).next_u64()
    }

    /// Returns the seed of the initial model, which is public: the experiment's seed if the run's
    /// is secret.
    #[must_use]
    pub fn initial_seed(&self) -> u64 {
        match self.method {
            MethodName::Ask => self.seed,
            _ => self.run_seed().unwrap_or(self.seed),
        }
    }

    /// Sets the randomness of a trial of a private selection.
    pub fn set_trial_seed(&mut self, seed: TrialSeed) {
        let selection = &mut self.privacy.selection;
        selection.get_or_insert_default().seed = Some(seed);
    }

    /// Reads a file, or uses [`DEFAULT`] if there is none, and applies overrides in order.
    ///
    /// # Errors
    /// [`ConfigError`] naming the file and the key or line.
    pub fn load(path: Option<&Path>, overrides: &[Override]) -> Result<Self, ConfigError> {
        match path {
            None => Self::parse(
                &default_for(overrides),
                "the built-in experiment",
                overrides,
            ),
            Some(path) => {
                let origin = path.display().to_string();
                Self::parse(&file::read(path)?, &origin, overrides)
            }
        }
    }

    /// Parses the text of an experiment file. `origin` names it in errors.
    ///
    /// # Errors
    /// [`ConfigError`] naming the origin and the key or line.
    pub fn parse(text: &str, origin: &str, overrides: &[Override]) -> Result<Self, ConfigError> {
        let refuse = |error: toml::de::Error| ConfigError::Parse {
            origin: origin.to_owned(),
            message: sentence(&error, text),
        };
        if text.trim().is_empty() {
            let origin = origin.to_owned();
            return Err(ConfigError::Empty { origin });
        }
        let whole: Result<toml::Table, _> = toml::from_str(text);
        if whole.is_ok_and(|table| table.contains_key("sweep")) {
            let origin = origin.to_owned();
            return Err(ConfigError::IsSweep { origin });
        }
        if overrides.is_empty() {
            // Straight from the text, so that errors name the line.
            return toml::from_str(text).map_err(refuse);
        }
        let mut table: toml::Table = toml::from_str(text).map_err(refuse)?;
        for item in overrides {
            item.apply(&mut table)?;
        }
        table.try_into().map_err(refuse)
    }

    /// Returns the complete file with all defaults. Reading it back gives the same configuration.
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

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Deserializes the fields as derived, then gives the data the features of their table.
impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut config = Self::deserialize(deserializer)?;
        if let Some(table) = &config.features {
            let data = config.data.with_features(table).map_err(D::Error::custom)?;
            config.data = data.with_integers(config.simulation.feature_format());
        }
        Ok(config)
    }
}

/// Returns the built-in experiment. If the overrides name other data, it gets the name of that data
/// and loses its `[data]`, whose scale, partition and number of devices would not apply.
fn default_for(overrides: &[Override]) -> String {
    let given = |key: &str| {
        let items = overrides.iter().rev().filter(|item| item.key() == key);
        items
            .filter_map(Override::value)
            .find_map(toml::Value::as_str)
    };
    match (given("data.source"), toml::from_str::<toml::Table>(DEFAULT)) {
        (Some(source), Ok(mut table)) => {
            let file = given("data.path").and_then(|path| Path::new(path).file_name()?.to_str());
            let name = file
                .and_then(|file| file.split('.').next())
                .unwrap_or(source);
            table.insert("name".to_owned(), name.into());
            table.remove("data");
            table.to_string()
        }
        _ => DEFAULT.to_owned(),
    }
}

/// Rewords the message about an unknown key that another table may have.
fn with_key_elsewhere(message: String) -> String {
    let name = message
        .strip_prefix("unknown key `")
        .and_then(|rest| rest.split_once('`'));
    let Some((name, _)) = name.filter(|(_, rest)| !rest.contains("did you mean")) else {
        return message;
    };
    match Config::key_named(name) {
        Some(key) => format!("unknown key `{name}`; did you mean `{key}`?"),
        None => message,
    }
}

/// Rewords the message about a source that is the name of a data set, and says what to type.
fn with_known_set(message: String) -> String {
    let name = message
        .strip_prefix("is `")
        .and_then(|rest| rest.split_once('`'));
    match name.and_then(|(name, _)| KnownSet::named(name)) {
        Some(set) => format!(
            "{message}; `smolfed init {}` writes its [data] table",
            set.name
        ),
        None => message,
    }
}

/// Rewords the message about a method that other programs call by another name.
fn with_known_method(message: String) -> String {
    let name = message
        .strip_prefix("is `")
        .and_then(|rest| rest.split_once('`'));
    let is_average = name.is_some_and(|(name, rest)| {
        rest.contains("`dp-fed`")
            && ["fedavg", "dp-fedavg"].contains(&name.to_ascii_lowercase().as_str())
    });
    match (is_average, message.split_once("; did you mean")) {
        (true, Some((message, _))) => {
            format!("{message}; did you mean `dp-fed`, which without noise is FedAvg?")
        }
        _ => message,
    }
}

/// Returns a parser's error in one line, with its position in `text` or the table of the key.
pub fn sentence(error: &toml::de::Error, text: &str) -> String {
    let message = with_known_method(with_known_set(with_key_elsewhere(reworded(
        error.message(),
    ))));
    let about = |key: &str| match message.starts_with("is ") {
        true => format!("{key} {message}"),
        false => format!("{key}: {message}"),
    };
    if let Some(before) = error.span().and_then(|span| text.get(..span.start)) {
        let line = before.matches('\n').count() + 1;
        let key = text
            .lines()
            .nth(line - 1)
            .and_then(|line| line.split_once('='));
        return match key {
            Some((key, _)) if message.starts_with("is ") => {
                format!("line {line}: {}", about(&format!("`{}`", key.trim())))
            }
            _ => format!("line {line}: {message}"),
        };
    }
    // A table has no lines. Its errors end with the key.
    let whole = error.to_string();
    match whole.trim_end().rsplit_once("\nin ") {
        Some((_, key)) => about(key),
        None => message,
    }
}

#[cfg(test)]
mod tests;
