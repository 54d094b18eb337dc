//! The words of a random stream, with sixteen parallel blocks of ChaCha20. They equal those of
//! [`Stream`](smolfed_core::stream::Stream), but take a fraction of the time with wide vectors.

use pulp::{Arch, Simd, WithSimd};
use rand_core::{Infallible, TryCryptoRng, TryRng, utils};
use smolfed_core::stream::{Root, StreamId};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Words per block.
const BLOCK: usize = 16;
/// Number of parallel blocks: the words of a 512-bit vector.
const LANES: usize = 16;
/// Number of parallel words.
const WORDS: usize = BLOCK * LANES;
/// Index of the block counter in the state.
const COUNTER: usize = 12;

/// One word of each block.
type Lanes = [u32; LANES];

/// A named stream from its start. Drop overwrites key and words.
pub struct Words {
    /// State of the next block.
    state: Zeroizing<[u32; BLOCK]>,
    /// The most recent blocks.
    made: [u32; WORDS],
    /// Number of their words already taken.
    taken: usize,
}

impl Words {
    /// Creates the stream with this name under `root`.
    #[must_use]
    pub fn new(root: &Root, id: StreamId) -> Self {
        Self::with(root.state(id))
    }

    /// Creates the key stream from this state of ChaCha20.
    #[must_use]
    pub fn of_state(state: [u32; BLOCK]) -> Self {
        Self::with(Zeroizing::new(state))
    }

    const fn with(state: Zeroizing<[u32; BLOCK]>) -> Self {
        Self {
            state,
            made: [0; WORDS],
            taken: WORDS,
        }
    }

    /// Generates the next blocks.
    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        let mut lanes = Zeroizing::new([[0; LANES]; BLOCK]);
        Arch::new().dispatch(Blocks {
            state: &self.state,
            lanes: &mut lanes,
        });
        let (blocks, _) = self.made.as_chunks_mut::<BLOCK>();
        for (lane, block) in blocks.iter_mut().enumerate() {
            for (word, lanes) in block.iter_mut().zip(lanes.iter()) {
                *word = lanes[lane];
            }
        }
        self.state[COUNTER] = self.state[COUNTER].wrapping_add(LANES as u32);
        self.taken = 0;
    }
}

impl TryRng for Words {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        if self.taken == WORDS {
            self.refill();
        }
        let word = self.made[self.taken % WORDS];
        self.taken += 1;
        Ok(word)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        utils::next_u64_via_u32(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        utils::fill_bytes_via_next_word(bytes, || self.try_next_u32())
    }
}

impl TryCryptoRng for Words {}

impl Drop for Words {
    fn drop(&mut self) {
        self.made.zeroize();
    }
}

impl ZeroizeOnDrop for Words {}

impl core::fmt::Debug for Words {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Words(..)")
    }
}

/// Section 2.1, on four words of the state. It is a macro, since constant indices stay in
/// registers.
macro_rules! quarter_round {
    ($simd:ident, $v:ident: $a:literal $b:literal $c:literal $d:literal) => {
        step($simd, &mut $v, [$a, $b, $d], 16);
        step($simd, &mut $v, [$c, $d, $b], 12);
        step($simd, &mut $v, [$a, $b, $d], 8);
        step($simd, &mut $v, [$c, $d, $b], 7);
    };
}

/// RFC 8439, section 2.3, for blocks that differ in their counter.
struct Blocks<'a> {
    state: &'a [u32; BLOCK],
    /// Each word of all blocks.
    lanes: &'a mut [Lanes; BLOCK],
}

impl WithSimd for Blocks<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for first in (0..LANES).step_by(S::U32_LANES) {
            let number = |lane: usize| self.state[COUNTER].wrapping_add(lane as u32);
            let numbers: Lanes = core::array::from_fn(|lane| number(first + lane));
            let mut start = self.state.map(|word| simd.splat_u32s(word));
            start[COUNTER] = simd.partial_load_u32s(&numbers);
            let mut v = start;
            for _ in 0..10 {
                quarter_round!(simd, v: 0 4 8 12);
                quarter_round!(simd, v: 1 5 9 13);
                quarter_round!(simd, v: 2 6 10 14);
                quarter_round!(simd, v: 3 7 11 15);
                quarter_round!(simd, v: 0 5 10 15);
                quarter_round!(simd, v: 1 6 11 12);
                quarter_round!(simd, v: 2 7 8 13);
                quarter_round!(simd, v: 3 4 9 14);
            }
            for ((lanes, word), start) in self.lanes.iter_mut().zip(v).zip(start) {
                simd.partial_store_u32s(&mut lanes[first..], simd.add_u32s(word, start));
            }
        }
    }
}

/// Adds the second word to the first, then xors the first into the third and rotates it by `bits`.
#[inline(always)]
fn step<S: Simd>(simd: S, v: &mut [S::u32s; BLOCK], [a, b, d]: [usize; 3], bits: u32) {
    v[a] = simd.add_u32s(v[a], v[b]);
    let mixed = simd.xor_u32s(v[d], v[a]);
    let left = simd.wrapping_dyn_shl_u32s(mixed, simd.splat_u32s(bits));
    let right = simd.wrapping_dyn_shr_u32s(mixed, simd.splat_u32s(u32::BITS - bits));
    v[d] = simd.or_u32s(left, right);
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;
    use smolfed_core::stream::Purpose;

    use super::*;

    /// Compares streams that differ in each part of the name, across several refills.
    #[test]
    fn words_are_the_streams() {
        for (purpose, round, device) in [
            (Purpose::ServerNoise, 0, 0),
            (Purpose::DeviceNoise, 7, u32::MAX),
            (Purpose::ServerScoreNoise, u32::MAX, 1 << 31),
        ] {
            let id = StreamId {
                purpose,
                round,
                device,
            };
            for root in [Root::from_seed(3), Root::from_secret([0xab; 32])] {
                let (mut words, mut stream) = (Words::new(&root, id), root.stream(id));
                for _ in 0..5 * WORDS + 3 {
                    assert_eq!(words.next_u32(), stream.next_u32());
                }
                assert_eq!(words.next_u64(), stream.next_u64());
                let (mut found, mut expected) = ([0; 21], [0; 21]);
                words.fill_bytes(&mut found);
                stream.fill_bytes(&mut expected);
                assert_eq!(found, expected);
            }
        }
    }

    /// With single words, with eight if available, and with the machine's widest vectors.
    #[test]
    fn vectors_of_any_width_make_the_same_blocks() {
        fn blocks(run: impl FnOnce(Blocks<'_>)) -> [Lanes; BLOCK] {
            let mut state = core::array::from_fn(|word| 0x9e37_79b9_u32.wrapping_mul(word as u32));
            // The block counter wraps within the sixteen.
            state[COUNTER] = u32::MAX - 5;
            let mut lanes = [[0; LANES]; BLOCK];
            run(Blocks {
                state: &state,
                lanes: &mut lanes,
            });
            lanes
        }
        let widest = blocks(|all| Arch::new().dispatch(all));
        assert_eq!(
            blocks(|all| Simd::vectorize(pulp::Scalar::new(), all)),
            widest
        );
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            assert_eq!(blocks(|all| Simd::vectorize(simd, all)), widest);
        }
    }

    #[test]
    fn nothing_is_printed() {
        let id = StreamId {
            purpose: Purpose::ServerNoise,
            round: 0,
            device: 0,
        };
        let words = Words::new(&Root::from_secret([7; 32]), id);
        assert_eq!(format!("{words:?}"), "Words(..)");
    }
}
