//! Masks (secure aggregation): values that a device adds to its update, so that the coordinator
//! alone only sees uniform noise.
//!
//! A device and helper j share a key K_j. In round t, from a ledger with fingerprint f, entry i of
//! the update q is sent as `y_i = q_i + Σ_j u_ij mod 2^w`. u_ij is bits i·w to (i+1)·w − 1 of the
//! key stream of ChaCha20 under a key derived from (K_j, t, f). A helper knows the masks but does
//! not see updates. The coordinator sees y but does not know the masks. `docs/masked.md` has the
//! protocol.
//!
//! ```text
//! root of the device ── "smolfed mask" | device u32 ── "smolfed help" | j u32 ── K_j
//!     K_j ── "rnd " | t u32 | f ── key of the round
//! ```
//!
//! All arrows are HChaCha20, a cascade as in [`wire::keys`](crate::wire::keys), except the first
//! one of a device with its root in a secure element, which is HKDF-SHA-256. The key of the round
//! is a ChaCha20 key. Nonce 0 generates the masks, and nonce 1 the key of the tag, as RFC 8439,
//! section 2.6, does for a message.
//!
//! **A mask is used once.** Two updates under one mask reveal their difference. So the name of a
//! mask contains the round, for which the device's ledger admits one update, and the ledger, so
//! that a device with erased flash has other masks.
//!
//! **A tag** is Poly1305 of the request to the device, under a one-time key. It proves to the
//! helper that all devices of a round got the same request and the same model, and that all devices
//! on the list took part.

use core::num::NonZeroU8;

use rand_core::Rng;

use crate::{
    crypto::{
        Fingerprint, Key,
        aead::{Nonce, TAG_BYTES},
        chacha20::{Generator, generator, half_block, initial_state},
        joined,
        kdf::Kdf,
        poly1305::Poly1305,
    },
    quantize::Grid,
    stream::Root,
};

#[cfg(test)]
mod tests;

/// Maximum number of helpers of a federation.
pub const MAX_HELPERS: u8 = 8;

/// Maximum bits of a masked entry, as in [`pack`](crate::pack).
pub const MAX_WIDTH: u32 = 57;

/// The nonces of the key stream of the masks, and of the key of the tag.
const MASKS: Nonce = [0; 3];
const TAG: Nonce = [1, 0, 0];

/// A tag of the request to a device.
pub type Tag = [u8; TAG_BYTES];

/// The root of the keys of all masks of a device. Anyone who has it can compute every mask of the
/// device.
#[derive(Clone, Debug)]
pub struct MaskRoot(Key);

impl MaskRoot {
    /// Derives the root of masks from a device's number and its root as provisioned, independent of
    /// the ledger of the [`Identity`](crate::identity::Identity), because helpers know nothing
    /// about ledgers when they get their keys.
    pub fn new(root: &Root, device: u32) -> Self {
        Self::with_kdf(root, device, Kdf::HChaCha20)
    }

    /// Like [`Self::new`], for a device that derives keys from its root with `kdf`.
    pub fn with_kdf(root: &Root, device: u32, kdf: Kdf) -> Self {
        let root = Key::from_secret(*root.secret());
        Self(kdf.cascade(&root, &[&Self::input(device)]))
    }

    /// Returns the input of the derivation from the root of the device with this number.
    pub(crate) const fn input(device: u32) -> [u8; 16] {
        joined(b"smolfed mask", &device.to_le_bytes())
    }

    /// Creates the root from a key derived with [`Self::input`].
    #[cfg(feature = "element")]
    pub(crate) const fn from_derived(key: Key) -> Self {
        Self(key)
    }

    /// Returns the key shared with the helper of this number, from 0.
    pub fn helper(&self, helper: u8) -> MaskKey {
        let number = u32::from(helper).to_le_bytes();
        MaskKey(self.0.derive(&joined(b"smolfed help", &number)))
    }
}

/// K_j: the key shared between a device and one helper. Nobody else may know it, in particular not
/// the coordinator.
#[derive(Clone, Debug)]
pub struct MaskKey(Key);

impl MaskKey {
    /// Creates a key from these bytes.
    pub const fn from_secret(secret: [u8; 32]) -> Self {
        Self(Key::from_secret(secret))
    }

    /// Returns the bytes, for the helper's key file.
    pub const fn secret(&self) -> &[u8; 32] {
        self.0.secret()
    }

    /// Returns the key of one round, for a device with this fingerprint of its ledger.
    pub fn round(&self, round: u32, ledger: &Fingerprint) -> RoundKey {
        let [a, b, c, d] = round.to_le_bytes();
        let label = [b'r', b'n', b'd', b' ', a, b, c, d];
        RoundKey(self.0.derive(&joined(&label, ledger)))
    }
}

/// The key that masks and tags one update, for one helper.
#[derive(Clone, Debug)]
pub struct RoundKey(Key);

impl RoundKey {
    /// Returns the masks of the round, in the order of the entries, of `width` bits each, clamped
    /// to 1 to [`MAX_WIDTH`].
    pub fn masks(&self, width: u32) -> Masks {
        let width = width.clamp(1, MAX_WIDTH);
        Masks {
            words: generator(self.0.secret(), MASKS),
            waiting: Waiting { piece: 0, bits: 0 },
            low: width.min(32),
            high: width - width.min(32),
        }
    }

    /// Returns the state of ChaCha20 before the first block of the masks, for implementations that
    /// compute many blocks at once.
    pub const fn state(&self) -> [u32; 16] {
        initial_state(self.0.secret(), MASKS)
    }

