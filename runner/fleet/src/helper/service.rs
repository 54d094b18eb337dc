//! A running helper: one coordinator at a time, one answer per round, and the record of an answer
//! on disk before it leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use smolfed_core::crypto::Key;
use smolfed_core::mask::MaskKey;
use smolfed_core::stream::Root;

use super::file::HelperFile;
use super::ledger::{HelperLedger, HelperLedgerError, Opened};
use super::store::{self, ledger_path};
use crate::helper_link::link::LinkKey;
use crate::helper_link::message::{HelperState, Reply};
use crate::keys::KeysError;
use crate::keys::file::KeyDigest;
use crate::keys::lock::KeysLock;
use smolfed_release::entropy::{EntropyError, secret};
use smolfed_release::masked::device::helper_root;
use smolfed_release::masked::{HelperParty, HelperPolicy, HelperRefusal, HelperRequest};

/// Error that keeps a helper from working.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HelperServiceError {
    /// Its keys are unusable.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// Its ledger is unusable.
    #[error(transparent)]
    Ledger(#[from] HelperLedgerError),
    /// No randomness for its noise.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

impl HelperServiceError {
    /// Returns whether the input is at fault, and not the file system.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Keys(error) => error.is_bad_input(),
            Self::Ledger(error) => !matches!(error, HelperLedgerError::Io { .. }),
            Self::Entropy(_) => false,
        }
    }
}

/// Activity of a helper since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Recorded answers.
    pub answered: u64,
    /// Repeated answers.
    pub repeated: u64,
    /// Refusals, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Answers that could not be recorded.
    pub failed: u64,
}

/// A running helper with its keys and its ledger.
#[derive(Debug)]
pub struct HelperService {
    path: PathBuf,
    party: HelperParty,
    ledger: HelperLedger,
    link: LinkKey,
    devices: usize,
    tally: Tally,
    _lock: KeysLock,
}

impl HelperService {
    /// Reads keys and ledger, and locks them for this process. The operator may require larger
    /// cohorts than the file.
    ///
    /// # Errors
    /// [`HelperServiceError`].
    pub fn open(path: &Path, min_cohort: Option<u32>) -> Result<Self, HelperServiceError> {
        let (path, _) = store::read(path)?;
        let mut lock = KeysLock::take(&path, "another helper")?;
        let (path, file) = store::read(&path)?;
        let Opened {
            mut ledger,
            mut records,
            was_torn,
        } = HelperLedger::open(&ledger_path(&path))?;
        if was_torn {
            tracing::warn!(
                reason = "ledger",
                "the last record of the ledger was incomplete, and its answer was never sent: it \
                 was removed"
            );
        }
        let changed = ledger.has_keys(digests(&file))?;
        for record in &mut records {
            record
                .devices
                .retain(|(device, _)| !changed.contains(device));
        }
        let root = match file.noise_seed {
            // Each round is answered once: no noise is drawn twice, in any case.
            Some(seed) => helper_root(&Root::from_seed(seed), file.helper),
            None => Root::from_secret(*secret()?),
        };
        let party = HelperParty::new(file.helper, insisting(&file, min_cohort), keys(&file), root);
        let party = party.with_revoked(file.revoked.clone());
        lock.announce().map_err(|source| KeysError::Io {
            action: "write",
            path: path.display().to_string(),
            source,
        })?;
        Ok(Self {
            party: party.with_records(&records),
            link: LinkKey {
                key: Key::from_secret(*file.link),
                helper: file.helper,
            },
            devices: file.keys.len(),
            path,
            ledger,
            tally: Tally::default(),
            _lock: lock,
        })
    }

    /// Reads the keys of devices again, after a change. Returns the number of devices. The policy
    /// of the helper does not change.
    ///
    /// # Errors
    /// [`HelperServiceError`], with the keys unchanged.
    pub fn reload(&mut self) -> Result<usize, HelperServiceError> {
        let (_, file) = store::read(&self.path)?;
        let changed = self.ledger.has_keys(digests(&file))?;
        self.party
            .replace_keys(keys(&file), file.revoked.clone(), &changed);
        self.devices = file.keys.len();
        Ok(self.devices)
    }

    /// Returns the key of its link.
    #[must_use]
    pub const fn link(&self) -> &LinkKey {
        &self.link
    }

    /// Returns its activity since the start.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns its state and policy.
    #[must_use]
    pub fn state(&self) -> HelperState {
        let (policy, answered) = (self.party.policy(), self.party.answered());
        HelperState {
            last: answered.last(),
            rounds_left: policy.max_rounds.saturating_sub(answered.rounds()),
            devices: u32::try_from(self.devices).unwrap_or(u32::MAX),
            min_cohort: policy.min_cohort,
            helpers: policy.helpers,
            noise_multiplier: policy.noise_multiplier,
            coefficients: policy.coefficients.clone(),
        }
    }

    /// Answers a request, or refuses it with a reason. The result may leave, since the record of an
    /// answer is on disk.
    pub fn answer(&mut self, request: &HelperRequest) -> Reply {
        let prepared = match self.party.prepare(request) {
            Ok(prepared) => prepared,
            Err(refusal) => return self.refuse(request.round, refusal),
        };
        let (round, count) = (request.round, request.devices.len());
        match prepared.record().map(|record| self.ledger.answered(record)) {
            Some(Ok(())) => {
                self.tally.answered += 1;
                tracing::info!(
                    reason = "answered",
                    round,
                    private = format!("round {round}: answered for {count} devices"),
                    "round {round}: answered"
                );
            }
            Some(Err(error)) => {
                self.tally.failed += 1;
                tracing::error!(
                    reason = "ledger",
                    round,
                    "round {round}: no answer: {error}"
                );
                return Reply::Failed;
            }
            None => {
                self.tally.repeated += 1;
                tracing::info!(
                    reason = "repeated",
                    round,
                    "round {round}: the same answer again"
                );
            }
        }
        let answer = self.party.commit(prepared);
        Reply::Answer(answer, request.terms.width)
    }

    fn refuse(&mut self, round: u32, refusal: HelperRefusal) -> Reply {
        let name = refusal.name();
        tracing::warn!(
            reason = name.as_str(),
            round,
            private = format!("round {round}: refused: {refusal}"),
            "round {round}: refused ({name})"
        );
        *self.tally.refused.entry(name).or_default() += 1;
        Reply::Refusal(refusal)
    }
}

/// Returns the policy of the file, with the operator's minimum cohort if larger.
fn insisting(file: &HelperFile, min_cohort: Option<u32>) -> HelperPolicy {
    let mut policy = file.policy.clone();
    policy.min_cohort = policy.min_cohort.max(min_cohort.unwrap_or(0));
    policy
}

fn keys(file: &HelperFile) -> BTreeMap<u32, MaskKey> {
    let keys = file.keys.iter();
    keys.map(|(device, key)| (*device, MaskKey::from_secret(**key)))
        .collect()
}

fn digests(file: &HelperFile) -> impl Iterator<Item = (u32, KeyDigest)> {
    let keys = file.keys.iter();
    keys.map(|(device, key)| (*device, KeyDigest::of(key)))
}

#[cfg(test)]
mod tests;
