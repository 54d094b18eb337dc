//! The keys of a fleet: a TOML file that is secret. The devices that it names are the real ones.
//!
//! Beside it, in `<file>.round`, stands the lowest round number that the fleet has not used. A device
//! takes part in a round number once in its life, so that number only goes up, over all runs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use smolfed_core::wire::mac::Key;

use crate::run_dir::{RunDirError, write_atomically};

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
    /// The number of the next round cannot be written.
    #[error(transparent)]
    Counter(#[from] RunDirError),
    /// A file says something else than keys, or than a number of a round.
    #[error("{path}: {reason}")]
    Content {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// Everybody on this machine can read the keys.
    #[error("{path} holds keys and can be read by others: chmod 600 {path}")]
    Readable {
        /// The file.
        path: String,
    },
    /// Another coordinator works with this fleet.
    #[error("{path} is in use: another coordinator works with these devices")]
    InUse {
        /// The file.
        path: String,
    },
    /// The last number has been used.
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
    /// Reads the keys, and keeps other coordinators away from them.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn open(path: &Path) -> Result<Self, KeysError> {
        let mut file = File::open(path).map_err(io("read", path))?;
        file.try_lock().map_err(|_| KeysError::InUse {
            path: path.display().to_string(),
        })?;
        if !is_private(&file).map_err(io("read", path))? {
            return Err(KeysError::Readable {
                path: path.display().to_string(),
            });
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(io("read", path))?;
        let Parsed { keys, device_seed } = parse(&text).map_err(content(path))?;
        let counter = counter_of(path);
        let next_round = match fs::read_to_string(&counter) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            read => {
                let text = read.map_err(io("read", &counter))?;
                let number = text.trim().parse();
                number.map_err(|_| {
                    content(&counter)(format!("`{}` is no number of a round", text.trim()))
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

    /// The seed that the devices' random streams follow from, if they were provisioned with one.
    #[must_use]
    pub const fn device_seed(&self) -> Option<u64> {
        self.device_seed
    }

    /// The lowest round number that the fleet has not used.
    #[must_use]
    pub const fn next_round(&self) -> u32 {
        self.next_round
    }

    /// Uses up the round number `number` and all below, on the disk before anybody is invited.
    ///
    /// # Errors
    /// [`KeysError::Counter`], [`KeysError::NoMoreRounds`].
    pub fn use_round(&mut self, number: u32) -> Result<(), KeysError> {
        let next = number.checked_add(1).ok_or(KeysError::NoMoreRounds {
            path: self.counter.display().to_string(),
        })?;
        if next > self.next_round {
            write_atomically(&self.counter, format!("{next}\n").as_bytes())?;
            self.next_round = next;
        }
        Ok(())
    }
}

/// The file of the round numbers that belongs to a file of keys.
fn counter_of(keys: &Path) -> PathBuf {
    let mut name = keys.file_name().unwrap_or_default().to_os_string();
    name.push(".round");
    keys.with_file_name(name)
}

/// What a file of keys says.
#[derive(Debug)]
pub struct Parsed {
    /// The key of each device.
    pub keys: BTreeMap<u32, Key>,
    /// The seed that the devices' random streams follow from, if they do.
    pub device_seed: Option<u64>,
}

/// The text of a file of keys, for devices whose random streams follow from `device_seed`, if there is
/// one.
#[must_use]
pub fn to_toml(keys: &BTreeMap<u32, [u8; 32]>, device_seed: Option<u64>) -> String {
    let mut text = String::from(
        "# The keys of a fleet. Secret: who has them can speak for its devices and its coordinator.\n",
    );
    if let Some(seed) = device_seed {
        text.push_str(&format!(
            "\n# Who knows it can subtract the noise of these devices.\ndevice_seed = {seed}\n"
        ));
    }
    for (number, key) in keys {
        let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!(
            "\n[[device]]\nnumber = {number}\nkey = \"{key}\"\n"
        ));
    }
    text
}

/// Reads the text of a file of keys.
///
/// # Errors
/// What is wrong with it, to follow the name of the file. Keys are not repeated in it.
pub fn parse(text: &str) -> Result<Parsed, String> {
    // The parser's own sentences show the line, which may be a key.
    let raw: RawKeys = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        match before {
            Some(before) => format!(
                "line {} is not as in `[[device]]`, `number = 0`, `key = \"64 hex digits\"`",
                before.matches('\n').count() + 1
            ),
            None => "expected `[[device]]` with `number` and `key`".to_owned(),
        }
    })?;
    let (mut keys, mut secrets) = (BTreeMap::new(), BTreeMap::new());
    for RawKey { number, key } in raw.device {
        let secret = secret(&key).ok_or(format!(
            "`key` of device {number}: expected 64 hexadecimal digits"
        ))?;
        if let Some(other) = secrets
            .insert(secret, number)
            .filter(|other| *other != number)
        {
            return Err(format!("devices {other} and {number} have one key"));
        }
        if keys.insert(number, Key::from_secret(secret)).is_some() {
            return Err(format!("device {number} is there twice"));
        }
    }
    if keys.is_empty() {
        return Err("it has no `[[device]]`".to_owned());
    }
    Ok(Parsed {
        keys,
        device_seed: raw.device_seed,
    })
}

fn secret(hex: &str) -> Option<[u8; 32]> {
    let digits = hex.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut secret = [0; 32];
    for (byte, pair) in secret.iter_mut().zip(digits.chunks(2)) {
        let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
        *byte = (digit(0)? * 16 + digit(1)?) as u8;
    }
    Some(secret)
}

/// Whether nobody but its owner can use a file.
///
/// # Errors
/// Whatever the system says.
pub fn is_private(file: &File) -> std::io::Result<bool> {
    Ok(file.metadata()?.permissions().mode() & 0o077 == 0)
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> KeysError {
    let path = path.display().to_string();
    move |source| KeysError::Io {
        action,
        path,
        source,
    }
}

fn content(path: &Path) -> impl FnOnce(String) -> KeysError {
    let path = path.display().to_string();
    move |reason| KeysError::Content { path, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        (dir, path)
    }

    fn two() -> String {
        to_toml(&BTreeMap::from([(0, [7; 32]), (9, [0xab; 32])]), Some(5))
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
                "device 0 is there twice",
            ),
            (two().replace("ab", "07"), "devices 0 and 9 have one key"),
        ];
        for (text, expected) in cases {
            let error = parse(&text).map(|_| ()).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains(&key), "{error}");
        }
    }
}
