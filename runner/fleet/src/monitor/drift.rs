//! Whether the model has become worse on devices by more than the intervals of answers explain.
//!
//! An answer has drifted if its whole interval is worse than the whole interval of an earlier
//! answer to the same question. The first figure of `evaluate` is judged: the accuracy, or the
//! error of values. While nothing changes, two intervals at 99 % lie apart like this in fewer than
//! two of 10,000 pairs, since their widths add up.

use std::collections::{BTreeMap, BTreeSet};

use smolfed_engine::question::{Answer, Estimate};
use smolfed_engine::round::RoundRecord;
use smolfed_engine::tables::question::QuestionKind;

/// Error figures, for which less is better.
const ERRORS: [&str; 3] = ["loss", "rmse", "squared error"];

/// Returns whether the whole interval of `latest` is worse than that of `best`. An open end is
/// infinite.
#[must_use]
pub fn is_worse(latest: &Estimate, best: &Estimate) -> bool {
    let ([low, high], [best_low, best_high]) = (latest.interval, best.interval);
    match is_error(latest) {
        false => high.zip(best_low).is_some_and(|(high, best)| high < best),
        true => low.zip(best_high).is_some_and(|(low, best)| low > best),
    }
}

fn is_error(estimate: &Estimate) -> bool {
    ERRORS.contains(&estimate.name.as_str())
}

/// Returns the guaranteed end of a figure's interval, with a sign such that larger is better.
fn certain(estimate: &Estimate) -> Option<f64> {
    match (is_error(estimate), estimate.interval) {
        (false, [low, _]) => low,
        (true, [_, high]) => high.map(|high| -high),
    }
}

/// Returns the figure of an answer to judge.
fn judged(answer: &Answer) -> Option<&Estimate> {
    let is_judged = answer.kind == QuestionKind::Evaluate;
    answer.estimates.first().filter(|_| is_judged)
}

/// The best answers of a run so far.
#[derive(Clone, Debug, Default)]
pub struct DriftWatch {
    /// By question.
    best: BTreeMap<u8, Estimate>,
    /// The questions whose newest answer has drifted.
    drifted: BTreeSet<u8>,
}

/// An answer worse than an earlier one.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The round after which it was released, from 0.
    pub round: u32,
    /// The question, from 0.
    pub question: u8,
    /// The name of the question.
    pub name: String,
    /// The figure of this answer.
    pub latest: Estimate,
    /// The best earlier figure.
    pub best: Estimate,
    /// Whether the previous answer had not drifted. One line in a log is enough.
    pub is_new: bool,
}

impl DriftWatch {
    /// Returns a watch that has seen the rounds so far.
    #[must_use]
    pub fn after(records: &[RoundRecord]) -> Self {
        let mut watch = Self::default();
        for record in records {
            watch.see(record);
        }
        watch
    }

    /// Compares the answers of a round with the best earlier ones.
    pub fn see(&mut self, record: &RoundRecord) -> Vec<Drift> {
        let answers = record.answers.iter();
        let found = answers.filter_map(|answer| self.compare(record.round, answer));
        found.collect()
    }

    fn compare(&mut self, round: u32, answer: &Answer) -> Option<Drift> {
        let latest = judged(answer)?;
        let best = self.best.get(&answer.question).cloned();
        let is_better = match &best {
            Some(best) => certain(latest) > certain(best),
            None => true,
        };
        if is_better {
            self.best.insert(answer.question, latest.clone());
        }
        let Some(best) = best.filter(|best| is_worse(latest, best)) else {
            self.drifted.remove(&answer.question);
            return None;
        };
        Some(Drift {
            round,
            question: answer.question,
            name: answer.name.clone(),
            latest: latest.clone(),
            best,
            is_new: self.drifted.insert(answer.question),
        })
    }
}

