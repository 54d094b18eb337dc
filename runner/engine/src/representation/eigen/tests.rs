use super::*;
use proptest::{collection::vec, prelude::*};
use smolfed_core::contrast::correlation::{add_outer, inner_product};

/// Returns the symmetric matrix with this upper triangle, row by row.
fn full(triangle: &[f64], width: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; width * width];
    for ((row, column), entry) in upper_triangle(width).zip(triangle) {
        matrix[row * width + column] = *entry;
        matrix[column * width + row] = *entry;
    }
    matrix
}

fn values_of(packed: &[f32], width: usize) -> Vec<f64> {
    let scaled = upper_triangle(width)
        .zip(packed)
        .map(|((r, c), entry)| f64::from(*entry) * if r == c { 1.0 } else { FRAC_1_SQRT_2 });
    symmetric_eigen(&full(&scaled.collect::<Vec<_>>(), width), width).values
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Generates a width and a matching triangle.
fn triangles() -> impl Strategy<Value = (usize, Vec<f64>)> {
    (1usize..13).prop_flat_map(|n| (Just(n), vec(-1e3f64..1e3, packed_length(n))))
}

fn packed_triangles() -> impl Strategy<Value = (usize, Vec<f32>)> {
    (1usize..9).prop_flat_map(|n| (Just(n), vec(-10f32..10.0, packed_length(n))))
}

proptest! {
    #[test]
    fn vectors_are_orthonormal_and_the_matrix_only_stretches_them((n, triangle) in triangles()) {
        let matrix = full(&triangle, n);
        let Eigen { values, vectors } = symmetric_eigen(&matrix, n);
        let scale = matrix.iter().fold(1.0, |a: f64, b| a.max(b.abs()));
        for (i, v) in vectors.chunks_exact(n).enumerate() {
            for (row, entry) in matrix.chunks_exact(n).zip(v) {
                prop_assert!((dot(row, v) - values[i] * entry).abs() < 1e-13 * scale * n as f64);
            }
            for (j, w) in vectors.chunks_exact(n).enumerate() {
                let expected = if i == j { 1.0 } else { 0.0 };
                prop_assert!((dot(v, w) - expected).abs() < 1e-13);
            }
        }
        let trace: f64 = (0..n).map(|i| matrix[i * n + i]).sum();
        prop_assert!((values.iter().sum::<f64>() - trace).abs() < 1e-12 * scale * n as f64);
        prop_assert!(values.is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn projection_leaves_no_negative_value_and_is_idempotent((n, packed) in packed_triangles()) {
        let mut once = packed.clone();
        project_to_psd(&mut once, n);
        let before = values_of(&packed, n);
        let scale = before[0].abs().max(before[n - 1].abs());
        for (after, before) in values_of(&once, n).iter().zip(&before) {
            prop_assert!((after - before.max(0.0)).abs() < 1e-6 * scale, "{after} from {before}");
        }
        let mut twice = once.clone();
        project_to_psd(&mut twice, n);
        for (a, b) in once.iter().zip(&twice) {
            prop_assert!((f64::from(*a) - f64::from(*b)).abs() < 1e-6 * scale);
        }
    }

    /// The nearest point of a convex cone: the removed part is orthogonal to the cone.
    #[test]
    fn no_semi_definite_matrix_is_nearer(
        (n, packed) in packed_triangles(), other in vec(-3f32..3.0, 8),
    ) {
        let mut nearest = packed.clone();
        project_to_psd(&mut nearest, n);
        let mut rival = nearest.clone();
        add_outer(&other[..n], 0.1, &mut rival);
        let distance = |a: &[f32]| {
            let difference: Vec<f32> = a.iter().zip(&packed).map(|(x, y)| x - y).collect();
            inner_product(&difference, &difference)
        };
        prop_assert!(distance(&rival) >= distance(&nearest) * (1.0 - 1e-4));
    }

    #[test]
    fn semi_definite_matrices_stay(z in vec(-2f32..2.0, 6 * 4)) {
        let mut packed = vec![0.0; packed_length(4)];
        for z in z.chunks_exact(4) {
            add_outer(z, 1.0 / 6.0, &mut packed);
        }
        let before = packed.clone();
        project_to_psd(&mut packed, 4);
        for (a, b) in packed.iter().zip(&before) {
            prop_assert!((a - b).abs() < 1e-5);
        }
    }
}

#[test]
fn known_values_and_vectors() {
    let Eigen { values, vectors } = symmetric_eigen(&[2.0, 1.0, 1.0, 2.0], 2);
    for (found, expected) in values.iter().zip([3.0, 1.0]) {
        assert!((found - expected).abs() < 1e-15);
    }
    let root = FRAC_1_SQRT_2;
    for (found, expected) in vectors.iter().zip([root, root, root, -root]) {
        assert!((found.abs() - expected.abs()).abs() < 1e-15, "{vectors:?}");
    }
    // Already diagonal: sorted, and equal values keep their order.
    let Eigen { values, vectors } =
        symmetric_eigen(&[1.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 1.0], 3);
    assert_eq!(values, [5.0, 1.0, 1.0]);
    assert_eq!(vectors, [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn a_wide_matrix_of_low_rank_has_values_near_zero() {
    let n = 32;
    let row = |k: usize| (0..n).map(move |i| ((i * (k + 3) + 7 * k) % 11) as f64 - 5.0);
    let mut matrix = vec![0.0; n * n];
    for v in [row(0), row(1)].map(Iterator::collect::<Vec<_>>) {
        for (index, entry) in matrix.iter_mut().enumerate() {
            *entry += v[index / n] * v[index % n];
        }
    }
    let values = symmetric_eigen(&matrix, n).values;
    assert!(values[1] > 10.0 && values[2].abs() < 1e-11 && values[n - 1].abs() < 1e-11);
}

#[test]
fn sizes_at_the_edge_and_huge_entries() {
    let nothing = symmetric_eigen(&[], 0);
    assert!(nothing.values.is_empty() && nothing.vectors.is_empty());
    assert_eq!(symmetric_eigen(&[-4.0], 1).values, [-4.0]);
    assert_eq!(symmetric_eigen(&[], 2).values, [0.0, 0.0]);
    let values = symmetric_eigen(&[1e300, 1e300, 1e300, 1e300], 2).values;
    assert!((values[0] / 2e300 - 1.0).abs() < 1e-15 && values[1].abs() < 1e285);
    let values = symmetric_eigen(&[1.0, f64::INFINITY, 0.0, 1.0], 2).values;
    assert!(values.iter().all(|value| value.is_nan()));
}

#[test]
fn what_cannot_be_projected_stays() {
    for before in [vec![-1.0, 2.0], vec![-1.0, f32::INFINITY, 1.0]] {
        let mut packed = before.clone();
        project_to_psd(&mut packed, 2);
        assert_eq!(packed, before);
    }
    let mut negative = [-1.0];
    project_to_psd(&mut negative, 1);
    assert_eq!(negative, [0.0]);
    project_to_psd(&mut [], 0);
    // Without negative values every bit stays. The values here are 3 and 1.
    let mut packed = [2.0, std::f32::consts::SQRT_2, 2.0];
    project_to_psd(&mut packed, 2);
    assert_eq!(packed, [2.0, std::f32::consts::SQRT_2, 2.0]);
}

/// Pinned on x86-64. Every other machine must give the same values.
#[test]
fn values_keep_their_bits() {
    let triangle: Vec<f64> = (0..packed_length(5))
        .map(|i| ((i * 7) % 5) as f64 - 1.3)
        .collect();
    let values = symmetric_eigen(&full(&triangle, 5), 5).values;
    let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
    let pinned = [
        0x4014_1b07_0beb_4c8f,
        0x400b_ce23_0ab3_ef2c,
        0x3ff3_8996_2237_1c7a,
        0xc007_9f51_a85f_c3e4,
        0xc00a_29aa_8b46_529e,
    ];
    assert_eq!(bits, pinned, "{values:?}");
}
