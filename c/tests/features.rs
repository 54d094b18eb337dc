//! Features of windows and images are those of `smolfed_core`, which has them bit for bit as the
//! simulator does.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic fails the test"
)]

use std::ptr::{null, null_mut};

use smolfed_c::{sf_status::*, *};
use smolfed_core::features::{Cells, Gradients, Pool};
use smolfed_core::fixed_point::FeatureScale;
use smolfed_core::recipe::{MAX_RECIPE_BYTES, Recipe};
use smolfed_core::window::{self, Feature, Measure, Scale};

const CHANNELS: usize = 3;
const LENGTH: usize = 12;
const EVERY: usize = 2;

fn windows() -> window::Recipe {
    let features = [Feature::Mean, Feature::Deviation, Feature::Energy];
    window::Recipe::new(LENGTH, &features, &[1, 2, 5], Measure::Amplitude).unwrap()
}

/// A recipe with its bytes.
struct Encoded {
    bytes: Vec<u8>,
    scales: Vec<sf_scale>,
    ranges: Vec<sf_range>,
}

impl Encoded {
    fn new(recipe: Recipe, features: usize) -> Self {
        let mut bytes = [0; MAX_RECIPE_BYTES];
        let scale = |at: usize| sf_scale {
            offset: 7 * at as i32,
            multiplier: 3,
            shift: at as u8 % 9,
        };
        let range = |at: usize| sf_range {
            low: -300.0,
            high: 500.0 + at as f64,
            mean: at as f64,
            std: 17.3,
        };
        Self {
            bytes: recipe.write(&mut bytes).to_vec(),
            scales: (0..features).map(scale).collect(),
            ranges: (0..features).map(range).collect(),
        }
    }

    fn recipe(&self, is_in_counts: bool) -> sf_recipe {
        sf_recipe {
            bytes: self.bytes.as_ptr(),
            byte_count: self.bytes.len(),
            scales: self.scales.as_ptr(),
            ranges: self.ranges.as_ptr(),
            every: EVERY as u16,
            places: 6,
            is_in_counts,
        }
    }
}

/// Rows of all channels, where `first` is the oldest one of a ring.
fn rows(first: usize) -> Vec<i16> {
    let count = LENGTH * EVERY;
    let value = |row: usize, channel: usize| {
        let step = (row + count - first) % count;
        (step * step * 37 + channel * 101) as i16 % 701 - 350
    };
    (0..count * CHANNELS)
        .map(|at| value(at / CHANNELS, at % CHANNELS))
        .collect()
}

#[test]
fn features_of_windows_are_those_of_the_core() {
    let recipe = windows();
    let features = CHANNELS * recipe.feature_count();
    let channels = CHANNELS as u16;
    let encoded = Encoded::new(Recipe::Windows { recipe, channels }, features);
    let plain = rows(0);
    let sample = |channel, step| plain[step * EVERY * CHANNELS + channel];
    let mut counts = vec![0; features];
    let mut work = [0; 16];
    recipe.counts_into(sample, &mut work, &mut counts).unwrap();
    let mut numbers = vec![0.0; features];
    let number = |channel, step| f32::from(sample(channel, step));
    let mut work = [0.0; 16];
    recipe
        .features_into(number, &mut work, &mut numbers)
        .unwrap();
    let map = |at: usize, found: f32| {
        let range = encoded.ranges[at];
        ((f64::from(found).clamp(range.low, range.high) - range.mean) / range.std) as f32
    };
    let to_scale = |s: &sf_scale| Scale::new(s.offset, s.multiplier, s.shift).unwrap();
    let scales: Vec<Scale> = encoded.scales.iter().map(to_scale).collect();
    let (mut small, mut wide, mut floats) = ([0_i8; 15], [0_i16; 15], [0.0_f32; 15]);
    let mut work = [0_u32; 16];
    for first in [0, 1, 23] {
        let rows = rows(first);
        let (rows, count) = (rows.as_ptr(), rows.len());
        let work = work.as_mut_ptr();
        let given = encoded.recipe(true);
        // SAFETY: everything has its length.
        unsafe {
            let recipe = &raw const given;
            let (small, wide) = (small.as_mut_ptr(), wide.as_mut_ptr());
            let status = sf_window_i8(recipe, rows, count, first, work, 16, small, 15);
            assert_eq!(status, SF_OK);
            let status = sf_window_i16(recipe, rows, count, first, work, 16, wide, 15);
            assert_eq!(status, SF_OK);
        }
        for at in 0..features {
            assert_eq!(small[at], scales[at].to_i8(counts[at]).0, "{at}");
            assert_eq!(wide[at], scales[at].to_i16(counts[at]).0, "{at}");
        }
        for is_in_counts in [true, false] {
            let given = encoded.recipe(is_in_counts);
            let floats_at = floats.as_mut_ptr();
            // SAFETY: everything has its length.
            let status = unsafe {
                sf_window_f32(
                    &raw const given,
                    rows,
                    count,
                    first,
                    work,
                    16,
                    floats_at,
                    15,
                )
            };
            assert_eq!(status, SF_OK);
            for at in 0..features {
                let found = match is_in_counts {
                    true => counts[at] as f32,
                    false => numbers[at],
                };
                assert_eq!(floats[at].to_bits(), map(at, found).to_bits(), "{at}");
            }
        }
    }
}

