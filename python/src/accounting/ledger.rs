//! Reading of privacy ledgers, which runs write, in Python: events, number of runs and conditions.

use std::path::PathBuf;

use pyo3::prelude::*;
use smolfed::privacy::Ledger;
use smolfed::privacy::ledger::{LedgerError, conditions, events};
use smolfed_accounting::PrivacyUnit;

use super::event::Event;
use crate::error::value_error;

/// Reads the events of one unit in a ledger, its number of runs and its conditions, as JSON.
#[pyfunction]
pub(crate) fn read_ledger(path: PathBuf, unit: &str) -> PyResult<(Vec<Event>, usize, Vec<String>)> {
    let unit = match unit {
        "device" => PrivacyUnit::Device,
        "example" => PrivacyUnit::Example,
        other => {
            return Err(value_error(format!(
                "`unit` is \"{other}\": it must be \"device\" or \"example\""
            )));
        }
    };
    let charges = Ledger::read(&path).map_err(|error| match error {
        LedgerError::Io { source, .. } => PyErr::from(source),
        other => value_error(other),
    })?;
    let mut runs: Vec<&str> = charges.iter().map(|charge| charge.run.as_str()).collect();
    runs.sort_unstable();
    runs.dedup();
    let all = events(charges.iter());
    let of_unit = all.into_iter().filter(|event| event.unit == unit);
    let found = conditions(&charges, unit);
    let found = found.iter().map(serde_json::to_string);
    let found: Vec<String> = found.collect::<Result<_, _>>().map_err(value_error)?;
    Ok((of_unit.map(Event).collect(), runs.len(), found))
}
