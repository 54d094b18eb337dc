//! The chain keys of a fleet's devices: `<keys>.chains`, a secret file next to the keys.
//!
//! A device replaces its chain key by a one-way function of it when it takes part in a session, and
//! the coordinator follows once a session under the new key is authentic. The file may be out of
//! date: the newest key is found by hashing, from an older key or from the key in `keys.toml`. The
//! file is therefore written only now and then, and a failed write is harmless.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use smolfed_core::crypto::Key;
use smolfed_core::wire::greeting::Hello;
use smolfed_core::wire::keys::{Chain as _, ChainKey, Fingerprint, GreetingKey, Pseudonym};
use zeroize::{Zeroize, Zeroizing};

use super::keys::error::{KeysError, beside, content, io};
use super::keys::vault::{Vault, VaultError};
use super::lock::lock;
use smolfed_release::durable::{is_private, write_atomically};

/// Steps ahead of the last authentic session that are checked at each Hello. One is enough unless
/// the coordinator has lost its state.
pub const LOOKAHEAD: u32 = 4;

/// Number of past chain keys under which a Hello is recognised as stale.
const LOOKBACK: usize = 4;

/// Steps ahead that an occasional search checks.
const MAX_STEPS: u32 = 1 << 10;

/// Time between two of those searches, over all devices. Each one costs a millisecond.
const SEARCH_INTERVAL: Duration = Duration::from_millis(20);

/// Time between two of those searches for one device.
const DEVICE_SEARCH_INTERVAL: Duration = Duration::from_secs(5);

/// Time between two writes of the file.
const STORE_INTERVAL: Duration = Duration::from_secs(5);

const HEADER: &str = "# The chain key of each device. Secret: they suffice to impersonate the \
                      devices and the\n# coordinator. Keep this file with the keys.\n";

/// The chain key of one device, and the keys around it that its Hello may use.
#[derive(Clone, Debug)]
pub struct Chain {
    current: ChainKey,
    /// Names of the provisioned key. A device restarts with this key after its memory is erased.
    first: (Pseudonym, GreetingKey),
    /// From [`LOOKBACK`] steps before the current key, if there are that many, to [`LOOKAHEAD`]
    /// steps after it.
    window: VecDeque<(Pseudonym, GreetingKey)>,
    /// Entries of the window before the current key.
    behind: usize,
    searched: Option<Duration>,
}

/// Position of a Hello in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// This many steps after the current key.
    Ahead(u32),
    /// Before the current key.
    Stale,
    /// Nowhere near.
    Nowhere,
}

/// Obsolete and new pseudonyms.
#[derive(Debug, Default)]
pub(super) struct Renamed {
    pub(super) gone: Vec<Pseudonym>,
    pub(super) new: Vec<Pseudonym>,
}

impl Renamed {
    /// Returns whether nothing has changed.
    pub(super) const fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.new.is_empty()
    }
}

impl Chain {
    /// Returns the chain that began with `first`, positioned at `current`.
    #[must_use]
    pub fn new(first: &ChainKey, current: ChainKey) -> Self {
        let mut chain = Self {
            current,
            first: (first.pseudonym(), first.greeting()),
            window: VecDeque::new(),
            behind: 0,
            searched: None,
        };
        chain.fill();
        chain
    }

    /// Completes the window. Returns the new pseudonyms.
    fn fill(&mut self) -> Vec<Pseudonym> {
        let missing = (self.behind + LOOKAHEAD as usize + 1).saturating_sub(self.window.len());
        let first = (self.window.len() - self.behind) as u32;
        let mut key = self.at(first);
        for _ in 0..missing {
            self.window.push_back((key.pseudonym(), key.greeting()));
            key = key.next();
        }
        let new = self.window.iter().rev().take(missing);
        new.map(|(name, _)| *name).collect()
    }

    /// Returns the chain key of the last authentic session.
    #[must_use]
    pub const fn current(&self) -> &ChainKey {
        &self.current
    }