impl std::fmt::Display for Drift {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, figure, round) = (&self.name, &self.latest.name, self.round + 1);
        let (word, now, then) = match is_error(&self.latest) {
            false => ("at most", self.latest.interval[1], self.best.interval[0]),
            true => ("at least", self.latest.interval[0], self.best.interval[1]),
        };
        let other = if word == "at most" {
            "at least"
        } else {
            "at most"
        };
        let [now, then] = [now, then].map(|end| end.unwrap_or(f64::NAN));
        write!(
            f,
            "the answer \"{name}\" has drifted: {figure} is {word} {now:.4} after round {round}, \
             and was {other} {then:.4} before"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_core::params::LearningRate;

    fn estimate(name: &str, low: Option<f64>, high: Option<f64>) -> Estimate {
        Estimate {
            name: name.to_owned(),
            value: low.zip(high).map(|(low, high)| f64::midpoint(low, high)),
            interval: [low, high],
        }
    }

    fn record(round: u32, kind: QuestionKind, figure: Estimate) -> RoundRecord {
        let answer = Answer {
            question: 3,
            kind,
            name: "evaluate".to_owned(),
            confidence: 0.99,
            answered: estimate("answered", Some(90.0), Some(100.0)),
            estimates: vec![
                figure,
                estimate("loss", Some(f64::from(round)), Some(100.0)),
            ],
        };
        RoundRecord {
            answers: vec![answer],
            ..RoundRecord::new(round, LearningRate::new(0.1).unwrap())
        }
    }

    #[test]
    fn intervals_that_touch_have_not_drifted() {
        let accuracy = |low, high| estimate("accuracy", Some(low), Some(high));
        let best = accuracy(0.75, 0.875);
        assert!(!is_worse(&accuracy(0.5, 0.75), &best), "they share an end");
        assert!(is_worse(&accuracy(0.5, 0.75_f64.next_down()), &best));
        assert!(!is_worse(&accuracy(0.9, 1.0), &best), "it is better");
        for name in ERRORS {
            let error = |low, high| estimate(name, Some(low), Some(high));
            let best = error(0.25, 0.5);
            assert!(!is_worse(&error(0.5, 0.75), &best), "{name}");
            assert!(is_worse(&error(0.5_f64.next_up(), 0.75), &best), "{name}");
            assert!(!is_worse(&error(0.0, 0.125), &best), "{name}");
        }
    }

    #[test]
    fn an_open_end_never_drifts() {
        let open = estimate("accuracy", Some(0.1), None);
        let best = estimate("accuracy", Some(0.75), Some(0.875));
        assert!(!is_worse(&open, &best) && !is_worse(&best, &estimate("accuracy", None, None)));
        let nothing = estimate("accuracy", Some(f64::NAN), Some(f64::NAN));
        assert!(!is_worse(&nothing, &best) && !is_worse(&best, &nothing));
    }

    #[test]
    fn an_answer_is_compared_with_the_best_earlier_one() {
        let of = |round, low, high| {
            let figure = estimate("accuracy", Some(low), Some(high));
            record(round, QuestionKind::Evaluate, figure)
        };
        let mut watch = DriftWatch::default();
        for quiet in [of(0, 0.25, 0.5), of(1, 0.75, 0.875), of(2, 0.5, 0.8)] {
            assert!(watch.see(&quiet).is_empty());
        }
        let found = watch.see(&of(3, 0.5, 0.625));
        let [drift] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!((drift.round, drift.question), (3, 3));
        assert_eq!(
            drift.to_string(),
            "the answer \"evaluate\" has drifted: accuracy is at most 0.6250 after round 4, and \
             was at least 0.7500 before"
        );
        let is_new = |found: &[Drift]| found.iter().map(|drift| drift.is_new).next();
        assert_eq!(is_new(&found), Some(true));
        assert_eq!(is_new(&watch.see(&of(4, 0.5, 0.625))), Some(false));
        assert!(watch.see(&of(5, 0.7, 0.9)).is_empty(), "it has recovered");
        assert_eq!(is_new(&watch.see(&of(6, 0.5, 0.625))), Some(true));
        let again = DriftWatch::after(&[of(1, 0.75, 0.875)]).see(&of(3, 0.5, 0.625));
        assert_eq!(again, found);
    }

    #[test]
    fn errors_drift_upwards_and_other_kinds_not_at_all() {
        let of =
            |round, kind, low, high| record(round, kind, estimate("rmse", Some(low), Some(high)));
        let mut watch = DriftWatch::after(&[of(0, QuestionKind::Evaluate, 1.0, 2.0)]);
        let found = watch.see(&of(1, QuestionKind::Evaluate, 2.5, 3.0));
        assert!(
            found[0].to_string().contains("rmse is at least 2.5000"),
            "{found:?}"
        );
        assert!(
            found[0].to_string().contains("was at most 2.0000"),
            "{found:?}"
        );
        let mut watch = DriftWatch::after(&[of(0, QuestionKind::Confusion, 1.0, 2.0)]);
        assert!(
            watch
                .see(&of(1, QuestionKind::Confusion, 2.5, 3.0))
                .is_empty()
        );
    }
}
