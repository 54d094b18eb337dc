//! ChaCha20 and Poly1305 (RFC 8439), and what is made of them: the primitives of the random
//! streams, of the keys and of the frames.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `chacha20` | the block function, the words of a stream, and HChaCha20, which derives keys |
//! | `poly1305` | the one-time authenticator |
//! | [`aead`] | authenticated encryption with associated data |
//! | [`kdf`] | how keys derive from a secret that lasts |
//! | `noise` | with the feature `x25519`: a handshake whose keys nobody finds later |
//!
//! A key has one use: it is a key of ChaCha20 (a stream, or the frames of a session), or one of
//! HChaCha20 (keys that are derived from it), never both. The words of a block of ChaCha20 give
//! away those of HChaCha20 on the same sixteen bytes, since what they differ in is public.

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

/// Eight bytes that tell one thing from another.
pub type Fingerprint = [u8; 8];

/// A secret key of 32 bytes. It is overwritten when it is dropped.
#[derive(Clone)]
#[cfg_attr(test, derive(PartialEq))]
pub struct Key([u8; KEY_BYTES]);

impl Key {
    /// A key of these bytes: uniformly random, and known to nobody else than those who share it.
    pub const fn from_secret(secret: [u8; KEY_BYTES]) -> Self {
        Self(secret)
    }

    /// The bytes, for the records that a device keeps.
    pub(crate) const fn secret(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// The bytes, for whoever fills them in place.
    #[cfg(feature = "element")]
    pub(crate) const fn secret_mut(&mut self) -> &mut [u8; KEY_BYTES] {
        &mut self.0
    }

    /// The key that belongs to this input: HChaCha20(key; input), a pseudo-random function.
    ///
    /// Nobody learns from it anything about this key, or about the keys of other inputs.
    #[must_use]
    pub fn derive(&self, input: &[u8; 16]) -> Self {
        self.cascade(&[input])
    }

    /// [`Self::derive`], and from what it gives with the next input, and so on.
    #[inline(never)]
    pub(crate) fn cascade(&self, inputs: &[&[u8; 16]]) -> Self {
        let mut key = self.clone();
        for input in inputs {
            chacha20::hchacha20(&mut key.0, input);
        }
        key
    }

    /// The first bytes, for those that are no key: a tag, a fingerprint, a pseudonym.
    pub(crate) fn truncated<const N: usize>(&self) -> [u8; N] {
        self.0.first_chunk().copied().unwrap_or([0; N])
    }

    fn wipe(&mut self) {
        wipe(&mut self.0);
    }
}

/// An input of [`Key::derive`] of a label and something of fixed length, without allocation.
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

/// A public function of public values: HChaCha20 one block after the other, from a key of zeros.
///
/// It tells values apart, and hides none. Whoever looks for two values with the same hash finds
/// them no faster than 2¹²⁸ calls of an ideal permutation allow, or than the bytes that are kept
/// do.
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
