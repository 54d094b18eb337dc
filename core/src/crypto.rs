//! ChaCha20 and Poly1305 (RFC 8439), the primitives of the random streams, of the keys and of the
//! frames.
//!
//! | module | contents |
//! | --- | --- |
//! | `chacha20` | the block function, the words of a stream, and HChaCha20, which derives keys |
//! | `poly1305` | the one-time authenticator |
//! | [`aead`] | authenticated encryption with associated data |
//! | [`kdf`] | derivation of keys from a long-term secret |
//! | `noise` | with the feature `x25519`: a handshake with forward secrecy |
//!
//! A key has one use: it is a key of ChaCha20 (a stream, or the frames of a session) or of
//! HChaCha20 (for deriving keys), never both. The words of a ChaCha20 block reveal those of
//! HChaCha20 on the same sixteen bytes, because their difference is public.

use zeroize::ZeroizeOnDrop;

use crate::wipe::wipe;

pub mod aead;
pub(crate) mod chacha20;
pub mod kdf;
#[cfg(feature = "x25519")]
pub mod noise;
pub(crate) mod poly1305;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// Eight identifying bytes.
pub type Fingerprint = [u8; 8];

/// A secret key of 32 bytes, overwritten on drop.
#[derive(Clone)]
#[cfg_attr(test, derive(PartialEq))]
pub struct Key([u8; KEY_BYTES]);

impl Key {
    /// Creates a key from these bytes, which must be uniformly random and known only to those who
    /// share it.
    pub const fn from_secret(secret: [u8; KEY_BYTES]) -> Self {
        Self(secret)
    }

    /// Returns the bytes, for the records of a device.
    pub(crate) const fn secret(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Returns the bytes, for filling in place.
    #[cfg(feature = "element")]
    pub(crate) const fn secret_mut(&mut self) -> &mut [u8; KEY_BYTES] {
        &mut self.0
    }

    /// Derives the key for this input: HChaCha20(key; input), a pseudo-random function.
    ///
    /// It reveals nothing about this key, or about the keys for other inputs.
    #[must_use]
    pub fn derive(&self, input: &[u8; 16]) -> Self {
        self.cascade(&[input])
    }

    /// Applies [`Self::derive`] with each input in turn.
    #[inline(never)]
    pub(crate) fn cascade(&self, inputs: &[&[u8; 16]]) -> Self {
        let mut key = self.clone();
        for input in inputs {
            chacha20::hchacha20(&mut key.0, input);
        }
        key
    }

    /// Returns the first bytes, for values that are not keys: a tag, a fingerprint, a pseudonym.
    pub(crate) fn truncated<const N: usize>(&self) -> [u8; N] {
        self.0.first_chunk().copied().unwrap_or([0; N])
    }

    fn wipe(&mut self) {
        wipe(&mut self.0);
    }
}

/// Joins a label and a value of fixed length to an input of [`Key::derive`], without allocation.
pub(crate) const fn joined<const A: usize, const B: usize>(
    label: &[u8; A],
    rest: &[u8; B],
) -> [u8; 16] {
    const { assert!(A + B == 16, "an input has 16 bytes") }
    let mut input = [0; 16];
    let (first, second) = input.split_at_mut(A);
    first.copy_from_slice(label);
    second.copy_from_slice(rest);
    input
}

/// Returns a public hash of public values: HChaCha20, block after block, from a key of zeros.
///
/// It distinguishes values and does not hide them. Finding a collision takes about 2¹²⁸ calls of an
/// ideal permutation, or fewer for a short result.
#[inline(never)]
pub(crate) fn hash(label: &[u8; 16], blocks: impl Iterator<Item = [u8; 16]>) -> [u8; 8] {
    let mut key = [0; KEY_BYTES];
    for block in core::iter::once(*label).chain(blocks) {
        chacha20::hchacha20(&mut key, &block);
    }
    key.first_chunk().copied().unwrap_or_default()
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
        }
        let mut key = Key::from_secret([7; 32]);
        key.wipe();
        assert_eq!(key.secret(), &[0; 32]);
    }
}
