//! Experiments: a file, or a dictionary, as the command line reads them.

use std::path::Path;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use smolfed::config::{Config, Override};
use smolfed::suggested::{Suggested, norm_bound};
use toml::{Table, Value};

use crate::error::{config_error, value_error};

/// An experiment with all of its defaults, as TOML: of a path, a dictionary, or the built-in one.
#[pyfunction]
pub(crate) fn complete(
    experiment: &Bound<'_, PyAny>,
    overrides: &Bound<'_, PyDict>,
) -> PyResult<String> {
    load(experiment, overrides)?.to_toml().map_err(value_error)
}

/// Settings that suit so many devices and features, for defaults of the estimators: those of
/// `smolfed init`, but for what follows from the samples of devices.
#[pyfunction]
pub(crate) fn suggested(
    py: Python<'_>,
    devices: u32,
    features: usize,
) -> PyResult<Bound<'_, PyDict>> {
    let usual = Suggested::new(devices, None);
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

/// The experiment of a path or of a dictionary; `None` is the built-in one.
///
/// # Errors
/// `FileNotFoundError` for a file that is not there; `ValueError` for anything else that is wrong
/// with it; `TypeError` for what has no form in TOML.
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
            changes.push(Override::new(&key, toml(&key, &value)?));
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
    let table = table("", dictionary)?;
    let text = toml::to_string(&table).map_err(value_error)?;
    if changes.is_empty() {
        // Errors about a text name its lines, and nobody has seen this one: with a change, they
        // name keys.
        let rounds = table.get("rounds").cloned();
        changes.extend(rounds.map(|rounds| Override::new("rounds", rounds)));
    }
    Config::parse(&text, "the experiment", &changes).map_err(config_error)
}

/// A dictionary as a table of TOML.
///
/// # Errors
/// `TypeError` for what has no form in TOML.
pub(crate) fn toml_table(dictionary: &Bound<'_, PyDict>) -> PyResult<Table> {
    table("", dictionary)
}

fn table(above: &str, dictionary: &Bound<'_, PyDict>) -> PyResult<Table> {
    let mut table = Table::new();
    for (key, value) in dictionary.iter() {
        let key: String = key.extract().map_err(|_| {
            PyTypeError::new_err(format!("the key {key} of the experiment is no text"))
        })?;
        // TOML has no null: the key is not set.
        if !value.is_none() {
            let name = match above {
                "" => key.clone(),
                above => format!("{above}.{key}"),
            };
            table.insert(key, toml(&name, &value)?);
        }
    }
    Ok(table)
}

/// A value in TOML. `key` names it in errors.
fn toml(key: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Value::Integer(value.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Value::String(value.extract()?));
    }
    if let Ok(dictionary) = value.cast::<PyDict>() {
        return Ok(Value::Table(table(key, dictionary)?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| toml(key, &item?));
        return Ok(Value::Array(items.collect::<PyResult<_>>()?));
    }
    // Numbers of NumPy, and paths.
    if value.hasattr("item")? {
        return toml(key, &value.call_method0("item")?);
    }
    if value.hasattr("__fspath__")? {
        return toml(key, &value.call_method0("__fspath__")?);
    }
    Err(PyTypeError::new_err(format!(
        "`{key}` is of type {}: an experiment has numbers, texts, lists and dictionaries",
        value.get_type().name()?
    )))
}
