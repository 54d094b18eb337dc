//! The answers to the questions of a run: the newest answer to each question, and its figures in
//! words.
//!
//! Answers are released under noise, so anybody may see them. An interval covers the noise and the
//! spread across devices that were not asked.

use serde::Serialize;
use smolfed_engine::question::{Answer, Estimate};
use smolfed_engine::round::RoundRecord;
use smolfed_engine::tables::question::QuestionKind;
use smolfed_release::number::{fixed, significant};

/// Figures of a histogram of values in the unit of the values.
const QUARTILES: [&str; 3] = ["median", "lower quartile", "upper quartile"];

/// An answer with its round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AnswerOfRound<'a> {
    /// The round after which it was released, from 0.
    pub round: u32,
    /// The answer.
    #[serde(flatten)]
    pub answer: &'a Answer,
}

/// Returns the newest answer to each question, in the order of the experiment.
#[must_use]
pub fn latest(records: &[RoundRecord]) -> Vec<AnswerOfRound<'_>> {
    let mut latest: Vec<AnswerOfRound<'_>> = Vec::new();
    for found in all(records) {
        let is_same =
            |known: &&mut AnswerOfRound<'_>| known.answer.question == found.answer.question;
        match latest.iter_mut().find(is_same) {
            Some(known) => *known = found,
            None => latest.push(found),
        }
    }
    latest.sort_by_key(|found| found.answer.question);
    latest
}

/// Returns all answers, round by round.
pub fn all(records: &[RoundRecord]) -> impl Iterator<Item = AnswerOfRound<'_>> {
    records.iter().flat_map(|record| {
        let round = record.round;
        let of_round = record.answers.iter();
        of_round.map(move |answer| AnswerOfRound { round, answer })
    })
}

/// Returns the figures that represent a whole answer. For shares it is the largest one.
#[must_use]
pub fn leading(answer: &Answer) -> Vec<&Estimate> {
    let count = match answer.kind {
        QuestionKind::Evaluate | QuestionKind::Moments => 2,
        QuestionKind::Confusion | QuestionKind::Count => 1,
        QuestionKind::Histogram if has_quartiles(answer) => 1,
        QuestionKind::Histogram | QuestionKind::Presence => {
            let value = |estimate: &Estimate| estimate.value.unwrap_or(f64::NEG_INFINITY);
            // The first of several equal ones.
            let all = answer.estimates.iter().rev();
            return all
                .max_by(|a, b| value(a).total_cmp(&value(b)))
                .into_iter()
                .collect();
        }
    };
    answer.estimates.iter().take(count).collect()
}

/// Returns whether a histogram is of values. Its quartiles come before the shares of its bins.
#[must_use]
pub fn has_quartiles(answer: &Answer) -> bool {
    let first = answer.estimates.first();
    first.is_some_and(|first| QUARTILES.contains(&first.name.as_str()))
}

/// Returns whether a figure of an answer is a share of 1.
#[must_use]
pub fn is_share(answer: &Answer, estimate: &Estimate) -> bool {
    match answer.kind {
        QuestionKind::Evaluate => estimate.name == "accuracy",
        QuestionKind::Confusion | QuestionKind::Presence => true,
        QuestionKind::Histogram => {
            !(has_quartiles(answer) && QUARTILES.contains(&estimate.name.as_str()))
        }
        QuestionKind::Moments | QuestionKind::Count => false,
    }
}

/// Returns the ends of an interval as part of a sentence.
#[must_use]
pub fn interval_in_words(interval: [Option<f64>; 2], words: impl Fn(f64) -> String) -> String {
    match interval {
        [Some(low), Some(high)] => format!("from {} to {}", words(low), words(high)),
        [Some(low), None] => format!("at least {}", words(low)),
        [None, Some(high)] => format!("at most {}", words(high)),
        [None, None] => "without bounds".to_owned(),
    }
}

/// Returns a confidence in percent.
#[must_use]
pub fn confidence_in_words(confidence: f64) -> String {
    format!("{} %", significant(100.0 * confidence, 6))
}

/// Returns the number of devices that answered, which has noise.
#[must_use]
pub fn answered_in_words(answer: &Answer) -> String {
    match answer.answered.value {
        Some(devices) => fixed(devices, 0),
        None => "–".to_owned(),
    }
}

