//! Experiments: a file, or a dictionary, as the command line reads them.

use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use smolfed::config::{Config, Override};
use smolfed::data::dataset::TaskKind;
use smolfed::suggested::{Suggested, norm_bound};

use crate::error::{config_error, value_error};
use crate::keys::{table, value_of};

/// Returns an experiment with all its defaults, as TOML: from a path, a dictionary, or the built-in
/// one.
#[pyfunction]
pub(crate) fn complete(
    experiment: &Bound<'_, PyAny>,
    overrides: &Bound<'_, PyDict>,
) -> PyResult<String> {
    load(experiment, overrides)?.to_toml().map_err(value_error)
}

/// Returns settings for this number of devices and features, as defaults of the estimators. They
/// match `smolfed init`, except for settings that depend on the samples of devices.
#[pyfunction]
pub(crate) fn suggested(
    py: Python<'_>,
    devices: u32,
    features: usize,
    is_regression: bool,
) -> PyResult<Bound<'_, PyDict>> {
    let task = match is_regression {
        true => TaskKind::Regression,
        false => TaskKind::Classification,
    };
    let usual = Suggested::new(devices, None, task);
    let settings = PyDict::new(py);
    settings.set_item("rounds", usual.rounds)?;
    settings.set_item("sampling_rate", usual.sampling_rate)?;
    settings.set_item("epochs", usual.epochs)?;
    match usual.clip_norm {
        Some(clip_norm) => settings.set_item("clip_norm", clip_norm)?,
        None => settings.set_item("clip_norm", "adaptive")?,
    }
    settings.set_item("norm_bound", norm_bound(features))?;
    Ok(settings)
}

/// Reads the experiment of a path or a dictionary. `None` is the built-in one.
///
/// # Errors
/// `FileNotFoundError` for a missing file, `ValueError` for any other problem with it, `TypeError`
/// for values without a form in TOML.
pub(crate) fn load(
    experiment: &Bound<'_, PyAny>,
    overrides: &Bound<'_, PyDict>,
) -> PyResult<Config> {
    let mut changes = Vec::new();
    for (key, value) in overrides.iter() {
        let key: String = key.extract()?;
        if value.is_none() {
            // Removes the key.
            changes.push(format!("{key}=").parse().map_err(value_error)?);
        } else {
            changes.push(Override::new(&key, value_of(&key, &value)?));
        }
    }
    if experiment.is_none() {
        return Config::load(None, &changes).map_err(config_error);
    }
    let Ok(dictionary) = experiment.cast::<PyDict>() else {
        let path: String = experiment.extract()?;
        let loaded = Config::load(Some(Path::new(&path)), &changes);
        return loaded.map_err(config_error);
    };
    let table = table(dictionary)?;
    let text = toml::to_string(&table).map_err(value_error)?;
    if changes.is_empty() {
        // Errors about a text name its lines, but the user has not seen this text. With a change,
        // they name keys.
        let rounds = table.get("rounds").cloned();
        changes.extend(rounds.map(|rounds| Override::new("rounds", rounds)));
    }
    Config::parse(&text, "the experiment", &changes).map_err(config_error)
}