#[test]
fn windows_that_are_wrong_are_refused() {
    let recipe = windows();
    let channels = CHANNELS as u16;
    let encoded = Encoded::new(Recipe::Windows { recipe, channels }, 15);
    let rows = rows(0);
    let (mut work, mut features) = ([0_u32; 16], [9_i8; 15]);
    let mut call = |change: &dyn Fn(&mut sf_recipe), first, count, work_count, room| {
        let mut given = encoded.recipe(true);
        change(&mut given);
        let (rows, work) = (rows.as_ptr(), work.as_mut_ptr());
        let (given, features) = (&raw const given, features.as_mut_ptr());
        // SAFETY: nothing is read or written beyond what is there, as the lengths are smaller.
        unsafe { sf_window_i8(given, rows, count, first, work, work_count, features, room) }
    };
    let count = rows.len();
    assert_eq!(call(&|_| (), 0, count, 16, 15), SF_OK);
    assert_eq!(call(&|_| (), LENGTH * EVERY, count, 16, 15), SF_LENGTH);
    assert_eq!(call(&|_| (), 0, count - 1, 16, 15), SF_LENGTH);
    assert_eq!(call(&|_| (), 0, count, 16, 14), SF_LENGTH);
    // Two counts have room in a word, and 16 are transformed.
    assert_eq!(call(&|_| (), 0, count, 8, 15), SF_OK);
    assert_eq!(call(&|_| (), 0, count, 7, 15), SF_MEMORY);
    assert_eq!(call(&|given| given.every = 0, 0, count, 16, 15), SF_LENGTH);
    assert_eq!(call(&|given| given.every = 1, 0, count, 16, 15), SF_LENGTH);
    let cut = |given: &mut sf_recipe| given.byte_count -= 1;
    assert_eq!(call(&cut, 0, count, 16, 15), SF_RECIPE);
    let no_scales = |given: &mut sf_recipe| given.scales = null();
    assert_eq!(call(&no_scales, 0, count, 16, 15), SF_POINTER);
    let no_bytes = |given: &mut sf_recipe| given.bytes = null();
    assert_eq!(call(&no_bytes, 0, count, 16, 15), SF_POINTER);
    let bad = [sf_scale {
        offset: 0,
        multiplier: 0,
        shift: 0,
    }; 15];
    let bad_scales = |given: &mut sf_recipe| given.scales = bad.as_ptr();
    assert_eq!(call(&bad_scales, 0, count, 16, 15), SF_RECIPE);
    let status = {
        let (work, features) = (work.as_mut_ptr(), features.as_mut_ptr());
        // SAFETY: a null pointer, which is refused.
        unsafe { sf_window_i8(null(), rows.as_ptr(), count, 0, work, 16, features, 15) }
    };
    assert_eq!(status, SF_POINTER);
}

#[test]
fn features_of_images_are_those_of_the_core() {
    let cells = Cells::new(8, 12, 4).unwrap();
    let scale = FeatureScale::new::<i8>(6).unwrap();
    let pixels: Vec<u8> = (0..3 * 96_u32)
        .map(|at| (at * at * 7 % 251) as u8)
        .collect();
    let three = [&pixels[..96], &pixels[96..192], &pixels[192..]];
    let (gradients, pool) = (Gradients::new(cells), Pool::new(cells));
    for (recipe, count, features) in [
        (Recipe::Gradients { cells, planes: 1 }, 96, 48),
        (Recipe::Gradients { cells, planes: 3 }, 288, 48),
        (Recipe::Pool { cells, planes: 1 }, 96, 6),
    ] {
        let (mut numbers, mut integers) = (vec![0.0; features], vec![0_i8; features]);
        let mut sums = vec![0; features];
        match recipe {
            Recipe::Gradients { planes: 1, .. } => {
                let one = [three[0]];
                gradients.features_into(one, &mut numbers).unwrap();
                gradients
                    .quantised_into(one, scale, &mut sums, &mut integers)
                    .unwrap();
            }
            Recipe::Gradients { .. } => {
                gradients.features_into(three, &mut numbers).unwrap();
                gradients
                    .quantised_into(three, scale, &mut sums, &mut integers)
                    .unwrap();
            }
            _ => {
                pool.features_into(three[0], &mut numbers).unwrap();
                pool.quantised_into(three[0], scale, &mut sums, &mut integers)
                    .unwrap();
            }
        }
        let encoded = Encoded::new(recipe, 0);
        let given = encoded.recipe(false);
        let (mut floats, mut small) = (vec![0.0_f32; features], vec![0_i8; features]);
        let mut wide = vec![0_i16; features];
        let from = pixels.as_ptr();
        let given = &raw const given;
        // SAFETY: everything has its length.
        unsafe {
            let status = sf_image_f32(given, from, count, floats.as_mut_ptr(), features);
            assert_eq!(status, SF_OK);
            let (sums, count_of_sums) = (sums.as_mut_ptr(), sums.len());
            let to = small.as_mut_ptr();
            let status = sf_image_i8(given, from, count, sums, count_of_sums, to, features);
            assert_eq!(status, SF_OK);
            let to = wide.as_mut_ptr();
            let status = sf_image_i16(given, from, count, sums, count_of_sums, to, features);
            assert_eq!(status, SF_OK);
            // Wrong lengths, and no room for sums.
            let to = floats.as_mut_ptr();
            assert_eq!(
                sf_image_f32(given, from, count - 1, to, features),
                SF_LENGTH
            );
            assert_eq!(
                sf_image_f32(given, from, count, to, features - 1),
                SF_LENGTH
            );
            let to = small.as_mut_ptr();
            let status = sf_image_i8(given, from, count, sums, features - 1, to, features);
            assert_eq!(status, SF_MEMORY);
            let status = sf_image_i8(given, from, count, null_mut(), features, to, features);
            assert_eq!(status, SF_POINTER);
        }
        assert_eq!(floats, numbers);
        assert_eq!(small, integers);
        // In the same places, as no feature is saturated in 16 bits.
        let is_same = |(wide, small): (&i16, &i8)| *small == i8::MAX || *wide == i16::from(*small);
        assert!(wide.iter().zip(&small).all(is_same));
    }
}
