//! The configuration of separate questions about an existing model (`smolfed ask`), and the keys
//! that it shares with the run of the model.

use std::path::Path;

use toml::{Table, Value};

use super::{Config, Override, file, sentence};
use crate::config::ConfigError;
use crate::method::MethodName;

/// Tables of a run that its questions share. The others are about training.
const OF_RUN: [&str; 8] = [
    "name",
    "seed",
    "data",
    "features",
    "model",
    "cohort",
    "privacy",
    "simulation",
];
/// Keys of `[privacy]` that are the same for training and for questions.
const PRIVACY: [&str; 4] = ["delta", "trust", "ledger", "devices_per_user"];

/// A run to ask about.
#[derive(Clone, Copy, Debug)]
pub struct AskedRun<'a> {
    /// Its complete configuration.
    pub config: &'a Path,
    /// Its model, a safetensors file.
    pub model: &'a Path,
    /// Whether it has a statement with a finite ε.
    pub has_statement: bool,
}

impl Config {
    /// Reads a file with `[[questions]]`, each of which is asked once. The data, the model and δ
    /// come from the run, unless the file has its own.
    ///
    /// # Errors
    /// [`ConfigError`] naming the file and the key or line.
    pub fn asking(
        path: &Path,
        run: Option<AskedRun<'_>>,
        overrides: &[Override],
    ) -> Result<Self, ConfigError> {
        let own = table(path)?;
        let mut table = match run {
            None => Table::new(),
            Some(run) => of_run(run)?,
        };
        for (key, value) in own {
            match (table.get_mut(&key), value) {
                (Some(Value::Table(old)), Value::Table(new)) if key == "privacy" => {
                    old.extend(new);
                }
                (_, value) => {
                    table.insert(key, value);
                }
            }
        }
        for item in overrides {
            item.apply(&mut table)?;
        }
        table.insert("method".to_owned(), MethodName::Ask.name().into());
        table.insert("rounds".to_owned(), 1.into());
        table.remove("evaluate_every");
        let origin = path.display().to_string();
        let questions = table.get("questions").and_then(Value::as_array);
        if questions.is_none_or(Vec::is_empty) {
            return Err(ConfigError::NoQuestions { origin });
        }
        let config: Self = table.try_into().map_err(|error| ConfigError::Parse {
            message: sentence(&error, ""),
            origin,
        })?;
        Ok(config.asked_once())
    }

    fn asked_once(mut self) -> Self {
        for question in &mut self.questions {
            question.every = 0;
        }
        self
    }
}

fn table(path: &Path) -> Result<Table, ConfigError> {
    let text = file::read(path)?;
    toml::from_str(&text).map_err(|error| ConfigError::Parse {
        origin: path.display().to_string(),
        message: sentence(&error, &text),
    })
}

/// Returns the tables that a run passes to its questions.
fn of_run(run: AskedRun<'_>) -> Result<Table, ConfigError> {
    let mut table = table(run.config)?;
    table.retain(|key, _| OF_RUN.contains(&key));
    if let Some(Value::Table(privacy)) = table.get_mut("privacy") {
        privacy.retain(|key, _| PRIVACY.contains(&key));
    }
    let model = table.entry("model").or_insert(Value::Table(Table::new()));
    if let Value::Table(model) = model {
        let path = run.model.display().to_string();
        model.insert("init".to_owned(), path.into());
        model.remove("init_checksum");
        if run.has_statement {
            model.insert("init_has_statement".to_owned(), true.into());
        }
    }
    Ok(table)
}