    /// Returns the tag of the request to a device: `terms`, the rest of the invitation, and the
    /// model.
    ///
    /// It is Poly1305 of invitation and model, each padded with zeros to a whole block as in RFC
    /// 8439, section 2.8, and a block of the terms and both lengths. So no two requests have the
    /// same bytes.
    pub fn tag(&self, terms: &Terms, invitation: &[u8], model: &[f32]) -> Tag {
        let mut words = generator(self.0.secret(), TAG);
        let mut state = Poly1305::new(half_block(&mut words));
        state.padded(invitation);
        let (blocks, rest) = model.as_chunks();
        for block in blocks {
            state.words(block.map(f32::to_bits), 1);
        }
        if !rest.is_empty() {
            let mut block = [0; 4];
            for (word, value) in block.iter_mut().zip(rest) {
                *word = value.to_bits();
            }
            state.words(block, 1);
        }
        // An invitation has at most 255 bytes, and a model fewer than 2³² parameters.
        let [invitation, model] = [invitation.len(), model.len()].map(|length| length as u32);
        state.words([terms.word(), invitation, model, 0], 1);
        state.finish()
    }

    /// Returns the one-time key of [`Self::tag`], for checking the tags of many devices with
    /// another implementation of Poly1305.
    pub fn tag_key(&self) -> [u8; 32] {
        let mut words = generator(self.0.secret(), TAG);
        let mut key = [0; 32];
        for (bytes, word) in key.as_chunks_mut().0.iter_mut().zip(half_block(&mut words)) {
            *bytes = word.to_le_bytes();
        }
        key
    }
}

/// Masking of the updates of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masking {
    helpers: NonZeroU8,
    width: u8,
}

impl Masking {
    /// Creates masking by `helpers` helpers, 1 to [`MAX_HELPERS`], modulo 2^`width`, 1 to
    /// [`MAX_WIDTH`] bits. `None` outside these ranges.
    pub const fn new(helpers: u8, width: u8) -> Option<Self> {
        match NonZeroU8::new(helpers) {
            Some(helpers)
                if helpers.get() <= MAX_HELPERS && 1 <= width && width as u32 <= MAX_WIDTH =>
            {
                Some(Self { helpers, width })
            }
            _ => None,
        }
    }

    /// Returns the number of helpers.
    pub const fn helpers(self) -> u8 {
        self.helpers.get()
    }

    /// Bits of an entry.
    pub const fn width(self) -> u8 {
        self.width
    }

    /// Returns the terms of a round with updates on this grid.
    pub const fn terms(self, grid: &Grid) -> Terms {
        Terms {
            // At most 24.
            grid_bits: grid.bits() as u8,
            width: self.width,
            helpers: self.helpers(),
        }
    }
}

/// The terms of a round that the coordinator tells a helper. Every device's tag covers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// b: an update is clipped to 2^b steps of its grid. Noise of helpers is relative to it.
    pub grid_bits: u8,
    /// w: entries are reduced modulo 2^w.
    pub width: u8,
    /// Returns the number of helpers.
    pub helpers: u8,
}

impl Terms {
    /// Returns the word for the last block of a tag.
    pub const fn word(self) -> u32 {
        u32::from_le_bytes([self.grid_bits, self.width, self.helpers, 0])
    }
}

/// The masks of a device in a round, for one helper: uniform integers of `width` bits.
pub struct Masks {
    words: Generator,
    waiting: Waiting,
    /// Bits of a mask in the lower and the upper 32 bits.
    low: u32,
    high: u32,
}

impl Masks {
    /// Returns the mask of the next entry, below 2^w.
    #[inline]
    pub fn next_mask(&mut self) -> u64 {
        let (mut low, mut high) = ([0], [0]);
        self.add_to(&mut low, &mut high);
        let ([low], [high]) = (low, high);
        u64::from(high) << 32 | u64::from(low)
    }

    /// Adds a mask to each integer, modulo 2⁶⁴. The integers are given by their lower and upper
    /// halves.
    #[inline(never)]
    pub fn add_to(&mut self, low: &mut [u32], high: &mut [u32]) {
        let Waiting { piece, bits } = self.waiting;
        let mut waiting = Waiting { piece, bits };
        for (low, high) in low.iter_mut().zip(high) {
            let carry;
            (*low, carry) = low.overflowing_add(waiting.take(self.low, &mut self.words));
            *high = high.wrapping_add(carry.into());
            // Lowest bits first: both halves are one piece of the key stream.
            if self.high > 0 {
                *high = high.wrapping_add(waiting.take(self.high, &mut self.words));
            }
        }
        self.waiting = waiting;
    }
}

/// Unused drawn bits of the key stream: fewer than 32, and zeros above.
struct Waiting {
    piece: u32,
    bits: u32,
}

impl Waiting {
    /// Takes the next 1 to 32 bits.
    #[inline(always)]
    fn take(&mut self, count: u32, words: &mut Generator) -> u32 {
        let mut piece = self.piece;
        if self.bits < count {
            let word = words.next_u32();
            piece |= word << self.bits;
            // 1 to 32 bits of the word are used.
            self.piece = word >> 1 >> (count - self.bits - 1);
            self.bits += 32 - count;
        } else {
            self.piece >>= count;
            self.bits -= count;
        }
        piece & u32::MAX >> (32 - count)
    }
}

impl core::fmt::Debug for Masks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Masks({} bits)", self.low + self.high)
    }
}
