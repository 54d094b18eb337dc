//! The keys of a fleet: a secret TOML file. The devices that it names are the real ones.
//!
//! Beside it, `<file>.round` holds the lowest round number that the fleet has not used: a device
//! takes part in a round number at most once in its life, so this number only grows, over all runs.
//! `<file>.lock` is held by the coordinator that uses the keys.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`file`](mod@file) | the text: keys, and digests of revoked ones |
//! | [`vault`] | encryption at rest |
//! | [`passphrase`] | where the passphrase comes from |
//! | [`stored`] | the file on disk, in clear or encrypted |
//! | [`edit`] | changes, also while a coordinator runs |
//! | [`error`] | what can be wrong |
//! | [`lock`] | one coordinator at a time, and how to tell it of changes |

pub mod edit;
pub mod error;
pub mod file;
pub mod lock;
pub mod passphrase;
pub mod stored;
pub mod vault;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use smolfed_core::crypto::Key;
use smolfed_core::crypto::kdf::Kdf;
use smolfed_core::wire::keys::ChainKey;

pub use self::error::KeysError;
use self::error::{beside, content, io};
use self::file::{KeyDigest, KeyFile};
use self::lock::KeysLock;
use self::passphrase::PassphraseSource;
use self::stored::{Stored, read_round, real_path};
use self::vault::Vault;
use smolfed_release::durable::write_atomically;

/// The keys of a fleet, in use by this process only.
#[derive(Debug)]
pub struct FleetKeys {
    keys: BTreeMap<u32, ChainKey>,
    digests: BTreeMap<u32, KeyDigest>,
    vacant: BTreeSet<u32>,
    /// The real devices of this process's run.
    members: BTreeSet<u32>,
    device_seed: Option<u64>,
    /// The key of the link to each helper.
    links: BTreeMap<u8, Key>,
    path: PathBuf,
    passphrase: PassphraseSource,
    vault: Option<Vault>,
    counter: PathBuf,
    next_round: u32,
    lock: KeysLock,
}

/// What is different after [`FleetKeys::reload`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyChanges {
    /// Devices that had no key and have one: their sessions may begin.
    pub added: Vec<u32>,
    /// Devices that have no key any more: their sessions must end.
    pub removed: Vec<u32>,
    /// Devices with another key: their sessions must end, and may begin under the new one.
    pub replaced: Vec<u32>,
}

