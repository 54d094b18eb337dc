//! Smoothing against golden values, against two independent oracles, and at its edges.

extern crate std;

mod bits;
mod cost;
mod laws;
mod oracle;

use std::vec::Vec;

use serde_json::Value;

use super::*;

/// Largest error allowed, relative to the largest entry: two `f32` recursions round each step to
/// 2^-24 and add up at most `1 / (1 - r)` such errors each, the worst of `1 - r` being 1 / 16.5.
const TOLERANCE: f64 = 4e-6;

const GOLDENS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/vectors/laplacian_smoothing.json"
));

fn goldens() -> Value {
    serde_json::from_str(GOLDENS).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect()
}

fn to_f32(v: &[f64]) -> Vec<f32> {
    v.iter().map(|x| *x as f32).collect()
}

fn smoothing(sigma: f64) -> LaplacianSmoothing {
    LaplacianSmoothing::new(sigma as f32).unwrap()
}

fn smoothed(sigma: f64, v: &[f32]) -> Vec<f32> {
    let mut u = v.to_vec();
    smoothing(sigma).apply(&mut u);
    u
}

/// Largest distance from `expected`, relative to the largest entry of `v`.
fn distance(v: &[f32], u: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(u.len(), expected.len());
    let scale = v
        .iter()
        .fold(f64::MIN_POSITIVE, |max, x| max.max(f64::from(x.abs())));
    u.iter().zip(expected).fold(0.0, |max, (u, e)| {
        let error = (f64::from(*u) - e).abs() / scale;
        assert!(error.is_finite(), "{u} is not finite");
        error.max(max)
    })
}

/// Returns entries in [-1, 1) without a pattern and with a nonzero mean.
fn pattern(d: usize) -> Vec<f32> {
    (0..d as u64)
        .map(|i| ((i * 2_654_435_761 + 12_345) % 1_000_003) as f32 / 500_001.5 - 0.8)
        .collect()
}

#[test]
fn golden_vectors_are_met() {
    let goldens = goldens();
    let cases = goldens["cases"].as_array().unwrap();
    for case in cases {
        let v = to_f32(&numbers(&case["input"]));
        let u = smoothed(case["sigma"].as_f64().unwrap(), &v);
        let error = distance(&v, &u, &numbers(&case["output"]));
        assert!(
            error < 3e-7,
            "d {} sigma {}: {error:e}",
            case["d"],
            case["sigma"]
        );
    }
    assert_eq!(cases.len(), 210);
}

#[test]
fn golden_entries_of_a_longer_vector_are_met() {
    let mut state = 20_230_101_u64;
    let v: Vec<f32> = (0..1000)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0) as f32
        })
        .collect();
    for output in goldens()["d1000"]["outputs"].as_array().unwrap() {
        let u = smoothed(output["sigma"].as_f64().unwrap(), &v);
        for (index, expected) in output["entries"].as_object().unwrap() {
            let error = f64::from(u[index.parse::<usize>().unwrap()]) - expected.as_f64().unwrap();
            assert!(error.abs() < 3e-7, "entry {index}: {error:e}");
        }
        let sum_sq: f64 = u.iter().map(|x| f64::from(*x).powi(2)).sum();
        let expected = output["sum_sq"].as_f64().unwrap();
        assert!(
            (sum_sq / expected - 1.0).abs() < 1e-6,
            "{sum_sq} {expected}"
        );
    }
}

#[test]
fn each_tensor_is_smoothed_by_itself() {
    let mut v = pattern(17);
    let expected = [smoothed(2.0, &v[..12]), smoothed(2.0, &v[12..])].concat();
    smoothing(2.0).apply_tensors(&mut v, &[12, 0, 5]).unwrap();
    assert_eq!(v, expected);
}

