//! Bounds proved by `smolfed audit`. `tests/faults.rs` has the faults that it finds.

use serde_json::Value;

use crate::program::Place;

/// The lower bound of this seed is wrong with probability at most 1e-3. The direct tests fail with
/// probability below 1e-6. 2,000 pairs of runs prove .82 of the claim, the default .91.
#[test]
fn the_audit_proves_most_of_the_claim() {
    let place = Place::new();
    let honest = place.smolfed("audit --runs 2000 --json").success().json();
    assert_eq!(honest["is_refuted"], false);
    assert_eq!(honest["is_as_claimed"], true, "{honest}");
    let claim = &honest["claim"];
    assert_eq!(claim["adjacency"], "add-remove");
    let number = |value: &Value| value.as_f64().unwrap();
    let part = |key: &str| number(&honest[key]) / number(&claim["epsilon"]);
    assert!((0.7..=1.0).contains(&part("epsilon_low")), "{honest}");
    assert!((0.85..1.1).contains(&part("epsilon_estimate")), "{honest}");
    assert_eq!(honest["findings"].as_array().unwrap().len(), 4);
    assert!(number(&honest["checks_error"]) <= 1e-6, "{honest}");
}

/// Claims beyond the updates of single devices: a private scale, the bits of an adaptive clip norm,
/// and users with several devices. 1,000 pairs of runs prove at least .6 of each claim.
#[test]
fn the_audit_attacks_all_that_is_claimed() {
    const SCALE: &str = "--set data.scale=private";
    const ADAPTIVE: &str = "--set privacy.clip_norm=adaptive";
    const USERS: &str = "--set privacy.devices_per_user=3";
    let place = Place::new();
    for settings in [SCALE, ADAPTIVE, USERS] {
        let call = format!("audit --runs 1000 {settings} --json");
        let honest = place.smolfed(&call).success().json();
        let claimed = honest["claim"]["epsilon"].as_f64().unwrap();
        let part = honest["epsilon_low"].as_f64().unwrap() / claimed;
        assert!((0.6..=1.0).contains(&part), "{settings}: {honest}");
    }
}

#[test]
fn membership_is_hard_to_tell_for_all_three_models() {
    let place = Place::new();
    let call = "audit --membership --set data.validation=0.3 --set data.devices=100 \
                --set rounds=10 --svg roc.svg --json";
    let document = place.smolfed(call).success().json();
    let models = document["models"].as_array().unwrap();
    assert_eq!(models.len(), 3);
    for model in models {
        let area = model["roc"]["area"].as_f64().unwrap();
        assert!((0.4..0.7).contains(&area), "{model}");
    }
    assert!(
        std::fs::read_to_string(place.path("roc.svg"))
            .unwrap()
            .starts_with("<svg")
    );
}

#[test]
fn the_report_of_a_run_shows_the_attack_on_three_models() {
    let place = Place::new();
    let run = "run --out run --set data.validation=0.3 --set data.devices=100 --set rounds=5";
    place.smolfed(run).success();
    let report = || std::fs::read_to_string(place.path("run/report.html")).unwrap();
    assert!(report().contains("this model") && !report().contains("no privacy"));
    place
        .smolfed("audit --membership --run run --json")
        .success();
    for model in ["no privacy", "DP-Fed", "DP-Fed-LS"] {
        assert!(report().contains(model), "{model}");
    }
}

/// The released program cannot disable noise.
#[test]
fn a_fault_is_refused_by_a_program_without_faults() {
    let place = Place::new();
    let outcome = place.smolfed("audit --fault noise-too-small");
    outcome.refused(2, &["--fault noise-too-small", "--features faults"]);
}

#[test]
fn an_audit_without_held_out_data_or_with_an_invalid_error_is_refused() {
    let place = Place::new();
    let call = "audit --membership";
    let outcome = place.smolfed(call);
    outcome.refused(2, &["data.validation"]);
    let outcome = place.smolfed("audit --error 2");
    outcome.refused(2, &["--error is 2"]);
}