impl FleetKeys {
    /// Reads the keys and locks them for this process. An encrypted file needs a passphrase.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn open(path: &Path, passphrase: PassphraseSource) -> Result<Self, KeysError> {
        let path = real_path(path)?;
        // Nothing is written beside a file that does not hold keys; and what is changed before the
        // lock is taken is not missed.
        let before = Stored::read(&path, None, &passphrase)?;
        let lock = KeysLock::take(&path, "another coordinator")?;
        let Stored { file, vault } = Stored::read(&path, before.vault.as_ref(), &passphrase)?;
        let counter = beside(&path, ".round");
        let next_round = read_round(&counter)?;
        let (keys, digests) = typed(&file);
        let vacant = file.vacant();
        let links = file.links.iter();
        let links = links.map(|(helper, link)| (*helper, Key::from_secret(**link)));
        Ok(Self {
            links: links.collect(),
            members: keys.keys().chain(&vacant).copied().collect(),
            keys,
            digests,
            vacant,
            device_seed: file.device_seed,
            path,
            passphrase,
            vault,
            counter,
            next_round,
            lock,
        })
    }

    /// Reads the keys again, after somebody changed them. A run keeps its real devices: one whose
    /// key was revoked is drawn as before and is missing, and a number that was not real when this
    /// process began has a key but takes part from the next start on.
    ///
    /// Takes milliseconds, or a second if the passphrase was changed.
    ///
    /// # Errors
    /// [`KeysError`]; the keys are then as they were. Among them: another seed of the devices'
    /// random streams, which the run's privacy statement would have to mention.
    pub fn reload(&mut self) -> Result<KeyChanges, KeysError> {
        let Stored { file, vault } =
            Stored::read(&self.path, self.vault.as_ref(), &self.passphrase)?;
        if file.device_seed != self.device_seed {
            return Err(content(&self.path)(
                "`device_seed` was changed: it takes effect with the next start".to_owned(),
            ));
        }
        let (keys, digests) = typed(&file);
        let mut changes = KeyChanges::default();
        for (number, digest) in &digests {
            match self.digests.get(number) {
                None => changes.added.push(*number),
                Some(before) if before != digest || self.derives_otherwise(*number, &keys) => {
                    changes.replaced.push(*number);
                }
                Some(_) => {}
            }
        }
        let before = self.digests.keys().copied();
        changes.removed = before.filter(|number| !keys.contains_key(number)).collect();
        self.vacant = file.vacant();
        (self.keys, self.digests, self.vault) = (keys, digests, vault);
        Ok(changes)
    }

    /// Whether other keys derive from the key of a device now.
    fn derives_otherwise(&self, number: u32, keys: &BTreeMap<u32, ChainKey>) -> bool {
        let [before, now] = [&self.keys, keys].map(|keys| keys.get(&number).map(ChainKey::kdf));
        before != now
    }

    /// Lets commands that change the keys send SIGHUP to this process: from now on it must call
    /// [`Self::reload`] then.
    ///
    /// # Errors
    /// [`KeysError::Io`].
    pub fn reload_on_hangup(&mut self) -> Result<(), KeysError> {
        let announced = self.lock.announce();
        announced.map_err(io("write", &beside(&self.path, ".lock")))
    }

    /// The file, without symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What encrypts them on disk, if anything does.
    #[must_use]
    pub const fn vault(&self) -> Option<&Vault> {
        self.vault.as_ref()
    }

    /// The first chain key of each device.
    #[must_use]
    pub const fn keys(&self) -> &BTreeMap<u32, ChainKey> {
        &self.keys
    }

    /// Numbers whose key was revoked and which have no other one.
    #[must_use]
    pub const fn vacant(&self) -> &BTreeSet<u32> {
        &self.vacant
    }

    /// The real devices: those with keys when the file was opened, and those whose key was revoked.
    ///
    /// A revoked device is still one of the federation, as a device that is always missing: nobody
    /// else may be simulated in its place, and nothing changes for the accounting.
    #[must_use]
    pub const fn members(&self) -> &BTreeSet<u32> {
        &self.members
    }

    /// The key of the link to each helper, by its number.
    #[must_use]
    pub const fn links(&self) -> &BTreeMap<u8, Key> {
        &self.links
    }

    /// The seed of the devices' random streams, if they were provisioned with one.
    #[must_use]
    pub const fn device_seed(&self) -> Option<u64> {
        self.device_seed
    }

    /// The lowest round number that the fleet has not used.
    #[must_use]
    pub const fn next_round(&self) -> u32 {
        self.next_round
    }

    /// Marks the round numbers up to `number` as used, on disk, before any device is invited.
    ///
    /// # Errors
    /// [`KeysError::Io`], [`KeysError::NoMoreRounds`].
    pub fn use_round(&mut self, number: u32) -> Result<(), KeysError> {
        let next = number.checked_add(1).ok_or(KeysError::NoMoreRounds {
            path: self.counter.display().to_string(),
        })?;
        if next > self.next_round {
            write_atomically(&self.counter, format!("{next}\n").as_bytes())
                .map_err(io("write", &self.counter))?;
            self.next_round = next;
        }
        Ok(())
    }
}

/// The keys as the protocol uses them, and their digests.
fn typed(file: &KeyFile) -> (BTreeMap<u32, ChainKey>, BTreeMap<u32, KeyDigest>) {
    let keys = file.keys.iter();
    let digests = keys
        .clone()
        .map(|(number, key)| (*number, KeyDigest::of(key)));
    let keys = keys.map(|(number, key)| {
        let kdf = match file.elements.contains(number) {
            true => Kdf::HkdfSha256,
            false => Kdf::HChaCha20,
        };
        (*number, ChainKey::with_kdf(Key::from_secret(**key), kdf))
    });
    (keys.collect(), digests.collect())
}

#[cfg(test)]
mod tests;
