//! Keys and tags: keyed BLAKE2s (RFC 7693), 32-byte keys, 16-byte tags.
//!
//! Keyed BLAKE2s is a pseudo-random function: a tag of 128 bits is guessed with probability 2^-128,
//! and nothing goes wrong when a nonce comes twice, unlike with Poly1305, where one repetition
//! gives the key away; a microcontroller without a good source of entropy cannot rule that out.
//! It works on 32-bit words and needs one pass, where HMAC-SHA256 hashes two blocks more a frame.
//! The tag's length is a parameter of the function, so it is not a piece of a longer hash.
//!
//! A device and its coordinator share a **device key** for life. Every session has a key of its
//! own, made of the device key and a nonce of each side, so that nothing recorded in one session is
//! worth anything in another: `session key = BLAKE2s-256(device key; "smolfed session" ‖ device ‖
//! its nonce ‖ the other nonce)`.

use blake2::{
    Blake2sVarCore,
    digest::block_api::{Buffer, UpdateCore, VariableOutputCore},
};
use ctutils::CtEq;
use zeroize::ZeroizeOnDrop;

use super::Direction;
use crate::wipe::wipe;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 16;

/// What one side puts into the key of a session: random, or a counter that never goes back.
pub type Nonce = [u8; NONCE_BYTES];

/// Separates the key of a session from tags under the device key, whose first byte is 1 or 2.
const SESSION_LABEL: &[u8] = b"smolfed session";

/// Separates fingerprints from both.
const FINGERPRINT_LABEL: &[u8] = b"smolfed fingerprint";

/// Eight public bytes that tell one thing from another to those who know a key.
pub type Fingerprint = [u8; 8];

/// A key under which frames are tagged: of a device, or of one session with it. It is overwritten
/// when it is dropped, and so is the state of a hash under it.
#[derive(Clone)]
#[cfg_attr(test, derive(PartialEq))]
pub struct Key([u8; 32]);

impl Key {
    /// A device's key: 32 secret bytes that this device and the coordinator know, and nobody else.
    ///
    /// It is no root of random streams: those bytes must not leave the device.
    pub const fn from_secret(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    fn wipe(&mut self) {
        wipe(&mut self.0);
    }

    /// The bytes, for the device's provisioning record.
    pub(crate) const fn secret(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key of one session between this device key's owner and the coordinator.
    pub fn session(&self, device: u32, device_nonce: &Nonce, coordinator_nonce: &Nonce) -> Self {
        let device = device.to_le_bytes();
        let parts = [SESSION_LABEL, &device, device_nonce, coordinator_nonce];
        Self(self.hash(32, &parts))
    }

    /// The fingerprint of something under this key: BLAKE2s-64(key; "smolfed fingerprint" ‖ parts).
    ///
    /// It says nothing of the parts to those who do not know the key. Parts of one kind have the
    /// same lengths.
    pub fn fingerprint(&self, parts: [&[u8]; 2]) -> Fingerprint {
        let [first, second] = parts;
        let hash = self.hash(8, &[FINGERPRINT_LABEL, first, second]);
        hash.first_chunk().copied().unwrap_or_default()
    }

    /// The fingerprint of a device's ledger, which a coordinator remembers.
    pub fn ledger_fingerprint(&self, device: u32, nonce: &[u8; 16]) -> Fingerprint {
        self.fingerprint([&device.to_le_bytes(), nonce])
    }

    /// A pseudo-random function of `input` under this key, another one for each label.
    pub(crate) fn derive(&self, label: &[u8], input: &[u8]) -> [u8; 32] {
        self.hash(32, &[label, input])
    }

    /// The tag of a frame's header and body.
    pub(super) fn tag(&self, direction: Direction, bytes: &[u8]) -> [u8; TAG_BYTES] {
        let hash = self.tagging(direction, bytes);
        hash.first_chunk().copied().unwrap_or_default()
    }

    /// A hash that begins with the tag.
    #[inline(always)]
    fn tagging(&self, direction: Direction, bytes: &[u8]) -> [u8; 32] {
        self.hash(TAG_BYTES, &[&[direction as u8], bytes])
    }

    /// Whether `tag` is the tag of these bytes; takes the same time wherever they differ.
    pub(super) fn verify(&self, direction: Direction, bytes: &[u8], tag: &[u8; TAG_BYTES]) -> bool {
        let hash = self.tagging(direction, bytes);
        hash.first_chunk()
            .is_some_and(|right| tag.ct_eq(right).into())
    }

    /// Keyed BLAKE2s of the parts in a row: `length` bytes, and zeros.
    ///
    /// Made of RustCrypto's core, in which the length is a number and no type: once in the flash
    /// for tags and for keys. The key and zeros are the first block (RFC 7693, section 3.3).
    #[inline(never)]
    fn hash(&self, length: usize, parts: &[&[u8]]) -> [u8; 32] {
        let mut core = Blake2sVarCore::new_with_params(&[], &[], self.0.len(), length);
        let mut buffer = Buffer::<Blake2sVarCore>::default();
        let key: [&[u8]; 2] = [&self.0, &[0; 32]];
        for part in key.iter().chain(parts) {
            buffer.digest_blocks(part, |blocks| core.update_blocks(blocks));
        }
        let mut hash = [0; 32];
        core.finalize_variable_core(&mut buffer, (&mut hash).into());
        hash
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl ZeroizeOnDrop for Key {}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_dropped_leave_nothing() {
        const fn overwrites<T: ZeroizeOnDrop>() -> bool {
            core::mem::needs_drop::<T>()
        }
        const {
            assert!(overwrites::<Key>());
            // The state of a hash begins with the key, and its buffer is the key.
            assert!(overwrites::<Blake2sVarCore>() && overwrites::<Buffer<Blake2sVarCore>>());
        }
        let mut key = Key::from_secret([7; 32]);
        key.wipe();
        assert_eq!(key.secret(), &[0; 32]);
    }
}
