//! Every implementation gives the bits of the definition.

use super::*;
use proptest::{collection::vec, prelude::*};

/// The definition, term by term.
fn dot_by_definition(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        lanes[i % LANES] += x * y;
    }
    tree(lanes)
}

proptest! {
    #[test]
    fn tiles_of_every_shape_give_the_bits_of_the_definition(
        v in vec(-1e3f32..1e3, 0..100), w in vec(-1e3f32..1e3, 0..100),
    ) {
        let expected = dot_by_definition(&v, &w).to_bits();
        prop_assert_eq!(dot(&v, &w).to_bits(), expected);
        prop_assert_eq!(dot_by_blocks(&v, &w).to_bits(), expected);
        // For several vectors, uses the common length.
        let [v, w] = [&v, &w].map(|x| &x[..v.len().min(w.len())]);
        let rows = [w, v, v, w, w];
        let expected = rows.map(|w| dot_by_definition(v, w).to_bits());
        prop_assert_eq!(dots(v, rows).map(f32::to_bits), expected);
        let pair = dots_of_pair([v, w], rows).map(|dots| dots.map(f32::to_bits));
        let expected = |x| rows.map(|w| dot_by_definition(x, w).to_bits());
        prop_assert_eq!(pair, [expected(v), expected(w)]);
    }

    /// Holds for any number of entries known at a time.
    #[test]
    fn squares_counted_while_entries_come_in_are_the_squared_norm(
        v in vec(-1e3f32..1e3, 0..400), known in vec(0usize..400, 0..12),
    ) {
        let mut squares = Squares::new();
        let mut complete = 0;
        for more in known {
            complete = v.len().min(complete + more);
            squares.advance(&v, complete);
        }
        prop_assert_eq!(squares.finish(&v).to_bits(), squared_norm(&v).to_bits());
    }

    #[test]
    fn norm_is_homogeneous_for_powers_of_two(v in vec(-1f32..1.0, 1..50)) {
        let huge: std::vec::Vec<f32> = v.iter().map(|x| x * 2f32.powi(100)).collect();
        let expected = norm(&v) as f64 * 2f64.powi(100);
        prop_assert!((norm(&huge) as f64 - expected).abs() <= 1e-6 * expected);
    }
}

#[test]
fn norm_survives_squares_that_overflow_or_vanish() {
    assert_eq!(norm(&[3e30, -4e30]), 5e30);
    assert!((norm(&[3e-30, 4e-30]) / 5e-30 - 1.0).abs() < 1e-6);
    assert!(
        (norm(&[3e-44, 4e-44]) / 5e-44 - 1.0).abs() < 0.02,
        "subnormals are coarse"
    );
    assert_eq!(norm(&[]), 0.0);
    assert_eq!(norm(&[0.0, -0.0]), 0.0);
    assert!(norm(&[1.0, f32::NAN]).is_nan());
    assert!(!norm(&[1.0, f32::NEG_INFINITY]).is_finite());
    assert!(!norm(&[f32::INFINITY, f32::NAN, 1.0]).is_finite());
    assert!(norm(&[f32::MAX, 1.0]).is_finite());
}

#[test]
fn rest_terms_go_to_the_first_lanes() {
    let v: std::vec::Vec<f32> = (0..11).map(|i| 1.0 + i as f32 * 1e-3).collect();
    assert_eq!(
        sum(&v).to_bits(),
        dot_by_definition(&v, &[1.0; 11]).to_bits()
    );
}

proptest! {
    /// The computation of devices without vectors.
    #[test]
    fn two_rows_side_by_side_give_the_bits_of_the_definition(
        values in vec(-1e3f32..1e3, 0..240),
    ) {
        let (rows, length) = (values.as_slice(), values.len() / 3);
        let row = |r| rows.get(r * length..(r + 1) * length).unwrap();
        let (x, w) = (row(0), [row(1), row(2)]);
        let expected = w.map(|w| dot_by_definition(x, w).to_bits());
        prop_assert_eq!(two_dots_by_blocks(x, w).map(f32::to_bits), expected);
        prop_assert_eq!(dot_by_blocks(x, w[0]).to_bits(), expected[0]);
    }
}
