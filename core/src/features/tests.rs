//! Tests of features against golden values, formulas pixel by pixel, and laws.

use std::vec::Vec;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::format::FeatureScale;

/// Another implementation in NumPy, one operation after the other.
fn vectors() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/vectors/features.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn integers(value: &Value) -> Vec<u32> {
    let numbers = value.as_array().unwrap().iter();
    numbers.map(|x| x.as_u64().unwrap() as u32).collect()
}

fn bits(value: &Value) -> Vec<f32> {
    let texts = value.as_array().unwrap().iter();
    texts
        .map(|x| f32::from_bits(u32::from_str_radix(x.as_str().unwrap(), 16).unwrap()))
        .collect()
}

fn numbers(value: &Value) -> Vec<f32> {
    let numbers = value.as_array().unwrap().iter();
    numbers
        .map(|x| x.as_f64().map_or(f32::NAN, |x| x as f32))
        .collect()
}

fn cells(rows: usize, columns: usize, cell: usize) -> Cells {
    Cells::new(rows, columns, cell).unwrap()
}

fn gradients(cells: Cells, pixels: &[u8]) -> Vec<f32> {
    let gradients = Gradients::new(cells);
    let mut features = std::vec![f32::NAN; gradients.feature_count()];
    gradients.features_into([pixels], &mut features).unwrap();
    features
}

fn pool(cells: Cells, pixels: &[u8]) -> Vec<f32> {
    let pool = Pool::new(cells);
    let mut features = std::vec![f32::NAN; pool.feature_count()];
    pool.features_into(pixels, &mut features).unwrap();
    features
}

/// The sums of gradients, in working memory.
fn sums(cells: Cells, pixels: &[u8]) -> Vec<u32> {
    let gradients = Gradients::new(cells);
    let mut sums = std::vec![7; gradients.feature_count()];
    let mut features = std::vec![0_i8; gradients.feature_count()];
    let scale = FeatureScale::new::<i8>(6).unwrap();
    gradients
        .quantised_into([pixels], scale, &mut sums, &mut features)
        .unwrap();
    sums
}

#[test]
fn images_are_those_of_another_implementation() {
    let vectors = vectors();
    for image in vectors["images"].as_array().unwrap() {
        let size = |name: &str| image[name].as_u64().unwrap() as usize;
        let cells = cells(size("rows"), size("columns"), size("cell"));
        let pixels = integers(&image["pixels"]);
        let pixels: Vec<u8> = pixels.iter().map(|x| *x as u8).collect();
        assert_eq!(sums(cells, &pixels), integers(&image["gradient_sums"]));
        assert_eq!(gradients(cells, &pixels), bits(&image["gradients_f32"]));
        assert_eq!(pool(cells, &pixels), bits(&image["pool_f32"]));
        let scale = FeatureScale::new::<i8>(0).unwrap();
        let mut sums = std::vec![9; cells.count()];
        let mut features = std::vec![0_i8; cells.count()];
        Pool::new(cells)
            .quantised_into(&pixels, scale, &mut sums, &mut features)
            .unwrap();
        assert_eq!(sums, integers(&image["pool_sums"]));
    }
}

#[test]
fn steps_are_those_of_another_implementation() {
    let vectors = vectors();
    for table in vectors["tables"].as_array().unwrap() {
        let steps = Steps::new(table["count"].as_u64().unwrap() as usize).unwrap();
        let (low, high) = (numbers(&table["low"]), numbers(&table["high"]));
        let tolerance = table["tolerance"].as_f64().unwrap() as f32;
        let mut found = Vec::new();
        for row in table["rows"].as_array().unwrap() {
            for (x, (low, high)) in numbers(row).into_iter().zip(low.iter().zip(&high)) {
                let range = Range::new(*low, *high).unwrap();
                let mut features = std::vec![f32::NAN; steps.count()];
                steps.features_into(x, &range, &mut features).unwrap();
                found.extend(features);
            }
        }
        let expected = bits(&table["steps_f32"]);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= tolerance, "{found} {expected}");
        }
    }
}

