//! Named random streams and their roots (secrets or seeds): counter-based, so that threads,
//! scheduling and machine cannot matter.
//!
//! A stream is ChaCha20 as in RFC 8439. The 256-bit key is the root secret of a run or of a
//! device's ledger ([`Identity`]), and the 96-bit nonce is the stream's *name*, three little-endian
//! 32-bit words: purpose, round, device. The block counter starts at 0. Two names under one root
//! never share a key stream, and a stream may be drawn in any order, on any machine, without the
//! others. `tests/vectors/streams.json` has test vectors, which depend on the numbers of
//! [`Purpose`].
//!
//! A device takes [`Root::from_secret`] with 32 bytes of entropy from hardware or from the
//! operating system, and gets its streams from a [`Participation`], each once. Arbitrary names,
//! copies of streams, and roots from a 64-bit seed are for simulators, coordinators and tests, and
//! need the feature `hazmat`. Anyone who knows a seed can subtract the noise.
//!
//! [`Participation`]: crate::participation::Participation
//! [`Identity`]: crate::identity::Identity

use core::num::NonZeroU32;

use rand_core::Rng;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use rand_core::SeedableRng;
use zeroize::ZeroizeOnDrop;

use crate::{
    crypto::chacha20::{self, Generator},
    wipe::wipe,
};

/// Purpose of a stream. Part of every recorded result: add at the end, never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// Choice of the devices that take part in a round (server).
    CohortSampling = 1,
    /// Order of local samples in each epoch (device).
    BatchShuffle = 2,
    /// Noise on the sum of a round's updates (server, central trust).
    ServerNoise = 3,
    /// Noise that a device adds to its own update (local trust).
    DeviceNoise = 4,
    /// Initial parameters of a model.
    Initialisation = 5,
    /// Dealing samples to simulated devices, and splits into train, validation and test.
    Partition = 6,
    /// Synthetic data.
    Synthesis = 7,
    /// Nonces of sessions (device).
    SessionNonces = 8,
    /// Views of samples for contrastive learning (device).
    Augmentation = 9,
    /// Noise on a device's correlation matrix (device).
    CorrelationNoise = 10,
    /// Choice of the devices that send a correlation matrix in a round (server).
    SenderSampling = 11,
    /// Noise on the sum of the devices' moments of their features (server, central trust).
    ServerMomentNoise = 12,
    /// Noise that a device adds to the moments of its features (local trust).
    DeviceMomentNoise = 13,
    /// Noise on the sum of the devices' scores of a model (server).
    ServerScoreNoise = 14,
    /// Number, settings and seeds of the trials of a private selection (the party that runs them).
    Trials = 15,
    /// Noise that a device adds to its bit of adaptive clipping (local trust).
    DeviceBitNoise = 16,
    /// Seeds of the runs of a private selection, each named by the seed of its trial (the party
    /// that runs them).
    TrialSeed = 17,
    /// Noise on the answer of a helper in a round (distributed trust, each helper under a separate
    /// root).
    HelperNoise = 18,
    /// Roots of the parties of a simulation with masks, which replace the parties' own roots:
    /// device 0 names the root of the devices, j + 1 the root of helper j.
    PartyRoots = 19,
    /// Noise on the sum of the devices' answers to a question (server, central trust). The number
    /// of the question names the stream, and is not the number of a round.
    ServerAnswerNoise = 20,
    /// Seeds of the noise of questions without training, each named by a checksum of its
    /// configuration (the party that asks).
    AnswerSeed = 21,
}

/// Name of one stream under a [`Root`]. Use 0 for a field that has no meaning for the purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId {
    /// Purpose of the stream.
    pub purpose: Purpose,
    /// The communication round.
    pub round: u32,
    /// The device.
    pub device: u32,
}

/// Root secret of a run or a device: the ChaCha20 key of all its streams. It is overwritten on
/// drop.
#[derive(Clone)]
pub struct Root([u8; 32]);