/// Returns an answer in one line:
/// `evaluate: accuracy 0.81, from 0.78 to 0.84 (99 %), about 98 devices`.
#[must_use]
pub fn in_one_line(answer: &Answer) -> String {
    let words = |value| significant(value, 3);
    let leading = leading(answer);
    let figure = leading.first().map_or("nothing".to_owned(), |first| {
        format!(
            "{} {}, {}",
            first.name,
            first.value.map_or("unknown".to_owned(), words),
            interval_in_words(first.interval, words)
        )
    });
    let confidence = confidence_in_words(answer.confidence);
    // A count states only the number of devices.
    let devices = match answer.kind {
        QuestionKind::Count => String::new(),
        _ => format!(", about {} devices", answered_in_words(answer)),
    };
    format!("{}: {figure} ({confidence}){devices}", answer.name)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use smolfed_core::params::LearningRate;

    /// Returns an answer with these figures: name, estimate, ends.
    pub(crate) fn answer(
        question: u8,
        kind: QuestionKind,
        name: &str,
        figures: &[(&str, f64, f64, f64)],
    ) -> Answer {
        let estimate = |(name, value, low, high): &(&str, f64, f64, f64)| Estimate {
            name: (*name).to_owned(),
            value: Some(*value),
            interval: [Some(*low), Some(*high)],
        };
        Answer {
            question,
            kind,
            name: name.to_owned(),
            confidence: 0.99,
            answered: estimate(&("answered", 97.6, 80.0, 115.0)),
            estimates: figures.iter().map(estimate).collect(),
        }
    }

    /// Returns a round with these answers.
    pub(crate) fn record(round: u32, answers: Vec<Answer>) -> RoundRecord {
        let rate = LearningRate::new(0.1).unwrap();
        RoundRecord {
            answers,
            ..RoundRecord::new(round, rate)
        }
    }

    fn evaluated(accuracy: f64) -> Answer {
        let figures = [("accuracy", accuracy, 0.78, 0.84), ("loss", 0.5, 0.4, 0.6)];
        answer(1, QuestionKind::Evaluate, "evaluate", &figures)
    }

    #[test]
    fn the_newest_answer_of_each_question_is_found() {
        let count = answer(
            0,
            QuestionKind::Count,
            "count",
            &[("devices", 97.6, 80.0, 115.0)],
        );
        let records = [
            record(4, vec![evaluated(0.5)]),
            record(5, vec![]),
            record(9, vec![evaluated(0.81), count]),
        ];
        let found = latest(&records);
        let names: Vec<_> = found
            .iter()
            .map(|x| (x.round, x.answer.name.as_str()))
            .collect();
        assert_eq!(names, [(9, "count"), (9, "evaluate")]);
        assert_eq!(found[1].answer.estimates[0].value, Some(0.81));
        assert_eq!(all(&records).count(), 3);
        let json = serde_json::to_value(found[1]).unwrap();
        assert_eq!(
            (&json["round"], &json["kind"]),
            (&9.into(), &"evaluate".into())
        );
    }

    #[test]
    fn an_answer_has_one_line() {
        assert_eq!(
            in_one_line(&evaluated(0.81)),
            "evaluate: accuracy 0.81, from 0.78 to 0.84 (99 %), about 98 devices"
        );
        let bins = [("class 0", 0.25, 0.1, 0.4), ("class 1", 0.75, 0.6, 0.9)];
        let shares = answer(0, QuestionKind::Histogram, "labels", &bins);
        let expected = "labels: class 1 0.75, from 0.6 to 0.9 (99 %), about 98 devices";
        assert_eq!(in_one_line(&shares), expected);
        let mut open = answer(
            0,
            QuestionKind::Histogram,
            "h",
            &[("median", 2.0, 0.0, 0.0)],
        );
        open.estimates[0].interval = [None, Some(3.0)];
        assert_eq!(
            in_one_line(&open),
            "h: median 2, at most 3 (99 %), about 98 devices"
        );
        assert!(!is_share(&open, &open.estimates[0]));
        open.estimates[0].value = None;
        open.estimates[0].interval = [None, None];
        assert!(in_one_line(&open).starts_with("h: median unknown, without bounds"));
        open.estimates.clear();
        assert!(in_one_line(&open).starts_with("h: nothing (99 %)"));
        let count = answer(
            0,
            QuestionKind::Count,
            "count",
            &[("devices", 97.6, 80.0, 115.0)],
        );
        assert_eq!(
            in_one_line(&count),
            "count: devices 97.6, from 80 to 115 (99 %)"
        );
    }
}