/// The formula, pixel by pixel, from planes.
fn expected_sums(rows: usize, columns: usize, cell: usize, planes: &[Vec<u8>]) -> Vec<u32> {
    let cells = cells(rows, columns, cell);
    let mut sums = std::vec![0; cells.count() * DIRECTIONS];
    for r in 0..rows / cell * cell {
        for c in 0..columns / cell * cell {
            let mut best = (0, 0);
            for plane in planes.iter().rev() {
                let at = |r: usize, c: usize| i32::from(plane[r * columns + c]);
                let gx = match c > 0 && c + 1 < columns {
                    true => at(r, c + 1) - at(r, c - 1),
                    false => 0,
                };
                let gy = match r > 0 && r + 1 < rows {
                    true => at(r + 1, c) - at(r - 1, c),
                    false => 0,
                };
                let (a, b) = (gx.abs().max(gy.abs()), gx.abs().min(gy.abs()));
                let direction = match 29 * b > 12 * a {
                    true => match (gx.signum(), gy.signum()) {
                        (1, 1) => 1,
                        (-1, 1) => 3,
                        (-1, -1) => 5,
                        _ => 7,
                    },
                    false if gx.abs() == a => [4, 0, 0][(gx.signum() + 1) as usize],
                    false => [6, 0, 2][(gy.signum() + 1) as usize],
                };
                let magnitude = (a + 3 * b / 8) as u32;
                if magnitude >= best.0 {
                    best = (magnitude, direction);
                }
            }
            let at = (r / cell * cells.across() + c / cell) * DIRECTIONS;
            sums[at + best.1] += best.0;
        }
    }
    sums
}

/// An image of any size and its cell.
fn images() -> impl Strategy<Value = (usize, usize, usize, Vec<u8>)> {
    (1..14_usize, 1..14_usize, 1..6_usize).prop_flat_map(|(rows, columns, cell)| {
        let cell = cell.min(rows).min(columns);
        let pixel = prop_oneof![any::<u8>(), Just(0), Just(255), 100..104_u8];
        let pixels = proptest::collection::vec(pixel, rows * columns);
        (Just(rows), Just(columns), Just(cell), pixels)
    })
}

/// The nearest integer to √(c · n · 4^F / S) / 2, exactly: the largest v with (2v − 1)² · S at most
/// c · n · 4^F.
fn nearest(sum: u32, count: usize, fraction: u32, total: u32) -> u64 {
    let square = (u128::from(sum) * count as u128) << (2 * fraction);
    let is_below = |v: u64| {
        let odd = u128::from(2 * v - 1);
        odd * odd * u128::from(total) <= square
    };
    (1..).take_while(|v| is_below(*v)).last().unwrap_or(0)
}

