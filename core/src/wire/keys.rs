//! The keys of a device and of its sessions: `docs/protocol.md`, "Keys".
//!
//! A key is derived from the one before by HChaCha20; from a chain key in a secure element by
//! HKDF-SHA-256 ([`Kdf`]).
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
//! Each step is a pseudo-random function of sixteen bytes, and the inputs of longer ones have one
//! length in each branch: the cascade is a pseudo-random function as well (Bellare, Canetti,
//! Krawczyk 1996, "Pseudorandom functions revisited", Theorem 3.1). So nothing of one branch says
//! anything about another, and nothing goes wrong with tags of the greeting when a nonce repeats.

use ctutils::CtEq;

use crate::crypto::{Key, aead::TAG_BYTES, hash, joined, kdf::Kdf};

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 16;

/// What one side puts into the key of a session: random, or a counter that never goes back.
pub type Nonce = [u8; NONCE_BYTES];

pub use crate::crypto::Fingerprint;

/// What a device that hides its number calls itself under a chain key.
pub type Pseudonym = [u8; 8];

/// Sixteen bytes that a tag of the greeting covers beside the nonces.
pub(super) type Covered = [u8; 16];

/// What a device and its coordinator share: the first one from provisioning, the next ones by
/// [`Self::next`]. No key of the past can be found from a later one.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub struct ChainKey {
    key: Key,
    kdf: Kdf,
}

impl ChainKey {
    /// The first chain key of a device is the one that it was provisioned with.
    pub const fn new(key: Key) -> Self {
        Self::with_kdf(key, Kdf::HChaCha20)
    }

    /// The first chain key of a device that derives from it like this.
    pub const fn with_kdf(key: Key, kdf: Kdf) -> Self {
        Self { key, kdf }
    }

    /// The bytes, for whoever has to store it.
    pub const fn secret(&self) -> &[u8; 32] {
        self.key.secret()
    }

    /// How keys derive from it.
    pub const fn kdf(&self) -> Kdf {
        self.kdf
    }

    /// Its fingerprint, which says nothing of the key: that of a device's first chain key tells
    /// that it was provisioned again.
    pub fn fingerprint(&self) -> Fingerprint {
        self.derive(&[b"smolfed key     "], |key| key.truncated())
    }

    /// The next chain key.
    #[must_use]
    pub fn next(&self) -> Self {
        let kdf = self.kdf;
        self.derive(&[RATCHET], |key| Self { key, kdf })
    }
}

/// What the next chain key derives by.
pub(crate) const RATCHET: &[u8; 16] = b"smolfed ratchet ";

/// Whoever has a chain key, and what derives from it: a [`ChainKey`] in memory, or a device whose
/// secrets are in a secure element.
pub trait Chain: Sized {
    /// What comes of a derivation: `T`, or a `Result` where it can fail.
    type Of<T>;

    /// What `make` makes of the key that belongs to these inputs: of the chain key with the first
    /// one, of what that gives with the next one, and so on.
    fn derive<T>(self, inputs: &[&[u8; 16]], make: impl FnOnce(Key) -> T) -> Self::Of<T>;

    /// What a device that hides its number calls itself while this is its chain key.
    fn pseudonym(self) -> Self::Of<Pseudonym> {
        self.derive(&[b"smolfed number  "], |key| key.truncated())
    }

    /// The key of the tags of its Hello.
    fn greeting(self) -> Self::Of<GreetingKey> {
        self.derive(&[b"smolfed greeting"], GreetingKey)
    }

    /// The pre-shared key of this device's handshakes while this is its chain key.
    #[cfg(feature = "x25519")]
    fn handshake(self, device: u32) -> Self::Of<HandshakeKey> {
        let label = joined(b"smolfed psk ", &device.to_le_bytes());
        self.derive(&[&label], HandshakeKey)
    }

    /// The keys of one session between this device and the coordinator.
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

/// The fingerprint of a ledger, by its nonce. No secret to those who know the nonce: it travels
/// encrypted.
pub fn ledger_fingerprint(nonce: &[u8; 8]) -> Fingerprint {
    hash(
        b"smolfed ledger  ",
        core::iter::once(joined(&[0; 8], nonce)),
    )
}

/// The key under which the Hello of a device are tagged while it has one chain key. It opens no
/// session.
#[derive(Clone, Debug)]
pub struct GreetingKey(Key);

impl GreetingKey {
    /// The tag of a Hello.
    pub(super) fn tag(&self, nonce: &Nonce, covered: &Covered) -> [u8; TAG_BYTES] {
        self.0.cascade(&[nonce, covered]).truncated()
    }
}

/// What a device and its coordinator share before a handshake: Noise's pre-shared key.
#[cfg(feature = "x25519")]
#[derive(Clone, Debug)]
pub struct HandshakeKey(pub(super) Key);

/// What the keys of a session derive from.
#[derive(Clone, Debug)]
pub struct SessionKeys(Key);

impl SessionKeys {
    /// The tag of the coordinator's answer to a Hello.
    pub(super) fn tag(&self, covered: &Covered) -> [u8; TAG_BYTES] {
        let key = self.0.cascade(&[b"smolfed welcome ", covered]);
        key.truncated()
    }

    /// The key of the session's frames.
    pub fn cipher(&self) -> SessionKey {
        SessionKey(self.0.derive(b"smolfed cipher  "))
    }
}

/// The key under which the frames of a session are encrypted, in both directions.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub struct SessionKey(pub(super) Key);

impl SessionKey {
    /// A key of these bytes: of a link without a greeting, for tests and measurements.
    pub const fn from_secret(secret: [u8; 32]) -> Self {
        Self(Key::from_secret(secret))
    }
}

/// Whether two tags are the same; takes the same time wherever they differ.
pub fn is_same(tag: &[u8; TAG_BYTES], other: &[u8; TAG_BYTES]) -> bool {
    tag.ct_eq(other).into()
}
