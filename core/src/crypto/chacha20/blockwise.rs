//! ChaCha20 (RFC 8439, section 2.3) one block at a time, for processors without vector registers.
//! It takes a quarter of the memory and less than half of the code of four blocks side by side, for
//! the same words.

use rand_core::{Infallible, TryRng, utils};
use zeroize::ZeroizeOnDrop;

use super::rounds::{BLOCK, rounds};
use crate::wipe::wipe;

/// Index of the block number in the state.
const COUNTER: usize = 12;

/// One stream of words.
#[derive(Clone)]
pub(crate) struct ChaCha20 {
    /// Constants, key, number of the next block, nonce.
    state: [u32; BLOCK],
    block: [u32; BLOCK],
    /// Number of words taken from the block.
    taken: usize,
}

impl ChaCha20 {
    /// Creates the stream of this state, from its start.
    #[inline(always)]
    pub(crate) const fn new(state: [u32; BLOCK]) -> Self {
        Self {
            state,
            block: [0; BLOCK],
            taken: BLOCK,
        }
    }

    /// Returns the number of words taken or skipped.
    #[inline(always)]
    pub(crate) fn position(&self) -> u64 {
        // The block number includes the whole current block.
        let place = u64::from(self.state[COUNTER]) * BLOCK as u64 + self.taken as u64;
        place.saturating_sub(BLOCK as u64)
    }

    /// Skips that many words.
    pub(crate) fn skip(&mut self, words: u64) {
        let place = self.position() + words;
        // The number of a block has 32 bits.
        self.state[COUNTER] = (place / BLOCK as u64) as u32;
        self.taken = BLOCK;
        let within = (place % BLOCK as u64) as usize;
        if within > 0 {
            self.refill();
            self.taken = within;
        }
    }

    /// Returns the first half of the next block, and skips the other one.
    #[inline(always)]
    pub(crate) fn half_block(&mut self) -> [u32; 8] {
        self.refill();
        self.taken = BLOCK;
        self.block.first_chunk().copied().unwrap_or_default()
    }

    #[inline(never)]
    fn wipe(&mut self) {
        wipe(&mut self.state);
        wipe(&mut self.block);
    }

    #[inline(never)]
    fn refill(&mut self) {
        self.block = self.state;
        rounds(&mut self.block);
        for (word, start) in self.block.iter_mut().zip(&self.state) {
            *word = word.wrapping_add(*start);
        }
        // No round draws 2³² blocks.
        self.state[COUNTER] = self.state[COUNTER].wrapping_add(1);
        self.taken = 0;
    }
}

impl Drop for ChaCha20 {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl ZeroizeOnDrop for ChaCha20 {}

impl TryRng for ChaCha20 {
    type Error = Infallible;

    #[inline(always)]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        if self.taken >= BLOCK {
            self.refill();
        }
        let word = self.block.get(self.taken).copied().unwrap_or_default();
        self.taken += 1;
        Ok(word)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        utils::next_u64_via_u32(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for piece in bytes.chunks_mut(4) {
            let word = self.try_next_u32()?.to_le_bytes();
            for (byte, value) in piece.iter_mut().zip(word) {
                *byte = value;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::chacha20::initial_state;

    /// The input of the frames' authenticator, on either generator.
    #[test]
    fn half_a_block_is_the_first_one() {
        use crate::crypto::chacha20::{generator, half_block};
        use rand_core::Rng;
        let mut words = generator(&[7; 32], [1, 2, 3]);
        let mut small = ChaCha20::new(initial_state(&[7; 32], [1, 2, 3]));
        assert_eq!(half_block(&mut words), small.half_block());
        for _ in 0..40 {
            assert_eq!(words.next_u32(), small.next_u32(), "from block 1 on");
        }
    }

    #[test]
    fn a_stream_that_is_dropped_leaves_neither_key_nor_words() {
        let mut stream = ChaCha20::new(initial_state(&[7; 32], [1, 2, 3]));
        let _ = stream.try_next_u32();
        assert!(core::mem::needs_drop::<ChaCha20>());
        stream.wipe();
        assert_eq!((stream.state, stream.block), ([0; BLOCK], [0; BLOCK]));
    }
}
