//! Participation of real devices in a round, one line of `participation.jsonl`, and answers to a
//! question, one line of `answers.jsonl`.
//!
//! The record lists the drawn devices and the answers. The privacy statement does not cover it:
//! sampling hides a device only from parties without this file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::run_files::error::{RunDirError, damaged};
use crate::run_files::records::{self, Record};

/// The participants of one round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Participation {
    /// The round, from 0.
    pub round: u32,
    /// The number that names its random streams.
    pub number: u32,
    /// Whether it was charged and then failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub burned: bool,
    /// Whether the server restarted before it, and correlated noise started again: the exact sums
    /// of earlier rounds were lost with the process that held them.
    #[serde(
        default,
        rename = "begins_anew",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub history_lost: bool,
    /// The drawn devices. In a time window, the devices whose updates arrived in it.
    pub cohort: Vec<u32>,
    /// Model version from which each of them trained, in the same order. Empty if all trained from
    /// the round's model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<u32>,
    /// In a time window, devices that used a participation without an update that counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wasted: Vec<u32>,
    /// Real devices among them that answered.
    pub answered: Vec<u32>,
    /// Real devices that did not answer, and why.
    pub missing: BTreeMap<u32, String>,
    /// Real devices whose requested correlation matrix did not arrive, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub without_matrix: BTreeMap<u32, String>,
    /// Those of them that may have sent a part of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_matrices: Vec<u32>,
    /// Always false, so that even a single line states this.
    pub covered_by_the_privacy_statement: bool,
}

impl Record for Participation {
    fn round(&self) -> u32 {
        self.round
    }
}

/// The answers to one question: one line of `answers.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRecord {
    /// The round before the question, from 0.
    pub round: u32,
    /// The number that names the random streams of the answers. No round has this number.
    pub number: u32,
    /// Index of the question in the experiment, from 0.
    pub question: u8,
    /// Whether it was charged and then failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub burned: bool,
    /// The drawn devices.
    pub cohort: Vec<u32>,
    /// Real devices among them that answered.
    pub answered: Vec<u32>,
    /// Real devices that did not answer, and why.
    pub missing: BTreeMap<u32, String>,
    /// Always false, so that even a single line states this.
    pub covered_by_the_privacy_statement: bool,
}

impl Record for AnswerRecord {
    fn round(&self) -> u32 {
        self.round
    }
}

/// Returns a name for a record. Different records have different names.
#[must_use]
pub fn id(rounds: &[Participation]) -> String {
    // Numbers and words always have a JSON form.
    let text = serde_json::to_string(rounds).unwrap_or_default();
    format!("participation-{:08x}", crc32fast::hash(text.as_bytes()))
}

/// Returns the last round number in which each real device answered, without failed rounds.
#[must_use]
pub fn last_rounds(rounds: &[Participation]) -> BTreeMap<u32, u32> {
    let counted = rounds.iter().filter(|record| !record.burned);
    let answers = counted.flat_map(|record| {
        let devices = record.answered.iter();
        devices.map(|device| (*device, record.number))
    });
    answers.collect()
}

/// Reads a whole participation record. A missing file has no rounds.
///
/// # Errors
/// [`RunDirError`] if it cannot be read, a line is damaged, or a round is missing.
pub fn read(path: &Path) -> Result<Vec<Participation>, RunDirError> {
    let rounds: Vec<Participation> = records::read(path)?;
    for (index, record) in rounds.iter().enumerate() {
        if record.round as usize != index {
            let reason = format!("line {} belongs to round {}", index + 1, record.round);
            return Err(damaged(path, reason));
        }
        if !record.cohort.is_sorted_by(|a, b| a < b) {
            let reason = format!("line {}: the cohort is not in ascending order", index + 1);
            return Err(damaged(path, reason));
        }
        let versions = record.versions.len();
        if versions > 0 && versions != record.cohort.len() {
            let reason = format!("line {}: not every device has a version", index + 1);
            return Err(damaged(path, reason));
        }
    }
    Ok(rounds)
}
