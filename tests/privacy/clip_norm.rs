//! A warning appears once if an adaptive clip norm grows far beyond the norms of updates, while a
//! run can still be stopped.

use crate::program::Place;

/// Four rounds in which a clip norm starts far too low and grows by up to e⁵ per round.
const RUNS_AWAY: &str = "run -q --set rounds=4 --set privacy.clip_norm=adaptive \
    --set privacy.adaptive.initial=0.001 --set privacy.adaptive.learning_rate=10";

#[test]
fn a_clip_norm_that_runs_away_is_warned_of_once() {
    let place = Place::new();
    let outcome = place.smolfed(&format!("{RUNS_AWAY} --out far")).success();
    let lines = outcome.stderr.lines();
    let warnings: Vec<&str> = lines
        .filter(|line| line.contains("adaptive clip norm"))
        .collect();
    assert_eq!(warnings.len(), 1, "{outcome}");
    for words in [
        "warning: round 2: the adaptive clip norm is 0.0783, 78 times its initial value of 0.001",
        "the noise on the sum of updates has grown with it",
        "set `privacy.clip_norm` to a number",
    ] {
        assert!(warnings[0].contains(words), "{words}: {outcome}");
    }
}

#[test]
fn a_clip_norm_near_its_beginning_is_not_warned_of() {
    let place = Place::new();
    let near = "run -q --set rounds=4 --set privacy.clip_norm=adaptive --out near";
    let outcome = place.smolfed(near).success();
    assert!(!outcome.stderr.contains("adaptive clip norm"), "{outcome}");
}