proptest! {
    #[test]
    fn sums_are_those_of_the_formula((rows, columns, cell, pixels) in images()) {
        let found = sums(cells(rows, columns, cell), &pixels);
        prop_assert_eq!(found, expected_sums(rows, columns, cell, &[pixels]));
    }

    #[test]
    fn the_steepest_plane_of_a_pixel_counts(
        (rows, columns, cell, red) in images(), seeds in any::<[u8; 2]>(),
    ) {
        let other = |seed: u8| red.iter().map(|x| x.wrapping_mul(seed)).collect::<Vec<u8>>();
        let (green, blue) = (other(seeds[0]), other(seeds[1]));
        let gradients = Gradients::new(cells(rows, columns, cell));
        let mut sums = std::vec![0; gradients.feature_count()];
        let mut features = std::vec![0_i16; gradients.feature_count()];
        let scale = FeatureScale::new::<i16>(12).unwrap();
        let planes = [&red[..], &green, &blue];
        gradients.quantised_into(planes, scale, &mut sums, &mut features).unwrap();
        prop_assert_eq!(sums, expected_sums(rows, columns, cell, &[red, green, blue]));
    }

    /// For any image, the squares of features add up to a quarter of their number, or all are zero.
    /// Twice the contrast only changes roundings of ⌊3b/8⌋.
    #[test]
    fn samples_have_one_length((rows, columns, cell, pixels) in images()) {
        let cells = cells(rows, columns, cell);
        for features in [gradients(cells, &pixels), pool(cells, &pixels)] {
            let square: f64 = features.iter().map(|x| f64::from(*x).powi(2)).sum();
            let expected = features.len() as f64 / 4.0;
            let is_flat = features.iter().all(|x| x.to_bits() == 0);
            prop_assert!(is_flat || (square / expected - 1.0).abs() < 1e-5, "{}", square);
        }
    }

    /// An image rotated by 180° has the gradients of the opposite direction in the opposite cell,
    /// if cells cover it.
    #[test]
    fn gradients_turn_with_the_image(
        (rows, columns, cell) in (1..4_usize, 1..4_usize, 1..5_usize),
        seed in proptest::collection::vec(any::<u8>(), 12 * 12),
    ) {
        let (rows, columns) = (rows * cell, columns * cell);
        let pixels = &seed[..rows * columns];
        let turned: Vec<u8> = pixels.iter().rev().copied().collect();
        let cells = cells(rows, columns, cell);
        let (sums, turned) = (sums(cells, pixels), sums(cells, &turned));
        let (here, there) = (sums.chunks(DIRECTIONS), turned.chunks(DIRECTIONS).rev());
        for (here, there) in here.zip(there) {
            prop_assert_eq!([&here[4..], &here[..4]].concat(), there);
        }
    }

    /// Integers are nearest to the formula, and equal `f32` up to rounding.
    #[test]
    fn integers_are_the_nearest(
        (rows, columns, cell, pixels) in images(), fraction in 0_u8..=15,
    ) {
        let (narrow, wide) = (fraction.min(7), fraction);
        let gradients = Gradients::new(cells(rows, columns, cell));
        let count = gradients.feature_count();
        let (mut in_f32, mut sums) = (std::vec![0.0; count], std::vec![0; count]);
        gradients.features_into([&pixels], &mut in_f32).unwrap();
        let (mut small, mut large) = (std::vec![0_i8; count], std::vec![0_i16; count]);
        let scale = FeatureScale::new::<i8>(narrow).unwrap();
        let beyond = gradients.quantised_into([&pixels], scale, &mut sums, &mut small).unwrap();
        let scale = FeatureScale::new::<i16>(wide).unwrap();
        gradients.quantised_into([&pixels], scale, &mut sums, &mut large).unwrap();
        let total = sums.iter().sum::<u32>();
        let mut saturated = 0;
        for ((sum, x), (small, large)) in
            sums.iter().zip(&in_f32).zip(small.iter().zip(&large))
        {
            let exact = match total {
                0 => 0,
                _ => nearest(*sum, count, narrow.into(), total),
            };
            prop_assert_eq!(u64::from(small.unsigned_abs()), exact.min(127));
            saturated += usize::from(exact > 127);
            let unit = f64::from(1_u32 << wide);
            let difference = (f64::from(*large) - (f64::from(*x) * unit).min(32_767.0)).abs();
            prop_assert!(difference <= 0.5 + f64::from(*x) * unit * 2e-7, "{}", difference);
        }
        prop_assert_eq!(beyond, saturated);
    }

    /// Features are within 2⁻²² of the formula in `f64`, for any bounds.
    #[test]
    fn steps_are_those_of_the_formula(
        low in -1e6_f32..1e6, width in 1e-3_f32..1e6, at in -0.1..1.1_f64, count in 1..=MAX_STEPS,
    ) {
        let high = low + width;
        prop_assume!(high > low);
        let range = Range::new(low, high).unwrap();
        let (low, high) = (f64::from(low), f64::from(high));
        let x = (low + at * (high - low)) as f32;
        let steps = Steps::new(count).unwrap();
        let mut features = std::vec![0.0; count];
        steps.features_into(x, &range, &mut features).unwrap();
        for (j, found) in features.iter().enumerate() {
            let t = (f64::from(x) - low) / (high - low) * count as f64 - j as f64;
            let expected = t.clamp(0.0, 1.0) - 0.5;
            let difference = (f64::from(*found) - expected).abs();
            prop_assert!(difference <= 2f64.powi(-22), "{} {}", j, difference);
        }
    }

    /// For counts, the result is the integer nearest to the formula.
    #[test]
    fn steps_of_counts_are_the_nearest(
        ends in any::<[i32; 2]>(), shift in 0..31_u32, x in any::<i32>(), at in any::<u16>(),
        count in 1..=MAX_STEPS, fraction in 0_u8..=15,
    ) {
        let (low, high) = (ends[0] >> shift, ends[1] >> shift);
        prop_assume!(low != high);
        let (low, high) = (low.min(high), low.max(high));
        let width = i128::from(high) - i128::from(low);
        let inside = (i128::from(low) + width * i128::from(at) / 65_535) as i32;
        let range = Range::of_counts(low, high).unwrap();
        let steps = Steps::new(count).unwrap();
        let scale = FeatureScale::new::<i16>(fraction).unwrap();
        for x in [x, inside, low, high] {
            let mut features = std::vec![0_i16; count];
            let saturated = steps.quantised_into(x, &range, scale, &mut features).unwrap();
            prop_assert_eq!(saturated, 0);
            for (j, found) in (0..).zip(&features) {
                let above = i128::from(x.clamp(low, high)) - i128::from(low);
                let number = (above * count as i128 - j * width).clamp(0, width);
                // (number / width − ½) · 2^F, doubled twice.
                let exact = (2 * number - width) << fraction;
                let distance = (i128::from(*found) * 2 * width - exact).abs();
                prop_assert!(distance <= width);
                let is_half = distance == width;
                let is_away = i128::from(*found).abs() * 2 * width > exact.abs();
                prop_assert!(!is_half || is_away, "{} is not away from zero", found);
            }
        }
    }
}

