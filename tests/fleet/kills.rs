//! Consistency of the records of a coordinator that is repeatedly killed under load.

use super::device::Device;
use super::{FULL, Value, assert_is_the_simulation, lines, provision, serve, wait, wait_until};
use crate::program::Place;

const ROUNDS: usize = 24;

#[test]
fn books_are_consistent_after_kills_under_load() {
    books_are_consistent("");
}

/// No device continues from a personal model of a burned round. The update of this method
/// telescopes: a single wrong state would never be corrected.
#[test]
fn personal_models_are_those_of_the_rounds_that_counted() {
    books_are_consistent(" --set method=pmtl --set personalise.update=\"mean-over-all\"");
}

/// Asserts that every round is charged once, that no round number repeats, and that no device is
/// recorded as having answered a burned round.
fn books_are_consistent(method: &str) {
    let place = Place::new();
    let settings = format!("{FULL} --set rounds={ROUNDS}{method}");
    provision(&place, &settings);
    let _devices = Device::start_all(&place, 0..4);
    let mut call = serve("100s", &settings);
    let rounds = |name: &str| lines(&place.path("served").join(name));
    // Later each time, so that the kills hit different moments of a round.
    for kill in 1..4 {
        let mut coordinator = place.start(&call);
        let done = rounds("metrics.jsonl").len();
        wait_until(|| rounds("metrics.jsonl").len() > done + 2);
        std::thread::sleep(std::time::Duration::from_millis(7 * kill));
        coordinator.kill().unwrap();
        coordinator.wait().unwrap();
        call = "serve --resume served --json".to_owned();
    }
    wait(place.start(&call), &call).success();

    let (metrics, participation) = (rounds("metrics.jsonl"), rounds("participation.jsonl"));
    assert_eq!((metrics.len(), participation.len()), (ROUNDS, ROUNDS));
    let numbers = participation.iter().map(|round| round["number"].as_u64());
    let numbers: Vec<u64> = numbers.map(Option::unwrap).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let next = std::fs::read_to_string(place.path("fleet/keys.toml.round")).unwrap();
    assert_eq!(next.trim().parse(), Ok(numbers[ROUNDS - 1] + 1));
    let mut burned = 0;
    for (metrics, participation) in metrics.iter().zip(&participation) {
        assert_eq!(metrics["burned"], participation["burned"]);
        let answered = participation["answered"].as_array().unwrap().len();
        let missing = participation["missing"].as_object().unwrap().len();
        match participation["burned"] == true {
            true => {
                burned += 1;
                assert_eq!(answered, 0);
            }
            false => assert_eq!(answered + missing, 4, "{participation}"),
        }
    }
    assert!(burned <= 3, "{burned}");
    let charged = rounds("ledger.jsonl")
        .into_iter()
        .filter(|line| line["event"].is_object());
    let charged: Vec<Value> = charged.collect();
    assert_eq!(charged.len(), ROUNDS);
    assert_is_the_simulation(&place, "served");
}
