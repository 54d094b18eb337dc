//! The answers to the questions of a live run: the newest ones with a limit on their figures, and
//! the curve of the first figure of each question `evaluate`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::drift::{Drift, DriftWatch};
use super::thin::thinned;
use smolfed_engine::question::{Answer, Estimate};
use smolfed_engine::round::RoundRecord;
use smolfed_engine::tables::question::QuestionKind;

/// Maximum number of figures shown per answer. The first ones are the most important. All of them
/// are in `metrics.jsonl`.
pub const MAX_ESTIMATES: usize = 64;

/// The newest answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatestAnswer {
    /// The round after which it was released, from 0.
    pub round: u32,
    /// Whether it is worse than an earlier one by more than their intervals.
    pub drifted: bool,
    /// The answer, with at most [`MAX_ESTIMATES`] figures.
    #[serde(flatten)]
    pub answer: Answer,
}

/// The first figure of an answer after a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnswerPoint {
    /// The round, from 0.
    pub round: u32,
    /// The estimate.
    pub value: Option<f64>,
    /// Its interval.
    pub interval: [Option<f64>; 2],
}

/// The first figure of a question about the model, over rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnswerCurve {
    /// The question.
    pub name: String,
    /// The figure.
    pub estimate: String,
    /// Its values from the first round on.
    pub points: Vec<AnswerPoint>,
}

/// Answers as the page shows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answers {
    /// The newest answer to each question.
    pub latest: Vec<LatestAnswer>,
    /// The curves of `evaluate`.
    pub curves: Vec<AnswerCurve>,
}

/// A kept answer.
#[derive(Clone, Debug)]
struct Kept<T> {
    /// Whether a finite ε covers it.
    is_covered: bool,
    of: T,
}

/// All answers of a run so far.
#[derive(Clone, Debug, Default)]
pub struct AnswerHistory {
    watch: DriftWatch,
    latest: BTreeMap<u8, Kept<LatestAnswer>>,
    curves: BTreeMap<u8, Kept<AnswerCurve>>,
}

impl AnswerHistory {
    /// Adds the answers of a round. Returns those that have drifted.
    pub fn add(&mut self, record: &RoundRecord) -> Vec<Drift> {
        let drifts = self.watch.see(record);
        for answer in &record.answers {
            let is_it = |drift: &Drift| drift.question == answer.question;
            self.add_answer(record, answer, drifts.iter().any(is_it));
        }
        drifts
    }

    fn add_answer(&mut self, record: &RoundRecord, answer: &Answer, drifted: bool) {
        let (round, is_covered) = (record.round, record.epsilon.is_some());
        let estimates = answer.estimates.iter().take(MAX_ESTIMATES);
        let latest = LatestAnswer {
            round,
            drifted,
            answer: Answer {
                estimates: estimates.cloned().collect(),
                name: answer.name.clone(),
                answered: answer.answered.clone(),
                ..*answer
            },
        };
        let of = latest;
        self.latest.insert(answer.question, Kept { is_covered, of });
        let first = answer.estimates.first();
        if let (QuestionKind::Evaluate, Some(first)) = (answer.kind, first) {
            let Estimate {
                name,
                value,
                interval,
            } = first;
            let curve = self.curves.entry(answer.question).or_insert_with(|| Kept {
                is_covered,
                of: AnswerCurve {
                    name: answer.name.clone(),
                    estimate: name.clone(),
                    points: Vec::new(),
                },
            });
            curve.is_covered &= is_covered;
            curve.of.points.push(AnswerPoint {
                round,
                value: *value,
                interval: *interval,
            });
        }
    }

    /// Returns the newest answers. Without `sees_all`, only the ones under a finite ε.
    #[must_use]
    pub fn latest(&self, sees_all: bool) -> Vec<LatestAnswer> {
        let shown = self.latest.values().filter(|x| sees_all || x.is_covered);
        shown.map(|kept| kept.of.clone()).collect()
    }

    /// Returns the newest answers and the curves, with the same restriction.
    #[must_use]
    pub fn shown(&self, sees_all: bool) -> Answers {
        let curves = self.curves.values().filter(|x| sees_all || x.is_covered);
        let curves = curves.map(|Kept { of, .. }| AnswerCurve {
            points: thinned(&of.points),
            name: of.name.clone(),
            estimate: of.estimate.clone(),
        });
        Answers {
            latest: self.latest(sees_all),
            curves: curves.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_core::params::LearningRate;

    fn estimate(name: &str, value: f64) -> Estimate {
        Estimate {
            name: name.to_owned(),
            value: Some(value),
            interval: [Some(value - 0.1), Some(value + 0.1)],
        }
    }

    fn record(round: u32, epsilon: Option<f64>, accuracy: f64) -> RoundRecord {
        let answer = |question, kind, name: &str, estimates| Answer {
            question,
            kind,
            name: name.to_owned(),
            confidence: 0.99,
            answered: estimate("answered", 98.0),
            estimates,
        };
        let figures = vec![estimate("accuracy", accuracy), estimate("loss", 0.5)];
        let cells = (0..2000).map(|cell| estimate(&format!("cell {cell}"), 0.5));
        RoundRecord {
            epsilon,
            answers: vec![
                answer(0, QuestionKind::Evaluate, "good", figures),
                answer(1, QuestionKind::Confusion, "which", cells.collect()),
            ],
            ..RoundRecord::new(round, LearningRate::new(0.1).unwrap())
        }
    }

    #[test]
    fn the_newest_answers_and_curves_are_shown() {
        let mut history = AnswerHistory::default();
        assert!(history.add(&record(4, Some(1.0), 0.8)).is_empty());
        let drifts = history.add(&record(9, Some(2.0), 0.5));
        assert_eq!(drifts.len(), 1);
        let shown = history.shown(false);
        let [good, which] = shown.latest.as_slice() else {
            panic!("{shown:?}");
        };
        assert_eq!((good.round, good.drifted, which.drifted), (9, true, false));
        assert_eq!(good.answer.estimates[0], estimate("accuracy", 0.5));
        assert_eq!(which.answer.estimates.len(), MAX_ESTIMATES);
        let [curve] = shown.curves.as_slice() else {
            panic!("{shown:?}");
        };
        assert_eq!((&*curve.name, &*curve.estimate), ("good", "accuracy"));
        let rounds: Vec<u32> = curve.points.iter().map(|point| point.round).collect();
        assert_eq!(rounds, [4, 9]);
        let json = serde_json::to_value(good).unwrap();
        assert_eq!(json["name"], "good");
        assert_eq!(json["estimates"][0]["name"], "accuracy");
    }

    #[test]
    fn what_no_finite_epsilon_covers_is_the_operators() {
        let mut history = AnswerHistory::default();
        history.add(&record(0, Some(1.0), 0.8));
        history.add(&record(1, None, 0.8));
        assert_eq!(history.shown(false), Answers::default());
        assert_eq!(history.shown(true).latest.len(), 2);
        assert_eq!(history.shown(true).curves[0].points.len(), 2);
    }

    #[test]
    fn long_curves_are_thinned() {
        let mut history = AnswerHistory::default();
        for round in 0..2500 {
            history.add(&record(round, Some(1.0), 0.8));
        }
        let points = &history.shown(false).curves[0].points;
        assert!(points.len() <= super::super::thin::MAX_POINTS);
        assert_eq!(points.last().unwrap().round, 2499);
    }
}
