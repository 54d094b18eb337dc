use serde_json::Value;

use super::*;
use crate::golden;

fn rows(file: &str, table: &str) -> Vec<Value> {
    golden::rows(file, table)
}

fn delta(row: &Value) -> Delta {
    Delta::new(golden::number(row, "delta")).unwrap()
}

fn close(found: f64, expected: f64, relative: f64) -> bool {
    (found - expected).abs() <= relative * expected.abs()
}

#[test]
fn poisson_divergence_is_exact_at_all_golden_orders() {
    for row in rows("accounting_rdp_poisson.json", "poisson_rdp") {
        let [q, z, order, expected] =
            ["q", "z", "alpha", "rdp"].map(|key| golden::number(&row, key));
        let found = poisson_rdp(q, z, order);
        assert!(close(found, expected, 1e-12), "{row}: {found}");
        if let Some(add) = row["rdp_add_direction"].as_f64() {
            assert!(add <= found * (1.0 + 1e-9), "{row}");
        }
    }
}

#[test]
fn uniform_bound_is_theorem_9_at_all_golden_orders() {
    for row in rows("accounting_rdp_uniform.json", "uniform_rdp") {
        let [q, nu, order, expected] =
            ["q", "nu", "alpha", "rho_thm9"].map(|key| golden::number(&row, key));
        let found = uniform_rdp_theorem_9(q, nu, order as u32);
        assert!(close(found, expected, 1e-12), "{row}: {found}");
    }
}

#[test]
fn epsilon_agrees_with_the_golden_values_on_the_stated_grids() {
    for row in rows("accounting_epsilon.json", "poisson_eps") {
        let [q, z, rounds] = ["q", "z", "T"].map(|key| golden::number(&row, key));
        let exposure = Exposure::Poisson {
            sampling_rate: q,
            noise_to_sensitivity: z,
            count: rounds as u64,
        };
        check(&row, exposure, "eps_classic", "eps_improved");
    }
    for row in rows("accounting_epsilon.json", "uniform_eps") {
        let [q, nu, rounds] = ["q", "nu", "T"].map(|key| golden::number(&row, key));
        for (key, conversion) in [
            ("eps_thm9_classic", Conversion::Classic),
            ("eps_thm9_improved", Conversion::Improved),
        ] {
            // Only Theorem 9, for any divergence without sampling.
            let at = |order: u32| {
                let rdp = rounds * uniform_rdp_theorem_9(q, nu, order);
                conversion.epsilon(rdp, f64::from(order), delta(&row))
            };
            let theorem_9 = (2..=256).map(at).fold(f64::INFINITY, f64::min);
            let expected = golden::number(&row, key);
            assert!((theorem_9 - expected).abs() <= 1e-8, "{key} of {row}");
            let exposure = uniform(q, nu, rounds as u64);
            let found = rdp_epsilon(&[exposure], delta(&row), conversion).epsilon;
            assert!(
                found <= theorem_9 * (1.0 + 1e-11),
                "{key} of {row}: {found}"
            );
            if row["eps_attained"].is_number() {
                assert!(
                    found >= golden::number(&row, "eps_attained"),
                    "{row}: {found}"
                );
            }
        }
    }
}

fn check(row: &Value, exposure: Exposure, classic: &str, improved: &str) {
    for (key, conversion) in [
        (classic, Conversion::Classic),
        (improved, Conversion::Improved),
    ] {
        let expected = golden::number(row, key);
        let found = rdp_epsilon(&[exposure], delta(row), conversion).epsilon;
        assert!((found - expected).abs() <= 1e-8, "{key} of {row}: {found}");
        assert!(
            found >= expected * (1.0 - 1e-12),
            "below the exact value: {row}: {found}"
        );
    }
}

/// Theorem 9 leaves an ε of 1.0 at rate .2 and of 6.2 at rate .5 for any amount of noise.
#[test]
fn uniform_epsilon_vanishes_with_the_noise() {
    for rate in [0.2, 0.5, 0.9] {
        let found = rdp_epsilon(
            &[uniform(rate, 1e4, 1)],
            Delta::new(1e-5).unwrap(),
            Conversion::Improved,
        );
        // The largest order leaves ln(1/δ) / 255.
        assert!(found.epsilon < 0.05, "{rate}: {found:?}");
        assert!(uniform_rdp_theorem_9(rate, 1e4, 256) > uniform_rdp(rate, 1e4, 256));
    }
}

