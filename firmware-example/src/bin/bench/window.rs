//! Instructions for the features of a window of six channels of 64 samples, from counts, in `f32`
//! and in integers.

use core::hint::black_box;

use smolfed_firmware::{
    data,
    features::{COUNT, LENGTH},
    ring::Ring,
};

use super::counting::{count, print};

/// Measures all features of the window.
#[inline(never)]
pub fn measure() -> Option<()> {
    let mut ring = Ring::new();
    for time in 0..LENGTH {
        ring.push(core::array::from_fn(|channel| {
            data::raw_sample(channel, time)
        }));
    }
    let ring = black_box(&ring);
    let (mut features, mut counts) = ([0.0; COUNT], [0; COUNT]);
    let mut computed = None;
    let instructions = count(|| computed = ring.features_into(&mut features).ok());
    computed?;
    print("window", instructions);
    let instructions = count(|| computed = ring.counts_into(&mut counts).ok());
    print("window-integer", instructions);
    black_box((features, counts));
    computed
}
