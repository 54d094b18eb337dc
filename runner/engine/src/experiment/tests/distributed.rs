//! Experiments with distributed trust: their parts, and refusals.

use super::*;

const TRUST: &str = "privacy.trust=distributed";

/// Sums of five rounds are combined, under masks.
const COMBINED: [&str; 5] = [
    TRUST,
    "rounds=12",
    "cohort={ sampling = \"rotation\" }",
    "privacy.mechanism=correlated",
    "privacy.separation=5",
];

/// The parties know the cohorts, so a target needs more noise than with a trusted server. With one
/// honest party, all of it is that party's.
#[test]
fn noise_is_calibrated_to_the_parties() {
    let [central, pair, two_of_three] =
        ["central", "distributed", "distributed=3/2"].map(|trust| {
            let trust = format!("privacy.trust={trust}");
            build(&[trust.as_str()]).unwrap()
        });
    let z = |experiment: &Experiment| experiment.privacy.multiplier().get();
    assert!(z(&pair) > z(&central));
    assert_eq!(z(&pair), z(&two_of_three));
    assert_eq!(pair.privacy.mechanism.party_multiplier().get(), z(&pair));
    let party = two_of_three.privacy.mechanism.party_multiplier().get();
    assert!((party * 2f64.sqrt() / z(&pair) - 1.0).abs() < 1e-12);
    // The noise in the release: from two parties, and from four parties with half the variance
    // each.
    let std = |experiment: &Experiment| experiment.release.noise_std_of_sum(0.1, 20);
    let each = z(&pair) * 0.5;
    assert!((std(&pair) / (each * 2f64.sqrt()) - 1.0).abs() < 1e-9);
    assert!((std(&two_of_three) / (each * 2f64.sqrt()) - 1.0).abs() < 1e-9);
}

#[test]
fn helpers_insist_on_what_is_accounted() {
    let pair = build(&[TRUST, "cohort.sampling=poisson"]).unwrap();
    let policy = pair.helper_policy(5).unwrap();
    assert_eq!((policy.helpers, policy.min_cohort), (1, 5));
    assert_eq!((policy.max_rounds, policy.participations), (3, 3));
    assert_eq!((policy.separation, policy.coefficients.len()), (1, 0));
    assert_eq!(policy.noise_multiplier, pair.privacy.multiplier().get());
    assert_eq!(build(&[]).unwrap().helper_policy(5), None);
    let masking = pair.release.masking.unwrap();
    // 100 devices with a probability of 20 %: more than 74 come in e^-72 of all rounds.
    let most = pair.attendance.largest_drawn();
    assert!((60..80).contains(&most), "{most}");
    assert_eq!(masking.max_devices as usize, most);
    assert_eq!(masking.largest_norm, (most as u64) << 20);
    assert_eq!(build(&[TRUST]).unwrap().attendance.largest_drawn(), 20);

    let correlated = build(&COMBINED).unwrap();
    let policy = correlated.helper_policy(0).unwrap();
    let strategy = correlated.privacy.mechanism.strategy.as_ref().unwrap();
    assert_eq!((policy.participations, policy.separation), (3, 5));
    assert_eq!(policy.coefficients.len(), 5);
    let sensitivity = strategy.sensitivity();
    let z = correlated.privacy.multiplier().get();
    assert_eq!(policy.noise_multiplier, z * sensitivity);
    let weight: i64 = policy.coefficients.iter().sum();
    let masking = correlated.release.masking.unwrap();
    assert_eq!(masking.largest_norm, (20 * weight as u64) << 20);
}

#[test]
fn what_does_not_go_with_masks_is_refused_by_name() {
    let and = |first: &str| format!("`{first}` and `privacy.trust` contradict each other: ");
    refused(
        &[TRUST, "privacy.clip_norm=adaptive"],
        &and("privacy.clip_norm"),
    );
    refused(&[TRUST, "data.scale=private"], &and("data.scale"));
    let fedsc = [
        TRUST,
        "method=fedsc",
        "server.smoothing_factor=0",
        "contrast.privacy={ epsilon = 8.0 }",
    ];
    refused(&fedsc, &and("method"));
    let tree = [
        TRUST,
        "rounds=12",
        "cohort={ sampling = \"rotation\" }",
        "privacy.mechanism=correlated",
        "privacy.separation=5",
        "privacy.family=tree",
    ];
    refused(&tree, &and("privacy.family"));
    let open = "method = \"dp-fed\"\nrounds = 3\n[data]\nsource = \"digits\"\nscale = \"unit\"\n\
                devices = 100\n[cohort]\ncohort_size = 20\n";
    let error = build_text(open, &[TRUST]).unwrap_err().to_string();
    assert!(
        error.starts_with("`privacy.clip_norm` is missing"),
        "{error}"
    );
}

/// Noise of fewer than 64 steps.
#[test]
fn a_grid_that_does_not_fit_is_refused() {
    let (trust, bits) = (TRUST, "privacy.grid_bits=5");
    let z = "privacy.noise_multiplier=1";
    let text = SOUND.replace("epsilon = 8.0\n", "");
    let error = build_text(&text, &[trust, bits, z])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`privacy.grid_bits` is 5") && error.contains("at least 6"),
        "{error}"
    );
    assert!(build_text(&text, &[trust, "privacy.grid_bits=6", z]).is_ok());
}

/// Without noise, neither the server nor the helpers combine sums.
#[test]
fn without_noise_nobody_combines_sums() {
    let text = SOUND.replace("epsilon = 8.0\n", "");
    let experiment = build_text(&text, &COMBINED).unwrap();
    assert!(experiment.helper_policy(0).unwrap().coefficients.is_empty());
    assert!(experiment.release.mechanism.strategy.is_none());
    let combined = build(&COMBINED).unwrap().helper_policy(0).unwrap();
    assert_eq!(combined.coefficients.len(), 5);
}
