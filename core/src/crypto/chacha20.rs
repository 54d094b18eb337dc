//! ChaCha20 (RFC 8439, section 2.3), and HChaCha20 (draft-irtf-cfrg-xchacha-03, section 2.2).
//!
//! A generator is a stream of words under a key and a nonce, from block 0 on. With vector registers
//! it computes four blocks side by side, otherwise one, with the same words. The rounds in this
//! module serve HChaCha20 on every target, and the streams on small ones.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use chacha20::ChaCha20Rng;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use rand_core::SeedableRng;

use crate::wipe::wipe;

mod rounds;

use rounds::{BLOCK, rounds};

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) mod blockwise;

/// Generator of four blocks side by side, for targets with vector registers.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) type Generator = ChaCha20Rng;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) type Generator = blockwise::ChaCha20;

/// Returns the words under this key and nonce, from block 0 on: 2³² blocks.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn generator(key: &[u8; 32], [first, second, third]: [u32; 3]) -> Generator {
    let mut rng = Generator::from_seed(*key);
    // RFC 8439 puts the nonce in state words 13, 14, 15. Here word 13 is the upper half of the
    // 64-bit block counter, and words 14 and 15 are the stream number. A block has 16 words.
    rng.set_stream(u64::from(second) | (u64::from(third) << 32));
    rng.set_word_pos(u128::from(first) << (32 + 4));
    rng
}

/// Returns the words under this key and nonce, from block 0 on: 2³² blocks. A separate function
/// that fills the caller's memory, because inlining would put it in the flash three times.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(never)]
pub(crate) fn generator(key: &[u8; 32], nonce: [u32; 3]) -> Generator {
    Generator::new(initial_state(key, nonce))
}

/// Returns the first eight words of a stream, and skips the other half of its first block.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn half_block(words: &mut Generator) -> [u32; 8] {
    use rand_core::Rng;
    let half = core::array::from_fn(|_| words.next_u32());
    words.set_word_pos(words.get_word_pos() + 8);
    half
}

/// Returns the first eight words of a stream, and skips the other half of its first block.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn half_block(words: &mut Generator) -> [u32; 8] {
    words.half_block()
}

/// Returns constants, key, number of the first block, nonce (RFC 8439, section 2.3). Inlined, and
/// built in place: a state filled step by step would be on the stack twice.
#[inline(always)]
pub(crate) const fn initial_state(key: &[u8; 32], [n0, n1, n2]: [u32; 3]) -> [u32; BLOCK] {
    state(key, [0, n0, n1, n2])
}

#[inline(always)]
const fn state(key: &[u8; 32], [i0, i1, i2, i3]: [u32; 4]) -> [u32; BLOCK] {
    /// "expand 32-byte k"
    const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
    let [c0, c1, c2, c3] = CONSTANTS;
    let [k0, k1, k2, k3, k4, k5, k6, k7] = words(key);
    [
        c0, c1, c2, c3, k0, k1, k2, k3, k4, k5, k6, k7, i0, i1, i2, i3,
    ]
}

/// Reads little-endian words.
#[inline(always)]
const fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let (pieces, _) = bytes.as_chunks();
    let mut words = [0; N];
    let mut i = 0;
    while i < N && i < pieces.len() {
        words[i] = u32::from_le_bytes(pieces[i]);
        i += 1;
    }
    words
}

/// Computes HChaCha20 of a key and 16 bytes, and replaces the key by the 32 bytes of the result.
///
/// It runs the rounds without the final addition, and keeps the words with a public start. It is a
/// pseudo-random function if ChaCha20 is (Bernstein 2011, "Extending the Salsa20 nonce", section 3,
/// the same argument).
#[inline(never)]
pub(crate) fn hchacha20(key: &mut [u8; 32], input: &[u8; 16]) {
    let mut x = state(key, words(input));
    rounds(&mut x);
    let (places, _) = key.as_chunks_mut();
    let [a, b, c, d, .., e, f, g, h] = x;
    for (place, word) in places.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *place = word.to_le_bytes();
    }
    wipe(&mut x);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// draft-irtf-cfrg-xchacha-03, section 2.2.1.
    #[test]
    fn hchacha20_is_that_of_the_draft() {
        let mut key = core::array::from_fn(|i| i as u8);
        let mut input = [0; 16];
        input[3] = 0x09;
        input[7] = 0x4a;
        input[12..].copy_from_slice(&[0x31, 0x41, 0x59, 0x27]);
        hchacha20(&mut key, &input);
        let text: [u8; 32] = [
            0x82, 0x41, 0x3b, 0x42, 0x27, 0xb2, 0x7b, 0xfe, 0xd3, 0x0e, 0x42, 0x50, 0x8a, 0x87,
            0x7d, 0x73, 0xa0, 0xf9, 0xe4, 0xd5, 0x8a, 0x74, 0xa8, 0x53, 0xc1, 0x2e, 0xc4, 0x13,
            0x26, 0xd3, 0xec, 0xdc,
        ];
        assert_eq!(key, text);
    }
}
