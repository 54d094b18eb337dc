//! The keys of a device and of its sessions, all derived by HChaCha20: `docs/protocol.md`, "Keys".
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

use crate::crypto::{Key, aead::TAG_BYTES, hash, joined};

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 16;

/// What one side puts into the key of a session: random, or a counter that never goes back.
pub type Nonce = [u8; NONCE_BYTES];

/// Eight bytes that tell one thing from another.
pub type Fingerprint = [u8; 8];

/// What a device that hides its number calls itself under a chain key.
pub type Pseudonym = [u8; 8];

/// Sixteen bytes that a tag of the greeting covers beside the nonces.
pub(super) type Covered = [u8; 16];

/// What a device and its coordinator share: the first one from provisioning, the next ones by
/// [`Self::next`]. No key of the past can be found from a later one.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub struct ChainKey(Key);

impl ChainKey {
    /// The first chain key of a device is the one that it was provisioned with.
    pub const fn new(key: Key) -> Self {
        Self(key)
    }

    /// The bytes, for whoever has to store it.
    pub const fn secret(&self) -> &[u8; 32] {
        self.0.secret()
    }

    /// The next chain key.
    #[must_use]
    pub fn next(&self) -> Self {
        Self(self.0.derive(b"smolfed ratchet "))
    }

    /// What a device that hides its number calls itself while this is its chain key.
    pub fn pseudonym(&self) -> Pseudonym {
        self.0.derive(b"smolfed number  ").truncated()
    }

    /// The key of the tags of its Hello.
    pub fn greeting(&self) -> GreetingKey {
        GreetingKey(self.0.derive(b"smolfed greeting"))
    }

    /// The pre-shared key of this device's handshakes while this is its chain key.
    #[cfg(feature = "x25519")]
    pub fn handshake(&self, device: u32) -> HandshakeKey {
        let label = joined(b"smolfed psk ", &device.to_le_bytes());
        HandshakeKey(self.0.derive(&label))
    }

    /// The keys of one session between this device and the coordinator.
    pub fn session(&self, device: u32, device_nonce: &Nonce, nonce: &Nonce) -> SessionKeys {
        let label = joined(b"smolfed sess", &device.to_le_bytes());
        SessionKeys(self.0.cascade(&[&label, device_nonce, nonce]))
    }
}

/// The fingerprint of a key: it tells that a device was provisioned again, and nothing of the key.
pub fn key_fingerprint(key: &Key) -> Fingerprint {
    key.derive(b"smolfed key     ").truncated()
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
