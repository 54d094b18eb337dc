use serde_json::Value;

use super::*;
use crate::golden;

fn setting(row: &Value) -> TheoremSetting {
    TheoremSetting {
        theorem: if row["sampling"] == "uniform" {
            Theorem::One
        } else {
            Theorem::Two
        },
        sampling_rate: SamplingRate::new(golden::number(row, "tau")).unwrap(),
        rounds: golden::number(row, "T") as u64,
        delta: Delta::new(golden::number(row, "delta")).unwrap(),
    }
}

fn rows() -> Vec<Value> {
    golden::rows("accounting_seeds.json", "seed003.theorem1_theorem2")
}

fn target(row: &Value) -> Epsilon {
    Epsilon::new(golden::number(row, "eps")).unwrap()
}

#[test]
fn the_minimum_noise_agrees_with_all_golden_rows() {
    for row in rows() {
        let found = setting(&row).min_noise(target(&row), Orders::Real);
        let expected = &row["closed_form_min_nu"];
        if expected.is_null() {
            assert!(found.is_err(), "{row}: {found:?}");
            continue;
        }
        let found = found.unwrap().noise_multiplier.get();
        // The golden searches use coarse grids of λ, so our values are never above them.
        for key in ["closed_form_min_nu", "closed_form_at_bound"] {
            let expected = golden::number(&row[key], "z");
            assert!(found <= expected * (1.0 + 1e-9), "{row}: {found}");
            assert!(found >= expected * (1.0 - 4e-3), "{row}: {found}");
        }
    }
}

#[test]
fn integer_orders_agree_with_all_golden_rows() {
    for row in rows() {
        let found = setting(&row).min_noise(target(&row), Orders::Integer);
        let expected = &row["closed_form_min_nu_integer_alpha"];
        if expected.is_null() {
            assert!(found.is_err(), "{row}: {found:?}");
            continue;
        }
        let found = found.unwrap();
        let expected_z = golden::number(expected, "z");
        let ratio = found.noise_multiplier.get() / expected_z;
        // The golden search uses a grid of noise, so our values are never above it.
        assert!(ratio < 1.0 + 1e-9 && ratio > 1.0 - 2e-3, "{row}: {found:?}");
    }
}

/// The figures of DP-Fed-LS on MNIST: T = 30, τ = 0.05, L = 0.3, δ = 1/N^1.1.
#[test]
fn the_published_noise_on_mnist_reproduces() {
    let figures = [
        (Theorem::One, 1000.0f64, [0.8080, 0.6641, 0.5824, 0.5260]),
        (Theorem::Two, 500.0, [0.3409, 0.2916, 0.2599, 0.2365]),
    ];
    for (theorem, device_count, noise_stds) in figures {
        let setting = TheoremSetting {
            theorem,
            sampling_rate: SamplingRate::new(0.05).unwrap(),
            rounds: 30,
            delta: Delta::new(device_count.powf(-1.1)).unwrap(),
        };
        for (epsilon, noise_std) in [6.0, 7.0, 8.0, 9.0].into_iter().zip(noise_stds) {
            let epsilon = Epsilon::new(epsilon).unwrap();
            let found = setting.min_noise(epsilon, Orders::Real).unwrap();
            let found = 0.3 * found.noise_multiplier.get();
            // The figures come from a grid of 10⁴ values of λ. Ours may be a little lower.
            let ratio = found / noise_std;
            assert!(
                ratio < 1.0002 && ratio > 0.999,
                "{theorem:?} {epsilon}: {found}"
            );
        }
    }
}

#[test]
fn svhn_is_infeasible_with_a_sentence() {
    let rows: Vec<Value> = rows()
        .into_iter()
        .filter(|row| row["setting"] == "SVHN" && row["sampling"] == "poisson")
        .collect();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let error = setting(&row)
            .min_noise(target(&row), Orders::Real)
            .unwrap_err();
        assert!(
            error.to_string().starts_with("infeasible: no lambda"),
            "{error}"
        );
    }
}

#[test]
fn the_noise_for_an_epsilon_gives_that_epsilon_back() {
    for row in rows() {
        let setting = setting(&row);
        let Ok(noise) = setting.min_noise(target(&row), Orders::Real) else {
            continue;
        };
        let back = setting.min_epsilon(noise.noise_multiplier).unwrap();
        assert!(back <= target(&row).get() * (1.0 + 1e-6), "{row}: {back}");
    }
}

#[test]
fn too_little_noise_promises_nothing() {
    let row = &rows()[0];
    assert!(
        setting(row)
            .min_epsilon(NoiseMultiplier::new(0.0).unwrap())
            .is_none()
    );
    assert!(
        setting(row)
            .min_epsilon(NoiseMultiplier::new(1.6).unwrap())
            .is_none()
    );
}

#[test]
fn less_of_the_noise_may_promise_more_but_more_noise_never_promises_less() {
    let setting = setting(&rows()[0]);
    let mut last = f64::INFINITY;
    for tenths in 17..400 {
        let noise = NoiseMultiplier::new(f64::from(tenths) / 10.0).unwrap();
        let epsilon = setting.min_epsilon(noise).unwrap();
        // The inner search is a grid, hence the slack.
        assert!(
            epsilon <= last * (1.0 + 1e-4),
            "{noise}: {epsilon} after {last}"
        );
        last = epsilon;
    }
}
