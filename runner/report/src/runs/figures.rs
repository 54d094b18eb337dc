//! Figures of rounds by their dotted names, such as `test.accuracy`, and the ones that judge a
//! model.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use smolfed_engine::round::origin_of;
use smolfed_engine::run_files::records::RecordValues;
use smolfed_release::number::{fixed, significant};
use smolfed_release::provenance::Provenance;

/// The wall time of a round.
pub const SECONDS: &str = "seconds";
/// ε after a round. Infinite if no finite ε holds.
pub const EPSILON: &str = "epsilon";
/// In a window of time, the number of participations spent without an update that counts.
pub const WASTED: &str = "wasted";
/// Prefix of a window's updates by the age of their model: `ages.0`, `ages.1`.
pub const AGES: &str = "ages";
/// Prefix of the answers to questions, by the names of the questions.
const ANSWERS: &str = "answers";
/// Prefix of the figures known only to a simulation.
const SIMULATION_ONLY: &str = "simulation_only.";

/// The figures of one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The round, from 0.
    pub round: u32,
    /// Every number by its dotted name. True values are 1. Non-finite values are left out, except
    /// an infinite ε.
    pub figures: BTreeMap<String, f64>,
    /// Origins of the figures, by the first part of their names.
    pub origin: BTreeMap<String, Provenance>,
}

impl Round {
    /// Returns the number of rounds up to and including this one.
    #[must_use]
    pub const fn done(&self) -> u32 {
        self.round.saturating_add(1)
    }

    /// Returns a figure, if the round has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied()
    }
}

impl From<RecordValues> for Round {
    fn from(record: RecordValues) -> Self {
        let mut figures = BTreeMap::new();
        for (name, value) in &record.values {
            match (name.as_str(), value) {
                // JSON has no infinity.
                (EPSILON, Value::Null) => {
                    figures.insert(name.clone(), f64::INFINITY);
                }
                (ANSWERS, Value::Array(answers)) => {
                    for answer in answers {
                        add_answer(&mut figures, answer);
                    }
                }
                _ => add(&mut figures, name.clone(), value),
            }
        }
        let origin = record.values.get("origin");
        let origin = origin.and_then(|origin| BTreeMap::deserialize(origin).ok());
        Self {
            round: record.round,
            figures,
            origin: origin.unwrap_or_default(),
        }
    }
}

/// Adds the figures of an answer: `answers.evaluate.accuracy` for the estimate, and the ends of its
/// interval with `.low` and `.high`. The later of two questions with the same name is kept.
fn add_answer(figures: &mut BTreeMap<String, f64>, answer: &Value) {
    let name_of = |of: &Value| of.get("name").and_then(Value::as_str).map(str::to_owned);
    let Some(question) = name_of(answer) else {
        return;
    };
    let estimates = answer.get("estimates").and_then(Value::as_array);
    for estimate in estimates
        .into_iter()
        .flatten()
        .chain(answer.get("answered"))
    {
        let Some(name) = name_of(estimate) else {
            continue;
        };
        let parts = [
            ("", "/value"),
            (".low", "/interval/0"),
            (".high", "/interval/1"),
        ];
        for (end, place) in parts {
            let number = estimate.pointer(place).and_then(Value::as_f64);
            let name = format!("{ANSWERS}.{question}.{name}{end}");
            figures.extend(number.map(|number| (name, number)));
        }
    }
}

/// Adds a value, or all values in it.
fn add(figures: &mut BTreeMap<String, f64>, name: String, value: &Value) {
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                add(figures, format!("{name}.{key}"), value);
            }
        }
        Value::Array(inner) => {
            for (index, value) in inner.iter().enumerate() {
                add(figures, format!("{name}.{index}"), value);
            }
        }
        Value::Bool(is_true) => {
            figures.insert(name, f64::from(u8::from(*is_true)));
        }
        Value::Number(number) => figures.extend(number.as_f64().map(|number| (name, number))),
        Value::String(_) | Value::Null => {}
    }
}

/// Returns the names of all figures of some rounds, with simulation-only ones last.
pub fn names<'a>(rounds: impl IntoIterator<Item = &'a Round>) -> Vec<&'a str> {
    let names = rounds.into_iter().flat_map(|round| round.figures.keys());
    let sorted: BTreeSet<(bool, &str)> = names
        .map(|name| (name.starts_with(SIMULATION_ONLY), name.as_str()))
        .collect();
    sorted.into_iter().map(|(_, name)| name).collect()
}

