//! Questions: between rounds, alone, and about a finished run.

use serde_json::Value;

use crate::program::Place;

const ASK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/ask-evaluate.toml");

fn json(place: &Place, arguments: &str) -> Value {
    place.smolfed(arguments).success().json()
}

/// Returns the records of a run.
fn records(place: &Place, run: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(place.path(run).join("metrics.jsonl")).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The example about a trained model: its estimate is close to the test accuracy, and the statement
/// covers only the answers.
#[test]
fn a_finished_run_is_asked_how_good_its_model_is() {
    let place = Place::new();
    let run = json(&place, "run --out run --seed 1 --json");
    let asked = json(&place, &format!("ask {ASK} --run run --out asked --json"));
    let number = |value: &Value| value.as_f64().unwrap();
    let (estimate, accuracy) = (number(&asked["estimate"]), number(&run["test_accuracy"]));
    assert!((estimate - accuracy).abs() < 0.08, "{estimate} {accuracy}");
    let (low, high) = (number(&asked["interval"][0]), number(&asked["interval"][1]));
    assert!(
        low < estimate && estimate < high && high - low < 0.12,
        "{low} {high}"
    );
    assert!(number(&asked["epsilon"]) <= 1.0);
    assert_eq!(asked["privacy"][0]["subject"], "answers");
    // The statement says that it excludes the cost of the model itself.
    let conditions = asked["privacy"][0]["conditions"].to_string();
    assert!(conditions.contains("model-of-run"), "{conditions}");
    assert_eq!(asked["privacy"][0]["is_upper_bound"], true);
    // Nothing is proved about a model without a statement.
    let model = place.path("run").join("model.safetensors");
    let other = format!("ask {ASK} --model {} --json", model.display());
    assert_eq!(json(&place, &other)["privacy"][0]["is_upper_bound"], false);
    place.smolfed("account --verify asked").success();
}

#[test]
fn questions_alone_are_answered_without_training() {
    let place = Place::new();
    let asked = json(&place, &format!("ask {ASK} --out asked --json"));
    assert_eq!(asked["question"], "evaluate");
    assert_eq!(asked["privacy"][0]["is_upper_bound"], true);
    // Ten classes, and a model of zeros.
    let estimate = asked["estimate"].as_f64().unwrap();
    assert!((estimate - 0.1).abs() < 0.05, "{estimate}");
    let text = place
        .smolfed(&format!("ask {ASK} --out again"))
        .success()
        .stdout;
    for words in ["accuracy", "answered", "(99 %)", "epsilon = 0.99"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The same question has the same noise, and another question has other noise.
    let again = &records(&place, "again")[0]["answers"][0];
    assert_eq!(again, &records(&place, "asked")[0]["answers"][0]);
    let other = format!("ask {ASK} --set name=other --out other --json");
    assert_ne!(json(&place, &other)["estimate"], asked["estimate"]);
}

/// Answers are in the records of their rounds, and a resumed run gives the same answers.
#[test]
fn questions_are_asked_between_rounds() {
    let place = Place::new();
    let questions = "[{kind=\"evaluate\",every=2},{kind=\"presence\"},\
                     {kind=\"count\",every=3}]";
    let run = format!(
        "run --seed 2 --set rounds=6 --set privacy.questions=0.3 --set questions={questions}"
    );
    place.smolfed(&format!("{run} --out run")).success();
    let asked = |run: &str| -> Vec<Vec<String>> {
        let of_round = |record: &Value| {
            let answers = record["answers"].as_array().cloned().unwrap_or_default();
            let names = answers
                .iter()
                .map(|answer| answer["name"].as_str().unwrap().to_owned());
            names.collect()
        };
        records(&place, run).iter().map(of_round).collect()
    };
    let all = ["evaluate", "presence of labels", "count"];
    let expected = [&[][..], &all[..1], &all[2..], &all[..1], &[], &all[..]];
    assert_eq!(asked("run"), expected);
    place.smolfed("account --verify run").success();
    let ledger = std::fs::read_to_string(place.path("run").join("ledger.jsonl")).unwrap();
    assert_eq!(ledger.matches("\"answer\":{").count(), 6);
    // Without separate noise, a question takes a part of the target, and the rounds use the rest.
    let statement = std::fs::read_to_string(place.path("run").join("privacy.json")).unwrap();
    let statement: Value = serde_json::from_str(&statement).unwrap();
    assert_eq!(statement[0]["rounds"], 6);
    let notes = statement[0]["notes"].to_string();
    assert!(
        notes.contains("answer questions about their samples"),
        "{notes}"
    );
}

#[test]
fn a_budget_says_how_exact_an_answer_is() {
    let place = Place::new();
    let plan = "plan --devices 1000 --sampling poisson --cohort 100 --rounds 1 --delta 1e-5 \
                --epsilon 0.1 --answers --json";
    let plan = json(&place, plan);
    let z = plan["found"].as_f64().unwrap();
    let error = plan["standard_error"].as_f64().unwrap();
    assert!((error - z / 100.0).abs() < 1e-6, "{error} {z}");
    let run = "run --dry-run --json --set questions=[{kind=\"evaluate\",every=5}]";
    let question = &json(&place, run)["questions"][0];
    assert_eq!(question["name"], "evaluate");
    assert!(question["standard_error"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_file_without_questions_is_refused_by_name() {
    let place = Place::new();
    place.write(
        "empty.toml",
        "name = \"nothing\"\n[data]\nsource = \"digits\"\n",
    );
    let refused = place.smolfed("ask empty.toml");
    refused.refused(2, &["empty.toml asks nothing", "[[questions]]"]);
    let refused = place.smolfed(&format!("ask {ASK} --run nowhere"));
    refused.refused(2, &["nowhere"]);
}

/// Whether devices can train depends on their data, so a run whose answers have noise continues.
#[test]
fn a_run_with_noise_on_answers_does_not_stop_if_nobody_can_train() {
    let place = Place::new();
    let alone =
        "run --set rounds=1 --set method=local --set server={} --set train.learning_rate=1e30";
    let noise = "--set questions=[{kind=\"count\",every=1}] --set privacy={noise_multiplier=2.0}";
    place
        .smolfed(&format!("{alone} {noise} --out asked"))
        .success();
    let stopped = place.smolfed(&format!("{alone} --set privacy={{}} --out alone"));
    assert!(
        stopped
            .stderr
            .contains("every device of the cohort was left out"),
        "{stopped}"
    );
}
