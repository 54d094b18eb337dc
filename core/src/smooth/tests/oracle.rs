//! Two oracles independent of the recursions: the eigenvalues, and a direct solver.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

/// First column of `A^-1` from its eigenvalues, `h[k] = mean_i cos(2 pi i k / d) / lambda_i`. Good
/// for every sigma, O(d^2).
fn inverse_column(sigma: f64, d: usize) -> Vec<f64> {
    let angle = |i: usize| std::f64::consts::TAU * (i % d) as f64 / d as f64;
    // 1 - cos x = 2 sin^2 (x / 2): exact at small x, where the eigenvalue matters most.
    let eigenvalue = |i| 1.0 + 4.0 * sigma * (angle(i) / 2.0).sin().powi(2);
    (0..d)
        .map(|k| {
            (0..d)
                .map(|i| angle(i * k).cos() / eigenvalue(i))
                .sum::<f64>()
                / d as f64
        })
        .collect()
}

/// `A^-1 v` as a product with the dense inverse.
fn dense(sigma: f64, v: &[f64]) -> Vec<f64> {
    let d = v.len();
    let h = inverse_column(sigma, d);
    (0..d)
        .map(|i| (0..d).map(|j| h[(i + d - j) % d] * v[j]).sum())
        .collect()
}

/// The separable operator on one grid, axis by axis, as dense products.
pub fn dense_grid(sigma: f64, grid: &[f32], axes: &[usize]) -> Vec<f64> {
    let mut u: Vec<f64> = grid.iter().map(|x| f64::from(*x)).collect();
    let mut slab = u.len();
    for &axis in axes {
        let stride = slab / axis;
        for start in (0..u.len()).filter(|i| i % slab < stride) {
            let column: Vec<f64> = (0..axis).map(|k| u[start + k * stride]).collect();
            for (k, x) in dense(sigma, &column).into_iter().enumerate() {
                u[start + k * stride] = x;
            }
        }
        slab = stride;
    }
    u
}

/// `A^-1 v` by elimination of the tridiagonal part and a correction of rank one (Sherman and
/// Morrison) for the corners. O(d), but loses `1 + 4 sigma` of the sixteen digits. Needs d >= 3.
fn solve(sigma: f64, v: &[f64]) -> Vec<f64> {
    let d = v.len();
    let diagonal = 1.0 + 2.0 * sigma;
    let corner = -diagonal;
    let tridiagonal = |right: &[f64]| {
        let mut upper = vec![0.0; d];
        let mut x = vec![0.0; d];
        for i in 0..d {
            let own = match i {
                0 => diagonal - corner,
                i if i == d - 1 => diagonal - sigma * sigma / corner,
                _ => diagonal,
            };
            let (before, eliminated) = if i == 0 {
                (0.0, 0.0)
            } else {
                (x[i - 1], upper[i - 1])
            };
            let pivot = own + sigma * eliminated;
            upper[i] = -sigma / pivot;
            x[i] = (right[i] + if i == 0 { 0.0 } else { sigma * before }) / pivot;
        }
        for i in (0..d - 1).rev() {
            x[i] -= upper[i] * x[i + 1];
        }
        x
    };
    let mut ends = vec![0.0; d];
    (ends[0], ends[d - 1]) = (corner, -sigma);
    let (x, z) = (tridiagonal(v), tridiagonal(&ends));
    let edge = -sigma / corner;
    let factor = (x[0] + edge * x[d - 1]) / (1.0 + z[0] + edge * z[d - 1]);
    x.iter().zip(&z).map(|(x, z)| x - factor * z).collect()
}

fn error_of_solve(sigma: f64, d: usize) -> f64 {
    let v = pattern(d);
    let wide: Vec<f64> = v.iter().map(|x| f64::from(*x)).collect();
    distance(
        &v,
        &smoothed(sigma, &v),
        &solve(f64::from(sigma as f32), &wide),
    )
}

#[test]
fn the_oracles_agree() {
    let v: Vec<f64> = pattern(50).iter().map(|x| f64::from(*x)).collect();
    for sigma in [0.1, 1.0, 30.0] {
        for (a, b) in dense(sigma, &v).iter().zip(solve(sigma, &v)) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }
}

/// Around the longest plain vector, and around one, two and three blocks of 48 * 341.
#[test]
fn lengths_around_every_threshold_are_exact() {
    let edges = [1_024, 1_056, 16_368, 32_736, 49_104];
    let around = [0, 1, 2, 17, 48, 49, 50];
    for d in edges
        .iter()
        .flat_map(|edge| around.map(|step| edge - 1 + step))
    {
        for sigma in [0.3, 3.0] {
            let error = error_of_solve(sigma, d);
            assert!(error < 3e-7, "d {d} sigma {sigma}: {error:e}");
        }
    }
}

/// Sigma determines the length of a warm-up, and so the shortest segmented vector.
#[test]
fn sigmas_around_every_threshold_are_exact() {
    for d in [1_000, 2_000, 5_000, 20_000] {
        for step in 0..60 {
            let sigma = 1e-3 * 1.26_f64.powi(step);
            let error = error_of_solve(sigma, d);
            assert!(error < TOLERANCE, "d {d} sigma {sigma}: {error:e}");
        }
        for sigma in [NARROW_SIGMA, NARROW_SIGMA.next_up()] {
            assert!(error_of_solve(f64::from(sigma), d) < TOLERANCE);
        }
    }
}

#[test]
fn huge_sigma_tends_to_the_mean() {
    for sigma in [1e12, 1e20, 1e30, f64::from(f32::MAX)] {
        for (d, scale) in [(2, 1.0), (3, 1e-30), (7, 1e30), (1_000, 1.0), (50_000, 1.0)] {
            let v: Vec<f32> = pattern(d).iter().map(|x| x * scale).collect();
            let mean = v.iter().map(|x| f64::from(*x)).sum::<f64>() / d as f64;
            let roughness = (d as f64).powi(2) / sigma;
            let error = distance(&v, &smoothed(sigma, &v), &vec![mean; d]);
            assert!(
                error < TOLERANCE + roughness,
                "d {d} sigma {sigma:e}: {error:e}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Short vectors of any length, sigma over 18 decades.
    #[test]
    fn short_vectors_are_exact(d in 1_usize..90, exponent in -6.0_f64..12.0) {
        let sigma = f64::from(10_f64.powf(exponent) as f32);
        let v = pattern(d);
        let wide: Vec<f64> = v.iter().map(|x| f64::from(*x)).collect();
        let error = distance(&v, &smoothed(sigma, &v), &dense(sigma, &wide));
        prop_assert!(error < TOLERANCE, "{error:e}");
    }

    /// Longer vectors, over all partitions.
    #[test]
    fn long_vectors_are_exact(d in 900_usize..40_000, exponent in -6.0_f64..4.0) {
        let error = error_of_solve(10_f64.powf(exponent), d);
        prop_assert!(error < TOLERANCE, "{error:e}");
    }
}
