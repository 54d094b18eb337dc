//! Tests against `tests/vectors/correlated_noise.json` and brute force over all patterns, and
//! property tests.

use proptest::collection::vec;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::optimise::{Objective, banded, evaluate};
use super::series::Series;
use super::toeplitz::square_root;
use super::tree::bound_of_levels;
use super::*;
use crate::accountant::Accountant;
use crate::event::{Mechanism, PrivacyEvent, Sampling};
use crate::gdp;
use crate::golden::{file, number, rows};
use crate::params::{Delta, NoiseMultiplier, SamplingRate};

const FILE: &str = "correlated_noise.json";

fn participation(n: u32, b: u32, k: u32) -> Participation {
    Participation::new(n, b, k).unwrap()
}

fn of_row(row: &serde_json::Value) -> Participation {
    let [n, b, k] = ["rounds", "separation", "participations"].map(|key| number(row, key) as u32);
    participation(n, b, k)
}

/// Returns the sensitivity, rmse and max error of real coefficients, by the definitions.
fn figures(c: &[f64], p: Participation) -> [f64; 3] {
    let rounds = p.rounds() as usize;
    let mut rows = vec![0.0; rounds];
    for first in p.earliest() {
        rows.iter_mut()
            .skip(first)
            .zip(c)
            .for_each(|(row, c)| *row += c);
    }
    let sensitivity = rows.iter().map(|row| row * row).sum::<f64>().sqrt();
    let weights = Series::new(rounds).prefix_weights(c);
    let (mut error, mut sum) = (0.0, 0.0);
    for weight in weights {
        error += weight * weight;
        sum += error;
    }
    let rmse = sensitivity * (sum / rounds as f64).sqrt();
    [sensitivity, rmse, sensitivity * error.sqrt()]
}

fn of_row_figures(row: &serde_json::Value) -> [f64; 3] {
    ["sensitivity", "rmse", "max_error"].map(|key| number(row, key))
}

fn planned(strategy: &Strategy) -> [f64; 3] {
    [
        strategy.sensitivity(),
        strategy.rmse(),
        strategy.max_error(),
    ]
}

/// Returns all sets of rounds of one device.
fn patterns(p: Participation) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    let mut next = 0;
    while let Some(pattern) = all.get(next).cloned() {
        next += 1;
        if pattern.len() == p.participations() as usize {
            continue;
        }
        let first = pattern
            .last()
            .map_or(0, |last| last + p.separation() as usize);
        for round in first..p.rounds() as usize {
            all.push([pattern.as_slice(), &[round]].concat());
        }
    }
    all
}

/// Returns the largest squared norm of a sum of columns with signs, over all patterns and signs.
fn brute_force(m: &[i64], p: Participation) -> u128 {
    let norm = |pattern: &[usize], signs: u32| {
        let mut rows = vec![0_i64; p.rounds() as usize];
        for (index, first) in pattern.iter().enumerate() {
            let sign = 1 - 2 * i64::from(signs >> index & 1);
            rows.iter_mut()
                .skip(*first)
                .zip(m)
                .for_each(|(row, m)| *row += sign * m);
        }
        rows.iter().map(|row| (row * row) as u128).sum::<u128>()
    };
    let all = patterns(p);
    let of_pattern = |pattern: &Vec<usize>| {
        let signs = 0..1_u32 << pattern.len();
        signs.map(|signs| norm(pattern, signs)).max().unwrap()
    };
    all.iter().map(of_pattern).max().unwrap()
}

#[test]
fn golden_rows_of_fixed_coefficients_agree() {
    let mut count = 0;
    for row in rows(FILE, "rows") {
        let p = of_row(&row);
        let (n, b) = (p.rounds() as usize, p.separation() as usize);
        let c = match row["family"].as_str().unwrap() {
            "identity" => vec![1.0],
            "square-root" => square_root(n),
            "square-root-banded" => square_root(b),
            _ => continue,
        };
        count += 1;
        for (found, expected) in figures(&c, p).into_iter().zip(of_row_figures(&row)) {
            assert!((found / expected - 1.0).abs() < 1e-9, "{row}: {found}");
        }
    }
    assert_eq!(count, 24);
}

