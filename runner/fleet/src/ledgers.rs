//! The first known ledger of each of a fleet's devices: `<keys>.ledgers`.
//!
//! After its flash is erased, a device has a new ledger, and with it a count of participations that
//! restarts at zero. The coordinator refuses it until it is provisioned again, which gives it
//! another key. The file holds fingerprints, which are not secret, and is written before a device
//! is invited to anything. One write covers many devices, since a fleet that arrives at once would
//! otherwise wait for as many writes as it has devices. This module also keeps the devices' chain
//! keys, in [a separate file](super::chains).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use smolfed_core::wire::keys::{ChainKey, Fingerprint};

use super::chains::ChainKeys;
use super::keys::error::{KeysError, beside, content, io};
use super::keys::vault::Vault;
use smolfed_release::durable::write_atomically;

const HEADER: &str = "# The ledger of each device, as the coordinator first saw it. A device with \
                      a different one is\n# refused until it is provisioned again. Keep this file \
                      with the keys.\n";

/// The key and the ledger of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// Fingerprint of the device's key. Another one means that it was provisioned again.
    key: Fingerprint,
    ledger: Fingerprint,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLedgers {
    #[serde(default)]
    device: Vec<RawLedger>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLedger {
    number: u32,
    key: String,
    ledger: String,
}

/// The ledgers of a fleet's devices. The default value is never stored, for tests.
#[derive(Debug, Default)]
pub struct KnownLedgers {
    known: BTreeMap<u32, Known>,
    chains: ChainKeys,
    path: Option<PathBuf>,
    /// Whether the file lacks some of them.
    is_unsaved: bool,
    /// Events not yet reported to the operator.
    events: Vec<String>,
    /// The last event of each device, which is not repeated.
    reported: BTreeMap<u32, String>,
}

impl KnownLedgers {
    /// Reads the files next to a file of keys, which the caller has locked.
    ///
    /// # Errors
    /// [`KeysError::Io`], [`KeysError::Content`], [`KeysError::Readable`].
    pub fn open(keys: &Path, vault: Option<&Vault>) -> Result<Self, KeysError> {
        let path = beside(keys, ".ledgers");
        let known = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            read => parse(&read.map_err(io("read", &path))?).map_err(content(&path))?,
        };
        Ok(Self {
            known,
            chains: ChainKeys::open(keys, vault)?,
            path: Some(path),
            ..Self::default()
        })
    }

    /// Returns whether a device with a key of this fingerprint may take part with this ledger: its
    /// first one, or the same one as before. A first one is not on disk before [`Self::save`].
    pub(super) fn admits(&mut self, device: u32, key: Fingerprint, ledger: Fingerprint) -> bool {
        let now = Known { key, ledger };
        match self.known.get(&device) {
            Some(known) if *known == now => return true,
            Some(known) if known.key == now.key => {
                self.report(
                    device,
                    format!(
                        "device {device} is refused: it has a different ledger than before. Its \
                         flash was erased, or another board has its key: provision it again, or \
                         restore the original board"
                    ),
                );
                return false;
            }
            _ => {}
        }
        self.known.insert(device, now);
        self.is_unsaved = true;
        true
    }

    /// Returns the fingerprint of a device's ledger, once it has arrived.
    pub(super) fn fingerprint(&self, device: u32) -> Option<Fingerprint> {
        self.known.get(&device).map(|known| known.ledger)
    }

    /// Writes the file if it lacks some ledgers. No device is invited before that. Also writes
    /// chain keys now and then.
    ///
    /// # Errors
    /// [`KeysError::Io`]. The next call tries again.
    pub(super) fn save(&mut self, now: Duration) -> Result<(), KeysError> {
        self.save_ledgers()?;
        self.chains.store_now_and_then(now)
    }

    fn save_ledgers(&mut self) -> Result<(), KeysError> {
        if self.is_unsaved {
            self.store()?;
            self.is_unsaved = false;
        }
        Ok(())
    }

    /// Writes all unsaved data, when a coordinator ends.
    ///
    /// # Errors
    /// [`KeysError::Io`].
    pub(super) fn save_all(&mut self) -> Result<(), KeysError> {
        self.save_ledgers()?;
        self.chains.store()
    }

    /// Encrypts the chain keys with this vault from now on, or stops encrypting them.
    pub(super) fn seal_with(&mut self, vault: Option<&Vault>) {
        self.chains.seal_with(vault);
    }

    /// Returns the chain key of a device provisioned with `first`.
    pub(super) fn chain(&self, device: u32, first: &ChainKey) -> ChainKey {
        self.chains.chain_key(device, first)
    }

    /// Records the device's new chain key.
    pub(super) fn advanced(&mut self, device: u32, key: Fingerprint, chain: &ChainKey) {
        self.chains.advanced(device, key, chain);
    }

    /// Notes a Hello under an old key of the device.
    pub(super) fn is_stale(&mut self, device: u32) {
        self.report(
            device,
            format!(
                "device {device} presents an old key: its flash was erased, its ledger was \
                 restored, a copy of it is in use, or someone replays a recorded greeting. If it \
                 no longer takes part, provision it again"
            ),
        );
    }

    /// Takes the events since the last call, in sentences.
    pub(super) fn take_events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }

    fn report(&mut self, device: u32, event: String) {
        if self.reported.get(&device) != Some(&event) {
            self.events.push(event.clone());
            self.reported.insert(device, event);
        }
    }

    fn store(&self) -> Result<(), KeysError> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let raw = |(number, known): (&u32, &Known)| RawLedger {
            number: *number,
            key: hex::encode(known.key),
            ledger: hex::encode(known.ledger),
        };
        let ledgers = RawLedgers {
            device: self.known.iter().map(raw).collect(),
        };
        let text = toml::to_string(&ledgers).map_err(|error| content(path)(error.to_string()))?;
        let text = format!("{HEADER}{text}");
        write_atomically(path, text.as_bytes()).map_err(io("write", path))
    }
}

