//! Comparison with the definitions in `f64`, from an independent program and here, and laws.

use proptest::{collection::vec, prelude::*};
use std::vec::Vec;

use super::*;
use crate::crc32::crc32;

mod laws;
mod reference;
mod vectors;

use reference::{Reference, reference};

/// All features, and bands between these boundaries.
fn recipe(length: usize, bounds: &[u16], measure: Measure) -> Recipe {
    Recipe::new(length, &Feature::ALL, bounds, measure).unwrap()
}

/// All frequencies, each a separate band if there are few.
fn every_band(length: usize) -> Vec<u16> {
    let last = length.next_power_of_two() as u16 / 2;
    let width = last.div_ceil(MAX_BANDS as u16).max(1);
    let starts = (0..=last).step_by(width.into()).take(MAX_BANDS);
    starts.chain([last + 1]).collect()
}

/// The features of one channel in `f32`.
fn of_floats(recipe: &Recipe, samples: &[f32]) -> Vec<f32> {
    let mut work = std::vec![0.0; recipe.work_count()];
    let mut features = std::vec![0.0; recipe.feature_count()];
    let result = recipe.features_into(|_, t| samples[t], &mut work, &mut features);
    result.unwrap();
    features
}

/// The features of one channel in integers.
fn of_counts(recipe: &Recipe, samples: &[i16]) -> Vec<i32> {
    let mut work = std::vec![0; recipe.work_count()];
    let mut features = std::vec![0; recipe.feature_count()];
    let result = recipe.counts_into(|_, t| samples[t], &mut work, &mut features);
    result.unwrap();
    features
}

/// Largest error of an amplitude in counts.
fn tolerance(reference: &Reference) -> f64 {
    0.51 + reference.peak / 2048.0
}

#[test]
fn recipes_that_make_no_sense_are_refused() {
    use Measure::Energy;
    let features = [Feature::Mean];
    let refused = |length, features: &[Feature], bounds: &[u16]| {
        Recipe::new(length, features, bounds, Energy).unwrap_err()
    };
    for length in [0, 1, MAX_LENGTH + 1, usize::MAX] {
        let (found, max) = (length, MAX_LENGTH);
        assert_eq!(
            refused(length, &features, &[]),
            RecipeError::Length { found, max }
        );
    }
    assert_eq!(refused(8, &[], &[]), RecipeError::Nothing);
    let feature = "energy";
    let twice = [Feature::Energy, Feature::Mean, Feature::Energy];
    assert_eq!(refused(8, &twice, &[]), RecipeError::Twice { feature });
    let max = MAX_BANDS + 1;
    assert_eq!(
        refused(8, &features, &[1]),
        RecipeError::Bounds { found: 1, max }
    );
    let many: Vec<u16> = (0..18).collect();
    let found = many.len();
    assert_eq!(
        refused(64, &features, &many),
        RecipeError::Bounds { found, max }
    );
    assert_eq!(
        refused(8, &features, &[2, 2]),
        RecipeError::Order { bound: 2 }
    );
    let beyond = RecipeError::Beyond { bound: 6, max: 5 };
    assert_eq!(refused(8, &features, &[1, 6]), beyond);
    assert_eq!(refused(5, &features, &[1, 6]), beyond);
    assert!(Recipe::new(8, &[], &[0, 5], Energy).is_ok());
    for error in [
        refused(1, &features, &[]),
        refused(8, &[], &[]),
        refused(8, &twice, &[]),
        refused(8, &features, &[1]),
        refused(8, &features, &[2, 2]),
        beyond,
    ] {
        assert!(!std::format!("{error}").is_empty());
    }
}

#[test]
fn a_recipe_says_what_it_has() {
    let features = [Feature::ZeroCrossings, Feature::Mean];
    let recipe = Recipe::new(100, &features, &[1, 4, 65], Measure::Amplitude).unwrap();
    // The order follows the enum, not the list.
    let listed: Vec<_> = recipe.features().collect();
    assert_eq!(listed, [Feature::Mean, Feature::ZeroCrossings]);
    assert_eq!(recipe.bounds(), [1, 4, 65]);
    let counts = (recipe.length(), recipe.feature_count(), recipe.work_count());
    assert_eq!(counts, (100, 4, 128));
    let plain = Recipe::new(100, &features, &[], Measure::Energy).unwrap();
    assert_eq!((plain.feature_count(), plain.work_count()), (2, 100));
    let values = of_floats(&recipe, &[2.5; 100]);
    assert_eq!(values, [2.5, 0.0, 0.0, 0.0]);
}