#[test]
fn integer_orders_join_the_fractional_ones_smoothly() {
    for (q, z) in [
        (1e-9, 1.0),
        (0.3, 0.05),
        (0.999, 0.3),
        (0.01, 1e4),
        (1e-4, 0.05),
    ] {
        for order in [2.0, 3.0, 7.0, 10.0] {
            // (α - 1)·ρ(α) is convex: the integer value lies below its neighbours' chord.
            let step = 1e-4;
            let curve = PoissonRdp::new(q, z, 11.0);
            let moment = |order: f64| (order - 1.0) * curve.at(order);
            let chord = 0.5 * (moment(order - step) + moment(order + step));
            let middle = moment(order);
            assert!(
                close(chord, middle, 1e-4),
                "{q} {z} {order}: {chord} {middle}"
            );
            assert!(
                chord >= middle * (1.0 - 1e-10),
                "{q} {z} {order}: {chord} {middle}"
            );
        }
    }
}

#[test]
fn no_corner_of_the_domain_gives_nan() {
    for q in [1e-9, 1e-6, 1e-3, 0.05, 0.5, 0.999_999, 1.0] {
        for z in [0.05, 0.3, 1.0, 30.0, 1e4] {
            for count in [1, 1_000, 10_000_000] {
                for make in [poisson, uniform] {
                    for conversion in [Conversion::Classic, Conversion::Improved] {
                        let found = rdp_epsilon(
                            &[make(q, z, count)],
                            Delta::new(1e-6).unwrap(),
                            conversion,
                        );
                        assert!(found.epsilon >= 0.0, "{q} {z} {count}: {found:?}");
                        assert!(found.epsilon.is_finite(), "{q} {z} {count}: {found:?}");
                    }
                }
            }
        }
    }
}

fn poisson(sampling_rate: f64, noise_to_sensitivity: f64, count: u64) -> Exposure {
    Exposure::Poisson {
        sampling_rate,
        noise_to_sensitivity,
        count,
    }
}

fn uniform(sampling_rate: f64, noise_to_sensitivity: f64, count: u64) -> Exposure {
    Exposure::Uniform {
        sampling_rate,
        noise_to_sensitivity,
        count,
    }
}

#[test]
fn no_noise_means_infinite_epsilon_and_no_release_means_none() {
    let delta = Delta::new(1e-5).unwrap();
    let found = rdp_epsilon(&[poisson(0.1, 0.0, 1)], delta, Conversion::Improved);
    assert!(found.epsilon.is_infinite());
    let found = rdp_epsilon(&[poisson(0.1, 0.0, 0)], delta, Conversion::Improved);
    assert!(found.epsilon <= 0.0);
}

#[test]
fn unlike_releases_compose_order_by_order() {
    let delta = Delta::new(1e-5).unwrap();
    let epsilon = |list: &[Exposure]| rdp_epsilon(list, delta, Conversion::Improved).epsilon;
    let first = poisson(0.05, 1.0, 100);
    let second = Exposure::Gaussian {
        noise_to_sensitivity: 5.0,
        count: 10,
    };
    let both = epsilon(&[first, second]);
    assert!(both > epsilon(&[first]) && both > epsilon(&[second]));
    assert!(both < epsilon(&[first]) + epsilon(&[second]));
    let split = epsilon(&[poisson(0.05, 1.0, 40), poisson(0.05, 1.0, 60)]);
    assert!(close(split, epsilon(&[first]), 1e-12));
}

proptest::proptest! {
    /// More noise, fewer rounds, a lower rate and a larger delta never cost more.
    #[test]
    fn epsilon_is_monotone(
        q in 1e-4f64..0.9, z in 0.3f64..20.0, count in 1u64..10_000,
        more in 1.01f64..3.0, is_uniform: bool,
    ) {
        let make = if is_uniform { uniform } else { poisson };
        let delta = Delta::new(1e-5).unwrap();
        let epsilon = |exposure| rdp_epsilon(&[exposure], delta, Conversion::Improved).epsilon;
        let base = epsilon(make(q, z, count));
        let slack = base * (1.0 + 1e-10);
        proptest::prop_assert!(epsilon(make(q, z * more, count)) <= slack);
        proptest::prop_assert!(epsilon(make(q / more, z, count)) <= slack);
        proptest::prop_assert!(epsilon(make(q, z, (count as f64 / more) as u64)) <= slack);
        let easier = Delta::new(1e-5 * more).unwrap();
        let found = rdp_epsilon(&[make(q, z, count)], easier, Conversion::Improved).epsilon;
        proptest::prop_assert!(found <= slack);
    }
}