#[test]
fn grid_smoothing_is_the_product_of_the_operators_of_its_axes() {
    for (axes, grids) in [
        (&[28, 28][..], 10),
        (&[4, 3, 5], 2),
        (&[1, 7, 2], 1),
        (&[6, 1, 1], 3),
        (&[], 4),
    ] {
        for sigma in [0.5, 10.0, 200.0, 1e4] {
            let cells: usize = axes.iter().product();
            let v = pattern(cells * grids);
            let mut u = v.clone();
            smoothing(sigma).apply_grid(&mut u, axes).unwrap();
            let expected: Vec<f64> = v
                .chunks(cells)
                .flat_map(|grid| oracle::dense_grid(sigma, grid, axes))
                .collect();
            let error = distance(&v, &u, &expected);
            assert!(error < TOLERANCE, "{axes:?} sigma {sigma}: {error:e}");
        }
    }
}

#[test]
fn grid_of_one_long_axis_is_plain_smoothing() {
    let mut v = pattern(2 * 1500);
    let expected = [smoothed(1.0, &v[..1500]), smoothed(1.0, &v[1500..])].concat();
    smoothing(1.0).apply_grid(&mut v, &[1500]).unwrap();
    assert_eq!(v, expected);
}

#[test]
fn sigma_that_is_no_factor_is_refused() {
    for sigma in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(
            LaplacianSmoothing::new(sigma),
            Err(SmoothingError::NotFinite)
        );
    }
    assert_eq!(
        LaplacianSmoothing::new(-1e-30),
        Err(SmoothingError::Negative)
    );
    assert!(LaplacianSmoothing::new(-0.0).is_ok());
}

#[test]
fn shapes_that_do_not_fit_are_refused_and_change_nothing() {
    let before = pattern(10);
    let mut v = before.clone();
    let smoothing = smoothing(1.0);
    for (lengths, expected) in [
        (&[4, 5][..], 9),
        (&[11], 11),
        (&[usize::MAX, 11], usize::MAX),
        (&[], 0),
    ] {
        let error = smoothing.apply_tensors(&mut v, lengths).unwrap_err();
        assert_eq!(
            error,
            SmoothingError::Length {
                expected,
                found: 10
            }
        );
    }
    for (axes, cells) in [
        (&[3, 2][..], 6),
        (&[0, 5], 0),
        (&[usize::MAX, 2], usize::MAX),
    ] {
        let error = smoothing.apply_grid(&mut v, axes).unwrap_err();
        assert_eq!(error, SmoothingError::Grid { cells, found: 10 });
    }
    assert_eq!(v, before);
    assert_eq!(
        bias_squared(&v, &v[1..]),
        Err(SmoothingError::Length {
            expected: 10,
            found: 9
        })
    );
}

#[test]
fn nothing_is_smoothed_into_nothing() {
    smoothing(1.0).apply(&mut []);
    smoothing(1.0).apply_tensors(&mut [], &[0, 0]).unwrap();
    smoothing(1.0).apply_grid(&mut [], &[0, 5]).unwrap();
    smoothing(1.0).apply_grid(&mut [], &[28, 28]).unwrap();
}

#[test]
fn not_a_number_spreads() {
    for d in [5, 2_000] {
        let mut v = pattern(d);
        v[d / 2] = f32::NAN;
        smoothing(1.0).apply(&mut v);
        assert!(v[d / 2].is_nan() && v[d / 2 + 1].is_nan() && v[d / 2 - 1].is_nan());
    }
}

#[test]
fn errors_say_what_is_wrong() {
    use std::string::ToString;
    let errors = [
        SmoothingError::NotFinite,
        SmoothingError::Negative,
        SmoothingError::Length {
            expected: 9,
            found: 10,
        },
        SmoothingError::Grid {
            cells: 6,
            found: 10,
        },
    ];
    let texts = errors.map(|error| error.to_string());
    assert!(texts[0].contains("finite") && texts[1].contains("0 or more"));
    assert!(texts[2].contains("9") && texts[2].contains("10"));
    assert!(texts[3].contains("6") && texts[3].contains("10"));
}