#[test]
fn images_without_contrast_have_zeros() {
    for pixels in [[0; 30], [77; 30]] {
        assert_eq!(gradients(cells(5, 6, 2), &pixels), [0.0; 48]);
        let scale = FeatureScale::new::<i8>(6).unwrap();
        let (mut sums, mut features) = ([1; 48], [1_i8; 48]);
        let gradients = Gradients::new(cells(5, 6, 2));
        let saturated = gradients.quantised_into([&pixels], scale, &mut sums, &mut features);
        assert_eq!((saturated, features), (Ok(0), [0; 48]));
    }
    assert_eq!(pool(cells(5, 6, 2), &[0; 30]), [0.0; 6]);
    // A quarter of the brightness each: √¼ · √4 / 2.
    assert_eq!(pool(cells(4, 4, 2), &[9; 16]), [0.5; 4]);
}

/// One cell with all gradients of the largest image is far from the limits of the arithmetic.
#[test]
fn the_largest_image_fits() {
    let cells = cells(MAX_SIDE, MAX_SIDE, MAX_SIDE);
    let pixels: Vec<u8> = (0..MAX_SIDE * MAX_SIDE)
        .map(|i| match (i / MAX_SIDE / 2 + i % MAX_SIDE / 2) % 2 {
            0 => 0,
            _ => 255,
        })
        .collect();
    let total: u32 = sums(cells, &pixels).iter().sum();
    assert!(total > 1 << 27, "{total}");
    let square: f32 = gradients(cells, &pixels).iter().map(|x| x * x).sum();
    assert!((square - 2.0).abs() < 1e-5, "{square}");
}

#[test]
fn wrong_settings_and_samples_are_refused() {
    assert_eq!(
        Cells::new(0, 4, 1),
        Err(FeatureError::Size {
            rows: 0,
            columns: 4,
            max: 1_024
        })
    );
    assert!(Cells::new(4, MAX_SIDE + 1, 1).is_err());
    assert_eq!(
        Cells::new(28, 4, 5),
        Err(FeatureError::Cell { cell: 5, side: 4 })
    );
    assert!(Cells::new(4, 4, 0).is_err());
    assert!(Steps::new(0).is_err() && Steps::new(256).is_err() && Steps::new(255).is_ok());
    for (low, high) in [
        (1.0, 1.0),
        (2.0, 1.0),
        (f32::NAN, 1.0),
        (0.0, f32::INFINITY),
        (f32::MIN, f32::MAX),
        (0.0, 1e-40),
    ] {
        assert_eq!(Range::new(low, high), Err(FeatureError::Bounds), "{low}");
    }
    assert_eq!(Range::of_counts(3, 3), Err(FeatureError::Bounds));
    let image = Gradients::new(cells(4, 4, 2));
    let short = Err(FeatureError::Length {
        expected: 16,
        found: 15,
    });
    assert_eq!(image.features_into([&[0; 15]], &mut [0.0; 32]), short);
    let short = Err(FeatureError::Length {
        expected: 32,
        found: 31,
    });
    assert_eq!(image.features_into([&[0; 16]], &mut [0.0; 31]), short);
    let scale = FeatureScale::new::<i8>(6).unwrap();
    let mut features = [0_i8; 32];
    let found = image.quantised_into([&[0; 16]], scale, &mut [0; 31], &mut features);
    assert_eq!(found.map(|_| ()), short);
    let steps = Steps::new(4).unwrap();
    let range = Range::new(0.0, 1.0).unwrap();
    assert!(steps.features_into(0.5, &range, &mut [0.0; 3]).is_err());
}

#[test]
fn a_missing_value_is_in_the_middle_of_all_steps() {
    let steps = Steps::new(3).unwrap();
    let range = Range::new(10.0, 13.0).unwrap();
    let mut features = [9.0; 3];
    for (x, expected) in [
        (f32::NAN, [0.0; 3]),
        (f32::NEG_INFINITY, [-0.5; 3]),
        (11.25, [0.5, -0.25, -0.5]),
        (1e30, [0.5; 3]),
    ] {
        steps.features_into(x, &range, &mut features).unwrap();
        assert_eq!(features, expected);
    }
}
