//! `smolfed account` and `smolfed plan`: figures, statements, and refusals.

use serde_json::Value;

use crate::program::Place;

const POISSON: &str = "--devices 2000 --sampling poisson --sampling-rate 0.05 --delta 1e-5";

fn number(document: &Value, key: &str) -> f64 {
    let value = document[key].as_f64();
    value.unwrap_or_else(|| panic!("no number `{key}` in {document}"))
}

#[test]
fn the_json_has_every_field_of_the_contract() {
    let place = Place::new();
    let call = format!(
        "account {POISSON} --rounds 200 --noise-std 0.3 --clip-norm 0.3 --json --svg cost.svg"
    );
    let document = place.smolfed(&call).success().json();
    for key in ["epsilon", "delta", "noise_multiplier", "noise_std"] {
        assert!(number(&document, key) > 0.0);
    }
    for key in ["clip_norm", "sampling_rate", "rounds"] {
        assert!(number(&document, key) > 0.0);
    }
    let words = ["accountant", "adjacency", "sampling", "unit", "trust"];
    assert!(words.iter().all(|key| document[key].is_string()));
    assert_eq!(document["is_upper_bound"], true);
    assert_eq!(document["adjacency"], "add-remove");

    // The figure is the smallest proved bound, and the curves are monotone.
    let answers = document["accountants"].as_array().unwrap();
    let proved = answers
        .iter()
        .filter(|answer| answer["is_upper_bound"] == true);
    let least = proved.map(|answer| number(answer, "epsilon"));
    assert_eq!(
        least.fold(f64::INFINITY, f64::min),
        number(&document, "epsilon")
    );
    let curve = document["trade_off"].as_array().unwrap();
    assert!(
        curve
            .windows(2)
            .all(|pair| pair[0][1].as_f64() >= pair[1][1].as_f64())
    );
    let rounds = document["epsilon_over_rounds"].as_array().unwrap();
    assert!(
        rounds
            .windows(2)
            .all(|pair| pair[0][1].as_f64() <= pair[1][1].as_f64())
    );
    let svg = std::fs::read_to_string(place.path("cost.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("false-positive rate"));
}

#[test]
fn the_text_compares_accountants_and_says_what_it_means() {
    let place = Place::new();
    let call = format!("account {POISSON} --rounds 200 --noise-multiplier 1");
    let text = place.smolfed(&call).success().stdout;
    for words in [
        "rdp ",
        "upper bound",
        "approximation",
        "as published",
        "No result from: ",
        "with advantage at most",
        "at a false-positive rate of 1 %, the true-positive rate is at most",
        "After rounds",
    ] {
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }
}

#[test]
fn noise_rounds_and_cohort_are_found_and_stay_below_the_target() {
    let place = Place::new();
    let target = 2.0;
    let plan = |call: &str| {
        let call = format!("plan --epsilon {target} --delta 1e-5 --json {call}");
        place.smolfed(&call).success().json()
    };
    let devices = "--devices 2000 --sampling poisson";
    let noise = plan(&format!("{devices} --cohort 100 --rounds 200"));
    assert_eq!(noise["searched"], "noise multiplier");
    let epsilon = number(&noise, "epsilon");
    assert!(
        epsilon <= target && epsilon > target * (1.0 - 2e-4),
        "{epsilon}"
    );

    let z = number(&noise, "found") * 1.001;
    let rounds = plan(&format!("{devices} --cohort 100 --noise-multiplier {z}"));
    assert!(
        (200.0..210.0).contains(&number(&rounds, "found")),
        "{rounds}"
    );
    let cohort = plan(&format!("{devices} --rounds 200 --noise-multiplier {z}"));
    assert_eq!(number(&cohort, "found"), 100.0);

    let again = format!("account {POISSON} --rounds 200 --noise-multiplier {z} --json");
    let again = place.smolfed(&again).success().json();
    assert!(number(&again, "epsilon") <= target);
}

#[test]
fn a_ledger_is_accounted_as_the_run_was() {
    let place = Place::new();
    let run = place
        .smolfed("run --out run --json --set rounds=5")
        .success()
        .json();
    let call = "account --ledger run/ledger.jsonl --json";
    let found = place.smolfed(call).success().json();
    assert!(number(&found, "epsilon") <= number(&run, "epsilon") * (1.0 + 1e-9));
    assert_eq!(found["rounds"], 5);
}

/// Runs on a common ledger may have been chosen adaptively. The figure for a fixed schedule says
/// so, and a figure that holds in any case is at least as large.
#[test]
fn a_ledger_states_what_holds_in_any_case() {
    let place = Place::new();
    let run = |seed: u32| {
        let settings = format!("--set privacy.epsilon={seed} --set privacy.ledger=shared.jsonl");
        let call = format!("run --out run{seed} --json --seed {seed} --set rounds=3 {settings}");
        place.smolfed(&call).success().json()["privacy"][0].clone()
    };
    assert_eq!(run(1)["is_upper_bound"], true);
    // The second run may have been configured after seeing the first.
    let second = run(2);
    assert_eq!(second["is_upper_bound"], false, "{second}");
    assert_eq!(second["planned_is_upper_bound"], true, "{second}");
    place.smolfed("account --verify run2").success();
    let call = "account --ledger shared.jsonl";
    let found = place.smolfed(&format!("{call} --json")).success().json();
    assert_eq!((&found["runs"], &found["rounds"]), (&2.into(), &6.into()));
    assert_eq!(found["schedule"], "fixed-beforehand");
    let adaptive = &found["adaptive"];
    assert_eq!(adaptive["accountant"], "renyi-odometer");
    assert!(number(adaptive, "epsilon") > number(&found, "epsilon"));
    let text = place.smolfed(call).success().stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "If the schedule was fixed beforehand (runs, rounds, noise, sampling): epsilon =",
        "If any of the 2 runs was started, configured or stopped in view of earlier releases",
    ] {
        assert!(text.contains(words), "{text}");
    }
    // The same ledger, for users with several devices.
    let users = place.smolfed(&format!("{call} --json --devices-per-user 2"));
    let users = users.success().json();
    assert!(number(&users, "epsilon") > number(&found, "epsilon"));
    assert_eq!(users["devices_per_user"], 2);
}

#[test]
fn users_with_several_devices_are_accounted_for() {
    let place = Place::new();
    let ask = |devices: u32| {
        let call = format!(
            "account {POISSON} --rounds 10 --noise-multiplier 2 --json --devices-per-user {devices}"
        );
        place.smolfed(&call).success().json()
    };
    let (one, two, three) = (ask(1), ask(2), ask(3));
    assert!(one.get("devices_per_user").is_none());
    assert!(number(&one, "epsilon") < number(&two, "epsilon"));
    assert!(number(&two, "epsilon") < number(&three, "epsilon"));
    assert_eq!(three["is_upper_bound"], true);
    let call = format!("plan {POISSON} --epsilon 1 --rounds 10 --json --devices-per-user");
    let plan = |devices| place.smolfed(&format!("{call} {devices}")).success().json();
    assert!(number(&plan(3), "found") > number(&plan(1), "found"));
}

#[test]
fn no_noise_is_a_sentence_and_not_a_crash() {
    let place = Place::new();
    let call = format!("account {POISSON} --rounds 200 --noise-multiplier 0");
    let text = place.smolfed(&call).success().stdout;
    assert!(text.contains("No finite epsilon holds"), "{text}");
    let document = place.smolfed(&format!("{call} --json")).success().json();
    assert!(document["epsilon"].is_null() && document["advantage"] == 1.0);
}

#[test]
fn a_large_delta_is_warned_of() {
    let place = Place::new();
    let call = "account --devices 100 --sampling full --rounds 1 --noise-multiplier 5 --delta 0.01";
    let text = place.smolfed(call).success().stdout;
    assert!(text.contains("not below 1/N"), "{text}");
}

#[test]
fn invalid_arguments_are_refused_in_a_sentence() {
    let place = Place::new();
    for (call, words) in [
        (
            "account --devices 100 --sampling full --rounds 1",
            "--noise-multiplier",
        ),
        (
            "account --devices 100 --sampling uniform --cohort 101 --rounds 1 --noise-multiplier 1",
            "cohort size is 101",
        ),
        (
            "account --devices 100 --sampling poisson --sampling-rate 1.5 --rounds 1 \
             --noise-multiplier 1",
            "--sampling-rate",
        ),
        (
            "account --devices 100 --sampling full --rounds 1 --noise-multiplier -1",
            "noise multiplier",
        ),
        (
            "account --devices 100 --sampling unsampled --rounds 1 --noise-multiplier 1",
            "--max-participations",
        ),
        (
            "account --devices 100 --sampling full --rounds 0 --noise-multiplier 1",
            "--rounds is 0",
        ),
        (
            "account --devices 100 --sampling full --rounds 1 --noise-multiplier 1 \
             --accountant best",
            "`best` is not an accountant",
        ),
        (
            "account --devices 100 --sampling poisson --cohort 5 --rounds 1 --noise-multiplier 1 \
             --accountant theorem-1",
            "uniform sampling",
        ),
        (
            "account --devices 100 --sampling full --rounds 1 --noise-multiplier 1 \
             --devices-per-user 0",
            "--devices-per-user: the number of devices per user is 0",
        ),
        (
            "plan --epsilon 1 --devices 100 --sampling full --rounds 1 --devices-per-user 101",
            "from 1 to the device count 100",
        ),
        (
            "account --devices 100 --sampling full --rounds 1 --noise-multiplier 1 \
             --unit example --devices-per-user 2",
            "an example of one device",
        ),
        (
            "plan --epsilon 0 --devices 100 --sampling full --rounds 1",
            "--epsilon",
        ),
        (
            "plan --epsilon 1 --devices 100 --sampling full --rounds 1 --noise-multiplier 1",
            "nothing is left to compute",
        ),
        (
            "plan --epsilon 1 --devices 100 --sampling poisson --rounds 1",
            "only one quantity",
        ),
    ] {
        let outcome = place.smolfed(call);
        outcome.refused(2, &[words]);
    }
}

const CORRELATED: &str = "--mechanism correlated --rounds 2052 --separation 342";

#[test]
fn correlated_noise_has_the_figures_of_its_families() {
    let place = Place::new();
    // Sensitivity, rmse and max error of tests/vectors/correlated_noise.json, and Honaker's tree.
    for (family, rmse, max_error) in [
        ("identity", 78.4793, 110.9595),
        ("tree", 19.2750, 27.2721),
        ("square-root", 10.8700, 11.4009),
        ("square-root-banded", 8.9782, 11.0481),
        ("banded-optimal-mean", 8.8051, 10.5261),
        ("banded-optimal-max", 8.9056, 10.4057),
    ] {
        let call = format!("{CORRELATED} --participations 6 --family {family} --json");
        let document = place.smolfed(&format!("account {call}")).success().json();
        assert_eq!(document["family"], family);
        for (key, expected) in [("rmse", rmse), ("max_error", max_error)] {
            let found = number(&document, key);
            assert!(
                (found / expected - 1.0).abs() < 1e-3,
                "{family} {key}: {found}"
            );
        }
        // Noise multiplier 1 at delta = 1e-6: one Gaussian release.
        assert_eq!(document["noise_multiplier"], 1.0);
        assert!((number(&document, "epsilon") - 4.88655).abs() < 1e-4);
        assert!((number(&document, "epsilon_replace_one") - 10.99715).abs() < 1e-4);
        assert!(document["devices"].is_null() && document["is_upper_bound"] == true);
    }
    let call = format!("plan {CORRELATED} --participations 6 --epsilon 2 --delta 1e-6 --json");
    let document = place.smolfed(&call).success().json();
    assert_eq!(document["family"], "banded-optimal-mean");
    assert!(number(&document, "rmse") <= 8.806 && number(&document, "epsilon") <= 2.0);
    let families = document["families"].as_array().unwrap();
    assert_eq!(families.len(), 6);
    for row in families {
        // Independent noise without sampling reaches its error at a larger epsilon. Only
        // independent noise itself costs the same.
        let [own, unsampled] = ["epsilon", "independent_unsampled_epsilon"];
        let (own, unsampled) = (number(row, own), number(row, unsampled));
        let is_identity = row["family"] == "identity";
        assert_eq!((unsampled / own - 1.0).abs() < 1e-6, is_identity, "{row}");
        assert!(is_identity || unsampled > 4.0 * own, "{row}");
        assert!(
            number(row, "independent_poisson_epsilon") < unsampled,
            "{row}"
        );
    }
}

#[test]
fn correlated_noise_states_what_it_assumes() {
    let place = Place::new();
    let call = format!(
        "plan {CORRELATED} --participations 100 --epsilon 2 --devices 34200 --svg errors.svg"
    );
    let text = place.smolfed(&call).success().stdout;
    let words = "whichever devices take part, in any order, at most 6 times and at least 342 \
                 rounds apart";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("100 participations count as 6"), "{text}");
    assert!(text.contains("independent, no sampling"), "{text}");
    let svg = std::fs::read_to_string(place.path("errors.svg")).unwrap();
    assert!(svg.contains("Error over rounds") && svg.contains("banded-optimal-max"));
}

