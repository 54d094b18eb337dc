//! Contents of a file of keys: TOML text with a `[[helper]]` for the link to each helper, a
//! `[[device]]` for each key, and a `[[revoked]]` for each withdrawn key, which keeps only a
//! digest. It has no mask key.

use std::collections::{BTreeMap, BTreeSet};

use blake2::{Blake2s256, Digest};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

/// The 32 bytes of a device key, overwritten on drop.
pub type Secret = Zeroizing<[u8; 32]>;

/// Maximum characters in the reason for a revocation.
pub const MAX_REASON: usize = 200;

/// Separates digests of keys from every other use of the hash function.
const DIGEST_LABEL: &[u8] = b"smolfed key digest";

/// Sixteen public bytes by which a key is recognised without being kept.
///
/// A key is 32 uniform bytes, so its digest does not reveal it. Two keys of one fleet have the same
/// digest with probability below n²·2⁻¹²⁹.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyDigest([u8; 16]);

impl KeyDigest {
    /// Returns the first half of BLAKE2s-256("smolfed key digest" ‖ key).
    #[must_use]
    pub fn of(key: &[u8; 32]) -> Self {
        let hash = Blake2s256::new().chain_update(DIGEST_LABEL);
        let hash = hash.chain_update(key).finalize();
        Self(hash.first_chunk().copied().unwrap_or_default())
    }
}

impl std::fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// A revoked key, which must not be used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// The device that had it.
    pub number: u32,
    /// Its digest.
    pub digest: KeyDigest,
    /// The date, in UTC.
    pub date: String,
    /// The reason, in the operator's words.
    pub reason: Option<String>,
    /// Whether the key was in a secure element. The device's next key is too.
    pub element: bool,
}

