//! The answers of a helper. The record of an answer is on the disk before the answer is sent, so no
//! restart can lose it: [`Answered`] is built from all records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smolfed_core::wire::keys::Fingerprint;

use super::policy::HelperPolicy;
use super::refusal::HelperRefusal;
use super::request::Listed;

/// One answer, as a helper records it durably before sending it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRecord {
    /// The round.
    pub round: u32,
    /// The devices on the list, each with the fingerprint of its ledger.
    pub devices: Vec<(u32, Fingerprint)>,
}

/// The participations of a device in answered rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Participations {
    /// The ledger of its first round.
    ledger: Fingerprint,
    last: u32,
    count: u32,
}

/// All answers so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    last: Option<u32>,
    rounds: u32,
    devices: BTreeMap<u32, Participations>,
}

impl Answered {
    /// Returns the last answered round.
    #[must_use]
    pub const fn last(&self) -> Option<u32> {
        self.last
    }

    /// Returns the number of answered rounds.
    #[must_use]
    pub const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Adds an answer.
    pub fn add(&mut self, record: &AnswerRecord) {
        self.last = self.last.max(Some(record.round));
        self.rounds = self.rounds.saturating_add(1);
        for (device, ledger) in &record.devices {
            let found = self.devices.entry(*device).or_insert(Participations {
                ledger: *ledger,
                last: record.round,
                count: 0,
            });
            found.last = record.round;
            found.count = found.count.saturating_add(1);
        }
    }

    /// Forgets a device, because another device has its number from now on.
    pub fn forget(&mut self, device: u32) {
        self.devices.remove(&device);
    }

    /// Checks that `round` may be answered.
    ///
    /// # Errors
    /// [`HelperRefusal::Answered`], [`HelperRefusal::Passed`], [`HelperRefusal::Exhausted`].
    pub fn admits_round(&self, round: u32, policy: &HelperPolicy) -> Result<(), HelperRefusal> {
        match self.last {
            Some(last) if last == round => return Err(HelperRefusal::Answered { round }),
            Some(last) if last > round => return Err(HelperRefusal::Passed { round, last }),
            Some(_) | None => {}
        }
        match self.rounds < policy.max_rounds {
            true => Ok(()),
            false => Err(HelperRefusal::Exhausted {
                rounds: policy.max_rounds,
            }),
        }
    }

    /// Checks that a device may take part in `round`, which is above all answered rounds.
    ///
    /// # Errors
    /// [`HelperRefusal::ChangedLedger`], [`HelperRefusal::TooSoon`], [`HelperRefusal::TooOften`].
    pub fn admits(
        &self,
        listed: &Listed,
        round: u32,
        policy: &HelperPolicy,
    ) -> Result<(), HelperRefusal> {
        let device = listed.device;
        let Some(found) = self.devices.get(&device) else {
            return Ok(());
        };
        let (last, separation) = (found.last, policy.separation);
        if found.ledger != listed.ledger {
            return Err(HelperRefusal::ChangedLedger { device });
        }
        if round.checked_sub(last) < Some(separation) {
            return Err(HelperRefusal::TooSoon {
                device,
                last,
                separation,
            });
        }
        if found.count >= policy.participations {
            let participations = policy.participations;
            return Err(HelperRefusal::TooOften {
                device,
                participations,
            });
        }
        Ok(())
    }
}