    /// Returns the key this many steps after the current one.
    pub(super) fn at(&self, steps: u32) -> ChainKey {
        (0..steps).fold(self.current.clone(), |key, _| key.next())
    }

    /// Returns the known pseudonyms of the device.
    pub(super) fn pseudonyms(&self) -> impl Iterator<Item = Pseudonym> {
        let entries = core::iter::once(&self.first).chain(&self.window);
        entries.map(|(name, _)| *name)
    }

    /// Finds the key under which a Hello was made.
    pub(super) fn find(
        &mut self,
        hello: &Hello,
        now: Duration,
        limit: &Mutex<SearchLimit>,
    ) -> Found {
        let is_of = |(_, key): &&(Pseudonym, GreetingKey)| hello.is_authentic(key);
        // From the current key on, then the earlier ones.
        let mut ahead = self.window.iter().skip(self.behind);
        if let Some(steps) = ahead.position(|entry| is_of(&entry)) {
            return Found::Ahead(steps as u32);
        }
        let mut behind = self.window.iter().take(self.behind).chain([&self.first]);
        if behind.any(|entry| is_of(&entry)) {
            return Found::Stale;
        }
        let waited = self.searched.map(|then| now.saturating_sub(then));
        if waited.is_some_and(|waited| waited < DEVICE_SEARCH_INTERVAL) || !lock(limit).allows(now)
        {
            return Found::Nowhere;
        }
        self.searched = Some(now);
        let mut key = self.at(LOOKAHEAD);
        for steps in LOOKAHEAD + 1..=MAX_STEPS {
            key = key.next();
            if hello.is_authentic(&key.greeting()) {
                return Found::Ahead(steps);
            }
        }
        Found::Nowhere
    }

    /// Moves to the key this many steps ahead, after an authentic session under it.
    pub(super) fn advance(&mut self, steps: u32) -> Renamed {
        let mut renamed = Renamed::default();
        if steps == 0 {
            return renamed;
        }
        self.current = self.at(steps);
        self.behind += steps as usize;
        while self.behind > LOOKBACK {
            self.behind -= 1;
            let gone = self.window.pop_front().map(|(name, _)| name);
            renamed
                .gone
                .extend(gone.filter(|name| *name != self.first.0));
        }
        // After a long search the window is empty.
        self.behind = self.behind.min(self.window.len());
        renamed.new = self.fill();
        renamed
    }
}

/// Time of the last far search for any device, which makes forged Hellos cheap.
#[derive(Debug, Default)]
pub struct SearchLimit(Option<Duration>);

impl SearchLimit {
    fn allows(&mut self, now: Duration) -> bool {
        let waited = self.0.map(|then| now.saturating_sub(then));
        let allows = waited.is_none_or(|waited| waited >= SEARCH_INTERVAL);
        if allows {
            self.0 = Some(now);
        }
        allows
    }
}