/// Contents of a file of keys.
#[derive(Clone, Default)]
pub struct KeyFile {
    /// The key of the link to each helper, by its number.
    pub links: BTreeMap<u8, Secret>,
    /// The key of each device.
    pub keys: BTreeMap<u32, Secret>,
    /// Devices whose secrets are in a secure element, which derives keys by another function.
    pub elements: BTreeSet<u32>,
    /// Revoked keys, in the order of revocation.
    pub revoked: Vec<Revoked>,
    /// The seed of the devices' random streams, if they were provisioned with one.
    pub device_seed: Option<u64>,
    /// Whether the devices only infer: `smolfed deliver` serves them, and no round has them.
    pub infer_only: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    infer_only: bool,
    #[serde(default)]
    device_seed: Option<u64>,
    #[serde(default)]
    helper: Vec<RawLink>,
    #[serde(default)]
    device: Vec<RawKey>,
    #[serde(default)]
    revoked: Vec<RawRevoked>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLink {
    number: u8,
    link: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKey {
    number: u32,
    key: String,
    #[serde(default)]
    element: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRevoked {
    number: u32,
    digest: String,
    date: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    element: bool,
}

impl Drop for RawLink {
    fn drop(&mut self) {
        self.link.zeroize();
    }
}

impl Drop for RawKey {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl KeyFile {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// A description of the problem, without the name of the file. It contains no key.
    pub fn parse(text: &str) -> Result<Self, String> {
        // The parser's messages quote the line, which may contain a key.
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            match before {
                Some(before) => format!(
                    "line {}: expected `[[device]]`, `number = 0` or `key = \"64 hex digits\"`",
                    before.matches('\n').count() + 1
                ),
                None => "expected `[[device]]` with `number` and `key`".to_owned(),
            }
        })?;
        let mut file = Self {
            device_seed: raw.device_seed,
            infer_only: raw.infer_only,
            ..Self::default()
        };
        for RawLink { number, link } in &raw.helper {
            let secret = secret(link).ok_or_else(|| {
                format!("`link` of helper {number}: expected 64 hexadecimal digits")
            })?;
            if file.links.insert(*number, secret).is_some() {
                return Err(format!("helper {number} is listed twice"));
            }
        }
        for RawKey {
            number,
            key,
            element,
        } in &raw.device
        {
            let number = *number;
            let secret = secret(key).ok_or_else(|| {
                format!("`key` of device {number}: expected 64 hexadecimal digits")
            })?;
            if file.keys.insert(number, secret).is_some() {
                return Err(format!("device {number} is listed twice"));
            }
            if *element {
                file.elements.insert(number);
            }
        }
        for revoked in raw.revoked {
            file.revoked.push(Revoked::parse(revoked)?);
        }
        if file.keys.is_empty() && file.revoked.is_empty() {
            return Err("there is no `[[device]]`".to_owned());
        }
        file.check()?;
        Ok(file)
    }

    /// Checks that no two devices have the same key, and none has a revoked one.
    fn check(&self) -> Result<(), String> {
        let withdrawn = self.withdrawn();
        let mut owners = BTreeMap::new();
        for (number, secret) in &self.keys {
            let digest = KeyDigest::of(secret);
            if let Some(first) = owners.insert(digest, number) {
                return Err(format!("devices {first} and {number} have the same key"));
            }
            if let Some(revoked) = withdrawn.get(&digest) {
                return Err(format!(
                    "the key of device {number} was revoked on {}: `smolfed keys rotate {number}` \
                     makes another one",
                    revoked.date
                ));
            }
        }
        Ok(())
    }

    /// Returns the revoked keys by digest.
    #[must_use]
    pub fn withdrawn(&self) -> BTreeMap<KeyDigest, &Revoked> {
        let entries = self.revoked.iter();
        entries.map(|revoked| (revoked.digest, revoked)).collect()
    }

    /// Returns the numbers whose last key was revoked and not replaced.
    #[must_use]
    pub fn vacant(&self) -> BTreeSet<u32> {
        let numbers = self.revoked.iter().map(|revoked| revoked.number);
        let is_vacant = |number: &u32| !self.keys.contains_key(number);
        numbers.filter(is_vacant).collect()
    }

    /// Returns the text, which is overwritten on drop.
    #[must_use]
    pub fn to_toml(&self) -> Zeroizing<String> {
        /// Upper bound on the text of an entry for a key or a revoked key.
        const ROOM: usize = 256 + 4 * MAX_REASON;
        let entries = (self.keys.len() + self.links.len()) / 4 + self.revoked.len() + 1;
        // Room for the whole text: a growing string leaves copies behind.
        let mut text = Zeroizing::new(String::with_capacity(ROOM * entries));
        text.push_str(
            "# The keys of a fleet. Secret: they suffice to impersonate its devices and \
             coordinator.\n",
        );
        if let Some(seed) = self.device_seed {
            text.push_str(&format!(
                "\n# Whoever knows it can subtract the noise of these devices.\ndevice_seed = \
                 {seed}\n"
            ));
        }
        if self.infer_only {
            text.push_str("\n# Devices that only infer.\ninfer_only = true\n");
        }
        for (number, link) in &self.links {
            text.push_str(&format!("\n[[helper]]\nnumber = {number}\nlink = \""));
            push_digits(&mut text, link);
            text.push_str("\"\n");
        }
        for (number, key) in &self.keys {
            text.push_str(&format!("\n[[device]]\nnumber = {number}\nkey = \""));
            push_digits(&mut text, key);
            text.push_str("\"\n");
            if self.elements.contains(number) {
                text.push_str("element = true\n");
            }
        }
        for revoked in &self.revoked {
            text.push_str(&revoked.to_toml());
        }
        text
    }
}

/// Parses a secret of 64 hexadecimal digits.
pub(crate) fn secret(digits: &str) -> Option<Secret> {
    let mut secret = Zeroizing::new([0; 32]);
    hex::decode_to_slice(digits, &mut *secret).ok()?;
    Some(secret)
}

/// Writes a secret as 64 hexadecimal digits, and leaves no other copy.
pub(crate) fn push_digits(text: &mut String, secret: &Secret) {
    let mut digits = Zeroizing::new([0; 64]);
    // The lengths fit.
    let _ = hex::encode_to_slice(**secret, &mut *digits);
    text.push_str(std::str::from_utf8(&*digits).unwrap_or_default());
}

impl std::fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (keys, revoked) = (self.keys.len(), self.revoked.len());
        write!(f, "KeyFile({keys} keys, {revoked} revoked)")
    }
}

