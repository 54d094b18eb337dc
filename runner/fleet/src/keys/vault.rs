//! Encryption of keys at rest: XChaCha20-Poly1305 under a key derived from a passphrase by Argon2id
//! (draft-irtf-cfrg-xchacha-03, RFC 8439, RFC 9106).
//!
//! ```text
//! smolfed keys, encrypted: argon2id m=65536 t=3 p=4 salt=<32 hex digits> nonce=<48 hex digits>\n
//! ciphertext and tag
//! ```
//!
//! The line is the associated data, so a file with a changed line does not open. Each write draws a
//! 192-bit nonce, which does not repeat by chance. Edits keep the salt, so a command or a running
//! coordinator derives the key once. Encryption hides the keys from readers of the disk or a backup
//! without the passphrase. It does not distinguish an older copy of the file from the newest one.

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use smolfed_release::entropy::{EntropyError, secret};

/// First bytes of an encrypted file.
const MAGIC: &str = "smolfed keys, encrypted: ";

/// Exclusive upper bound on the line's length.
const MAX_LINE: usize = 256;

const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 24;

/// Limits of the derivation: a changed line must not take all memory.
const MAX_MEMORY_KIB: u32 = 1 << 20;
const MAX_PASSES: u32 = 16;
const MAX_LANES: u32 = 16;

/// Error when opening an encrypted file.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The line, or the part after it, is incomplete.
    #[error("is encrypted, but incomplete or damaged: restore it from a backup")]
    Damaged,
    /// Authentication failed.
    #[error("does not open: the passphrase is wrong, or the file was changed")]
    Refused,
    /// No randomness for salt and nonce.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// The cost of Argon2id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

impl Cost {
    /// The second recommended option of RFC 9106, section 4, for limited memory.
    pub(super) const RECOMMENDED: Self = Self {
        memory_kib: 1 << 16,
        passes: 3,
        lanes: 4,
    };

    #[cfg(test)]
    pub(super) const TEST: Self = Self {
        memory_kib: 32,
        passes: 1,
        lanes: 1,
    };
}

/// Parameters of a file's key derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Derivation {
    cost: Cost,
    salt: [u8; SALT_BYTES],
}

/// A key derived from a passphrase, overwritten on drop.
#[derive(Clone)]
pub struct Vault {
    derivation: Derivation,
    key: Zeroizing<[u8; 32]>,
}

impl Vault {
    /// Derives a key for a new file, with a fresh salt.
    ///
    /// # Errors
    /// [`VaultError::Entropy`].
    pub fn new(passphrase: &[u8]) -> Result<Self, VaultError> {
        Self::with_cost(passphrase, Cost::RECOMMENDED)
    }

    pub(super) fn with_cost(passphrase: &[u8], cost: Cost) -> Result<Self, VaultError> {
        let salt = secret()?.first_chunk().copied().unwrap_or_default();
        Self::derive(passphrase, Derivation { cost, salt })
    }

    fn derive(passphrase: &[u8], derivation: Derivation) -> Result<Self, VaultError> {
        let Cost {
            memory_kib,
            passes,
            lanes,
        } = derivation.cost;
        let mut key = Zeroizing::new([0; 32]);
        let params = Params::new(memory_kib, passes, lanes, Some(key.len()));
        let params = params.map_err(|_| VaultError::Damaged)?;
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase, &derivation.salt, &mut *key)
            .map_err(|_| VaultError::Damaged)?;
        Ok(Self { derivation, key })
    }

    /// Returns whether these are the bytes of an encrypted file.
    #[must_use]
    pub fn is_sealed(bytes: &[u8]) -> bool {
        // A truncated file is recognised too, so that its bytes are not taken for text.
        let length = bytes.len().min(MAGIC.len());
        length > 0 && bytes.starts_with(MAGIC.as_bytes().get(..length).unwrap_or_default())
    }

    /// Encrypts a text.
    ///
    /// # Errors
    /// [`VaultError::Entropy`].
    pub fn seal(&self, text: &[u8]) -> Result<Vec<u8>, VaultError> {
        let nonce: [u8; NONCE_BYTES] = secret()?.first_chunk().copied().unwrap_or_default();
        let Derivation { cost, salt } = &self.derivation;
        let line = format!(
            "{MAGIC}argon2id m={} t={} p={} salt={} nonce={}\n",
            cost.memory_kib,
            cost.passes,
            cost.lanes,
            hex::encode(salt),
            hex::encode(nonce)
        );
        // Room for the whole text: a growing vector leaves copies of the text behind.
        let mut sealed = Vec::with_capacity(line.len() + text.len() + 16);
        sealed.extend_from_slice(line.as_bytes());
        sealed.extend_from_slice(text);
        let (_, body) = sealed.split_at_mut(line.len());
        let tag = self
            .cipher()
            .encrypt_inout_detached(&XNonce::from(nonce), line.as_bytes(), body.into())
            .map_err(|_| VaultError::Damaged)?;
        sealed.extend_from_slice(&tag);
        Ok(sealed)
    }

    /// Decrypts a file. `known` is a key that may fit. Otherwise the key is derived from the
    /// passphrase.
    ///
    /// # Errors
    /// [`VaultError`], or the error of `passphrase`.
    pub fn open<E: From<VaultError>>(
        bytes: &[u8],
        known: Option<&Self>,
        passphrase: impl FnOnce() -> Result<Zeroizing<Vec<u8>>, E>,
    ) -> Result<(Self, Zeroizing<Vec<u8>>), E> {
        let (line, body) = split(bytes).ok_or(VaultError::Damaged)?;
        let (derivation, nonce) = parse(line).ok_or(VaultError::Damaged)?;
        let vault = match known.filter(|known| known.derivation == derivation) {
            Some(known) => known.clone(),
            None => Self::derive(&passphrase()?, derivation)?,
        };
        let mut text = Zeroizing::new(body.to_vec());
        let opened = vault.cipher().decrypt_in_place(
            &XNonce::from(nonce),
            line.as_bytes(),
            &mut *text as &mut Vec<u8>,
        );
        opened.map_err(|_| VaultError::Refused)?;
        Ok((vault, text))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.key).into())
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault(..)")
    }
}

