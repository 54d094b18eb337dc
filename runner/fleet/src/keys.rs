//! The keys of a fleet: a secret TOML file, which lists the real devices.
//!
//! Next to it, `<file>.round` holds the lowest round number that the fleet has not used: a device
//! uses each round number at most once in its life, so this number only grows, over all runs.
//! The coordinator that uses the keys holds `<file>.lock`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`file`](mod@file) | the text: keys, and digests of revoked ones |
//! | [`vault`] | encryption at rest |
//! | [`passphrase`] | sources of the passphrase |
//! | [`stored`] | the file on disk, in clear or encrypted |
//! | [`edit`] | changes, also while a coordinator runs |
//! | [`error`] | errors |
//! | [`lock`] | one coordinator at a time, and notifications of changes |

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

/// The keys of a fleet, used only by this process.
#[derive(Debug)]
pub struct FleetKeys {
    keys: BTreeMap<u32, ChainKey>,
    digests: BTreeMap<u32, KeyDigest>,
    vacant: BTreeSet<u32>,
    /// The real devices of this process's run.
    members: BTreeSet<u32>,
    device_seed: Option<u64>,
    infer_only: bool,
    /// The key of the link to each helper.
    links: BTreeMap<u8, Key>,
    path: PathBuf,
    passphrase: PassphraseSource,
    vault: Option<Vault>,
    counter: PathBuf,
    next_round: u32,
    lock: KeysLock,
}

/// Changes by [`FleetKeys::reload`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyChanges {
    /// Devices that have received their first key. Their sessions may begin.
    pub added: Vec<u32>,
    /// Devices that no longer have a key. Their sessions must end.
    pub removed: Vec<u32>,
    /// Devices with a new key. Their sessions must end, and may begin under the new key.
    pub replaced: Vec<u32>,
}

impl FleetKeys {
    /// Reads the keys and locks them for this process. An encrypted file needs a passphrase.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn open(path: &Path, passphrase: PassphraseSource) -> Result<Self, KeysError> {
        let path = real_path(path)?;
        // Nothing is written next to a file without keys. The second read catches changes from
        // before the lock.
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
            infer_only: file.infer_only,
            path,
            passphrase,
            vault,
            counter,
            next_round,
            lock,
        })
    }

    /// Reads the keys again, after a change. A run keeps its real devices: one whose key was
    /// revoked is drawn as before and is missing. A number that was not real when this process
    /// began has a key, but takes part only from the next start on.
    ///
    /// Takes milliseconds, or a second if the passphrase was changed.
    ///
    /// # Errors
    /// [`KeysError`], with the keys unchanged. One cause is another seed of the devices' random
    /// streams, which the run's privacy statement would have to mention.
    pub fn reload(&mut self) -> Result<KeyChanges, KeysError> {
        // A prompt would stop the round in progress until somebody answers it.
        let passphrase = match &self.passphrase {
            PassphraseSource::Terminal => &PassphraseSource::Nowhere,
            source => source,
        };
        let Stored { file, vault } = Stored::read(&self.path, self.vault.as_ref(), passphrase)?;
        if file.device_seed != self.device_seed {
            return Err(content(&self.path)(
                "`device_seed` was changed: it takes effect with the next start".to_owned(),
            ));
        }
        if file.infer_only != self.infer_only {
            return Err(content(&self.path)(
                "devices that only infer and devices that train have separate keys files"
                    .to_owned(),
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

    /// Returns whether other keys now derive from the key of a device.
    fn derives_otherwise(&self, number: u32, keys: &BTreeMap<u32, ChainKey>) -> bool {
        let [before, now] = [&self.keys, keys].map(|keys| keys.get(&number).map(ChainKey::kdf));
        before != now
    }

    /// Lets commands that change the keys send SIGHUP to this process, which must then call
    /// [`Self::reload`].
    ///
    /// # Errors
    /// [`KeysError::Io`].
    pub fn reload_on_hangup(&mut self) -> Result<(), KeysError> {
        let announced = self.lock.announce();
        announced.map_err(io("write", &beside(&self.path, ".lock")))
    }

    /// Returns the path of the file, without symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the vault that encrypts the keys on disk, if any.
    #[must_use]
    pub const fn vault(&self) -> Option<&Vault> {
        self.vault.as_ref()
    }

    /// Returns the first chain key of each device.
    #[must_use]
    pub const fn keys(&self) -> &BTreeMap<u32, ChainKey> {
        &self.keys
    }

    /// Returns the numbers whose key was revoked and not replaced.
    #[must_use]
    pub const fn vacant(&self) -> &BTreeSet<u32> {
        &self.vacant
    }

    /// Returns the real devices: the ones with keys when the file was opened, and revoked ones.
    ///
    /// A revoked device stays in the federation, as a device that is always missing. No simulated
    /// device may replace it, and the accounting does not change.
    #[must_use]
    pub const fn members(&self) -> &BTreeSet<u32> {
        &self.members
    }

    /// Returns the key of the link to each helper, by its number.
    #[must_use]
    pub const fn links(&self) -> &BTreeMap<u8, Key> {
        &self.links
    }

    /// Returns the seed of the devices' random streams, if they were provisioned with one.
    #[must_use]
    pub const fn device_seed(&self) -> Option<u64> {
        self.device_seed
    }

    /// Returns whether the devices only infer.
    #[must_use]
    pub const fn infer_only(&self) -> bool {
        self.infer_only
    }

    /// Returns the lowest round number that the fleet has not used.
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

/// Returns the keys in the form that the protocol uses, and their digests.
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