/// Bytes 8..32 of the key of a seeded root, so that no seed collides with a plausible secret.
const SEED_DOMAIN: [u8; 24] = *b"smolfed simulation seed ";

impl Root {
    /// Creates a root for a deployment from 32 bytes that only this device or server knows.
    pub const fn from_secret(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Returns whether the root was made from a seed.
    pub(crate) fn is_seeded(&self) -> bool {
        self.0.ends_with(&SEED_DOMAIN)
    }

    fn wipe(&mut self) {
        wipe(&mut self.0);
    }

    /// Returns the bytes, for the device's provisioning record.
    pub(crate) const fn secret(&self) -> &[u8; 32] {
        &self.0
    }

    /// Opens the stream with this name at its start.
    ///
    pub(crate) fn open(&self, id: StreamId) -> Stream {
        let name = [id.purpose as u32, id.round, id.device];
        Stream(chacha20::generator(&self.0, name))
    }
}

/// Functions for simulators, coordinators and tests only.
#[cfg(any(test, feature = "hazmat"))]
impl Root {
    /// Creates a root for simulation and tests: the seed, little-endian, then a fixed text of 24
    /// bytes.
    ///
    /// The result is reproducible and therefore **not private**: anyone who knows the seed knows
    /// the noise. Needs the feature `hazmat`.
    pub const fn from_seed(seed: u64) -> Self {
        let mut key = [0; 32];
        let seed = seed.to_le_bytes();
        let mut i = 0;
        while i < 32 {
            key[i] = if i < 8 { seed[i] } else { SEED_DOMAIN[i - 8] };
            i += 1;
        }
        Self(key)
    }

    /// Opens the stream with this name at its start, any number of times. Needs the feature
    /// `hazmat`. A device gets its streams from a
    /// [`Participation`](crate::participation::Participation).
    ///
    /// A stream is good for 2³² blocks of 64 bytes (256 GiB), far more than a round can draw.
    pub fn stream(&self, id: StreamId) -> Stream {
        self.open(id)
    }

    /// Returns the state of the first block of the stream with this name, RFC 8439, section 2.3,
    /// for hosts that compute several blocks at once. Needs the feature `hazmat`.
    ///
    /// It contains the secret, and with it every stream of this root.
    pub fn state(&self, id: StreamId) -> zeroize::Zeroizing<[u32; 16]> {
        zeroize::Zeroizing::new(chacha20::initial_state(
            &self.0,
            [id.purpose as u32, id.round, id.device],
        ))
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl ZeroizeOnDrop for Root {}

impl core::fmt::Debug for Root {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Root(..)")
    }
}

/// One named stream: a cryptographic generator of uniform words. Its generator overwrites key and
/// words on drop.
pub struct Stream(Generator);

impl Stream {
    /// Returns the same stream at a position `words` 32-bit words later. Positions of a stream must
    /// be far enough apart, and end before its 2³⁶ words do.
    pub(crate) fn at(&self, words: u64) -> Self {
        Self(after(&self.0, words % POSITIONS))
    }

    /// Skips `words` words.
    pub(crate) fn skip(&mut self, words: u64) {
        skip(&mut self.0, words % POSITIONS);
    }

