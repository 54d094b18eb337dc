//! Keys of experiments: converts between dictionaries and TOML tables.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use toml::{Table, Value};

/// Converts a dictionary to a TOML table.
///
/// # Errors
/// `TypeError` for values without a form in TOML.
pub(crate) fn table(dictionary: &Bound<'_, PyDict>) -> PyResult<Table> {
    table_below("", dictionary)
}

fn table_below(above: &str, dictionary: &Bound<'_, PyDict>) -> PyResult<Table> {
    let mut table = Table::new();
    for (key, value) in dictionary.iter() {
        let key: String = key.extract().map_err(|_| {
            PyTypeError::new_err(format!("the key {key} of the experiment is not a text"))
        })?;
        // TOML has no null, so the key is not set.
        if !value.is_none() {
            let name = match above {
                "" => key.clone(),
                above => format!("{above}.{key}"),
            };
            table.insert(key, value_of(&name, &value)?);
        }
    }
    Ok(table)
}

/// Converts a value to TOML. `key` names it in errors.
///
/// # Errors
/// `TypeError` for values without a form in TOML.
pub(crate) fn value_of(key: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
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
        return Ok(Value::Table(table_below(key, dictionary)?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| value_of(key, &item?));
        return Ok(Value::Array(items.collect::<PyResult<_>>()?));
    }
    // NumPy numbers and paths.
    if value.hasattr("item")? {
        return value_of(key, &value.call_method0("item")?);
    }
    if value.hasattr("__fspath__")? {
        return value_of(key, &value.call_method0("__fspath__")?);
    }
    Err(PyTypeError::new_err(format!(
        "`{key}` is of type {}: an experiment has numbers, texts, lists and dictionaries",
        value.get_type().name()?
    )))
}

/// Converts a TOML table to a dictionary.
///
/// # Errors
/// Returns errors of Python.
pub(crate) fn dictionary(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let keys = PyDict::new(py);
    for (key, value) in table {
        keys.set_item(key, object(py, value)?)?;
    }
    Ok(keys)
}

fn object(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => number.into_pyobject(py)?.into_any(),
        Value::Boolean(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        Value::Datetime(time) => time.to_string().into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| object(py, item));
            PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Value::Table(table) => dictionary(py, table)?.into_any(),
    })
}
