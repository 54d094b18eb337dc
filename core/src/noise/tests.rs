//! The contract of [`DiscreteGaussian`]: limits, added values, bounds and pinned values.

extern crate std;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

mod law;
mod reference;
pub(super) mod statistics;

use statistics::{Script, stream};

#[test]
fn parameters_outside_the_limits_are_refused() {
    use NoiseError::*;
    let refusals = [
        (0, 1, ZeroSigma),
        (1, 0, ZeroDenominator),
        (0, 0, ZeroDenominator),
        (NUMERATOR_LIMIT + 1, 1, NumeratorTooLarge),
        (u64::MAX, u64::MAX, NumeratorTooLarge),
        (1, DENOMINATOR_LIMIT + 1, DenominatorTooLarge),
    ];
    for (numerator, denominator, error) in refusals {
        assert_eq!(DiscreteGaussian::new(numerator, denominator), Err(error));
    }
}

#[test]
fn every_error_has_its_sentence() {
    use NoiseError::*;
    let errors = [
        ZeroSigma,
        ZeroDenominator,
        NumeratorTooLarge,
        DenominatorTooLarge,
        TooWideForI32,
    ];
    let mut sentences: Vec<_> = errors.iter().map(ToString::to_string).collect();
    sentences.dedup();
    assert_eq!(sentences.len(), errors.len());
    assert!(sentences.iter().all(|sentence| sentence.contains("sigma")));
}

#[test]
fn parameters_at_the_limits_draw_values_in_range() {
    let corners = [
        (1, 1),
        (1, DENOMINATOR_LIMIT),
        (NUMERATOR_LIMIT, 1),
        (NUMERATOR_LIMIT, DENOMINATOR_LIMIT),
        (NUMERATOR_LIMIT - 1, DENOMINATOR_LIMIT - 1),
        (8 << 32, 1),
        ((8 << 32) + 1, 1),
    ];
    for (numerator, denominator) in corners {
        let noise = DiscreteGaussian::new(numerator, denominator).unwrap();
        assert_eq!(noise.sigma().ratio(), (numerator, denominator));
        let mut rng = stream(100);
        let limit = 10 * (numerator / denominator + 1) as i64;
        assert!((0..1000).all(|_| noise.sample(&mut rng).abs() < limit));
    }
}

#[test]
fn parameters_are_constants_for_firmware() {
    const NOISE: Result<DiscreteGaussian, NoiseError> = DiscreteGaussian::new(11 << 20, 10);
    assert_eq!(NOISE.unwrap().sigma().ratio(), (11 << 20, 10));
}

#[test]
fn multiplier_scales_the_grid_and_is_never_rounded_down() {
    let from_units = |units, grid_bits| {
        DiscreteGaussian::from_multiplier(NoiseMultiplier::from_units(units), grid_bits)
    };
    let noise = from_units(3 << 31, 20).unwrap();
    assert_eq!(noise.sigma().ratio(), (3 << 19, 1));
    let noise = from_units(1, 0).unwrap();
    assert_eq!(noise.sigma().ratio(), (1, 1 << 32));
    // 64 significant bits do not fit: up to the next multiple of 2^12, or to 2^64 = 2^52·2^12.
    let noise = from_units((1 << 63) + 1, 0).unwrap();
    assert_eq!(noise.sigma().ratio(), ((1 << 51) + 1, 1 << 20));
    let noise = from_units(u64::MAX, 0).unwrap();
    assert_eq!(noise.sigma().ratio(), (1 << 52, 1 << 20));
    assert_eq!(from_units(0, 20), Err(NoiseError::ZeroSigma));
    for (value, grid_bits) in [(u64::MAX, 21), (1, 85), (1, u32::MAX), (1 << 63, u32::MAX)] {
        assert_eq!(
            from_units(value, grid_bits),
            Err(NoiseError::NumeratorTooLarge)
        );
    }
}

#[test]
fn fill_and_add_draw_one_value_for_each_entry_in_order() {
    let noise = DiscreteGaussian::new(5000, 3).unwrap();
    let mut rng = stream(101);
    let expected: Vec<i64> = (0..50).map(|_| noise.sample(&mut rng)).collect();

    let mut filled = [7; 50];
    noise.fill(&mut filled, &mut stream(101));
    assert_eq!(filled, *expected);

    let mut sums: Vec<i64> = (0..50).collect();
    noise.add_to(&mut sums, &mut stream(101));
    assert!(
        (0..)
            .zip(&sums)
            .zip(&expected)
            .all(|((before, sum), noise)| *sum == before + noise)
    );

    let mut updates: Vec<i32> = (0..50).collect();
    noise.add_to_i32(&mut updates, &mut stream(101)).unwrap();
    assert!(
        updates
            .iter()
            .zip(&sums)
            .all(|(update, sum)| i64::from(*update) == *sum)
    );
}