/// pfl's tutorial (docs/reproduction/correlated.md), and the benefit of a draw.
#[test]
fn correlated_noise_counts_a_draw_in_turn() {
    let place = Place::new();
    let call = "account --mechanism correlated --rounds 100 --separation 100 --family identity \
                --devices 1000000 --sampling block-cyclic --cohort 100 --noise-multiplier 0.4208 \
                --delta 1e-8 --json";
    let document = place.smolfed(call).success().json();
    assert_eq!(document["sampling"], "block-cyclic");
    assert_eq!(document["sampling_rate"], 0.01);
    let row = &document["families"][0];
    for (figure, expected) in [
        (number(&document, "epsilon"), 8.97),
        (number(row, "epsilon"), 8.97),
        (number(row, "epsilon_without_sampling"), 15.65),
    ] {
        assert!((figure - expected).abs() < 0.005, "{document}");
    }
    let call = "plan --mechanism correlated --rounds 200 --separation 20 --devices 2000 \
                --sampling block-cyclic --cohort 50 --epsilon 2";
    let text = place.smolfed(call).success().stdout;
    assert!(text.contains("the same, no sampling") && text.contains("split into 20 parts"));
    assert!(
        !text.contains("tree") && text.contains("banded-optimal-mean"),
        "{text}"
    );
}

