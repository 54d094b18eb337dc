//! The keys of a helper: a secret TOML file with a mask key for each device, the key of the link to
//! the coordinator, and the helper's policy.
//!
//! No file of the coordinator has a mask key, and this file has no device key: both files together
//! make every update readable.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use smolfed_core::mask::MAX_HELPERS;
use zeroize::{Zeroize, Zeroizing};

use crate::keys::file::{KeyDigest, Secret, push_digits, secret};
use smolfed_release::masked::HelperPolicy;

/// Contents of a helper's file.
#[derive(Clone)]
pub struct HelperFile {
    /// The number of the helper, from 0.
    pub helper: u8,
    /// The key of the link to the coordinator.
    pub link: Secret,
    /// The seed of its noise, for tests and demonstrations only.
    pub noise_seed: Option<u64>,
    /// Its policy.
    pub policy: HelperPolicy,
    /// The mask key of each device.
    pub keys: BTreeMap<u32, Secret>,
    /// Devices that it no longer answers for.
    pub revoked: BTreeSet<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    helper: u8,
    link: String,
    #[serde(default)]
    noise_seed: Option<u64>,
    #[serde(default)]
    revoked: BTreeSet<u32>,
    policy: HelperPolicy,
    #[serde(default)]
    device: Vec<RawKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKey {
    number: u32,
    mask: String,
}

impl Drop for RawFile {
    fn drop(&mut self) {
        self.link.zeroize();
    }
}

impl Drop for RawKey {
    fn drop(&mut self) {
        self.mask.zeroize();
    }
}

impl HelperFile {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// A description of the problem, without the name of the file. It contains no key.
    pub fn parse(text: &str) -> Result<Self, String> {
        // The parser's messages quote the line, which may contain a key.
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| before.matches('\n').count() + 1);
            format!(
                "line {line}: expected the file of a helper, with `helper`, `link`, `[policy]` and \
                 a `[[device]]` with `number` and `mask` for each device, as `smolfed provision` \
                 writes it"
            )
        })?;
        let most = MAX_HELPERS;
        if raw.policy.helpers == 0 || raw.policy.helpers > most || raw.helper >= raw.policy.helpers
        {
            return Err(format!(
                "`helper` is {} of `policy.helpers` = {}: expected a number from 0 to below the \
                 number of helpers, which is 1 to {most}",
                raw.helper, raw.policy.helpers
            ));
        }
        if !(raw.policy.noise_multiplier >= 0.0 && raw.policy.noise_multiplier.is_finite()) {
            return Err(format!(
                "`policy.noise_multiplier` is {}: expected a number of 0 or more",
                raw.policy.noise_multiplier
            ));
        }
        let mut file = Self {
            helper: raw.helper,
            link: secret(&raw.link).ok_or("`link`: expected 64 hexadecimal digits")?,
            noise_seed: raw.noise_seed,
            policy: raw.policy.clone(),
            keys: BTreeMap::new(),
            revoked: raw.revoked.clone(),
        };
        for RawKey { number, mask } in &raw.device {
            let key = secret(mask);
            let key = key.ok_or_else(|| {
                format!("`mask` of device {number}: expected 64 hexadecimal digits")
            })?;
            if file.keys.insert(*number, key).is_some() {
                return Err(format!("device {number} is listed twice"));
            }
        }
        file.check()?;
        Ok(file)
    }

    /// Checks that no two devices have the same key, since their masks would be the same.
    fn check(&self) -> Result<(), String> {
        let mut owners = BTreeMap::new();
        for (number, key) in &self.keys {
            if let Some(first) = owners.insert(KeyDigest::of(key), number) {
                return Err(format!("devices {first} and {number} have the same key"));
            }
        }
        Ok(())
    }

    /// Returns the text, which is overwritten on drop.
    #[must_use]
    pub fn to_toml(&self) -> Zeroizing<String> {
        /// Upper bound on the text of a key.
        const ROOM: usize = 128;
        let entries = self.keys.len() + self.revoked.len() + 16;
        // Room for the whole text: a growing string leaves copies behind.
        let mut text = Zeroizing::new(String::with_capacity(ROOM * entries));
        text.push_str(&format!(
            "# The keys of helper {}. Secret, above all from the coordinator: anyone who has these \
             and\n# the messages to the coordinator reads every update.\nhelper = {0}\nlink = \"",
            self.helper
        ));
        push_digits(&mut text, &self.link);
        text.push_str("\"\n");
        if let Some(seed) = self.noise_seed {
            text.push_str(&format!(
                "# Whoever knows it can subtract the noise of this helper.\nnoise_seed = {seed}\n"
            ));
        }
        if !self.revoked.is_empty() {
            let revoked: Vec<String> = self.revoked.iter().map(u32::to_string).collect();
            text.push_str(&format!("revoked = [{}]\n", revoked.join(", ")));
        }
        // Serializes without errors: only numbers and lists.
        let policy = toml::to_string(&self.policy).unwrap_or_default();
        text.push_str(&format!("\n[policy]\n{policy}"));
        for (number, key) in &self.keys {
            text.push_str(&format!("\n[[device]]\nnumber = {number}\nmask = \""));
            push_digits(&mut text, key);
            text.push_str("\"\n");
        }
        text
    }

    /// Adds the devices of another file of the same helper. Returns those with replaced keys.
    ///
    /// # Errors
    /// The file is another helper's, or has another policy.
    pub fn add(&mut self, other: &Self) -> Result<BTreeSet<u32>, String> {
        if other.helper != self.helper || other.policy.helpers != self.policy.helpers {
            return Err(format!(
                "it is the file of helper {} of {}, but this one is helper {} of {}",
                other.helper, other.policy.helpers, self.helper, self.policy.helpers
            ));
        }
        if (other.policy.noise_multiplier, &other.policy.coefficients)
            != (self.policy.noise_multiplier, &self.policy.coefficients)
            || other.noise_seed != self.noise_seed
        {
            return Err(
                "its devices were provisioned for an experiment with other noise: provision them \
                 for the fleet's experiment"
                    .to_owned(),
            );
        }
        let replaced = other.keys.iter();
        let replaced = replaced.filter(|(number, key)| {
            let own = self.keys.get(number);
            own.is_some_and(|own| own != *key)
        });
        let replaced = replaced.map(|(number, _)| *number).collect();
        let mut joined = self.clone();
        for (number, key) in &other.keys {
            joined.keys.insert(*number, key.clone());
            joined.revoked.remove(number);
        }
        joined.check()?;
        *self = joined;
        Ok(replaced)
    }

    /// Stops answering for a device and erases its key.
    ///
    /// # Errors
    /// The device does not exist, or was already revoked.
    pub fn revoke(&mut self, number: u32) -> Result<(), String> {
        match self.keys.remove(&number) {
            Some(_) => {
                self.revoked.insert(number);
                Ok(())
            }
            None if self.revoked.contains(&number) => {
                Err(format!("device {number} was revoked already"))
            }
            None => Err(format!("there is no device {number}")),
        }
    }
}