/// The key fingerprint and the chain key of a device.
#[derive(Clone, Debug)]
struct Known {
    /// Fingerprint of the provisioned key. Another key starts another chain.
    key: Fingerprint,
    chain: Zeroizing<[u8; 32]>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChains {
    #[serde(default)]
    device: Vec<RawChain>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChain {
    number: u32,
    key: String,
    chain: String,
}

impl Drop for RawChain {
    fn drop(&mut self) {
        self.chain.zeroize();
    }
}

/// The chain keys of a fleet. The default value is never stored, for tests.
#[derive(Debug, Default)]
pub struct ChainKeys {
    known: BTreeMap<u32, Known>,
    path: Option<PathBuf>,
    /// Encrypts the file with the same passphrase as the keys.
    vault: Option<Vault>,
    is_stored: bool,
    /// Time of the last write or attempt.
    stored: Option<Duration>,
}

impl ChainKeys {
    /// Reads the chain file next to a file of keys, which the caller has locked. `vault` encrypts
    /// the chain file.
    ///
    /// # Errors
    /// [`KeysError::Io`], [`KeysError::Content`], [`KeysError::Readable`].
    pub fn open(keys: &Path, vault: Option<&Vault>) -> Result<Self, KeysError> {
        let path = beside(keys, ".chains");
        let known = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
            opened => {
                let bytes = opened_with(vault, read(opened, &path)?).map_err(content(&path))?;
                let text = std::str::from_utf8(&bytes);
                let text = text.map_err(|_| content(&path)("is not text".to_owned()))?;
                parse(text).map_err(content(&path))?
            }
        };
        Ok(Self {
            known,
            vault: vault.cloned(),
            path: Some(path),
            is_stored: true,
            stored: None,
        })
    }

    /// Returns the chain key of a device that was provisioned with `first`: a later one if there is
    /// one, else `first`.
    pub(super) fn chain_key(&self, device: u32, first: &ChainKey) -> ChainKey {
        match self.known.get(&device) {
            Some(known) if known.key == first.fingerprint() => {
                ChainKey::with_kdf(Key::from_secret(*known.chain), first.kdf())
            }
            _ => first.clone(),
        }
    }

    /// Records the device's new chain key.
    pub(super) fn advanced(&mut self, device: u32, key: Fingerprint, chain: &ChainKey) {
        let chain = Zeroizing::new(*chain.secret());
        self.known.insert(device, Known { key, chain });
        self.is_stored = false;
    }

    /// Writes new keys, unless the last write was a moment ago.
    ///
    /// # Errors
    /// [`KeysError::Io`]: the keys are written the next time.
    pub(super) fn store_now_and_then(&mut self, now: Duration) -> Result<(), KeysError> {
        let waited = self.stored.map(|then| now.saturating_sub(then));
        if self.is_stored || waited.is_some_and(|waited| waited < STORE_INTERVAL) {
            return Ok(());
        }
        self.stored = Some(now);
        self.store()
    }

    /// Writes new keys.
    ///
    /// # Errors
    /// [`KeysError::Io`]: the keys are written the next time.
    pub fn store(&mut self) -> Result<(), KeysError> {
        let Some(path) = self.path.as_ref().filter(|_| !self.is_stored) else {
            return Ok(());
        };
        /// Upper bound on the text of a device.
        const ROOM: usize = 256;
        let mut text = Zeroizing::new(String::with_capacity(ROOM * (self.known.len() + 1)));
        text.push_str(HEADER);
        for (number, Known { key, chain }) in &self.known {
            let chain = Zeroizing::new(hex::encode(**chain));
            text.push_str("\n[[device]]\nnumber = ");
            text.push_str(&number.to_string());
            text.push_str("\nkey = \"");
            text.push_str(&hex::encode(key));
            text.push_str("\"\nchain = \"");
            text.push_str(&chain);
            text.push_str("\"\n");
        }
        let sealed = self.vault.as_ref().map(|vault| vault.seal(text.as_bytes()));
        let sealed = sealed.transpose();
        let sealed = sealed.map_err(|error| content(path)(error.to_string()))?;
        let bytes = sealed.as_deref().unwrap_or(text.as_bytes());
        write_private(path, bytes).map_err(io("write", path))?;
        self.is_stored = true;
        Ok(())
    }

    /// Drops the keys without writing the file.
    pub fn forget(mut self) {
        self.is_stored = true;
    }

    /// Encrypts the file with this vault from now on, or stops encrypting it.
    pub fn seal_with(&mut self, vault: Option<&Vault>) {
        self.vault = vault.cloned();
        self.is_stored = self.known.is_empty() && self.is_stored;
    }
}

/// Returns the contents of a file in clear.
fn opened_with(
    vault: Option<&Vault>,
    bytes: Zeroizing<Vec<u8>>,
) -> Result<Zeroizing<Vec<u8>>, String> {
    if !Vault::is_sealed(&bytes) {
        return Ok(bytes);
    }
    let other = || {
        "is encrypted under another passphrase than the keys: restore both from one backup, or \
         delete it if no device has taken part more than 1,000 times"
            .to_owned()
    };
    let opened = Vault::open(&bytes, vault, || Err(VaultError::Refused));
    opened.map(|(_, text)| text).map_err(|_| other())
}

impl Drop for ChainKeys {
    fn drop(&mut self) {
        // A later search recovers lost keys.
        let _ = self.store();
    }
}

/// Writes a file atomically. Others can never read it.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    // `write_atomically` writes to this file and renames it, so the mode stays.
    let partial = beside(path, ".partial");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(partial)?;
    write_atomically(path, bytes)
}