#[test]
fn correlated_noise_that_makes_no_sense_is_refused() {
    let place = Place::new();
    let six = format!("{CORRELATED} --participations 6");
    for (call, expected) in [
        (
            "--mechanism correlated --rounds 20".to_owned(),
            "needs --rounds N, --separation B",
        ),
        (
            "--mechanism correlated --rounds 20 --separation 21 --participations 1".to_owned(),
            "the separation is 21: it must be from 1 to 20",
        ),
        (
            format!("{CORRELATED} --participations 0"),
            "the number of participations is 0",
        ),
        (format!("{six} --family blt"), "`blt` is not a family"),
        (format!("{six} --trust local"), "by a trusted server"),
        (format!("{six} --unit example"), "by a trusted server"),
        (
            format!("{six} --devices 9 --sampling full"),
            "--sampling does not apply",
        ),
        (
            format!("{six} --sampling block-cyclic --cohort 9"),
            "needs --devices N",
        ),
        (
            format!("{six} --devices 684 --sampling block-cyclic --cohort 3"),
            "--cohort is 3: it must be at most 2",
        ),
        (
            format!("{six} --devices 684 --sampling block-cyclic --cohort 1 --family tree"),
            "at most that many bands",
        ),
        (
            format!(
                "{CORRELATED} --devices 684 --sampling block-cyclic --cohort 1 --participations 2"
            ),
            "--participations is 2: with block-cyclic sampling",
        ),
        (
            "--devices 9 --sampling block-cyclic --cohort 2 --rounds 5".to_owned(),
            "belongs to --mechanism correlated",
        ),
        (
            format!("{six} --max-participations 3"),
            "give --participations",
        ),
        (format!("{six} --delta 1/N"), "give --devices as well"),
        (
            format!("{six} --family tree --cohort 20000000"),
            "cohorts of at most 14680063; this cohort needs --grid-bits 19 or less",
        ),
        (
            "--devices 9 --sampling full --rounds 5 --separation 2".to_owned(),
            "--separation belongs to --mechanism correlated",
        ),
        (
            "--mechanism correlated --rounds 5000000 --separation 2 --participations 2".to_owned(),
            "the number of rounds is 5000000: it must be from 1 to 4194304",
        ),
    ] {
        let outcome = place.smolfed(&format!("account --noise-multiplier 1 {call}"));
        outcome.refused(2, &[expected]);
    }
    let outcome = place.smolfed("plan --mechanism gaussian --devices 9 --sampling full --rounds 5");
    outcome.refused(2, &["--epsilon is missing"]);
}
