//! Who took part in a round of real devices, one line of `participation.jsonl`, or answered a
//! question, one line of `answers.jsonl`.
//!
//! The record says who was drawn and who answered. The privacy statement does not cover that:
//! sampling hides a device only from those who do not have this file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::run_files::error::{RunDirError, damaged};
use crate::run_files::records::{self, Record};

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
    /// Whether the server restarted before it, and correlated noise began anew: the exact sums of
    /// earlier rounds were lost with the process that held them.
    #[serde(
        default,
        rename = "begins_anew",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub history_lost: bool,
    /// Devices that were drawn; in a window of time, those whose updates arrived in it.
    pub cohort: Vec<u32>,
    /// The version of the model that each of them trained from, in their order; empty where all
    /// trained from that of the round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<u32>,
    /// In a window of time, devices that spent a round without an update that counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wasted: Vec<u32>,
    /// Real devices among them that answered.
    pub answered: Vec<u32>,
    /// Those that did not, and why.
    pub missing: BTreeMap<u32, String>,
    /// Real devices that were asked for a correlation matrix, and why it did not come.
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

/// Who answered one question: one line of `answers.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRecord {
    /// The round after which it was asked, from 0.
    pub round: u32,
    /// The number that names the random streams of the answers, which is that of no round.
    pub number: u32,
    /// Which question of the experiment, from 0.
    pub question: u8,
    /// Whether it was paid for and came to nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub burned: bool,
    /// Devices that were drawn.
    pub cohort: Vec<u32>,
    /// Real devices among them that answered.
    pub answered: Vec<u32>,
    /// Those that did not, and why.
    pub missing: BTreeMap<u32, String>,
    /// Always false, so that even a single line states this.
    pub covered_by_the_privacy_statement: bool,
}

impl Record for AnswerRecord {
    fn round(&self) -> u32 {
        self.round
    }
}

/// Names a record: another one has another name.
#[must_use]
pub fn id(rounds: &[Participation]) -> String {
    // Numbers and words: it always has a JSON form.
    let text = serde_json::to_string(rounds).unwrap_or_default();
    format!("participation-{:08x}", crc32fast::hash(text.as_bytes()))
}

/// The last round number in which each real device answered, of rounds that came to something.
#[must_use]
pub fn last_rounds(rounds: &[Participation]) -> BTreeMap<u32, u32> {
    let counted = rounds.iter().filter(|record| !record.burned);
    let answers = counted.flat_map(|record| {
        let devices = record.answered.iter();
        devices.map(|device| (*device, record.number))
    });
    answers.collect()
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
        let versions = record.versions.len();
        if versions > 0 && versions != record.cohort.len() {
            let reason = format!("line {}: not every device has a version", index + 1);
            return Err(damaged(path, reason));
        }
    }
    Ok(rounds)
}
