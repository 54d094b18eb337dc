//! Check of a run's privacy statement against its ledger and its configuration, for
//! `smolfed account --verify`: faults of the ledger, and differences of keys.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use smolfed_accounting::PrivacyEvent;

use super::directory::RunDir;
use super::{RunError, name, prepare_from};
use crate::experiment::Experiment;
use smolfed_data::DataFolders;
use smolfed_release::ledger::{Charge, Ledger, repeated};
use smolfed_release::origin::Origin;

/// Numbers within this relative difference are equal: another machine computes different last
/// digits.
const PRECISION: f64 = 1e-9;

/// Keys to compare first, as others follow from them.
const FIRST: [&str; 3] = ["rounds", "epsilon", "delta"];

/// Comparison of a run's statements with its ledger.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The name of the run in ledgers.
    pub run: String,
    /// Number of rounds that the ledger charges.
    pub rounds: u32,
    /// Problems with the charges, each to follow "the ledger".
    pub faults: Vec<String>,
    /// Differences from the correct statements.
    pub differences: Vec<Difference>,
}

impl Verification {
    /// Returns whether there are no problems.
    #[must_use]
    pub const fn agrees(&self) -> bool {
        self.faults.is_empty() && self.differences.is_empty()
    }
}

/// A key of a statement that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The statement, from 0.
    pub statement: usize,
    /// The key in `privacy.json`.
    pub key: String,
    /// Its value there, or `None` if it is missing.
    pub stated: Option<Value>,
    /// Its value from the ledger and the configuration, or `None` if there is none.
    pub recomputed: Option<Value>,
}

/// Recomputes the privacy statements of the run in `dir`, whose devices and randomness come from
/// `origin`, and compares them.
///
/// # Errors
/// [`RunError`] if the configuration, the data, the ledger or the statements cannot be read.
pub fn verify(dir: &RunDir, origin: Origin) -> Result<Verification, RunError> {
    let stated: Vec<Value> = dir.privacy_values()?;
    let folders = DataFolders::of_experiment(Some(&RunDir::config_path(dir.path())));
    let (experiment, federation) = prepare_from(dir.config()?, &folders, origin)?;
    let run = name(&experiment.config, &federation, &experiment.origin)?;
    let shared = experiment.config.privacy.ledger.as_deref();
    let (charges, rounds) = match experiment.privacy.releases_nothing() {
        // Nothing is charged.
        true => (Vec::new(), dir.records()?.len() as u32),
        false => {
            let path = shared.map_or_else(|| dir.ledger(), Path::to_path_buf);
            let charges = Ledger::read(&path)?;
            let rounds = rounds(&charges, &run);
            (charges, rounds)
        }
    };
    let mut faults = faults(&experiment, &charges, &run, rounds);
    let foreign = charges.iter().filter(|charge| charge.run != run).count();
    if shared.is_none() && foreign > 0 {
        faults.push(format!("has {foreign} charges of other runs"));
    }
    let statements = match rounds {
        0 => Vec::new(),
        _ => experiment.statements(rounds, &repeated(&charges, &run))?,
    };
    let statements = statements.iter().map(serde_json::to_value);
    let recomputed: Vec<Value> = statements.collect::<Result<_, _>>().unwrap_or_default();
    Ok(Verification {
        run,
        rounds,
        faults,
        differences: differences(&stated, &recomputed),
    })
}

/// Returns the number of a run's charged rounds.
fn rounds(charges: &[Charge], run: &str) -> u32 {
    let own = charges.iter().filter(|charge| charge.run == run);
    let rounds = own.map(|charge| charge.round.saturating_add(1));
    rounds.max().unwrap_or(0)
}

/// Returns charges that are missing, duplicate, or absent from the configuration.
fn faults(experiment: &Experiment, charges: &[Charge], run: &str, rounds: u32) -> Vec<String> {
    let own = || charges.iter().filter(|charge| charge.run == run);
    let mut faults = Vec::new();
    for round in 0..rounds {
        let expected = match round < experiment.config.rounds {
            true => experiment.events_in(round),
            false => Vec::new(),
        };
        let found: Vec<&Charge> = own().filter(|charge| charge.round == round).collect();
        let last = found.iter().map(|charge| charge.repetition).max();
        for repetition in 0..=last.unwrap_or(0) {
            let found = found
                .iter()
                .filter(|charge| charge.repetition == repetition);
            let found: Vec<PrivacyEvent> = found.map(|charge| charge.event).collect();
            faults.extend(fault(&expected, &found).map(|what| format!("{what} round {round}")));
        }
    }
    faults
}

/// Returns the problem with the charges of one release, to precede "round 3".
fn fault(expected: &[PrivacyEvent], found: &[PrivacyEvent]) -> Option<&'static str> {
    let of_kind = |events: &[PrivacyEvent], of: &PrivacyEvent| {
        let is_of_kind = |event: &&PrivacyEvent| event.kind() == of.kind();
        events.iter().filter(is_of_kind).count()
    };
    if expected.iter().any(|event| of_kind(found, event) == 0) {
        return Some("lacks a charge for");
    }
    if found.iter().any(|event| of_kind(found, event) > 1) {
        return Some("charges more than once, without marking it as repeated,");
    }
    if found.iter().any(|event| of_kind(expected, event) == 0) {
        return Some("has a charge, absent from the configuration, for");
    }
    let differs = |event: &PrivacyEvent| !expected.iter().any(|other| event.is_nearly(other));
    found
        .iter()
        .any(differs)
        .then_some("has an event that differs from the configuration for")
}

/// Returns all keys that differ, statement by statement.
fn differences(stated: &[Value], recomputed: &[Value]) -> Vec<Difference> {
    let nothing = Value::Object(serde_json::Map::new());
    let count = stated.len().max(recomputed.len());
    let pairs = (0..count).map(|at| {
        let [stated, recomputed] =
            [stated, recomputed].map(|values| values.get(at).unwrap_or(&nothing));
        (at, stated, recomputed)
    });
    pairs
        .flat_map(|(statement, stated, recomputed)| {
            let differing = keys(stated, recomputed).into_iter();
            differing.filter_map(move |key| {
                let [stated, recomputed] = [stated, recomputed].map(|value| value.get(&key));
                let is_same = match (stated, recomputed) {
                    (Some(stated), Some(recomputed)) => agree(stated, recomputed),
                    _ => false,
                };
                (!is_same).then(|| Difference {
                    statement,
                    key,
                    stated: stated.cloned(),
                    recomputed: recomputed.cloned(),
                })
            })
        })
        .collect()
}

/// Returns the keys of both, with the determining keys first and the notes last.
fn keys(stated: &Value, recomputed: &Value) -> Vec<String> {
    let objects = [stated, recomputed]
        .into_iter()
        .filter_map(Value::as_object);
    let mut keys: Vec<String> = objects.flat_map(|object| object.keys().cloned()).collect();
    let place = |key: &String| {
        let first = FIRST.iter().position(|name| name == key);
        (key == "notes", first.unwrap_or(FIRST.len()), key.clone())
    };
    keys.sort_by_key(place);
    keys.dedup();
    keys
}

fn agree(stated: &Value, recomputed: &Value) -> bool {
    match (stated.as_f64(), recomputed.as_f64()) {
        (Some(stated), Some(recomputed)) => {
            (stated - recomputed).abs() <= PRECISION * recomputed.abs()
        }
        _ => stated == recomputed,
    }
}