#[test]
fn no_entry_draws_no_word() {
    let noise = DiscreteGaussian::new(1, 1).unwrap();
    let mut rng = Script::new([]);
    noise.fill(&mut [], &mut rng);
    noise.add_to(&mut [], &mut rng);
    noise.add_to_i32(&mut [], &mut rng).unwrap();
}

#[test]
fn sums_at_the_edge_wrap() {
    let noise = DiscreteGaussian::new(1 << 20, 1).unwrap();
    let mut sums = [i64::MAX; 20];
    noise.add_to(&mut sums, &mut stream(102));
    assert!(sums.iter().any(|sum| *sum < 0) && sums.iter().any(|sum| *sum > 0));
    let mut updates = [i32::MAX; 20];
    noise.add_to_i32(&mut updates, &mut stream(102)).unwrap();
    for (sum, update) in sums.iter().zip(updates) {
        let noise = sum.wrapping_sub(i64::MAX);
        assert_eq!(i64::from(update.wrapping_sub(i32::MAX)), noise);
    }
}

#[test]
fn too_wide_a_sigma_for_32_bits_is_refused_and_leaves_the_update() {
    let mut update = [1, 2, 3];
    let widest = DiscreteGaussian::new(I32_SIGMA_LIMIT, 1).unwrap();
    assert_eq!(widest.add_to_i32(&mut update, &mut stream(103)), Ok(()));
    let mut update = [1, 2, 3];
    let wider = DiscreteGaussian::new(4 * I32_SIGMA_LIMIT + 1, 4).unwrap();
    let refused = wider.add_to_i32(&mut update, &mut Script::new([]));
    assert_eq!(
        (refused, update),
        (Err(NoiseError::TooWideForI32), [1, 2, 3])
    );
}

/// Three words make a value: sign and strip, offset, acceptance.
#[test]
fn a_value_is_sign_strip_and_offset() {
    let noise = DiscreteGaussian::new(8000, 1).unwrap();
    // Word 1 is strip 0, negative. The middle of the range of the next one is offset 500 of 1000.
    let mut rng = Script::new([1, (1 << 31) + 1, u32::MAX]);
    assert_eq!((noise.sample(&mut rng), rng.left()), (-500, 0));
    // Minus zero is drawn again, before a word is spent on accepting it. Then plus zero.
    let mut rng = Script::new([1, 1, 0, 1, u32::MAX]);
    assert_eq!((noise.sample(&mut rng), rng.left()), (0, 0));
    // 2^32 mod 1000 = 296: the first of two words with offset 3 is refused.
    let refused = (3_u64 << 32).div_ceil(1000) as u32;
    let mut rng = Script::new([0, refused, refused + 1, u32::MAX]);
    assert_eq!((noise.sample(&mut rng), rng.left()), (3, 0));
}

proptest! {
    /// Multiples of numerator and denominator give the same sigma and draw the same values.
    #[test]
    fn equal_ratios_draw_equal_values(
        numerator in 1_u64..1 << 40, denominator in 1_u64..1 << 30, factor in 1_u64..1 << 12,
    ) {
        let one = DiscreteGaussian::new(numerator, denominator).unwrap();
        let other = DiscreteGaussian::new(numerator * factor, denominator * factor).unwrap();
        let (mut first, mut second) = (vec![0; 8], vec![0; 8]);
        one.fill(&mut first, &mut stream(104));
        other.fill(&mut second, &mut stream(104));
        prop_assert_eq!(first, second);
    }

    /// σ = z·2^grid_bits, or above it by a share of 2^-51 at most.
    #[test]
    fn multiplier_is_rounded_up_by_little(multiplier in 1_u64.., grid_bits in 0_u32..=20) {
        let units = NoiseMultiplier::from_units(multiplier);
        let noise = DiscreteGaussian::from_multiplier(units, grid_bits).unwrap();
        let (numerator, denominator) = noise.sigma().ratio();
        let asked = u128::from(multiplier) << grid_bits;
        let given = u128::from(numerator) * ((1 << 32) / u128::from(denominator));
        prop_assert!(given >= asked && given - asked <= asked >> 51);
    }
}

/// `tests/vectors/discrete_gaussian.json`: boards must draw the same.
#[test]
fn pinned_values_are_drawn() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/vectors/discrete_gaussian.json"
    );
    let vectors: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let number = |key: &str| case[key].as_u64().unwrap();
        let id = crate::stream::StreamId {
            purpose: crate::stream::Purpose::ServerNoise,
            round: number("round") as u32,
            device: number("device") as u32,
        };
        assert_eq!(number("purpose"), u64::from(id.purpose as u32));
        let mut rng = crate::stream::Root::from_seed(number("seed")).stream(id);
        let noise = DiscreteGaussian::new(number("numerator"), number("denominator")).unwrap();
        for value in case["values"].as_array().unwrap() {
            assert_eq!(noise.sample(&mut rng), value.as_i64().unwrap(), "{case}");
        }
    }
}
