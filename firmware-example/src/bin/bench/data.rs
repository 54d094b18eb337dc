//! Varying samples and weights for the instruction counts, the same in both arithmetics.

use smolfed_core::{fixed_point::FixedPointSlice, samples::SampleSlice};

/// Samples of the device.
pub const SAMPLES: usize = 50;

/// Features of the softmax model.
pub const FEATURES: usize = 64;

/// Features of the largest window of a network.
const LARGEST_WINDOW: usize = if cfg!(small_ram) { 150 } else { 300 };

/// Features in units of 2⁻⁶, from −1 to 1.
static INTEGERS: [i8; SAMPLES * FEATURES] = {
    let mut data = [0; SAMPLES * FEATURES];
    let mut index = 0;
    while index < data.len() {
        data[index] = feature(index);
        index += 1;
    }
    data
};

/// Features as `f32`, and more of them.
static NUMBERS: [f32; SAMPLES * LARGEST_WINDOW] = {
    let mut data = [0.0; SAMPLES * LARGEST_WINDOW];
    let mut index = 0;
    while index < data.len() {
        data[index] = feature(index) as f32 / 64.0;
        index += 1;
    }
    data
};

/// Class of each sample, out of ten.
static TARGETS: [u16; SAMPLES] = {
    let mut targets = [0; SAMPLES];
    let mut index = 0;
    while index < targets.len() {
        targets[index] = (index % 10) as u16;
        index += 1;
    }
    targets
};

/// Returns a pseudo-random feature (Knuth, The Art of Computer Programming, volume 3, section 6.4:
/// multiplication by 2³² over the golden ratio).
const fn feature(index: usize) -> i8 {
    ((index as u32).wrapping_mul(2_654_435_761) >> 25) as i8 - 64
}

/// Returns the first samples with `features` features each.
pub fn samples(count: usize, features: usize) -> Option<SampleSlice<'static, u16>> {
    let data = NUMBERS.get(..count * features)?;
    SampleSlice::new(data, TARGETS.get(..count)?, features).ok()
}

/// Returns the first samples with [`FEATURES`] integers each.
pub fn integer_samples(count: usize) -> Option<FixedPointSlice<'static, i8, u16>> {
    let data = INTEGERS.get(..count * FEATURES)?;
    FixedPointSlice::new(data, TARGETS.get(..count)?, FEATURES).ok()
}

/// Returns the features of a sample as integers.
#[cfg(not(all(small_ram, fast)))]
pub fn integer_features(sample: usize) -> Option<&'static [i8]> {
    INTEGERS.chunks_exact(FEATURES).nth(sample)
}

/// Returns the weight at this index in units of 2⁻¹⁸: up to 1/4.
pub const fn integer_weight(index: usize) -> i32 {
    (index as i32 * 7_919 % 131_071) - 65_535
}

/// Returns the weight at this index as `f32`.
pub const fn weight(index: usize) -> f32 {
    integer_weight(index) as f32 / 262_144.0
}
