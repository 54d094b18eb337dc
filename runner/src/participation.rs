//! Who took part in a round of real devices: one line of `participation.jsonl`. And the simulation of
//! the same participation, which ends with the same model if the random streams are the same.
//!
//! The record says who was drawn and who answered. The privacy statement does not cover that: sampling
//! hides a device only from those who do not have this file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use smolfed_core::stream::Root;

use crate::data::federation::Federation;
use crate::privacy::event::Sampling;
use crate::rounds::{Draw, RoundError, Updates};
use crate::run_dir::{RunDirError, damaged, records};
use crate::simulate::{CohortSum, Outcome, RoundPlan, train_cohort};

/// Who took part in one round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Participation {
    /// The round, from 0.
    pub round: u32,
    /// The number that names its random streams.
    pub number: u32,
    /// Whether it was paid for and came to nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub burned: bool,
    /// Devices that were drawn.
    pub cohort: Vec<u32>,
    /// Real devices among them that answered.
    pub answered: Vec<u32>,
    /// Those that did not, and why.
    pub missing: BTreeMap<u32, String>,
    /// Always false: a reader of one line shall know, too.
    pub covered_by_the_privacy_statement: bool,
}

/// Names a record: another one has another name.
#[must_use]
pub fn id(rounds: &[Participation]) -> String {
    // Numbers and words: it always has a JSON form.
    let text = serde_json::to_string(rounds).unwrap_or_default();
    format!("participation-{:08x}", crc32fast::hash(text.as_bytes()))
}

/// Reads a whole record of participation; a file that is not there has no rounds.
///
/// # Errors
/// [`RunDirError`] if it cannot be read, a line is damaged, or a round is missing.
pub fn read(path: &Path) -> Result<Vec<Participation>, RunDirError> {
    let rounds: Vec<Participation> = records::read(path)?;
    for (index, record) in rounds.iter().enumerate() {
        if record.round as usize != index {
            let reason = format!("line {} is of round {}", index + 1, record.round);
            return Err(damaged(path, reason));
        }
        if !record.cohort.is_sorted_by(|a, b| a < b) {
            let reason = format!("line {}: the cohort is not in ascending order", index + 1);
            return Err(damaged(path, reason));
        }
    }
    Ok(rounds)
}

/// Simulated devices that take part as a record says.
#[derive(Debug)]
pub struct Replayed<'a> {
    federation: &'a Federation,
    rounds: Vec<Participation>,
}

impl<'a> Replayed<'a> {
    /// Repeats `rounds`.
    ///
    /// # Errors
    /// What is wrong: a device that the federation does not have, or fewer rounds than `needed`.
    pub fn new(
        federation: &'a Federation,
        rounds: Vec<Participation>,
        needed: u32,
    ) -> Result<Self, String> {
        let devices = federation.device_count();
        let stranger = rounds
            .iter()
            .flat_map(|record| &record.cohort)
            .find(|device| **device >= devices);
        if let Some(device) = stranger {
            return Err(format!("it names device {device} of {devices} devices"));
        }
        if rounds.len() < needed as usize {
            let found = rounds.len();
            return Err(format!("it has {found} rounds, where `rounds` is {needed}"));
        }
        Ok(Self { federation, rounds })
    }

    fn record(&self, round: u32) -> Option<&Participation> {
        self.rounds.get(round as usize)
    }
}

impl Updates for Replayed<'_> {
    fn draw(&mut self, _: &Sampling, _: &Root, round: u32) -> Result<Option<Draw>, RoundError> {
        let record = self.record(round).filter(|record| !record.burned);
        Ok(record.map(|record| Draw {
            number: record.number,
            cohort: record.cohort.clone(),
        }))
    }

    fn sum(
        &mut self,
        plan: &RoundPlan<'_>,
        root: &Root,
        global: &[f32],
        cohort: &[u32],
    ) -> Result<CohortSum, RoundError> {
        let record = self.record(plan.round);
        let is_missing = |device: &u32| record.is_some_and(|x| x.missing.contains_key(device));
        let present: Vec<u32> = cohort.iter().copied().filter(|x| !is_missing(x)).collect();
        let CohortSum { sum, outcomes, .. } =
            train_cohort(plan, self.federation, root, global, &present);
        let mut outcomes = outcomes.into_iter();
        let outcome = |device| match is_missing(device) {
            true => Some(Outcome::Missing),
            false => outcomes.next(),
        };
        let outcomes = cohort.iter().filter_map(outcome).collect();
        Ok(CohortSum {
            sum,
            outcomes,
            left_out_matrices: Vec::new(),
        })
    }
}
