//! Named random streams: counter-based, so that threads, scheduling and machine cannot matter.
//!
//! A stream is ChaCha20 as in RFC 8439: the 256-bit key is the root secret of a run or of a
//! device, and the 96-bit nonce is the stream's *name*, three little-endian 32-bit words:
//! purpose, round, device. The block counter starts at 0. Two names under one root never share
//! a key stream, and a stream may be drawn in any order, on any machine, without the others.
//! `docs/streams.md` gives the test vectors; the numbers of [`Purpose`] are part of them.
//!
//! A root made from a 64-bit seed ([`Root::from_seed`]) is for simulation and tests **only**: who
//! knows the seed can subtract the noise. A deployment takes [`Root::from_secret`] with 32 bytes
//! of entropy from hardware or from the operating system.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// What a stream is for. Part of every recorded result: add at the end, never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// Which devices take part in a round (server).
    CohortSampling = 1,
    /// The order of local samples in each epoch (device).
    BatchShuffle = 2,
    /// Noise on the sum of a round's updates (server, central trust).
    ServerNoise = 3,
    /// Noise that a device adds to its own update (local and distributed trust).
    DeviceNoise = 4,
    /// Initial parameters of a model.
    Initialisation = 5,
    /// Dealing samples to simulated devices, and splits into train, validation and test.
    Partition = 6,
    /// Synthetic data.
    Synthesis = 7,
}

/// Name of one stream under a [`Root`]. Use 0 for a field that has no meaning for the purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId {
    /// What the stream is for.
    pub purpose: Purpose,
    /// The communication round.
    pub round: u32,
    /// The device.
    pub device: u32,
}

/// Root secret of a run or a device: the ChaCha20 key under which all of its streams live.
#[derive(Clone)]
pub struct Root([u8; 32]);

/// Bytes 8..32 of the key of a seeded root, so that no seed collides with a plausible secret.
const SEED_DOMAIN: [u8; 24] = *b"smolfed simulation seed ";

impl Root {
    /// Root for a deployment: 32 bytes that only this device or server knows.
    pub const fn from_secret(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Root for simulation and tests: the seed, little-endian, then a fixed text of 24 bytes.
    ///
    /// The result is reproducible and therefore **not private**: who knows the seed knows the
    /// noise.
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

    /// The stream with this name, from its beginning.
    ///
    /// A stream is good for 2³² blocks of 64 bytes (256 GiB), far more than a round can draw.
    pub fn stream(&self, id: StreamId) -> Stream {
        let mut rng = ChaCha20Rng::from_seed(self.0);
        // RFC 8439 puts the nonce in state words 13, 14, 15; here word 13 is the upper half of the
        // 64-bit block counter and words 14 and 15 are the stream number. A block has 16 words.
        rng.set_stream(u64::from(id.round) | (u64::from(id.device) << 32));
        rng.set_word_pos(u128::from(id.purpose as u32) << (32 + 4));
        Stream(rng)
    }
}

impl core::fmt::Debug for Root {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Root(..)")
    }
}

/// One named stream: a cryptographic generator of uniform words.
#[derive(Clone)]
pub struct Stream(ChaCha20Rng);

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

impl core::fmt::Debug for Stream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Stream(..)")
    }
}