impl Revoked {
    fn parse(raw: RawRevoked) -> Result<Self, String> {
        let number = raw.number;
        let mut digest = [0; 16];
        hex::decode_to_slice(&raw.digest, &mut digest).map_err(|_| {
            format!("`digest` of revoked device {number}: expected 32 hexadecimal digits")
        })?;
        Ok(Self {
            number,
            digest: KeyDigest(digest),
            date: raw.date,
            reason: raw.reason,
            element: raw.element,
        })
    }

    fn to_toml(&self) -> String {
        let reason = self.reason.as_ref().map(|reason| {
            let quoted = toml::Value::String(reason.clone());
            format!("reason = {quoted}\n")
        });
        let element = match self.element {
            true => "element = true\n",
            false => "",
        };
        format!(
            "\n[[revoked]]\nnumber = {}\ndigest = \"{}\"\ndate = {}\n{}{element}",
            self.number,
            self.digest,
            toml::Value::String(self.date.clone()),
            reason.unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> KeyFile {
        let keys = [(0, [7; 32]), (9, [0xab; 32])].map(|(n, key)| (n, Zeroizing::new(key)));
        KeyFile {
            links: BTreeMap::from([(0, Zeroizing::new([0xef; 32]))]),
            keys: BTreeMap::from(keys),
            elements: BTreeSet::from([9]),
            revoked: Vec::new(),
            device_seed: Some(5),
            infer_only: false,
        }
    }

    fn revoked(number: u32, key: u8) -> Revoked {
        Revoked {
            number,
            digest: KeyDigest::of(&[key; 32]),
            date: "2026-11-23T19:00:00Z".to_owned(),
            reason: Some("\"stolen\" \\ from the site".to_owned()),
            element: number == 9,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut file = two();
        file.revoked = vec![revoked(4, 1), revoked(9, 2)];
        let again = KeyFile::parse(&file.to_toml()).unwrap();
        assert_eq!((&again.keys, &again.revoked), (&file.keys, &file.revoked));
        assert_eq!(
            (&again.links, &again.elements),
            (&file.links, &file.elements)
        );
        assert_eq!((again.device_seed, again.infer_only), (Some(5), false));
        file.infer_only = true;
        assert!(KeyFile::parse(&file.to_toml()).unwrap().infer_only);
        // Device 9 has another key now.
        assert_eq!(again.vacant(), BTreeSet::from([4]));
        assert_eq!(format!("{again:?}"), "KeyFile(2 keys, 2 revoked)");
    }

    #[test]
    fn errors_name_the_device_and_show_no_key() {
        let key = "ab".repeat(31);
        let two = two().to_toml().to_string();
        let revoked = |number, key| revoked(number, key).to_toml();
        let cases = [
            (String::new(), "no `[[device]]`"),
            ("[[device]]\nnumber = 1\n".to_owned(), "line 1"),
            (format!("[[device]]\nnumber = 1\nkey = {key}\n"), "line 3"),
            (
                format!("[[device]]\nnumber = 1\nkey = \"{key}\"\n"),
                "device 1: expected 64",
            ),
            (
                two.clone() + &two.replace("device_seed = 5", ""),
                "helper 0 is listed twice",
            ),
            (
                two.replace("number = 9", "number = 0"),
                "device 0 is listed twice",
            ),
            (
                two.replace("link = \"ef", "link = \"xf"),
                "`link` of helper 0: expected 64",
            ),
            (two.replace("ab", "07"), "devices 0 and 9 have the same key"),
            (
                two.clone() + &revoked(3, 7),
                "the key of device 0 was revoked on 2026-11-23",
            ),
            (
                two + &revoked(3, 1).replace("digest = \"", "digest = \"x"),
                "`digest` of revoked device 3: expected 32",
            ),
        ];
        for (text, expected) in cases {
            let error = KeyFile::parse(&text).map(|_| ()).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains(&key), "{error}");
        }
    }
}
