//! Devices excluded from invitations because they stalled or lied: `<keys>.quarantine`.
//!
//! A selected device in quarantine is missing, like one without a connection. Its update counts as
//! zero, which changes neither the denominator nor the accounting.
//!
//! # Privacy
//! Whether a device is in quarantine must depend only on its own behaviour, and never on that of
//! other devices. Otherwise the data of one device would decide which updates are in later sums.
//! With a quorum, lateness violates this, since whether a round waits for a device depends on the
//! speed of the others. Late devices therefore get no strikes with a quorum, in a round that was
//! stopped early, or after waiting for their turn to receive the model.
//!
//! A device that was not connected for the whole round gets no strike either: it may sleep, and
//! wakes by its own clock. An answer removes one strike. A device that misses most rounds is
//! therefore excluded, however its answers are spread.
//!
//! A helper's claim is enough to exclude a device from masked rounds. The helper sees no update,
//! and the statement against the parties holds for every choice of participants.
//!
//! An operator readmits a device by removing it from the file, with `smolfed keys readmit` or an
//! editor. The coordinator reads the file at the beginning of each round.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::exchange::{Absence, ExchangeOutcome};
use super::keys::error::{KeysError, beside, content, io};
use smolfed_release::durable::write_atomically;

const HEADER: &str = "# Devices that are no longer invited, and why. `smolfed keys readmit NUMBER` \
                      or deleting\n# an entry readmits a device from the next round on.\n";

/// A device in quarantine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The device.
    pub number: u32,
    /// The first round number without an invitation.
    pub since: u32,
    /// Reason.
    pub reason: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    #[serde(default)]
    device: Vec<Entry>,
}

/// The devices in quarantine, and the strikes of the others.
#[derive(Debug)]
pub struct Quarantine {
    path: PathBuf,
    entries: BTreeMap<u32, Entry>,
    /// Rounds without an answer from a device, less the rounds that it has answered since.
    strikes: BTreeMap<u32, u32>,
    /// Number of strikes before a device is quarantined, or 0 for never.
    limit: u32,
    /// Devices whose entries are not in the file yet.
    unsaved: BTreeSet<u32>,
}

impl Quarantine {
    /// Reads the file next to a file of keys. A missing file means no devices.
    ///
    /// # Errors
    /// [`KeysError::Io`], [`KeysError::Content`].
    pub fn open(keys: &Path, limit: u32) -> Result<Self, KeysError> {
        let mut quarantine = Self {
            path: beside(keys, ".quarantine"),
            entries: BTreeMap::new(),
            strikes: BTreeMap::new(),
            limit,
            unsaved: BTreeSet::new(),
        };
        quarantine.refresh()?;
        Ok(quarantine)
    }