/// Returns the origin of a figure of some rounds.
#[must_use]
pub fn origin(name: &str, rounds: &[Round]) -> Provenance {
    let with_it = rounds.iter().filter(|round| round.get(name).is_some());
    let origins = with_it.map(|round| origin_of(name, &round.origin));
    origins.max().unwrap_or(Provenance::Public)
}

/// Returns the exported name of a figure, which marks private ones.
#[must_use]
pub fn exported_name(name: &str, rounds: &[Round]) -> String {
    match origin(name, rounds) {
        Provenance::SimulationOnly if !name.starts_with(SIMULATION_ONLY) => {
            format!("{SIMULATION_ONLY}{name}")
        }
        Provenance::Unknown => format!("provenance_unknown.{name}"),
        _ => name.to_owned(),
    }
}

/// A figure that judges a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quality {
    /// Whether less is better.
    pub is_error: bool,
    /// Whether it is a share of 1, shown in percent.
    pub is_share: bool,
}

impl Quality {
    const SHARE: Self = Self {
        is_error: false,
        is_share: true,
    };
    const ERROR: Self = Self {
        is_error: true,
        is_share: false,
    };

    /// Returns the kind of a figure of these rounds, by the last word of its name. `None` if it is
    /// neither good nor bad, such as a norm.
    #[must_use]
    pub fn of(name: &str, rounds: &[Round]) -> Option<Self> {
        let (parent, last) = name.rsplit_once('.').unwrap_or(("", name));
        match last.rsplit('_').next().unwrap_or(last) {
            "accuracy" | "f1" => Some(Self::SHARE),
            "r2" => Some(Self {
                is_error: false,
                is_share: false,
            }),
            "rmse" | "mae" | "loss" => Some(Self::ERROR),
            "shared" | "own" | "tuned" | "alone" => {
                let flag = format!("{parent}.is_error");
                let mut rounds = rounds.iter();
                Some(match rounds.any(|round| round.get(&flag).is_some()) {
                    true => Self::ERROR,
                    false => Self::SHARE,
                })
            }
            _ => None,
        }
    }

    /// Returns a value in the form of a table: shares in percent.
    #[must_use]
    pub fn words(self, value: f64) -> String {
        match self.is_share {
            true => format!("{} %", fixed(100.0 * value, 2)),
            false => significant(value, 4),
        }
    }

    /// Returns the best value, and the number of rounds after which it was first reached.
    #[must_use]
    pub fn best(self, name: &str, rounds: &[Round]) -> Option<(u32, f64)> {
        let values = rounds.iter().filter_map(|r| Some((r.done(), r.get(name)?)));
        values.reduce(|best, next| {
            let is_better = match self.is_error {
                true => next.1 < best.1,
                false => next.1 > best.1,
            };
            if is_better { next } else { best }
        })
    }
}