/// The rows of the optimum are achieved values, not proved optima: smaller values are better.
/// Rounded coefficients are compared with the rows of rounded coefficients, if there are any.
#[test]
fn golden_rows_of_plans_agree() {
    let mut count = 0;
    for row in rows(FILE, "rows") {
        let name = row["family"].as_str().unwrap();
        let (name, is_rounded) = match name.strip_suffix("-8-bits") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let (p, family) = (of_row(&row), name.parse::<Family>().unwrap());
        let objective = match family {
            Family::BandedOptimalMean => Some(Objective::Mean),
            Family::BandedOptimalMax => Some(Objective::Max),
            _ => None,
        };
        let found = match objective.filter(|_| !is_rounded) {
            Some(objective) => {
                let series = Series::new(p.rounds() as usize);
                figures(&banded(p, objective, &series), p)
            }
            None => planned(&Strategy::plan(family, p).unwrap()),
        };
        count += 1;
        let expected = of_row_figures(&row);
        // The optimised value is at most that of the row, except for the rounding of the
        // coefficients.
        let tolerance = if is_rounded || objective.is_none() {
            1e-3
        } else {
            1e-6
        };
        let optimised = match objective {
            Some(Objective::Mean) => 1..2,
            Some(Objective::Max) => 2..3,
            None => 1..3,
        };
        for figure in optimised {
            let ratio = found[figure] / expected[figure];
            assert!(ratio <= 1.0 + tolerance, "{row}: {found:?}");
            assert!(ratio >= 0.97, "{row}: {found:?}");
        }
    }
    assert_eq!(count, 56);
}

/// The goals at 2,052 rounds, 342 apart, 6 participations, after rounding, and Honaker's tree.
#[test]
fn the_goals_are_met() {
    let p = participation(2052, 342, 6);
    let plan = |family| Strategy::plan(family, p).unwrap();
    let mean = plan(Family::BandedOptimalMean);
    assert!(mean.rmse() <= 8.806, "{}", mean.rmse());
    assert!(mean.is_sensitivity_exact() && mean.kept_sums() == 342);
    let max = plan(Family::BandedOptimalMax);
    assert!(max.max_error() <= 10.41, "{}", max.max_error());
    let tree = plan(Family::Tree);
    assert_eq!(format!("{:.3}", tree.rmse()), "19.275");
    assert_eq!(tree.kept_sums(), 12);
}

#[test]
fn the_gradient_is_the_derivative() {
    let p = participation(23, 7, 3);
    let series = Series::new(23);
    let c: Vec<f64> = (1..7).map(|j| 0.6 / f64::from(j)).collect();
    for objective in [Objective::Mean, Objective::Max] {
        let value = |c: &[f64]| evaluate(p, objective, &series, c);
        let gradient = value(&c).1;
        for j in 0..c.len() {
            let moved = |step: f64| {
                let mut c = c.clone();
                c[j] += step;
                value(&c).0
            };
            let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!(
                (gradient[j] - expected).abs() < 1e-8,
                "{j}: {expected} {gradient:?}"
            );
        }
    }
}

#[test]
fn square_roots_have_the_published_errors() {
    let file = file(FILE);
    for (n, expected) in file["sqrt_max_loss_of_square_root"].as_object().unwrap() {
        let n: usize = n.parse().unwrap();
        let sum: f64 = square_root(n).iter().map(|c| c * c).sum();
        let expected = expected.as_f64().unwrap();
        assert!((sum / expected - 1.0).abs() < 1e-9, "{n}: {sum}");
    }
}

#[test]
fn small_sensitivities_are_those_of_brute_force() {
    for row in rows(FILE, "small") {
        let m = row["coefficients_256"].as_array().unwrap();
        let m: Vec<i64> = m.iter().map(|m| m.as_i64().unwrap()).collect();
        let p = of_row(&row);
        let expected = number(&row, "sensitivity_squared_65536") as u128;
        let strategy = Strategy::from_coefficients(p, m.clone()).unwrap();
        assert_eq!(strategy.sensitivity_squared(), expected, "{row}");
        assert!(strategy.is_sensitivity_exact());
        assert_eq!(brute_force(&m, p), expected, "{row}");
    }
}

/// Returns each family at n rounds, with the applicable special cases.
fn all_families(n: u32, b: u32, k: u32) -> Vec<Strategy> {
    let plan = |family| Strategy::plan(family, participation(n, b, k)).unwrap();
    Family::ALL.map(plan).to_vec()
}