#[test]
fn sizes_that_do_not_fit_and_numbers_that_are_none_are_refused() {
    let recipe = recipe(8, &[1, 5], Measure::Energy);
    let (mut work, mut features) = ([0.0; 8], [7.0; 14]);
    let float = |x: f32, work: &mut [f32], features: &mut [f32]| {
        recipe.features_into(|_, t| x * t as f32, work, features)
    };
    let (each, found) = (7, 13);
    let result = float(1.0, &mut work, &mut features[..13]);
    assert_eq!(result, Err(WindowError::Features { each, found }));
    let (expected, found) = (8, 7);
    let result = float(1.0, &mut work[..7], &mut features);
    assert_eq!(result, Err(WindowError::Work { expected, found }));
    assert_eq!(features, [7.0; 14], "untouched");
    for x in [f32::NAN, f32::INFINITY, 1e20, f32::MAX] {
        let result = float(x, &mut work, &mut features);
        assert_eq!(result, Err(WindowError::NotFinite), "{x}");
    }
    assert_eq!(float(1.0, &mut work, &mut []), Ok(()), "no channel");
    let result = recipe.counts_into(|_, _| 1, &mut [0; 7], &mut [0; 7]);
    assert_eq!(result, Err(WindowError::Work { expected, found: 7 }));
    for error in [
        WindowError::Work { expected, found: 7 },
        WindowError::NotFinite,
    ] {
        assert!(!std::format!("{error}").is_empty());
    }
}

#[test]
fn channels_follow_each_other() {
    let recipe = recipe(8, &[1, 3, 5], Measure::Amplitude);
    let sample = |channel: usize, t: usize| ((channel + 1) * t * t % 11) as i16;
    let mut all = [0; 24];
    recipe.counts_into(sample, &mut [0; 9], &mut all).unwrap();
    let mut floats = [0.0; 24];
    let result = recipe.features_into(|c, t| sample(c, t).into(), &mut [0.0; 9], &mut floats);
    result.unwrap();
    for channel in 0..3 {
        let samples: Vec<i16> = (0..8).map(|t| sample(channel, t)).collect();
        let place = channel * 8..(channel + 1) * 8;
        assert_eq!(all[place.clone()], of_counts(&recipe, &samples));
        let samples: Vec<f32> = samples.into_iter().map(f32::from).collect();
        assert_eq!(floats[place], of_floats(&recipe, &samples));
    }
}

#[test]
fn scales_round_and_saturate() {
    let scale = Scale::new(100, 3, 2).unwrap();
    assert_eq!(scale.to_i8(100), (0, false));
    assert_eq!(scale.to_i8(102), (2, false), "1.5 rounds up");
    assert_eq!(scale.to_i8(98), (-2, false), "and -1.5 down");
    assert_eq!(scale.to_i8(269), (127, false));
    assert_eq!(scale.to_i8(270), (127, true));
    assert_eq!(scale.to_i8(-71), (-128, false), "-128.25");
    assert_eq!(scale.to_i8(-72), (-128, true), "-129");
    assert_eq!(scale.to_i8(i32::MIN), (-128, true));
    assert_eq!(scale.to_i16(270), (128, false));
    assert_eq!(scale.to_i16(i32::MAX), (i16::MAX, true));
    assert_eq!(Scale::IDENTITY.to_i16(-32_768), (-32_768, false));
    assert_eq!(Scale::IDENTITY.to_i16(-32_769), (-32_768, true));
    assert_eq!(Scale::IDENTITY.to_i8(-7), (-7, false));
    let widest = Scale::new(i32::MIN, u16::MAX, 47).unwrap();
    assert_eq!(widest.to_i16(i32::MAX), (2, false));
    assert_eq!(Scale::new(0, 0, 0), Err(ScaleError::Zero));
    assert_eq!(Scale::new(0, 1, 48), Err(ScaleError::Shift));
    assert_ne!(
        std::format!("{}", ScaleError::Zero),
        std::format!("{}", ScaleError::Shift)
    );
}

#[test]
fn sines_are_rounded_to_the_nearest() {
    for at in 0..=sine::QUARTER {
        let exact = (2.0 * core::f64::consts::PI * at as f64 / sine::CIRCLE as f64).sin();
        assert_eq!(sine::FLOAT[at], exact as f32, "{at}");
        assert_eq!(
            f64::from(sine::FIXED[at]),
            (exact * 16_384.0).round(),
            "{at}"
        );
    }
    for at in 0..=sine::CIRCLE / 2 {
        let angle = 2.0 * core::f64::consts::PI * at as f64 / sine::CIRCLE as f64;
        let [cos, sin] = sine::turn(&sine::FLOAT, at).map(f64::from);
        assert!(
            (cos - angle.cos()).abs() < 1e-7 && (sin - angle.sin()).abs() < 1e-7,
            "{at}"
        );
    }
}