/// Splits a file after the end of the line.
fn split(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes
        .iter()
        .take(MAX_LINE)
        .position(|byte| *byte == b'\n')?;
    let (line, body) = bytes.split_at_checked(end + 1)?;
    Some((std::str::from_utf8(line).ok()?, body))
}

fn parse(line: &str) -> Option<(Derivation, [u8; NONCE_BYTES])> {
    let mut words = line.strip_prefix(MAGIC)?.trim_end().split(' ');
    if words.next()? != "argon2id" {
        return None;
    }
    let mut value = |name| words.next()?.strip_prefix(name)?.strip_prefix('=');
    let mut number = |name, max: u32| {
        let number = value(name)?.parse().ok()?;
        (1..=max).contains(&number).then_some(number)
    };
    let cost = Cost {
        memory_kib: number("m", MAX_MEMORY_KIB)?,
        passes: number("t", MAX_PASSES)?,
        lanes: number("p", MAX_LANES)?,
    };
    let (mut salt, mut nonce) = ([0; SALT_BYTES], [0; NONCE_BYTES]);
    hex::decode_to_slice(value("salt")?, &mut salt).ok()?;
    hex::decode_to_slice(value("nonce")?, &mut nonce).ok()?;
    Some((Derivation { cost, salt }, nonce))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSPHRASE: &[u8] = b"correct horse";

    fn open(bytes: &[u8], passphrase: &[u8]) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let passphrase = || Ok::<_, VaultError>(Zeroizing::new(passphrase.to_vec()));
        Vault::open(bytes, None, passphrase).map(|(_, text)| text)
    }

    fn sealed() -> Vec<u8> {
        let vault = Vault::with_cost(PASSPHRASE, Cost::TEST).unwrap();
        vault.seal(b"the keys").unwrap()
    }

    #[test]
    fn what_is_sealed_opens_with_the_passphrase_only() {
        let bytes = sealed();
        assert!(Vault::is_sealed(&bytes) && !Vault::is_sealed(b"# The keys"));
        assert_eq!(open(&bytes, PASSPHRASE).unwrap().as_slice(), b"the keys");
        let error = open(&bytes, b"correct hors").unwrap_err();
        assert!(matches!(error, VaultError::Refused));
        assert!(!bytes.windows(8).any(|window| window == b"the keys"));
    }

    #[test]
    fn a_change_of_any_bit_and_a_cut_at_any_byte_is_noticed() {
        let bytes = sealed();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(open(&changed, PASSPHRASE).is_err(), "byte {at}");
            assert!(open(&bytes[..at], PASSPHRASE).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_known_key_needs_no_passphrase_and_nonces_differ() {
        let vault = Vault::with_cost(PASSPHRASE, Cost::TEST).unwrap();
        let (first, second) = (vault.seal(b"a").unwrap(), vault.seal(b"a").unwrap());
        assert_ne!(first, second);
        let nobody = || Err(VaultError::Refused);
        for bytes in [first, second] {
            let (_, text) = Vault::open(&bytes, Some(&vault), nobody).unwrap();
            assert_eq!(text.as_slice(), b"a");
        }
        let other = Vault::with_cost(PASSPHRASE, Cost::TEST).unwrap();
        assert!(
            Vault::open(&sealed(), Some(&other), nobody).is_err(),
            "another salt"
        );
    }

    /// The cost of a changed line is not tried.
    #[test]
    fn costs_are_bounded() {
        let text = String::from_utf8_lossy(&sealed()).replace("m=32", "m=4000000000");
        let error = open(text.as_bytes(), PASSPHRASE).unwrap_err();
        assert!(matches!(error, VaultError::Damaged));
    }

    /// As derived by OpenSSL's Argon2id (through Python's `cryptography` 48), at the cost of RFC
    /// 9106, section 4, second option.
    #[test]
    fn keys_are_derived_as_by_an_independent_implementation() {
        let derivation = Derivation {
            cost: Cost::RECOMMENDED,
            salt: [7; SALT_BYTES],
        };
        let vault = Vault::derive(PASSPHRASE, derivation).unwrap();
        let expected = "b9544fd17a6791078aa071a2eb5d1e653ca9788d942f83158bb4ee9b552a2326";
        assert_eq!(hex::encode(*vault.key), expected);
    }
}
