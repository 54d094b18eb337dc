//! Effective dimensions, bias and variance against golden values and direct sums.

use super::*;

fn assert_close(found: f64, expected: f64, what: &str) {
    assert!(
        (found / expected - 1.0).abs() < 1e-9,
        "{what}: {found} is not {expected}"
    );
}

#[test]
fn golden_dimensions_are_met() {
    for case in goldens()["effective_dimensions"].as_array().unwrap() {
        let d = case["d"].as_u64().unwrap() as usize;
        let smoothing = smoothing(case["sigma"].as_f64().unwrap());
        assert_close(
            smoothing.effective_dim(d),
            case["d_sigma"].as_f64().unwrap(),
            "d_sigma",
        );
        let squared = case["d_tilde_sigma"].as_f64().unwrap();
        assert_close(smoothing.effective_dim_squared(d), squared, "d_tilde_sigma");
    }
}

#[test]
fn dimensions_are_the_sums_over_the_eigenvalues() {
    for exponent in -8..39 {
        let smoothing = LaplacianSmoothing::new(10_f32.powi(exponent)).unwrap();
        let sigma = f64::from(smoothing.sigma());
        for d in [1, 2, 3, 10, 101, 5_000] {
            let inverse = |i: usize| {
                let half = std::f64::consts::PI * i as f64 / d as f64;
                1.0 / (1.0 + 4.0 * sigma * half.sin().powi(2))
            };
            // The smallest terms first. Terms i and d - i are equal.
            let total = |power| (1..d).map(|i| inverse(i).powi(power)).sum::<f64>() + 1.0;
            assert_close(smoothing.effective_dim(d), total(1), "d_sigma");
            assert_close(
                smoothing.effective_dim_squared(d),
                total(2),
                "d_tilde_sigma",
            );
        }
    }
}

#[test]
fn nothing_has_no_dimension() {
    assert!(smoothing(1.0).effective_dim(0) <= 0.0);
    assert!(smoothing(1.0).effective_dim_squared(0) <= 0.0);
}

#[test]
fn golden_bias_and_variance_are_met() {
    let goldens = goldens();
    let cases = goldens["prop1"]["cases"].as_array().unwrap();
    for case in cases {
        let (sigma, noise_std) = (
            case["sigma"].as_f64().unwrap(),
            case["nu"].as_f64().unwrap(),
        );
        let v = to_f32(&numbers(&case["v"]));
        let variance = smoothing(sigma).variance(v.len(), noise_std);
        assert_close(variance, case["variance"].as_f64().unwrap(), "variance");
        let bias = bias_squared(&v, &smoothed(sigma, &v)).unwrap();
        let expected = case["bias"].as_f64().unwrap();
        assert!(
            (bias - expected).abs() <= 1e-6 * expected,
            "{bias} is not {expected}"
        );
    }
    assert_eq!(cases.len(), 28);
}
