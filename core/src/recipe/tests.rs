//! Recipes survive a round trip, and other bytes are not accepted.

use proptest::collection::vec;
use proptest::prelude::*;
use std::string::ToString;
use std::vec::Vec;

use super::*;

fn written(recipe: &Recipe) -> Vec<u8> {
    recipe.write(&mut [0; MAX_RECIPE_BYTES]).to_vec()
}

fn image() -> impl Strategy<Value = (Cells, u8)> {
    let cells = (1..=28usize, 1..=28usize).prop_flat_map(|(rows, columns)| {
        let cell = 1..=rows.min(columns);
        cell.prop_map(move |cell| Cells::new(rows, columns, cell).unwrap())
    });
    (cells, prop_oneof![Just(1), Just(COLOURS)])
}

fn windows() -> impl Strategy<Value = Recipe> {
    let features = proptest::sample::subsequence(Feature::ALL.to_vec(), 1..=6);
    let bounds = proptest::sample::subsequence((0..=32u16).collect::<Vec<_>>(), 2..=17);
    (features, bounds, any::<bool>(), 1..=9u16).prop_map(
        |(features, bounds, is_energy, channels)| {
            let measure = if is_energy {
                Measure::Energy
            } else {
                Measure::Amplitude
            };
            let recipe = window::Recipe::new(64, &features, &bounds, measure).unwrap();
            Recipe::Windows { recipe, channels }
        },
    )
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let range = proptest::option::of((-9f32..9.0, 1f32..9.0));
    let steps = (1..=255usize, vec(range, 0..9)).prop_map(|(count, ranges)| {
        let range = |(low, width): (f32, f32)| Range::new(low, low + width).unwrap();
        let ranges: Vec<_> = ranges.into_iter().map(|bounds| bounds.map(range)).collect();
        Recipe::steps(Steps::new(count).unwrap(), &ranges).unwrap()
    });
    prop_oneof![
        image().prop_map(|(cells, planes)| Recipe::Gradients { cells, planes }),
        image().prop_map(|(cells, planes)| Recipe::Pool { cells, planes }),
        steps,
        windows(),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(recipe in recipe()) {
        prop_assert_eq!(Recipe::read(&written(&recipe)), Some(recipe));
    }

    #[test]
    fn what_is_cut_or_longer_is_none(recipe in recipe(), rest in vec(any::<u8>(), 1..4)) {
        let mut bytes = written(&recipe);
        for length in 0..bytes.len() {
            prop_assert_eq!(Recipe::read(&bytes[..length]), None);
        }
        bytes.extend(rest);
        prop_assert_eq!(Recipe::read(&bytes), None);
    }

    #[test]
    fn any_bytes_are_none_or_what_writes_them(bytes in vec(any::<u8>(), 0..60)) {
        if let Some(recipe) = Recipe::read(&bytes) {
            prop_assert_eq!(written(&recipe), bytes);
        }
    }
}

/// The layout of `docs/protocol.md`, with the digest from `tests/vectors/wire.py`.
#[test]
fn the_layout_is_the_documented_one() {
    let cells = Cells::new(28, 32, 4).unwrap();
    let gradients = Recipe::Gradients { cells, planes: 3 };
    assert_eq!(written(&gradients), [1, 3, 28, 0, 32, 0, 4, 0]);
    let pool = Recipe::Pool { cells, planes: 1 };
    assert_eq!(written(&pool), [2, 1, 28, 0, 32, 0, 4, 0]);
    let features = [Feature::Mean, Feature::Energy];
    let recipe = window::Recipe::new(64, &features, &[1, 4, 17], Measure::Amplitude).unwrap();
    let windows = Recipe::Windows {
        recipe,
        channels: 6,
    };
    let expected = [4, 1, 6, 0, 64, 0, 0b1_0001, 3, 1, 0, 4, 0, 17, 0];
    assert_eq!(written(&windows), expected);
    let ranges = [Range::new(-1.0, 2.5).ok(), None];
    let steps = Recipe::steps(Steps::new(8).unwrap(), &ranges).unwrap();
    let digest = [252, 34, 182, 93, 70, 98, 94, 211];
    assert_eq!(written(&steps), [[3, 8, 2, 0].as_slice(), &digest].concat());
}

#[test]
fn every_bound_counts() {
    let steps = Steps::new(8).unwrap();
    let range = |low, high| Range::new(low, high).ok();
    let all = [
        [range(0.0, 1.0), range(0.0, 2.0)],
        [range(0.0, 2.0), range(0.0, 1.0)],
        [range(0.0, 1.0), None],
        [None, range(0.0, 1.0)],
        [None, None],
    ];
    let recipes = all.map(|ranges| Recipe::steps(steps, &ranges));
    for (index, recipe) in recipes.iter().enumerate() {
        assert!(!recipes[..index].contains(recipe), "{index}");
    }
}

/// Without bands the measure is ignored, and so is the sign of a zero bound.
#[test]
fn what_has_no_effect_makes_no_other_recipe() {
    let windows = |measure| {
        let recipe = window::Recipe::new(64, &[Feature::Mean], &[], measure).unwrap();
        written(&Recipe::Windows {
            recipe,
            channels: 6,
        })
    };
    let energy = windows(Measure::Energy);
    assert_eq!(windows(Measure::Amplitude), energy);
    let mut amplitude = energy;
    amplitude[1] = 1;
    assert_eq!(Recipe::read(&amplitude), None);
    let from = |low| Recipe::steps(Steps::new(8).unwrap(), &[Range::new(low, 1.0).ok()]);
    assert_eq!(from(-0.0), from(0.0));
}

#[test]
fn words_name_all_that_differs() {
    let cells = Cells::new(28, 28, 7).unwrap();
    let gradients = |planes| Recipe::Gradients { cells, planes }.to_string();
    assert_eq!(
        gradients(1),
        "gradients of 28 × 28 pixels in cells of 7 × 7"
    );
    assert_eq!(
        gradients(3),
        "gradients of 28 × 28 colour pixels in cells of 7 × 7"
    );
    let pool = Recipe::Pool { cells, planes: 1 };
    assert!(pool.to_string().starts_with("brightness of 28"));
    let features = [Feature::Mean, Feature::ZeroCrossings];
    let recipe = window::Recipe::new(64, &features, &[1, 4, 17], Measure::Energy).unwrap();
    assert_eq!(
        Recipe::Windows {
            recipe,
            channels: 6
        }
        .to_string(),
        "windows of 64 samples, 6 channels, mean, zero-crossings, energy of bands [1, 4, 17]"
    );
    let steps = Recipe::steps(Steps::new(8).unwrap(), &[None])
        .unwrap()
        .to_string();
    assert!(
        steps.starts_with("8 steps a value, 1 values, bounds "),
        "{steps}"
    );
}