    /// Returns the number of words drawn or skipped.
    pub(crate) fn position(&self) -> u64 {
        position(&self.0) % POSITIONS
    }
}

/// Words of a stream.
const POSITIONS: u64 = 1 << 36;

#[cfg(any(test, feature = "hazmat"))]
impl Clone for Stream {
    fn clone(&self) -> Self {
        Self(after(&self.0, 0))
    }
}

/// Returns a second generator, `words` words after the first. This type has no `Clone`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn after(generator: &Generator, words: u64) -> Generator {
    let mut key = generator.get_seed();
    let mut second = Generator::from_seed(key);
    wipe(&mut key);
    second.set_stream(generator.get_stream());
    second.set_word_pos(generator.get_word_pos() + u128::from(words));
    second
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn skip(generator: &mut Generator, words: u64) {
    generator.set_word_pos(generator.get_word_pos() + u128::from(words));
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn position(generator: &Generator) -> u64 {
    generator.get_word_pos() as u64
}

/// Returns a second generator, `words` words after the first.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn after(generator: &Generator, words: u64) -> Generator {
    let mut second = generator.clone();
    second.skip(words);
    second
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn skip(generator: &mut Generator, words: u64) {
    generator.skip(words);
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn position(generator: &Generator) -> u64 {
    generator.position()
}

impl rand_core::TryRng for Stream {
    type Error = rand_core::Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.0.try_next_u32()
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.0.try_next_u64()
    }

    #[inline]
    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Self::Error> {
        self.0.try_fill_bytes(dst)
    }
}

impl rand_core::TryCryptoRng for Stream {}

impl ZeroizeOnDrop for Stream where Generator: ZeroizeOnDrop {}

impl core::fmt::Debug for Stream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Stream(..)")
    }
}

/// Draws a uniform integer below `bound`, without bias.
///
/// Multiplies a 32-bit word by `bound` and keeps the upper half. Words whose lower half falls into
/// the incomplete last stretch are drawn again (Lemire 2019, arXiv:1805.10941). Uses one word,
/// rarely more.
pub fn below(bound: NonZeroU32, rng: &mut (impl Rng + ?Sized)) -> u32 {
    let bound = bound.get();
    // 2^32 mod bound
    let incomplete = bound.wrapping_neg() % bound;
    loop {
        let product = u64::from(rng.next_u32()) * u64::from(bound);
        if product as u32 >= incomplete {
            return (product >> 32) as u32;
        }
    }
}

/// Draws a uniform number in (−1, 1): an odd multiple of 2⁻²⁴, symmetric about 0, from one word.
pub fn symmetric(rng: &mut (impl Rng + ?Sized)) -> f32 {
    let odd = ((rng.next_u32() >> 8) as i32) * 2 + 1 - (1 << 24);
    odd as f32 / (1 << 24) as f32
}

/// Shuffles items uniformly (Fisher-Yates, from the last position down to the second).
///
/// Positions beyond 2^32 are left in place. No device has that many samples.
pub fn shuffle<T>(items: &mut [T], rng: &mut (impl Rng + ?Sized)) {
    let mut remaining = u32::try_from(items.len()).unwrap_or(u32::MAX);
    while let Some(bound) = NonZeroU32::new(remaining).filter(|count| count.get() > 1) {
        remaining -= 1;
        let (last, other) = (remaining as usize, below(bound, rng) as usize);
        // Both are positions of the slice. If they are equal, there is nothing to do.
        if let Ok([last, other]) = items.get_disjoint_mut([last, other]) {
            core::mem::swap(last, other);
        }
    }
}

#[cfg(test)]
mod oracle;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::chacha20::initial_state;
    use rand_core::Rng;

    fn id(purpose: Purpose, round: u32, device: u32) -> StreamId {
        StreamId {
            purpose,
            round,
            device,
        }
    }