/// Returns the last available value, and the number of rounds after which it was reached.
#[must_use]
pub fn last(name: &str, rounds: &[Round]) -> Option<(u32, f64)> {
    let mut newest_first = rounds.iter().rev();
    newest_first.find_map(|round| Some((round.done(), round.get(name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(line: &str) -> Round {
        serde_json::from_str::<RecordValues>(line).unwrap().into()
    }

    #[test]
    fn every_number_has_a_dotted_name() {
        let round = round(
            r#"{"round":3,"epsilon":null,"test":{"loss":0.5,"accuracy":null},"kept":[2,0.5],
                "experts":[{"expert":"none","weight":0.25}],"burned":true,"seconds":1e-3}"#,
        );
        assert_eq!(round.done(), 4);
        let figures: Vec<_> = round
            .figures
            .iter()
            .map(|(n, x)| (n.as_str(), *x))
            .collect();
        let expected = [
            ("burned", 1.0),
            ("epsilon", f64::INFINITY),
            ("experts.0.weight", 0.25),
            ("kept.0", 2.0),
            ("kept.1", 0.5),
            ("seconds", 1e-3),
            ("test.loss", 0.5),
        ];
        assert_eq!(figures, expected);
    }

    #[test]
    fn answers_stand_under_the_names_of_their_questions() {
        let line = |accuracy: f64| {
            round(&format!(
                r#"{{"round":3,"answers":[{{"question":0,"kind":"evaluate","name":"evaluate",
                    "answered":{{"name":"answered","value":98,"interval":[80,116]}},
                    "estimates":[{{"name":"accuracy","value":{accuracy},"interval":[0.5,null]}},
                    {{"name":"loss","value":null,"interval":[null,null]}},{{}}]}},{{}}],
                    "origin":{{"answers":"released"}}}}"#
            ))
        };
        let rounds = [line(0.75), line(0.625)];
        let found: Vec<_> = rounds[0]
            .figures
            .iter()
            .map(|(n, x)| (n.as_str(), *x))
            .collect();
        let accuracy = "answers.evaluate.accuracy";
        let expected = [
            (accuracy, 0.75),
            ("answers.evaluate.accuracy.low", 0.5),
            ("answers.evaluate.answered", 98.0),
            ("answers.evaluate.answered.high", 116.0),
            ("answers.evaluate.answered.low", 80.0),
        ];
        assert_eq!(found, expected);
        assert_eq!(origin(accuracy, &rounds), Provenance::Released);
        let quality = Quality::of(accuracy, &rounds).unwrap();
        assert_eq!(quality.best(accuracy, &rounds), Some((4, 0.75)));
        assert_eq!(Quality::of("answers.evaluate.accuracy.low", &rounds), None);
    }

    /// Attendance is public, and so are counts of ages.
    #[test]
    fn windows_have_their_updates_by_age() {
        let rounds = [round(
            r#"{"round":3,"ages":[14,6,0],"wasted":2,
                "origin":{"ages":"public","wasted":"public"}}"#,
        )];
        assert_eq!(names(&rounds), ["ages.0", "ages.1", "ages.2", WASTED]);
        assert_eq!(rounds[0].get("ages.1"), Some(6.0));
        for name in ["ages.1", WASTED] {
            let found = (origin(name, &rounds), exported_name(name, &rounds));
            assert_eq!(found, (Provenance::Public, name.to_owned()));
            assert_eq!(Quality::of(name, &rounds), None);
        }
    }

    #[test]
    fn figures_of_simulations_come_last() {
        let rounds = [
            round(r#"{"round":0,"simulation_only":{"train_loss":1},"test":{"loss":2}}"#),
            round(r#"{"round":1,"epsilon":1,"test":{"loss":2},"test_is_simulation_only":true}"#),
        ];
        let found = names(&rounds);
        let expected = ["epsilon", "test.loss", "test_is_simulation_only"];
        assert_eq!(found[..3], expected);
        assert_eq!(found[3..], ["simulation_only.train_loss"]);
    }

    /// The origin is the one in the file. An older file states only the origin of figures below
    /// `simulation_only`.
    #[test]
    fn a_figure_has_the_last_origin_of_its_rounds() {
        let rounds = [
            round(
                r#"{"round":0,"test":{"loss":2},"cohort":3,"simulation_only":{"train_loss":1},
                    "origin":{"test":"released","cohort":"simulation-only"}}"#,
            ),
            round(r#"{"round":1,"test":{"loss":2},"cohort":3}"#),
        ];
        let of = |name, rounds| (origin(name, rounds), exported_name(name, rounds));
        let first = &rounds[..1];
        let expected = (Provenance::Released, "test.loss".to_owned());
        assert_eq!(of("test.loss", first), expected);
        let expected = (
            Provenance::SimulationOnly,
            "simulation_only.cohort".to_owned(),
        );
        assert_eq!(of("cohort", first), expected);
        let name = "simulation_only.train_loss";
        assert_eq!(
            of(name, &rounds),
            (Provenance::SimulationOnly, name.to_owned())
        );
        let expected = (
            Provenance::Unknown,
            "provenance_unknown.test.loss".to_owned(),
        );
        assert_eq!(of("test.loss", &rounds), expected);
    }

    #[test]
    fn the_best_is_the_largest_accuracy_and_the_smallest_error() {
        let line = |number: u32, accuracy: f64, own: f64| {
            round(&format!(
                r#"{{"round":{number},"test":{{"accuracy":{accuracy}}},
                    "simulation_only":{{"devices":{{"is_error":true,"own":{own}}}}}}}"#
            ))
        };
        let rounds = [line(0, 0.5, 2.0), line(1, 0.75, 3.0), line(2, 0.75, 1.5)];
        let best = |name: &str| Quality::of(name, &rounds).unwrap().best(name, &rounds);
        assert_eq!(best("test.accuracy"), Some((2, 0.75)));
        assert_eq!(best("simulation_only.devices.own"), Some((3, 1.5)));
        assert_eq!(last("test.accuracy", &rounds), Some((3, 0.75)));
        assert_eq!(last("test.rmse", &rounds), None);
        assert_eq!(Quality::of("simulation_only.clipped_share", &rounds), None);
        assert_eq!(Quality::of("test.macro_f1", &[]), Some(Quality::SHARE));
        assert_eq!(Quality::SHARE.words(0.5), "50.00 %");
        assert_eq!(Quality::ERROR.words(0.5), "0.5");
    }
}