    /// Reads the file again, since an operator may have readmitted devices. Unwritten entries stay.
    ///
    /// # Errors
    /// [`KeysError::Io`], [`KeysError::Content`]. The known entries stay.
    pub fn refresh(&mut self) -> Result<(), KeysError> {
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.map_err(io("read", &self.path))?,
        };
        let entries: Entries = toml::from_str(&text)
            .map_err(|error| content(&self.path)(error.message().replace('\n', " ")))?;
        let by_number = |entry: Entry| (entry.number, entry);
        self.entries
            .retain(|device, _| self.unsaved.contains(device));
        self.entries
            .extend(entries.device.into_iter().map(by_number));
        Ok(())
    }

    /// Returns whether the device must not be invited.
    #[must_use]
    pub fn has(&self, device: u32) -> bool {
        self.entries.contains_key(&device)
    }

    /// Returns the devices in quarantine, by number.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Records a device's outcome in a round, which may give a strike. Returns whether this puts
    /// the device into quarantine.
    pub fn note(
        &mut self,
        device: u32,
        round: u32,
        gives_strikes: bool,
        outcome: &ExchangeOutcome,
    ) -> bool {
        let verdict = match outcome {
            ExchangeOutcome::Answered(_) => Verdict::Fine,
            // Whether its update comes is another question.
            ExchangeOutcome::Message(_) => Verdict::NothingKnown,
            ExchangeOutcome::Missing(absence) => judge(*absence),
        };
        match verdict {
            _ if self.limit == 0 => return false,
            Verdict::Fine => {
                if let Some(strikes) = self.strikes.get_mut(&device) {
                    *strikes = strikes.saturating_sub(1);
                }
                return false;
            }
            Verdict::NothingKnown => return false,
            Verdict::Strike if !gives_strikes => return false,
            Verdict::Strike | Verdict::Fault => {
                let strikes = self.strikes.entry(device).or_default();
                *strikes += 1;
                if *strikes < self.limit {
                    return false;
                }
            }
            Verdict::Lie => {}
        }
        let reason = match outcome {
            ExchangeOutcome::Missing(absence) => absence.to_string(),
            ExchangeOutcome::Answered(_) | ExchangeOutcome::Message(_) => String::new(),
        };
        self.exclude(device, round, reason)
    }

    /// Quarantines a device because of its behaviour in a round. Returns whether it is now in
    /// quarantine: `false` only if quarantine is disabled.
    pub fn exclude(&mut self, device: u32, round: u32, reason: String) -> bool {
        if self.limit == 0 {
            return false;
        }
        self.strikes.remove(&device);
        let entry = Entry {
            number: device,
            since: round.saturating_add(1),
            reason,
        };
        self.entries.insert(device, entry);
        self.unsaved.insert(device);
        true
    }

    /// Readmits a device. Returns whether it was in quarantine.
    pub fn readmit(&mut self, device: u32) -> bool {
        self.entries.remove(&device).is_some()
    }

    /// Returns whether the file needs to be written.
    #[must_use]
    pub fn is_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`KeysError::Io`].
    pub fn save(&mut self) -> Result<(), KeysError> {
        let entries = Entries {
            device: self.entries.values().cloned().collect(),
        };
        let text =
            toml::to_string(&entries).map_err(|error| content(&self.path)(error.to_string()))?;
        let text = format!("{HEADER}{text}");
        write_atomically(&self.path, text.as_bytes()).map_err(io("write", &self.path))?;
        self.unsaved.clear();
        Ok(())
    }
}

/// Logs that a device was put into quarantine.
pub(super) fn report(device: u32) {
    tracing::warn!(
        reason = "quarantine",
        private = format!("device {device} is in quarantine"),
        "a device is in quarantine and no longer invited: `smolfed keys readmit` lists and readmits"
    );
}

/// Judgement of a device's outcome in a round.
enum Verdict {
    /// It did its part, or gave a reason.
    Fine,
    /// It may not be the device's fault.
    NothingKnown,
    /// It was connected for the whole round and did not answer in time.
    Strike,
    /// It violated the protocol, whatever others did.
    Fault,
    /// It sent a message that no honest device sends.
    Lie,
}

const fn judge(absence: Absence) -> Verdict {
    match absence {
        Absence::Declined(_) => Verdict::Fine,
        // A sleeping device is not at fault.
        Absence::NotConnected
        | Absence::CameLate
        | Absence::Disconnected
        | Absence::SessionLost
        | Absence::NoTurn
        | Absence::BeyondQuorum
        | Absence::Quarantined
        | Absence::Expired
        | Absence::Revoked => Verdict::NothingKnown,
        Absence::Silent | Absence::Late => Verdict::Strike,
        Absence::Malformed => Verdict::Fault,
        Absence::OutOfBound | Absence::InvalidBit => Verdict::Lie,
    }
}

#[cfg(test)]
mod tests {
    use smolfed_core::wire::message::Decline;

    use super::*;

    fn missing(absence: Absence) -> ExchangeOutcome {
        ExchangeOutcome::Missing(absence)
    }

