//! Masked sums, through the command line.

use serde_json::Value;

use crate::program::Place;

const TRUST: &str = "--set privacy.trust=distributed";

fn number(document: &Value, key: &str) -> f64 {
    document[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no {key}: {document}"))
}

/// With any cohorts and mechanism, and any method with one update, a run states both figures, and
/// its statement equals its ledger's.
#[test]
fn every_combination_runs_and_states_both_figures() {
    let place = Place::new();
    let correlated = "--set privacy.mechanism=correlated --set privacy.separation=4";
    for (name, more) in [
        ("uniform", "--set cohort.sampling=uniform".to_owned()),
        ("poisson", "--set cohort.sampling=poisson".to_owned()),
        ("full", "--set cohort={sampling=\"full\"}".to_owned()),
        (
            "rotation",
            format!("--set cohort={{sampling=\"rotation\"}} {correlated}"),
        ),
        (
            "arrival",
            format!("--set cohort={{sampling=\"arrival\",cohort_size=8}} {correlated}"),
        ),
        (
            "in-turn",
            format!("--set cohort={{sampling=\"block-cyclic\",cohort_size=8}} {correlated}"),
        ),
        ("three", "--set privacy.trust=distributed=3/2".to_owned()),
        (
            "pmtl",
            "--set method=pmtl --set data.device_test=0.25".to_owned(),
        ),
        ("fast", "--set simulation.arithmetic=fast".to_owned()),
        ("coarse", "--set privacy.grid_bits=8".to_owned()),
    ] {
        let trust = if more.contains("trust") { "" } else { TRUST };
        let run = format!(
            "run --out {name} --json --set rounds=12 --set server.smoothing_factor=0 {trust} {more}"
        );
        let document = place.smolfed(&run).success().json();
        let file = place.path(format!("{name}/privacy.json"));
        let statements: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let statement = &statements[0];
        let epsilon = number(statement, "epsilon");
        assert_eq!(epsilon, number(&document, "epsilon"), "{name}");
        assert!(number(statement, "epsilon_outsiders") < epsilon, "{name}");
        assert!(statement["views"].as_array().unwrap().len() >= 4, "{name}");
        assert!(statement["trust"]["distributed"].is_object(), "{name}");
        place.smolfed(&format!("account --verify {name}")).success();
        place
            .smolfed(&format!("account --ledger {name}/ledger.jsonl"))
            .success();
    }
}

#[test]
fn plans_and_accounts_have_both_figures() {
    let place = Place::new();
    let setting = "--devices 2000 --sampling poisson --cohort 100 --rounds 200";
    let account = |trust: &str| {
        let call = format!("account {setting} --trust {trust} --noise-multiplier 20 --json");
        place.smolfed(&call).success().json()
    };
    let (pair, three) = (account("distributed"), account("distributed=3"));
    let epsilon = number(&pair, "epsilon");
    // One honest party in both: full composition of 200 rounds with z = 20.
    assert_eq!(epsilon, number(&three, "epsilon"));
    assert!(number(&pair, "epsilon_outsiders") < 0.2 * epsilon);
    assert!(number(&three, "epsilon_outsiders") < number(&pair, "epsilon_outsiders"));
    let central = account("central");
    assert!(number(&pair, "epsilon_outsiders") < number(&central, "epsilon"));
    let plan = format!("plan --epsilon 2 {setting} --trust distributed --json");
    let plan = place.smolfed(&plan).success().json();
    assert!(number(&plan, "epsilon") <= 2.0 && number(&plan, "epsilon_outsiders") < 0.5);
    let correlated = "plan --epsilon 2 --mechanism correlated --rounds 200 --separation 20 \
                      --participations 10 --delta 1e-6 --json";
    let found = |trust: &str| {
        let call = format!("{correlated} --trust {trust}");
        number(&place.smolfed(&call).success().json(), "found")
    };
    // There is no sampling to lose: the parties need a trusted server's noise.
    assert_eq!(found("central"), found("distributed"));
    for wrong in [
        "distributed=0",
        "distributed=9",
        "distributed=2/3",
        "distributed=0.9",
    ] {
        let call = format!("account {setting} --trust {wrong} --noise-multiplier 20");
        let outcome = place.smolfed(&call);
        let is_refused = outcome.stderr.contains("invalid value");
        assert!(
            is_refused && outcome.stderr.contains("--trust"),
            "{outcome}"
        );
    }
}
