//! Changes to a file of keys, also while a coordinator uses it: keys that are added or revoked
//! (withdrawn), encryption, and the process to notify.
//!
//! An edit locks the file itself while it runs, reads it, and replaces it atomically. The lock is
//! then on a file without a name: a waiting edit finds that the name means another file, and starts
//! again. Readers need no lock: they see the file before or after.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{KeysError, content, io};
use super::file::{KeyDigest, KeyFile, MAX_REASON, Revoked, Secret};
use super::lock::Holder;
use super::passphrase::PassphraseSource;
use super::stored::{Stored, real_path};
use super::vault::Vault;
use smolfed_release::durable::replace_private;

/// A file of keys during a change.
#[derive(Debug)]
pub struct Edit {
    path: PathBuf,
    stored: Stored,
    _lock: File,
}

impl Edit {
    /// Locks and reads the file, after waiting for other edits.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn begin(path: &Path, passphrase: &PassphraseSource) -> Result<Self, KeysError> {
        let path = real_path(path)?;
        let lock = lock_named(&path)?;
        let stored = Stored::read(&path, None, passphrase)?;
        Ok(Self {
            path,
            stored,
            _lock: lock,
        })
    }

    /// Returns the keys after the change.
    #[must_use]
    pub const fn keys(&self) -> &KeyFile {
        &self.stored.file
    }

    /// Returns the path of the file, without symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file is encrypted.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.stored.vault.is_some()
    }

    /// Returns the current or future encryption of the file.
    #[must_use]
    pub const fn vault(&self) -> Option<&Vault> {
        self.stored.vault.as_ref()
    }

    /// Makes storing encrypt the file, or not.
    pub fn seal_with(&mut self, vault: Option<Vault>) {
        self.stored.vault = vault;
    }

    /// Withdraws the key of a device. `date` is in UTC.
    ///
    /// # Errors
    /// [`KeysError::Content`] unless the device has a key.
    pub fn revoke(
        &mut self,
        number: u32,
        date: &str,
        reason: Option<&str>,
    ) -> Result<(), KeysError> {
        let file = &mut self.stored.file;
        let Some(secret) = file.keys.remove(&number) else {
            return Err(self.refused(self.unknown(number)));
        };
        let element = file.elements.remove(&number);
        file.revoked.push(Revoked {
            number,
            digest: KeyDigest::of(&secret),
            date: date.to_owned(),
            reason: reason.map(str::to_owned),
            element,
        });
        Ok(())
    }

    /// Returns whether the key of a device is in a secure element, or was when it was revoked.
    #[must_use]
    pub fn has_element(&self, number: u32) -> bool {
        let file = self.keys();
        let last = file
            .revoked
            .iter()
            .rfind(|revoked| revoked.number == number);
        match file.keys.contains_key(&number) {
            true => file.elements.contains(&number),
            false => last.is_some_and(|revoked| revoked.element),
        }
    }

    /// Explains why a device has no key.
    fn unknown(&self, number: u32) -> String {
        let mut revoked = self.keys().revoked.iter().rev();
        match revoked.find(|revoked| revoked.number == number) {
            Some(revoked) => format!(
                "the key of device {number} was revoked on {} already",
                revoked.date
            ),
            None => format!("there is no device {number}: `smolfed keys list` shows the numbers"),
        }
    }

    /// Gives keys to devices without one. Devices in `elements` have theirs in a secure element.
    ///
    /// # Errors
    /// [`KeysError::Content`] if a number has a key, or a key is another device's or was revoked.
    /// Nothing is added then.
    pub fn add(
        &mut self,
        new: &BTreeMap<u32, Secret>,
        elements: &BTreeSet<u32>,
    ) -> Result<(), KeysError> {
        let file = &self.stored.file;
        let owners = file.keys.iter();
        let owners: BTreeMap<KeyDigest, u32> = owners
            .map(|(number, key)| (KeyDigest::of(key), *number))
            .collect();
        let withdrawn = file.withdrawn();
        for (number, secret) in new {
            let digest = KeyDigest::of(secret);
            let reason = if file.keys.contains_key(number) {
                format!(
                    "device {number} has a key already: `smolfed keys rotate {number}` gives it \
                     another one"
                )
            } else if let Some(owner) = owners.get(&digest) {
                format!("the key offered for device {number} belongs to device {owner}")
            } else if let Some(revoked) = withdrawn.get(&digest) {
                format!(
                    "the key offered for device {number} was revoked on {}",
                    revoked.date
                )
            } else {
                continue;
            };
            return Err(self.refused(reason));
        }
        let new = new.iter().map(|(number, key)| (*number, key.clone()));
        self.stored.file.keys.extend(new);
        self.stored.file.elements.extend(elements);
        Ok(())
    }

    /// Replaces the file atomically. Returns the process to notify.
    ///
    /// # Errors
    /// [`KeysError::Io`], with the file unchanged.
    pub fn store(self) -> Result<Holder, KeysError> {
        let bytes = self
            .stored
            .to_bytes()
            .map_err(|error| self.refused(error))?;
        replace_private(&self.path, &bytes).map_err(io("write", &self.path))?;
        Ok(Holder::of(&self.path))
    }

    fn refused(&self, reason: String) -> KeysError {
        content(&self.path)(reason)
    }
}

/// Locks the file of this name, after waiting for other edits.
///
/// # Errors
/// [`KeysError::Io`].
pub fn lock_named(path: &Path) -> Result<File, KeysError> {
    loop {
        let lock = File::open(path).map_err(io("read", path))?;
        lock.lock().map_err(io("lock", path))?;
        let locked = lock.metadata().map_err(io("read", path))?;
        let named = fs::metadata(path).map_err(io("read", path))?;
        if (locked.dev(), locked.ino()) == (named.dev(), named.ino()) {
            return Ok(lock);
        }
    }
}

/// Checks the reason for a revocation.
///
/// # Errors
/// A description of the problem.
pub fn reason(text: &str) -> Result<String, String> {
    let length = text.chars().count();
    match text.chars().any(char::is_control) || !(1..=MAX_REASON).contains(&length) {
        true => Err(format!("expected one line of 1 to {MAX_REASON} characters")),
        false => Ok(text.to_owned()),
    }
}