    #[test]
    fn an_answer_takes_a_strike_away_and_lies_count_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys.toml");
        let mut quarantine = Quarantine::open(&keys, 3).unwrap();
        let answered = ExchangeOutcome::Answered(Vec::new().into());
        for (round, outcome) in [
            (0, answered.clone()),
            (1, missing(Absence::Late)),
            (2, missing(Absence::Silent)),
            (3, answered.clone()),
            (4, missing(Absence::Late)),
            (5, missing(Absence::NotConnected)),
            (6, answered),
            (7, missing(Absence::Declined(Decline::Work))),
            (8, missing(Absence::Late)),
            (9, missing(Absence::Late)),
        ] {
            assert!(!quarantine.note(4, round, true, &outcome), "round {round}");
        }
        assert!(quarantine.note(4, 9, true, &missing(Absence::Late)));
        assert!(quarantine.note(5, 9, false, &missing(Absence::OutOfBound)));
        assert!(quarantine.has(4) && quarantine.has(5) && !quarantine.has(6));
        quarantine.save().unwrap();
        // The same after a restart, until an operator readmits it.
        let mut again = Quarantine::open(&keys, 3).unwrap();
        let reasons: Vec<_> = again.entries().map(|entry| entry.reason.as_str()).collect();
        assert_eq!(reasons, ["too late", "the update exceeds its bound"]);
        assert!(again.readmit(4) && !again.readmit(4));
        again.save().unwrap();
        quarantine.refresh().unwrap();
        assert!(!quarantine.has(4) && quarantine.has(5));
    }

    /// A sleeping device wakes by its own clock, however often it is drawn meanwhile.
    #[test]
    fn a_device_that_was_not_connected_for_the_whole_round_gets_no_strike() {
        let dir = tempfile::tempdir().unwrap();
        let mut quarantine = Quarantine::open(&dir.path().join("keys.toml"), 2).unwrap();
        for round in 0..9 {
            for absence in [
                Absence::NotConnected,
                Absence::CameLate,
                Absence::Disconnected,
            ] {
                assert!(!quarantine.note(4, round, true, &missing(absence)));
            }
        }
    }

    /// A malformed message is the device's own fault, with a quorum too.
    #[test]
    fn malformed_messages_give_strikes_whatever_others_do() {
        let dir = tempfile::tempdir().unwrap();
        let mut quarantine = Quarantine::open(&dir.path().join("keys.toml"), 2).unwrap();
        assert!(!quarantine.note(4, 0, false, &missing(Absence::Malformed)));
        assert!(quarantine.note(4, 1, false, &missing(Absence::Malformed)));
    }

    /// The speed of others decides who is late then, and must not decide who is in later sums.
    #[test]
    fn late_devices_get_no_strikes_with_a_quorum() {
        let dir = tempfile::tempdir().unwrap();
        let mut quarantine = Quarantine::open(&dir.path().join("keys.toml"), 2).unwrap();
        for round in 0..9 {
            assert!(!quarantine.note(4, round, false, &missing(Absence::Late)));
            assert!(!quarantine.note(5, round, false, &missing(Absence::Silent)));
            assert!(!quarantine.note(6, round, true, &missing(Absence::NoTurn)));
        }
    }

    #[test]
    fn what_could_not_be_written_is_not_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("gone");
        let mut quarantine = Quarantine::open(&folder.join("keys.toml"), 2).unwrap();
        assert!(quarantine.note(4, 0, true, &missing(Absence::OutOfBound)));
        assert!(quarantine.save().is_err());
        quarantine.refresh().unwrap();
        assert!(quarantine.has(4) && quarantine.is_unsaved());
        fs::create_dir(&folder).unwrap();
        quarantine.save().unwrap();
        quarantine.refresh().unwrap();
        assert!(quarantine.has(4) && !quarantine.is_unsaved());
    }

    #[test]
    fn without_a_limit_nobody_is_put_into_quarantine() {
        let dir = tempfile::tempdir().unwrap();
        let mut quarantine = Quarantine::open(&dir.path().join("keys.toml"), 0).unwrap();
        assert!(!quarantine.note(4, 0, true, &missing(Absence::OutOfBound)));
    }

    #[test]
    fn a_damaged_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys.toml");
        fs::write(dir.path().join("keys.toml.quarantine"), "[[device]]\n").unwrap();
        let error = Quarantine::open(&keys, 3).unwrap_err().to_string();
        assert!(
            error.contains("keys.toml.quarantine: missing field"),
            "{error}"
        );
    }
}