impl std::fmt::Debug for HelperFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (helper, keys) = (self.helper, self.keys.len());
        write!(f, "HelperFile(helper {helper}, {keys} keys)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::stored::is_of_helper;

    fn policy() -> HelperPolicy {
        HelperPolicy {
            helpers: 1,
            noise_multiplier: 0.1 + 0.2,
            min_cohort: 2,
            max_rounds: 12,
            participations: 12,
            separation: 1,
            coefficients: vec![256, -128],
        }
    }

    fn file(devices: &[(u32, u8)]) -> HelperFile {
        let keys = devices.iter();
        HelperFile {
            helper: 0,
            link: Zeroizing::new([0xcd; 32]),
            noise_seed: Some(5),
            policy: policy(),
            keys: keys
                .map(|(n, key)| (*n, Zeroizing::new([*key; 32])))
                .collect(),
            revoked: BTreeSet::from([9]),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let file = file(&[(0, 7), (3, 0xab)]);
        let text = file.to_toml();
        assert!(is_of_helper(&text));
        let again = HelperFile::parse(&text).unwrap();
        assert_eq!((&again.keys, &again.link), (&file.keys, &file.link));
        assert_eq!(
            (&again.policy, &again.revoked),
            (&file.policy, &file.revoked)
        );
        assert_eq!((again.helper, again.noise_seed), (0, Some(5)));
        assert_eq!(format!("{again:?}"), "HelperFile(helper 0, 2 keys)");
    }

    #[test]
    fn errors_name_the_device_and_show_no_key() {
        let fine = file(&[(0, 7), (3, 0xab)]).to_toml().to_string();
        let keys = ["07", "ab", "cd"].map(|byte| byte.repeat(31));
        for (text, expected) in [
            (String::new(), "line 1: expected the file of a helper"),
            (
                fine.replace("number = 3", "number = 0"),
                "device 0 is listed twice",
            ),
            (
                fine.replace("ab", "07"),
                "devices 0 and 3 have the same key",
            ),
            (
                fine.replace("mask = \"07", "mask = \"x7"),
                "`mask` of device 0",
            ),
            (
                fine.replace("link = \"cd", "link = \""),
                "`link`: expected 64",
            ),
            (fine.replace("helper = 0", "helper = 1"), "`helper` is 1 of"),
            (
                fine.replace("helpers = 1", "helpers = 9"),
                "of `policy.helpers` = 9",
            ),
            (
                fine.replace("noise_multiplier = ", "noise_multiplier = -"),
                "is -0.3",
            ),
            (fine.replace("mask = \"", "key = \""), "line 1"),
        ] {
            let error = HelperFile::parse(&text).map(|_| ()).unwrap_err();
            assert!(
                error.contains(expected) || error.contains("line"),
                "{error}"
            );
            assert!(keys.iter().all(|key| !error.contains(key)), "{error}");
        }
    }

    #[test]
    fn devices_are_added_replaced_and_revoked() {
        let mut fleet = file(&[(0, 1), (1, 2)]);
        assert_eq!(fleet.add(&file(&[(1, 3), (9, 4)])), Ok(BTreeSet::from([1])));
        assert_eq!(fleet.keys.keys().copied().collect::<Vec<_>>(), [0, 1, 9]);
        assert!(fleet.revoked.is_empty(), "9 has another key");
        fleet.revoke(1).unwrap();
        assert!(!fleet.keys.contains_key(&1) && fleet.revoked.contains(&1));
        assert!(fleet.revoke(1).unwrap_err().contains("already"));
        assert!(fleet.revoke(7).unwrap_err().contains("no device 7"));
        // A key of another device, and files of others: nothing is added.
        for (wrong, expected) in [
            (file(&[(5, 1)]), "devices 0 and 5"),
            (
                HelperFile {
                    noise_seed: None,
                    ..file(&[])
                },
                "other noise",
            ),
            (
                HelperFile {
                    helper: 1,
                    ..file(&[])
                },
                "helper 1 of 1",
            ),
        ] {
            assert!(fleet.add(&wrong).unwrap_err().contains(expected));
            assert_eq!(fleet.keys.len(), 2);
        }
    }
}
