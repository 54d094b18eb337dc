//! The keys of a device and of its sessions (chain key, greeting key, session keys, pseudonym), and
//! their derivation: `docs/protocol-greeting.md`, "Keys".
//!
//! Each key is derived from the previous one by HChaCha20, or from a chain key in a secure element
//! by HKDF-SHA-256 ([`Kdf`]).
//!
//! ```text
//! chain key ── "smolfed ratchet " ──────────────── the next chain key
//!     ├─────── "smolfed number  " ──────────────── pseudonym, 8 bytes
//!     ├─────── "smolfed psk " | device u32 ────────── pre-shared key of handshakes
//!     ├─────── "smolfed greeting" ──────────────── greeting key ── nonce ── offer ── tag of Hello
//!     └─────── "smolfed sess" | device u32 ── device nonce ── coordinator nonce
//!                  ├── "smolfed welcome " ── answer ── tag of Welcome or Incompatible
//!                  └── "smolfed cipher  " ── key of the session's frames
//! ```
//!
//! Each step is a pseudo-random function of sixteen bytes, and longer inputs have one length in
//! each branch. The cascade is therefore also a pseudo-random function (Bellare, Canetti, Krawczyk
//! 1996, "Pseudorandom functions revisited", Theorem 3.1). Nothing in one branch reveals anything
//! about another, and greeting tags stay secure when a nonce repeats.

use ctutils::CtEq;

use crate::crypto::{Key, aead::TAG_BYTES, hash, joined, kdf::Kdf};

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 16;

/// One side's contribution to the key of a session: random, or a counter that never goes back.
pub type Nonce = [u8; NONCE_BYTES];

pub use crate::crypto::Fingerprint;

/// The name that a device uses under a chain key to hide its number.
pub type Pseudonym = [u8; 8];

/// Sixteen bytes that a greeting tag covers in addition to the nonces.
pub(super) type Covered = [u8; 16];

/// The secret that a device and its coordinator share: the first one from provisioning, the next
/// ones by [`Self::next`]. A later key reveals no earlier one.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub struct ChainKey {
    key: Key,
    kdf: Kdf,
}

impl ChainKey {
    /// Creates the first chain key of a device, from provisioning.
    pub const fn new(key: Key) -> Self {
        Self::with_kdf(key, Kdf::HChaCha20)
    }

    /// Creates the first chain key of a device that uses this derivation.
    pub const fn with_kdf(key: Key, kdf: Kdf) -> Self {
        Self { key, kdf }
    }

    /// Returns the bytes for storage.
    pub const fn secret(&self) -> &[u8; 32] {
        self.key.secret()
    }

    /// Returns the derivation function of its keys.
    pub const fn kdf(&self) -> Kdf {
        self.kdf
    }

    /// Returns its fingerprint, which reveals nothing about the key. A changed fingerprint of the
    /// first chain key shows that the device was provisioned again.
    pub fn fingerprint(&self) -> Fingerprint {
        self.derive(&[b"smolfed key     "], |key| key.truncated())
    }

    /// Returns the next chain key.
    #[must_use]
    pub fn next(&self) -> Self {
        let kdf = self.kdf;
        self.derive(&[RATCHET], |key| Self { key, kdf })
    }
}

/// Label that derives the next chain key.
pub(crate) const RATCHET: &[u8; 16] = b"smolfed ratchet ";

/// A holder of a chain key and its derived keys: a [`ChainKey`] in memory, or a device with its
/// secrets in a secure element.
pub trait Chain: Sized {
    /// The result of a derivation: `T`, or a `Result` if it can fail.
    type Of<T>;

    /// Applies `make` to the key derived from these inputs: the chain key with the first input, its
    /// result with the next, and so on.
    fn derive<T>(self, inputs: &[&[u8; 16]], make: impl FnOnce(Key) -> T) -> Self::Of<T>;

    /// Returns the name of a device that hides its number, under this chain key.
    fn pseudonym(self) -> Self::Of<Pseudonym> {
        self.derive(&[b"smolfed number  "], |key| key.truncated())
    }

    /// Returns the key for the tags of its Hello.
    fn greeting(self) -> Self::Of<GreetingKey> {
        self.derive(&[b"smolfed greeting"], GreetingKey)
    }

    /// Returns the pre-shared key of this device's handshakes under this chain key.
    #[cfg(feature = "x25519")]
    fn handshake(self, device: u32) -> Self::Of<HandshakeKey> {
        let label = joined(b"smolfed psk ", &device.to_le_bytes());
        self.derive(&[&label], HandshakeKey)
    }

    /// Returns the keys of one session between this device and the coordinator.
    fn session(self, device: u32, device_nonce: &Nonce, nonce: &Nonce) -> Self::Of<SessionKeys> {
        let label = joined(b"smolfed sess", &device.to_le_bytes());
        self.derive(&[&label, device_nonce, nonce], SessionKeys)
    }
}

impl Chain for &ChainKey {
    type Of<T> = T;

    #[inline(always)]
    fn derive<T>(self, inputs: &[&[u8; 16]], make: impl FnOnce(Key) -> T) -> T {
        make(self.kdf.cascade(&self.key, inputs))
    }
}

/// Returns the fingerprint of a ledger, from its nonce. It is no secret from holders of the nonce:
/// it travels encrypted.
pub fn ledger_fingerprint(nonce: &[u8; 8]) -> Fingerprint {
    hash(
        b"smolfed ledger  ",
        core::iter::once(joined(&[0; 8], nonce)),
    )
}

/// The key for the tags of a device's Hello messages under one chain key. It opens no session.
#[derive(Clone, Debug)]
pub struct GreetingKey(Key);

impl GreetingKey {
    /// Returns the tag of a Hello.
    pub(super) fn tag(&self, nonce: &Nonce, covered: &Covered) -> [u8; TAG_BYTES] {
        self.0.cascade(&[nonce, covered]).truncated()
    }
}

/// The secret that a device and its coordinator share before a handshake: Noise's pre-shared key.
#[cfg(feature = "x25519")]
#[derive(Clone, Debug)]
pub struct HandshakeKey(pub(super) Key);

/// The root of a session's keys.
#[derive(Clone, Debug)]
pub struct SessionKeys(Key);

impl SessionKeys {
    /// Returns the tag of the coordinator's answer to a Hello.
    pub(super) fn tag(&self, covered: &Covered) -> [u8; TAG_BYTES] {
        let key = self.0.cascade(&[b"smolfed welcome ", covered]);
        key.truncated()
    }

    /// Returns the key of the session's frames.
    pub fn cipher(&self) -> SessionKey {
        SessionKey(self.0.derive(b"smolfed cipher  "))
    }
}

/// The key that encrypts the frames of a session in both directions.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub struct SessionKey(pub(super) Key);

impl SessionKey {
    /// Creates a key from these bytes: for a link without a greeting, in tests and measurements.
    pub const fn from_secret(secret: [u8; 32]) -> Self {
        Self(Key::from_secret(secret))
    }
}

/// Compares two tags in constant time.
pub fn is_same(tag: &[u8; TAG_BYTES], other: &[u8; TAG_BYTES]) -> bool {
    tag.ct_eq(other).into()
}
