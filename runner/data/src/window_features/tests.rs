//! From raw counts to the integers that a model reads: compares a board with the simulator.

use proptest::{collection::vec, prelude::*};
use smolfed_core::fixed_point::{Feature as Stored, FeatureScale, round_feature};
use smolfed_core::window::{Feature, Measure, Scale};

use super::*;
use crate::constants::Affine;

/// A strategy for recipes of windows of this length: some features, and some bands.
fn recipes() -> impl Strategy<Value = Recipe> {
    let features = proptest::sample::subsequence(Feature::ALL.to_vec(), 1..=6);
    let measure = prop_oneof![Just(Measure::Amplitude), Just(Measure::Energy)];
    (2_usize..130, features, vec(0_u16..=64, 0..6), measure).prop_map(
        |(length, features, mut bounds, measure)| {
            let last = length.next_power_of_two() as u16 / 2 + 1;
            bounds.iter_mut().for_each(|bound| *bound %= last + 1);
            bounds.sort_unstable();
            bounds.dedup();
            if bounds.len() < 2 {
                bounds.clear();
            }
            Recipe::new(length, &features, &bounds, measure).unwrap()
        },
    )
}

/// A strategy for scales with the simulator's bits for a type: a shift of at most `most`.
fn scales(most: u8) -> impl Strategy<Value = Scale> {
    let offset = prop_oneof![Just(0), -40_000..40_000];
    let multiplier = prop_oneof![(0_u32..16).prop_map(|bit| 1 << bit), 1..=u16::MAX];
    (offset, multiplier, 0..=most)
        .prop_map(|(offset, multiplier, shift)| Scale::new(offset, multiplier, shift).unwrap())
}

/// Returns the features of a window as on a board, and as in the simulator.
fn both<X: Stored>(
    recipe: &Recipe,
    counts: &[i16],
    scale: Scale,
    fraction: u8,
    board: impl Fn(Scale, i32) -> (X, bool),
) -> [Vec<(i32, bool)>; 2] {
    let channels = counts.len() / recipe.length();
    let sample = |channel: usize, step: usize| counts[step * channels + channel];
    let mut features = vec![0; channels * recipe.feature_count()];
    let computed = recipe.counts_into(sample, &mut vec![0; recipe.work_count()], &mut features);
    computed.unwrap();
    let (offset, multiplier, shift) = scale.parts();
    let std = 2_f64.powi(i32::from(shift) + i32::from(fraction)) / f64::from(multiplier);
    let affine = Affine::new(offset.into(), std).unwrap();
    let value = |channel, step| f32::from(sample(channel, step));
    let simulated = WindowFeatures::new(*recipe, Some(vec![1.0]));
    let simulated = simulated.compute(channels, value, 0).unwrap();
    let stored = FeatureScale::new::<X>(fraction).unwrap();
    // The documentation of the scale lists the larger ones.
    let is_exact = |x: &(i32, f32)| x.0.unsigned_abs() < 1 << 24;
    let pairs: Vec<(i32, f32)> = features
        .into_iter()
        .zip(simulated)
        .filter(is_exact)
        .collect();
    let integer = |(x, is_beyond): (X, bool)| (x.get(), is_beyond);
    [
        pairs.iter().map(|x| integer(board(scale, x.0))).collect(),
        (pairs
            .iter()
            .map(|x| integer(round_feature(affine.apply(x.1), stored))))
        .collect(),
    ]
}

proptest! {
    #[test]
    fn a_board_and_the_simulator_make_the_same_integers_of_counts(
        (recipe, counts) in recipes().prop_flat_map(|recipe| {
            let quiet = (vec(any::<i16>(), 2 * recipe.length()), 0_u32..14);
            let counts = quiet.prop_map(|(x, quiet)| x.into_iter().map(|x| x >> quiet).collect());
            (Just(recipe), counts.boxed())
        }),
        narrow in scales(16), wide in scales(8), places in (0_u8..=7, 0_u8..=15),
    ) {
        let counts: Vec<i16> = counts;
        let [board, simulated] = both::<i8>(&recipe, &counts, narrow, places.0, Scale::to_i8);
        prop_assert_eq!(board, simulated, "{:?}", narrow);
        let [board, simulated] = both::<i16>(&recipe, &counts, wide, places.1, Scale::to_i16);
        prop_assert_eq!(board, simulated, "{:?}", wide);
    }
}

/// Each count of a sensor, in steps of half a unit: halves of both signs, and both ends.
#[test]
fn halves_are_rounded_as_in_the_simulator() {
    let recipe = Recipe::new(2, &[Feature::Maximum], &[], Measure::Energy).unwrap();
    // 2,048 counts per unit and five binary places: 64 counts per integer.
    let scale = Scale::new(0, 1, 6).unwrap();
    for count in i16::MIN..=i16::MAX {
        let [board, simulated] = both::<i8>(&recipe, &[count; 2], scale, 5, Scale::to_i8);
        assert_eq!(board, simulated, "{count}");
    }
    let [board, _] = both::<i8>(&recipe, &[-352; 2], scale, 5, Scale::to_i8);
    assert_eq!(board, [(-6, false)]);
}