/// Returns the release of round t for these sums, in units of 1/256, without noise.
fn encoded(strategy: &Strategy, sums: &[Vec<i64>], t: usize) -> Vec<Vec<i64>> {
    let combined = |weights: &[i64]| {
        let entries = 0..sums[0].len();
        let entry = |i: usize| {
            let past = weights.iter().zip(sums[..=t].iter().rev());
            past.map(|(m, x)| m * x[i]).sum()
        };
        entries.map(entry).collect::<Vec<i64>>()
    };
    match strategy.kind() {
        StrategyKind::Toeplitz(toeplitz) => vec![combined(toeplitz.coefficients())],
        StrategyKind::Tree(tree) => {
            let heights = 0..tree.completed(t as u32);
            heights.map(|h| combined(&vec![256; 1 << h])).collect()
        }
    }
}

/// Decodes a release, dividing each number by 256.
fn decode(decoder: &mut Decoder, released: &[Vec<i64>]) -> Vec<f64> {
    let vector = |v: &Vec<i64>| v.iter().map(|x| *x as f64 / 256.0).collect();
    decoder
        .decode(released.iter().map(vector).collect())
        .unwrap()
}

proptest! {
    /// Without noise, the decoder returns the sums.
    #[test]
    fn decoding_inverts_encoding(
        n in 1_u32..40, b in 1_u32..12, sums in vec(vec(-(1_i64 << 30)..1 << 30, 3), 40),
    ) {
        for strategy in all_families(n, b.min(n), 5) {
            let mut decoder = Decoder::new(&strategy, 3);
            for t in 0..n as usize {
                let released = encoded(&strategy, &sums, t);
                prop_assert_eq!(released.len(), strategy.releases(t as u32) as usize);
                for (found, expected) in decode(&mut decoder, &released).iter().zip(&sums[t]) {
                    prop_assert!((found - *expected as f64).abs() < 1e-3, "{found} {expected}");
                }
            }
        }
    }
}

/// The decoder is linear: the squares of its responses to one unit of noise in each release, added
/// up over releases, are the stated variances of the strategy.
#[test]
fn decoded_prefixes_have_the_stated_variances() {
    for strategy in all_families(37, 8, 3) {
        let n = 37;
        let mut variances = vec![0.0; n];
        let first = |t: usize| (0..t).map(|t| strategy.releases(t as u32)).sum::<u32>() as usize;
        for noisy in 0..first(n) {
            let mut decoder = Decoder::new(&strategy, 1);
            let mut prefix = 0.0;
            for (t, variance) in variances.iter_mut().enumerate() {
                let releases = strategy.releases(t as u32) as usize;
                let mut released = vec![vec![0.0]; releases];
                if let Some(release) = noisy.checked_sub(first(t)).filter(|i| *i < releases) {
                    released[release][0] = 1.0;
                }
                prefix += decoder.decode(released).unwrap()[0];
                *variance += prefix * prefix;
            }
        }
        for (found, std) in variances.iter().zip(strategy.prefix_stds()) {
            let expected = (std / strategy.sensitivity()).powi(2);
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        }
    }
}

#[test]
fn a_decoder_refuses_what_is_not_its_next_round() {
    let tree = Strategy::plan(Family::Tree, participation(8, 2, 1)).unwrap();
    let mut decoder = Decoder::new(&tree, 2);
    let zeros = |vectors| vec![vec![0.0; 2]; vectors];
    assert!(decoder.decode(zeros(1)).is_ok());
    let before = decoder.clone();
    for wrong in [zeros(0), zeros(1), zeros(3), vec![vec![0.0; 3]; 2]] {
        let found = wrong.iter().map(Vec::len).sum();
        let error = decoder.decode(wrong).unwrap_err();
        let expected = CorrelatedError::Released {
            round: 1,
            expected: 4,
            found,
        };
        assert_eq!(error, expected);
    }
    assert_eq!(decoder, before);
    assert!(decoder.decode(zeros(2)).is_ok());
}

