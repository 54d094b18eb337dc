//! `smolfed audit`: what it finds, and a refuted claim.

use crate::program::Place;

#[test]
fn the_default_experiment_passes_and_a_planted_bug_does_not() {
    let place = Place::new();
    let honest = place.smolfed("audit --runs 200 --json").success().json();
    assert_eq!(honest["is_refuted"], false);
    let claim = &honest["claim"];
    assert_eq!(claim["adjacency"], "add-remove");
    assert!(
        honest["epsilon_low"].as_f64() <= claim["epsilon"].as_f64(),
        "{honest}"
    );
    assert_eq!(honest["findings"].as_array().unwrap().len(), 5);

    let call = "audit --set rounds=1 --fault noise-divided-twice --json";
    let broken = place.smolfed(call);
    assert_eq!(broken.code, Some(1), "{broken}");
    assert!(broken.stderr.contains("the claim is refuted"), "{broken}");
    assert_eq!(broken.json()["is_refuted"], true);
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

#[test]
fn an_audit_without_held_out_data_or_with_an_invalid_error_is_refused() {
    let place = Place::new();
    let call = "audit --membership";
    let outcome = place.smolfed(call);
    outcome.refused(2, &["data.validation"]);
    let outcome = place.smolfed("audit --error 2");
    outcome.refused(2, &["--error is 2"]);
}