fn read(opened: std::io::Result<File>, path: &Path) -> Result<Zeroizing<Vec<u8>>, KeysError> {
    let mut file = opened.map_err(io("read", path))?;
    if !is_private(&file).map_err(io("read", path))? {
        let (path, what) = (path.display().to_string(), "keys");
        return Err(KeysError::Readable { path, what });
    }
    // Room for the whole file: a growing vector leaves copies behind.
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = Zeroizing::new(Vec::with_capacity(length as usize + 1));
    file.read_to_end(&mut bytes).map_err(io("read", path))?;
    Ok(bytes)
}

fn parse(text: &str) -> Result<BTreeMap<u32, Known>, String> {
    // The parser's messages quote the line, which may contain a key.
    let raw: RawChains = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        format!("line {line}: expected `[[device]]` with `number`, `key` and `chain`")
    })?;
    let mut known = BTreeMap::new();
    for RawChain { number, key, chain } in &raw.device {
        let (mut name, mut secret) = ([0; 8], Zeroizing::new([0; 32]));
        hex::decode_to_slice(key, &mut name)
            .map_err(|_| format!("`key` of device {number}: expected 16 hexadecimal digits"))?;
        hex::decode_to_slice(chain, &mut *secret)
            .map_err(|_| format!("`chain` of device {number}: expected 64 hexadecimal digits"))?;
        let entry = Known {
            key: name,
            chain: secret,
        };
        if known.insert(*number, entry).is_some() {
            return Err(format!("device {number} is listed twice"));
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use smolfed_core::crypto::kdf::Kdf;
    use smolfed_core::wire::greeting::{Name, Versions};

    use super::*;

    fn key(byte: u8) -> Key {
        Key::from_secret([byte; 32])
    }

    fn chain(steps: u32) -> ChainKey {
        let first = ChainKey::new(key(1));
        Chain::new(&first, first.clone()).at(steps)
    }

    fn hello(steps: u32) -> Hello {
        Hello::new(
            &chain(steps).greeting(),
            Name::Number(1),
            [9; 16],
            Versions::OURS,
        )
    }

    #[test]
    fn a_hello_is_found_where_it_belongs() {
        let mut known = Chain::new(&chain(0), chain(10));
        let second = Duration::from_secs(1);
        let limit = &Mutex::default();
        let find = |chain: &mut Chain, steps, now| chain.find(&hello(steps), now * second, limit);
        for steps in 0..=LOOKAHEAD {
            assert_eq!(find(&mut known, 10 + steps, 0), Found::Ahead(steps));
        }
        // Keys before the beginning are unknown, and passed keys are stale.
        assert_eq!(find(&mut known, 9, 0), Found::Nowhere);
        assert_eq!(find(&mut known, 0, 0), Found::Stale, "erased");
        known.advance(1);
        known.advance(3);
        assert_eq!(find(&mut known, 14, 0), Found::Ahead(0));
        for steps in 10..14 {
            assert_eq!(find(&mut known, steps, 0), Found::Stale);
        }
        // Far ahead, at intervals.
        assert_eq!(find(&mut known, 14 + MAX_STEPS, 1), Found::Nowhere);
        assert_eq!(find(&mut known, 14 + MAX_STEPS, 6), Found::Ahead(MAX_STEPS));
        assert_eq!(find(&mut known, 15 + MAX_STEPS, 12), Found::Nowhere);
        known.advance(MAX_STEPS);
        assert_eq!(find(&mut known, 15 + MAX_STEPS, 12), Found::Ahead(1));
        assert_eq!(known.window.len(), known.behind + LOOKAHEAD as usize + 1);
    }

    /// Forged greetings for many devices are cheap.
    #[test]
    fn searches_are_few() {
        let limit = &Mutex::default();
        let of = |n| ChainKey::new(key(n));
        let mut chains: Vec<Chain> = (2..102).map(|n| Chain::new(&of(n), of(n))).collect();
        for milliseconds in 0..100 {
            for chain in &mut chains {
                let now = Duration::from_millis(milliseconds);
                assert_eq!(chain.find(&hello(0), now, limit), Found::Nowhere);
            }
        }
        let searched = chains.iter().filter(|chain| chain.searched.is_some());
        assert_eq!(searched.count(), 5, "one every 20 ms");
    }

    #[test]
    fn pseudonyms_follow_the_chain() {
        let mut known = Chain::new(&chain(0), chain(0));
        let mut names: Vec<Pseudonym> = known.pseudonyms().skip(1).collect();
        for _ in 0..12 {
            let renamed = known.advance(1);
            names.retain(|name| !renamed.gone.contains(name));
            names.extend(renamed.new);
            for name in known.pseudonyms() {
                assert!(names.contains(&name));
            }
        }
        // Also the pseudonym of the first key, which stays.
        assert_eq!(names.len(), 1 + LOOKBACK + 1 + LOOKAHEAD as usize);
        assert_eq!(names[0], chain(0).pseudonym());
        assert_eq!(names[1 + LOOKBACK], chain(12).pseudonym());
    }

    #[test]
    fn what_is_stored_is_read_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys.toml");
        let path = dir.path().join("keys.toml.chains");
        let name = chain(0).fingerprint();
        let mut chains = ChainKeys::open(&keys, None).unwrap();
        assert_eq!(chains.chain_key(3, &chain(0)).secret(), chain(0).secret());
        let now = Duration::from_secs(100);
        chains.advanced(3, name, &chain(1));
        chains.store_now_and_then(now).unwrap();
        let again = ChainKeys::open(&keys, None).unwrap();
        assert_eq!(again.chain_key(3, &chain(0)).secret(), chain(1).secret());
        // A soon repeated write waits, and the last keys are written at the end.
        chains.advanced(3, name, &chain(2));
        chains.store_now_and_then(now).unwrap();
        let again = ChainKeys::open(&keys, None).unwrap();
        assert_eq!(again.chain_key(3, &chain(0)).secret(), chain(1).secret());
        drop(again);
        drop(chains);
        let again = ChainKeys::open(&keys, None).unwrap();
        assert_eq!(again.chain_key(3, &chain(0)).secret(), chain(2).secret());
        // Provisioned again: another chain.
        let other = ChainKey::new(key(2));
        assert_eq!(again.chain_key(3, &other).secret(), other.secret());
        // In a secure element the same secret gives another chain key.
        let in_element = ChainKey::with_kdf(key(1), Kdf::HkdfSha256);
        assert_eq!(
            again.chain_key(3, &in_element).next().kdf(),
            Kdf::HkdfSha256
        );
        assert_eq!(
            again.chain_key(3, &in_element).secret(),
            in_element.secret()
        );
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = ChainKeys::open(&keys, None).unwrap_err();
        assert!(matches!(error, KeysError::Readable { .. }));
    }

    #[test]
    fn errors_show_no_key() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys.toml");
        let secret = "ab".repeat(32);
        let entry = |key: &str, chain: &str| {
            format!("[[device]]\nnumber = 2\nkey = \"{key}\"\nchain = \"{chain}\"\n")
        };
        let fine = entry("0102030405060708", &secret);
        for (text, expected) in [
            (format!("chain = {secret}"), "line 1"),
            (entry("01", &secret), "`key` of device 2"),
            (entry("0102030405060708", "01"), "`chain` of device 2"),
            (fine.clone() + &fine, "device 2 is listed twice"),
        ] {
            let path = dir.path().join("keys.toml.chains");
            write_private(&path, text.as_bytes()).unwrap();
            let error = ChainKeys::open(&keys, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains(&secret), "{error}");
        }
    }
}