#[test]
fn sums_that_leave_an_integer_are_known_beforehand() {
    let banded = Strategy::plan(Family::SquareRootBanded, participation(2052, 342, 6)).unwrap();
    // Σ m_j / 256 is about 21, so 13 bits more than the updates have.
    assert_eq!(
        banded.max_cohort(20),
        (SUM_LIMIT / banded.weight() as u64) >> 20
    );
    let largest = banded.max_cohort(20);
    assert!((1 << 29..1 << 31).contains(&largest), "{largest}");
    assert_eq!(banded.max_grid_bits(largest), Some(20));
    assert_eq!(banded.max_grid_bits(largest + 1), Some(19));
    assert_eq!(banded.max_grid_bits(u64::MAX), None);
    assert_eq!(banded.max_cohort(u8::MAX), 0);
    let tree = Strategy::plan(Family::Tree, participation(2052, 342, 6)).unwrap();
    assert_eq!(tree.weight(), 2048 * 256);
}

#[test]
fn coefficients_are_checked() {
    let p = participation(3, 1, 3);
    let of = |m: &[i64]| Strategy::from_coefficients(p, m.to_vec());
    for first in [0, 255, -256] {
        let error = of(&[first, 1]).unwrap_err();
        assert_eq!(error, CorrelatedError::FirstCoefficient { first });
    }
    assert_eq!(of(&[]), Err(CorrelatedError::FirstCoefficient { first: 0 }));
    let coefficient = -MAX_COEFFICIENT - 1;
    assert_eq!(
        of(&[256, coefficient]),
        Err(CorrelatedError::LargeCoefficient { coefficient })
    );
    // Coefficients past the last round, and zeros at the end, are dropped.
    assert_eq!(of(&[256, 100, 0]), of(&[256, 100, 0, 5]));
    assert_eq!(of(&[256, 100, 0]).unwrap().kept_sums(), 2);
}

#[test]
fn a_tree_of_many_blocks_is_bounded() {
    let plan = |b, k| Strategy::plan(Family::Tree, participation(4096, b, k)).unwrap();
    let bounded = plan(8, 512);
    assert!(!bounded.is_sensitivity_exact());
    // Rounds that are multiples of 8 fill all nodes as much as possible: the bound is attained.
    let levels = (0..=12_u32).map(|h| {
        let full = (1_u128 << h).div_ceil(8);
        512_u128.min(4096 >> h) * full * full
    });
    assert_eq!(bounded.sensitivity_squared(), levels.sum::<u128>() * 65_536);
    // It is never below the result of the exact search.
    for (n, b, k) in [
        (2052, 342, 6),
        (2000, 314, 6),
        (100, 7, 9),
        (37, 3, 5),
        (64, 1, 64),
    ] {
        let p = participation(n, b, k);
        let exact = Strategy::plan(Family::Tree, p).unwrap();
        assert!(exact.is_sensitivity_exact());
        assert!(bound_of_levels(p) * 65_536 >= exact.sensitivity_squared());
    }
}

/// Returns ε by the conversion of Canonne, Kamath, Steinke 2020 at its best real order, for ρ-zCDP.
fn by_best_order(rho: f64, delta: f64) -> f64 {
    let epsilon = |a: f64| rho * a + (-1.0 / a).ln_1p() - (delta * a).ln() / (a - 1.0);
    let orders = (0..20_000).map(|index| 1.0 + 1e-3 * 1.0007_f64.powi(index));
    orders.map(epsilon).fold(f64::INFINITY, f64::min)
}

