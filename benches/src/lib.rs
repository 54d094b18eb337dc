//! Shared parts of the benches: short criterion settings, seeded vectors and samples, the
//! federation of the reference round, networks, and other programs that train them.
#![forbid(unsafe_code)]

pub mod networks;
pub mod peer;
pub mod reference;
pub mod turns;

use std::time::Duration;

use criterion::Criterion;
use rand_core::Rng;
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};

/// Returns settings that keep the total time of all benches below four minutes.
#[must_use]
pub fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

/// Returns a stream with a fixed seed.
#[must_use]
pub fn stream(purpose: Purpose) -> Stream {
    Root::from_seed(1).stream(StreamId {
        purpose,
        round: 0,
        device: 0,
    })
}

/// Returns `length` entries, uniform in [-1, 1).
#[must_use]
pub fn vector(length: usize) -> Vec<f32> {
    let mut rng = stream(Purpose::Synthesis);
    let entry = |_| rng.next_u32() as i32 as f32 / (1u32 << 31) as f32;
    (0..length).map(entry).collect()
}

/// Returns `length` classes below `classes`.
#[must_use]
pub fn labels(length: usize, classes: u16) -> Vec<u16> {
    let mut rng = stream(Purpose::Synthesis);
    let label = |_| (rng.next_u32() % u32::from(classes)) as u16;
    (0..length).map(label).collect()
}