    /// A generator of given words.
    struct Words<'a>(&'a [u32]);
    impl rand_core::TryRng for Words<'_> {
        type Error = rand_core::Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            let (first, rest) = self.0.split_first().unwrap();
            self.0 = rest;
            Ok(*first)
        }
        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            unreachable!("only words are drawn")
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Self::Error> {
            unreachable!("only words are drawn")
        }
    }

    #[test]
    fn secrets_that_are_dropped_leave_nothing() {
        const fn overwrites<T: ZeroizeOnDrop>() -> bool {
            core::mem::needs_drop::<T>()
        }
        const {
            assert!(overwrites::<Root>() && overwrites::<Stream>());
        }
        let mut root = Root::from_secret([7; 32]);
        root.wipe();
        assert_eq!(root.secret(), &[0; 32]);
    }

    #[test]
    fn a_copy_of_a_stream_goes_on_where_the_stream_is() {
        let mut stream = Root::from_seed(4).stream(id(Purpose::ServerNoise, 7, 9));
        for _ in 0..150 {
            let [mut copy, mut later] = [stream.clone(), stream.at(3)];
            let mut anew = Root::from_seed(4).stream(id(Purpose::ServerNoise, 7, 9));
            anew.skip(stream.position());
            let words: [u32; 8] = core::array::from_fn(|_| copy.next_u32());
            assert_eq!(later.next_u32(), words[3]);
            assert_eq!(anew.next_u32(), words[0]);
            assert_eq!(stream.next_u32(), words[0]);
        }
    }

    /// The example of RFC 8439, section 2.3.2 starts its counter at 1: skip one block.
    #[test]
    fn a_stream_is_rfc_8439_chacha20() {
        let key = core::array::from_fn(|i| i as u8);
        let root = Root::from_secret(key);
        let rng = &mut root.stream(id(Purpose::Initialisation, 0, 0));
        // Nonce 00 00 00 09 00 00 00 4a 00 00 00 00 has no purpose, so build it by hand.
        rng.0.set_stream(u64::from(0x4a00_0000u32));
        rng.0.set_word_pos((u128::from(0x0900_0000u32) << 36) + 16);
        let first: [u32; 4] = core::array::from_fn(|_| rng.next_u32());
        assert_eq!(first, [0xe4e7_f110, 0x1559_3bd1, 0x1fdd_0f50, 0xc471_20a3]);
    }

    #[test]
    fn streams_agree_with_an_independent_reading() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/streams.json");
        let file: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for case in file["cases"].as_array().unwrap() {
            let number = |key: &str| case[key].as_u64().unwrap();
            let purposes = [
                Purpose::CohortSampling,
                Purpose::BatchShuffle,
                Purpose::ServerNoise,
                Purpose::DeviceNoise,
                Purpose::Initialisation,
                Purpose::Partition,
                Purpose::Synthesis,
            ];
            let named = |purpose: &&Purpose| **purpose as u64 == number("purpose");
            let name = StreamId {
                purpose: *purposes.iter().find(named).unwrap(),
                round: number("round") as u32,
                device: number("device") as u32,
            };
            let root = Root::from_seed(number("seed"));
            let mut stream = root.stream(name);
            for word in case["words"].as_array().unwrap() {
                assert_eq!(
                    u64::from(stream.next_u32()),
                    word.as_u64().unwrap(),
                    "{name:?}"
                );
            }
            let mut items: [u64; 10] = core::array::from_fn(|i| i as u64);
            shuffle(&mut items, &mut root.stream(name));
            let expected = case["shuffle_of_10"].as_array().unwrap().iter();
            assert!(expected.map(|x| x.as_u64().unwrap()).eq(items), "{name:?}");
        }
    }

    /// Compares the generators of microcontrollers and desktops.
    #[test]
    fn one_block_at_a_time_gives_the_same_words() {
        let root = Root::from_seed(77);
        for name in [
            id(Purpose::DeviceNoise, 3, 5),
            id(Purpose::BatchShuffle, u32::MAX, 0),
        ] {
            let (purpose, round, device) = (name.purpose as u32, name.round, name.device);
            let mut here = root.stream(name).0;
            let mut there = chacha20::blockwise::ChaCha20::new(initial_state(
                &root.0,
                [purpose, round, device],
            ));
            for length in 0..40 {
                assert_eq!(here.next_u32(), there.next_u32());
                let (mut a, mut b) = ([0; 40], [0; 40]);
                here.fill_bytes(&mut a[..length]);
                there.fill_bytes(&mut b[..length]);
                assert_eq!(a, b);
                assert_eq!(here.next_u64(), there.next_u64());
                let (place, skipped) = (here.get_word_pos(), length as u64 * 7);
                assert_eq!(there.position(), place as u64 % POSITIONS);
                here.set_word_pos(place + u128::from(skipped));
                there.skip(skipped);
            }
        }
    }

    #[test]
    fn every_field_of_the_name_changes_the_stream() {
        let root = Root::from_seed(1);
        let word = |id| root.stream(id).next_u64();
        let base = word(id(Purpose::BatchShuffle, 2, 3));
        assert_ne!(base, word(id(Purpose::ServerNoise, 2, 3)));
        assert_ne!(base, word(id(Purpose::BatchShuffle, 3, 3)));
        assert_ne!(base, word(id(Purpose::BatchShuffle, 2, 4)));
        assert_ne!(base, word(id(Purpose::BatchShuffle, 3, 2)));
        assert_ne!(
            base,
            Root::from_seed(2)
                .stream(id(Purpose::BatchShuffle, 2, 3))
                .next_u64()
        );
        assert_eq!(base, word(id(Purpose::BatchShuffle, 2, 3)));
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_reaches_every_order() {
        let mut rng = Root::from_seed(5).stream(id(Purpose::BatchShuffle, 0, 0));
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let mut items = [0, 1, 2];
            shuffle(&mut items, &mut rng);
            *seen.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 6);
        // Each count is Binomial(6000, 1/6), standard deviation 28.9. 6 deviations on six cells:
        // false-alarm probability below 2e-8, and the seed is fixed.
        assert!(seen.values().all(|n| n.abs_diff(1_000) < 174), "{seen:?}");
    }

    #[test]
    fn symmetric_draws_are_inside_and_balanced() {
        let mut rng = Root::from_seed(1).stream(id(Purpose::Initialisation, 0, 0));
        let draws: std::vec::Vec<f32> = (0..10_000).map(|_| symmetric(&mut rng)).collect();
        assert!(draws.iter().all(|x| x.abs() < 1.0 && *x != 0.0));
        let mean = draws.iter().sum::<f32>() / 1e4;
        let square = draws.iter().map(|x| x * x).sum::<f32>() / 1e4;
        // Standard errors 0.0058 and 0.003: the bounds are more than five of each.
        assert!(mean.abs() < 0.03 && (square - 1.0 / 3.0).abs() < 0.016);
    }

    #[test]
    fn below_is_below_and_draws_again_in_the_last_stretch() {
        let three = NonZeroU32::new(3).unwrap();
        // 2^32 mod 3 = 1: the word 0 gives lower half 0 < 1 and is refused.
        assert_eq!(below(three, &mut Words(&[0, u32::MAX])), 2);
        assert_eq!(below(NonZeroU32::MIN, &mut Words(&[12_345])), 0);
    }

    #[test]
    fn symmetric_draws_are_odd_multiples_up_to_both_ends() {
        let draw = |word| symmetric(&mut Words(&[word])) * 2f32.powi(24);
        let largest = ((1 << 24) - 1) as f32;
        assert_eq!([draw(0), draw(u32::MAX)], [-largest, largest]);
        assert_eq!([draw((1 << 31) - 1), draw(1 << 31)], [-1.0, 1.0]);
    }

    #[test]
    fn a_shuffle_draws_one_word_less_than_there_are_items() {
        shuffle::<u8>(&mut [], &mut Words(&[]));
        shuffle(&mut [7], &mut Words(&[]));
        let mut items = [1, 2, 3];
        shuffle(&mut items, &mut Words(&[1 << 30, 1 << 30]));
        // Swaps last and first, then the middle one and the first.
        assert_eq!(items, [2, 3, 1]);
    }

    #[test]
    fn bytes_of_a_stream_are_its_words() {
        let mut words = Root::from_seed(4).stream(id(Purpose::ServerNoise, 7, 9));
        let mut bytes = [0; 12];
        words.clone().fill_bytes(&mut bytes);
        for piece in bytes.as_chunks::<4>().0 {
            assert_eq!(u32::from_le_bytes(*piece), words.next_u32());
        }
    }
}
