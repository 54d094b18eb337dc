use proptest::collection::vec;
use proptest::prelude::*;
use smolfed_core::features::Cells;

use super::*;

/// Rounds a feature as training does.
fn rounded(feature: f32, fraction: u8) -> i8 {
    <i8 as Feature>::saturated((feature * 2f32.powi(fraction.into())).round() as i32)
}

fn recipe(features: ImageFeatures, planes: usize) -> FeatureRecipe {
    let levels = 1.0;
    FeatureRecipe::Image {
        features,
        planes,
        levels,
    }
}

/// Pixels of a plane.
const PLANE: usize = 28 * 28;

/// Returns the features of a grey image or of a colour image as computed by a board.
fn on_board<X: Feature>(kind: ImageFeatures, pixels: &[u8], scale: FeatureScale) -> Vec<X> {
    let [red, green, blue] = [0, 1, 2].map(|at| pixels.get(at * PLANE..(at + 1) * PLANE));
    let mut integers = vec![X::default(); kind.count()];
    let mut sums = vec![0; kind.count()];
    let written = match (kind, red, green, blue) {
        (ImageFeatures::Gradients(cells), Some(red), Some(green), Some(blue)) => {
            let gradients = Gradients::new(cells);
            gradients.quantised_into([red, green, blue], scale, &mut sums, &mut integers)
        }
        (ImageFeatures::Gradients(cells), ..) => {
            Gradients::new(cells).quantised_into([pixels], scale, &mut sums, &mut integers)
        }
        (ImageFeatures::Pool(cells), ..) => {
            Pool::new(cells).quantised_into(pixels, scale, &mut sums, &mut integers)
        }
    };
    written.unwrap();
    integers
}

fn matches_boards<X: Feature>(kind: ImageFeatures, pixels: &[u8], format: FeatureFormat) {
    let recipe = recipe(kind, pixels.len() / PLANE);
    let sample: Vec<f32> = pixels.iter().map(|pixel| f32::from(*pixel)).collect();
    let (mut read, mut features) = (Vec::new(), vec![0.0; recipe.feature_count()]);
    recipe.compute(&sample, &mut read, &mut features).unwrap();
    let before = features.clone();
    match_boards(&recipe, format, &sample, &read, &mut features).unwrap();
    let integers = on_board::<X>(kind, pixels, format.scale());
    for ((feature, before), integer) in features.iter().zip(before).zip(integers) {
        let scaled = feature * 2f32.powi(format.scale().fraction() as i32);
        let rounded = X::saturated(scaled.round() as i32);
        assert_eq!(rounded.get(), integer.get(), "{before}");
        assert!(
            (feature - before).abs() <= 4.0 * f32::EPSILON * before,
            "{before}"
        );
    }
}

proptest! {
    #[test]
    fn images_have_the_integers_of_a_board(
        bytes in vec(any::<u8>(), 3 * PLANE), fraction in 0..=7u8, cell in 1..=28usize,
    ) {
        let cells = Cells::new(28, 28, cell).unwrap();
        let [narrow, wide] = [false, true].map(|x| FeatureFormat::new(x, fraction).unwrap());
        let grey = &bytes[..PLANE];
        let gradients = ImageFeatures::Gradients(cells);
        matches_boards::<i8>(gradients, grey, narrow);
        matches_boards::<i8>(gradients, &bytes, narrow);
        matches_boards::<i16>(gradients, grey, wide);
        matches_boards::<i8>(ImageFeatures::Pool(cells), grey, narrow);
        matches_boards::<i16>(ImageFeatures::Pool(cells), grey, wide);
    }

    #[test]
    fn steps_of_counts_round_to_the_integers_of_a_board(
        (low, width) in (-40_000..40_000i32, 1..70_000i32), x in -90_000..90_000i32,
        count in 1..=9usize, fraction in 0..=7u8,
    ) {
        let range = Range::new(low as f32, (low + width) as f32).unwrap();
        let steps = Steps::new(count).unwrap();
        let recipe = FeatureRecipe::Steps { steps, ranges: vec![None, Some(range)] };
        let mut all = vec![0.0; 1 + count];
        let sample = [0.3, x as f32];
        recipe.compute(&sample, &mut Vec::new(), &mut all).unwrap();
        let format = FeatureFormat::new(false, fraction).unwrap();
        match_boards(&recipe, format, &sample, &[], &mut all).unwrap();
        let (category, features) = all.split_first().unwrap();
        prop_assert_eq!(*category, 0.3);
        let mut integers = vec![0i8; count];
        let counts = Range::of_counts(low, low + width).unwrap();
        steps.quantised_into(x, &counts, format.scale(), &mut integers).unwrap();
        for (feature, integer) in features.iter().zip(integers) {
            prop_assert_eq!(rounded(*feature, fraction), integer);
        }
    }
}

/// A half that `f32` rounded away moves back, and correctly rounded values do not move.
#[test]
fn only_what_rounds_to_another_integer_moves() {
    let scale = FeatureScale::new::<i8>(6).unwrap();
    let half = 10.5_f32 / 64.0;
    let mut features = [half.next_down(), half, half, 0.3, -half, -half, 5.0];
    let integers: [i8; 7] = [11, 10, 11, 19, -10, -11, 127];
    move_to(&integers, scale, &mut features);
    let below = half.next_down();
    assert_eq!(features, [half, below, half, 0.3, -below, -half, 5.0]);
}

/// For n equal pixels each feature is a half, which a board rounds up. In `f32` the product of both
/// roots is below a half for some n.
#[test]
fn a_half_that_f32_misses_is_one_of_the_board() {
    let scale = FeatureScale::new::<i8>(0).unwrap();
    let mut moved = 0;
    for n in 1..=30 {
        let recipe = recipe(ImageFeatures::Pool(Cells::new(1, n, 1).unwrap()), 1);
        let (sample, mut read) = (vec![9.0; n], Vec::new());
        let mut features = vec![0.0; n];
        recipe.compute(&sample, &mut read, &mut features).unwrap();
        moved += usize::from(features[0] < 0.5);
        let format = FeatureFormat::of::<i8>(scale);
        match_boards(&recipe, format, &sample, &read, &mut features).unwrap();
        assert!(
            features.iter().all(|feature| rounded(*feature, 0) == 1),
            "{n}"
        );
    }
    assert!(moved > 0);
}
