//! The keys of a fleet: a secret TOML file. The devices that it names are the real ones.
//!
//! `<file>.round` beside it holds the lowest round number that the fleet has not used. A device
//! takes part in a round number at most once in its life, so this number only grows, over all runs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use smolfed_core::crypto::Key;
use zeroize::{Zeroize, Zeroizing};

use crate::durable::{is_private, write_atomically};

/// What is wrong with the keys of a fleet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// A file cannot be read, written or locked.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// read, write or lock.
        action: &'static str,
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The content of a file is malformed.
    #[error("{path}: {reason}")]
    Content {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// Other users can read the keys.
    #[error("{path} contains keys and can be read by others: run `chmod 600 {path}`")]
    Readable {
        /// The file.
        path: String,
    },
    /// Another coordinator uses the keys.
    #[error("{path} is in use by another coordinator")]
    InUse {
        /// The file.
        path: String,
    },
    /// All round numbers are used.
    #[error("{path}: the fleet has used up all round numbers")]
    NoMoreRounds {
        /// The file.
        path: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKeys {
    #[serde(default)]
    device_seed: Option<u64>,
    #[serde(default)]
    device: Vec<RawKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKey {
    number: u32,
    key: String,
}

impl Drop for RawKey {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

/// The keys of a fleet, in use by this process only.
#[derive(Debug)]
pub struct FleetKeys {
    keys: BTreeMap<u32, Key>,
    device_seed: Option<u64>,
    path: PathBuf,
    counter: PathBuf,
    next_round: u32,
    _lock: File,
}

impl FleetKeys {
    /// Reads and locks the keys.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn open(path: &Path) -> Result<Self, KeysError> {
        let mut file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                content(path)("there are no keys; `smolfed provision` writes them".to_owned())
            }
            _ => io("read", path)(error),
        })?;
        if file.metadata().is_ok_and(|data| data.is_dir()) {
            return Err(content(path)(
                "is a folder: give the keys.toml in it".to_owned(),
            ));
        }
        file.try_lock().map_err(|_| KeysError::InUse {
            path: path.display().to_string(),
        })?;
        if !is_private(&file).map_err(io("read", path))? {
            return Err(KeysError::Readable {
                path: path.display().to_string(),
            });
        }
        // Room for all of it: a string that grows leaves copies behind.
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let mut text = Zeroizing::new(String::with_capacity(length as usize + 1));
        file.read_to_string(&mut text).map_err(io("read", path))?;
        let Parsed { keys, device_seed } = parse(&text).map_err(content(path))?;
        let counter = beside(path, ".round");
        let next_round = match fs::read_to_string(&counter) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            read => {
                let text = read.map_err(io("read", &counter))?;
                let number = text.trim().parse();
                number.map_err(|_| {
                    content(&counter)(format!("`{}` is not a round number", text.trim()))
                })?
            }
        };
        Ok(Self {
            keys,
            device_seed,
            path: path.to_path_buf(),
            counter,
            next_round,
            _lock: file,
        })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The key of each device.
    #[must_use]
    pub const fn keys(&self) -> &BTreeMap<u32, Key> {
        &self.keys
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

/// A file that belongs to a file of keys: its name with something appended.
pub(super) fn beside(keys: &Path, ending: &str) -> PathBuf {
    let mut name = keys.file_name().unwrap_or_default().to_os_string();
    name.push(ending);
    keys.with_file_name(name)
}

/// The content of a file of keys.
#[derive(Debug)]
pub struct Parsed {
    /// The key of each device.
    pub keys: BTreeMap<u32, Key>,
    /// The seed of the devices' random streams, if they were provisioned with one.
    pub device_seed: Option<u64>,
}

/// The text of a file of keys, overwritten when it is dropped. `device_seed` is the seed of the
/// devices' random streams, if any.
#[must_use]
pub fn to_toml(
    keys: &BTreeMap<u32, Zeroizing<[u8; 32]>>,
    device_seed: Option<u64>,
) -> Zeroizing<String> {
    /// More than the text of a key, and more than that around all keys.
    const ROOM: usize = 256;
    let mut text = Zeroizing::new(String::with_capacity(ROOM * (keys.len() + 1)));
    text.push_str(
        "# The keys of a fleet. Secret: they suffice to impersonate its devices and coordinator.\n",
    );
    if let Some(seed) = device_seed {
        text.push_str(&format!(
            "\n# Whoever knows it can subtract the noise of these devices.\ndevice_seed = {seed}\n"
        ));
    }
    for (number, key) in keys {
        let key = Zeroizing::new(hex::encode(**key));
        text.push_str("\n[[device]]\nnumber = ");
        text.push_str(&number.to_string());
        text.push_str("\nkey = \"");
        text.push_str(&key);
        text.push_str("\"\n");
    }
    text
}

/// Parses a file of keys.
///
/// # Errors
/// What is wrong, without the name of the file. It contains no key.
pub fn parse(text: &str) -> Result<Parsed, String> {
    // The parser's messages quote the line, which may contain a key.
    let raw: RawKeys = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        match before {
            Some(before) => format!(
                "line {}: expected `[[device]]`, `number = 0` or `key = \"64 hex digits\"`",
                before.matches('\n').count() + 1
            ),
            None => "expected `[[device]]` with `number` and `key`".to_owned(),
        }
    })?;
    let mut keys = BTreeMap::new();
    let mut secrets = Vec::with_capacity(raw.device.len());
    for RawKey { number, key } in &raw.device {
        let number = *number;
        let mut secret = Zeroizing::new([0; 32]);
        hex::decode_to_slice(key, &mut *secret)
            .map_err(|_| format!("`key` of device {number}: expected 64 hexadecimal digits"))?;
        if keys.insert(number, Key::from_secret(*secret)).is_some() {
            return Err(format!("device {number} is listed twice"));
        }
        secrets.push((secret, number));
    }
    secrets.sort_unstable_by(|a, b| (&*a.0, a.1).cmp(&(&*b.0, b.1)));
    let twice = secrets
        .windows(2)
        .find(|pair| matches!(pair, [a, b] if a.0 == b.0));
    if let Some([(_, first), (_, second)]) = twice {
        return Err(format!("devices {first} and {second} have the same key"));
    }
    if keys.is_empty() {
        return Err("there is no `[[device]]`".to_owned());
    }
    Ok(Parsed {
        keys,
        device_seed: raw.device_seed,
    })
}

pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> KeysError {
    let path = path.display().to_string();
    move |source| KeysError::Io {
        action,
        path,
        source,
    }
}

pub(super) fn content(path: &Path) -> impl FnOnce(String) -> KeysError {
    let path = path.display().to_string();
    move |reason| KeysError::Content { path, reason }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        (dir, path)
    }

    fn two() -> String {
        let keys = [(0, [7; 32]), (9, [0xab; 32])].map(|(n, key)| (n, Zeroizing::new(key)));
        to_toml(&BTreeMap::from(keys), Some(5)).to_string()
    }

    #[test]
    fn what_is_written_is_read() {
        let (_dir, path) = file(&two());
        let keys = FleetKeys::open(&path).unwrap();
        assert_eq!(keys.keys().keys().copied().collect::<Vec<_>>(), [0, 9]);
        assert_eq!((keys.next_round(), keys.device_seed()), (0, Some(5)));
    }

    #[test]
    fn round_numbers_only_go_up_and_survive() {
        let (_dir, path) = file(&two());
        let mut keys = FleetKeys::open(&path).unwrap();
        keys.use_round(4).unwrap();
        keys.use_round(2).unwrap();
        drop(keys);
        let mut keys = FleetKeys::open(&path).unwrap();
        assert_eq!(keys.next_round(), 5);
        let error = keys.use_round(u32::MAX).unwrap_err();
        assert!(matches!(error, KeysError::NoMoreRounds { .. }));
    }

    #[test]
    fn one_coordinator_at_a_time() {
        let (_dir, path) = file(&two());
        let _first = FleetKeys::open(&path).unwrap();
        let error = FleetKeys::open(&path).unwrap_err();
        assert!(matches!(error, KeysError::InUse { .. }), "{error}");
    }

    #[test]
    fn keys_that_others_can_read_are_refused() {
        let (_dir, path) = file(&two());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = FleetKeys::open(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn errors_name_the_device_and_show_no_key() {
        let key = "ab".repeat(31);
        let cases = [
            (String::new(), "no `[[device]]`"),
            ("[[device]]\nnumber = 1\n".to_owned(), "line 1"),
            (format!("[[device]]\nnumber = 1\nkey = {key}\n"), "line 3"),
            (
                format!("[[device]]\nnumber = 1\nkey = \"{key}\"\n"),
                "device 1: expected 64",
            ),
            (
                two() + &two().replace("device_seed = 5", ""),
                "device 0 is listed twice",
            ),
            (
                two().replace("ab", "07"),
                "devices 0 and 9 have the same key",
            ),
        ];
        for (text, expected) in cases {
            let error = parse(&text).map(|_| ()).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains(&key), "{error}");
        }
    }
}