/// Published figures of docs/reproduction/correlated.md, each with the proved figure.
#[test]
fn published_figures() {
    let delta = Delta::new(1e-10).unwrap();
    // Gboard es-ES: 2,000 rounds, 314 apart, 6 participations, noise 7 in each node of a tree.
    let tree = Strategy::plan(Family::Tree, participation(2000, 314, 6)).unwrap();
    assert_eq!(tree.sensitivity_squared(), 79 * 65_536);
    let relative = NoiseMultiplier::new(7.0 / tree.sensitivity()).unwrap();
    let event = PrivacyEvent::correlated(&tree, relative, 20, 1_000_000).unwrap();
    let mu = 1.0 / event.exposure().noise_to_sensitivity();
    assert!((mu * mu / 2.0 - 79.0 / 98.0).abs() < 1e-9);
    assert_eq!(format!("{:.3}", by_best_order(79.0 / 98.0, 1e-10)), "8.898");
    let exact = Accountant::AnalyticGaussian
        .epsilon(&[event], delta)
        .unwrap();
    assert_eq!(format!("{:.3}", exact.epsilon), "8.526");
    // Gboard with banded matrices, by their zCDP: both figures are exact.
    for (rho, by_order, exact) in [
        (0.150_684_030, "3.582", "3.424"),
        (0.014_342_572_3, "1.042", "0.994"),
    ] {
        assert_eq!(format!("{:.3}", by_best_order(rho, 1e-10)), by_order);
        assert_eq!(
            format!("{:.3}", gdp::epsilon(f64::sqrt(2.0 * rho), delta)),
            exact
        );
    }
    // pfl's tutorial: 100 rounds, 100 bands or more, cohorts of 100 of 10⁶, noise 0.4208. It
    // composes ⌈100 / 100⌉ round at rate 10⁻⁴.
    let participation = participation(100, 100, 1);
    let identity = Strategy::plan(Family::Identity, participation).unwrap();
    let noise_multiplier = NoiseMultiplier::new(0.4208).unwrap();
    let delta = Delta::new(1e-8).unwrap();
    let unsampled = PrivacyEvent::correlated(&identity, noise_multiplier, 20, 1_000_000).unwrap();
    let found = Accountant::AnalyticGaussian
        .epsilon(&[unsampled], delta)
        .unwrap();
    assert_eq!(format!("{:.2}", found.epsilon), "15.65");
    // As printed, and with separate sampling of each of 100 parts of the population.
    let printed = Sampling::poisson(1_000_000, SamplingRate::new(1e-4).unwrap()).unwrap();
    let printed = PrivacyEvent::new(Mechanism::Gaussian { noise_multiplier }, printed, 1);
    let sampled = identity.block_cyclic(SamplingRate::new(1e-2).unwrap());
    let sampled =
        PrivacyEvent::correlated(&sampled.unwrap(), noise_multiplier, 20, 1_000_000).unwrap();
    for (event, expected) in [(printed, "2.00"), (sampled, "8.97")] {
        let found = Accountant::Pld.epsilon(&[event], delta).unwrap();
        assert_eq!(format!("{:.2}", found.epsilon), expected);
    }
}

/// Identity: k participations and t + 1 independent noises.
#[test]
fn independent_noise_has_its_closed_form() {
    for (n, b, k) in [(1, 1, 1), (30, 20, 2), (1000, 7, 12)] {
        let p = participation(n, b, k);
        let identity = Strategy::plan(Family::Identity, p).unwrap();
        let k = f64::from(p.participations());
        assert_eq!(
            identity.sensitivity_squared(),
            p.participations() as u128 * 65_536
        );
        let rmse = (k * f64::from(n + 1) / 2.0).sqrt();
        assert!((identity.rmse() / rmse - 1.0).abs() < 1e-12);
        assert!((identity.max_error() / (k * f64::from(n)).sqrt() - 1.0).abs() < 1e-12);
    }
}

proptest! {
    /// For coefficients of any order and sign, the result is at least that of brute force, and
    /// equal if it is marked as exact.
    #[test]
    fn sensitivities_are_at_least_brute_force(
        n in 1_u32..9, b in 1_u32..9, k in 1_u32..5, m in vec(-300_i64..300, 0..9),
    ) {
        let p = participation(n, b.min(n), k);
        let m = [&[256], m.as_slice()].concat();
        let strategy = Strategy::from_coefficients(p, m.clone()).unwrap();
        let m = m.into_iter().take(n as usize).collect::<Vec<_>>();
        let worst = brute_force(&m, p);
        prop_assert!(strategy.sensitivity_squared() >= worst);
        if strategy.is_sensitivity_exact() {
            prop_assert_eq!(strategy.sensitivity_squared(), worst);
        }
    }

    /// The tree's dynamic programme agrees with brute force for any length of the run.
    #[test]
    fn tree_sensitivities_are_those_of_brute_force(n in 1_u32..18, b in 1_u32..12, k in 1_u32..7) {
        let p = participation(n, b.min(n), k);
        let tree = Strategy::plan(Family::Tree, p).unwrap();
        let nodes = |pattern: &Vec<usize>| {
            let levels = 0..=n.ilog2();
            let of_level = |height: u32| {
                let complete = (n >> height) as usize;
                let count = |node| pattern.iter().filter(|t| *t >> height == node).count();
                (0..complete).map(|node| count(node).pow(2)).sum::<usize>()
            };
            levels.map(of_level).sum::<usize>()
        };
        let worst = patterns(p).iter().map(nodes).max().unwrap();
        prop_assert_eq!(tree.sensitivity_squared(), worst as u128 * 65_536);
        prop_assert!(tree.is_sensitivity_exact());
    }
}