fn parse(text: &str) -> Result<BTreeMap<u32, Known>, String> {
    let raw: RawLedgers =
        toml::from_str(text).map_err(|error| error.message().replace('\n', " "))?;
    let mut known = BTreeMap::new();
    for RawLedger {
        number,
        key,
        ledger,
    } in raw.device
    {
        let fingerprint = |name, text: &str| {
            let mut bytes = [0; 8];
            hex::decode_to_slice(text, &mut bytes).map_err(|_| {
                format!("`{name}` of device {number} is `{text}`: expected 16 hexadecimal digits")
            })?;
            Ok::<_, String>(bytes)
        };
        let now = Known {
            key: fingerprint("key", &key)?,
            ledger: fingerprint("ledger", &ledger)?,
        };
        if known.insert(number, now).is_some() {
            return Err(format!("device {number} is listed twice"));
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use smolfed_core::crypto::Key;

    use super::*;

    const FIRST: Fingerprint = [1; 8];
    const OTHER: Fingerprint = [2; 8];

    fn key(number: u8) -> Fingerprint {
        ChainKey::new(Key::from_secret([number; 32])).fingerprint()
    }

    #[test]
    fn a_known_device_keeps_its_ledger_until_it_has_another_key() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys.toml");
        let mut ledgers = KnownLedgers::open(&keys, None).unwrap();
        assert!(ledgers.admits(3, key(3), FIRST));
        assert!(ledgers.admits(4, key(4), OTHER));
        assert!(ledgers.take_events().is_empty());
        ledgers.save(Duration::ZERO).unwrap();
        // The same after a restart of the coordinator.
        let mut ledgers = KnownLedgers::open(&keys, None).unwrap();
        assert!(ledgers.admits(3, key(3), FIRST));
        for _ in 0..3 {
            assert!(!ledgers.admits(3, key(3), OTHER));
        }
        let events = ledgers.take_events();
        assert!(events[0].starts_with("device 3 is refused: it has a different ledger"));
        assert_eq!(events.len(), 1, "told once");
        // Provisioned again: the new ledger now counts.
        assert!(ledgers.admits(3, key(5), OTHER));
        ledgers.save(Duration::ZERO).unwrap();
        let mut ledgers = KnownLedgers::open(&keys, None).unwrap();
        assert!(!ledgers.admits(3, key(5), FIRST));
        assert!(ledgers.admits(4, key(4), OTHER));
    }

    #[test]
    fn a_ledger_that_cannot_be_stored_is_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("gone/keys.toml");
        let mut ledgers = KnownLedgers::open(&keys, None).unwrap();
        assert!(ledgers.save(Duration::ZERO).is_ok(), "nothing to write");
        assert!(ledgers.admits(3, key(3), FIRST));
        for _ in 0..2 {
            let error = ledgers.save(Duration::ZERO).unwrap_err().to_string();
            assert!(error.contains("cannot write"), "{error}");
            assert!(error.contains("keys.toml.ledgers"), "{error}");
        }
        fs::create_dir(dir.path().join("gone")).unwrap();
        ledgers.save(Duration::ZERO).unwrap();
        let mut ledgers = KnownLedgers::open(&keys, None).unwrap();
        assert!(!ledgers.admits(3, key(3), OTHER));
    }

    #[test]
    fn errors_name_the_file_the_device_and_the_value() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys.toml");
        let device = |key: &str| {
            format!("[[device]]\nnumber = 2\nkey = \"{key}\"\nledger = \"0102030405060708\"\n")
        };
        let fine = device("0102030405060708");
        for (text, expected) in [
            ("number = 1\n".to_owned(), "unknown field `number`"),
            (device("01"), "`key` of device 2 is `01`: expected 16"),
            (fine.clone() + &fine, "device 2 is listed twice"),
        ] {
            fs::write(dir.path().join("keys.toml.ledgers"), text).unwrap();
            let error = KnownLedgers::open(&keys, None).unwrap_err().to_string();
            assert!(error.contains("keys.toml.ledgers: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }
}
