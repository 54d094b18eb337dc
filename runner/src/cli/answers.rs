//! The output of `smolfed ask`: the answers with their intervals, for the terminal and as JSON, and
//! the scale of features from them.

use std::io::{IsTerminal, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::CliError;
use super::run::Ran;
use super::text::{aligned, wrapped};
use smolfed_data::federation::Unscaled;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::question::scale::ReleasedScale;
use smolfed_engine::question::{Answer, Estimate};
use smolfed_engine::run::{Ending, RunResult};
use smolfed_engine::tables::question::QuestionKind;
use smolfed_release::number::significant;
use smolfed_release::statement::PrivacyStatement;

/// Prints the answers. A stopped command may have none.
pub(super) fn show(ran: &Ran<'_>, result: &RunResult, is_json: bool) -> Result<(), CliError> {
    let (experiment, path) = (ran.experiment, ran.dir.path());
    let answers = result.records.iter().flat_map(|record| &record.answers);
    let asked = Asked {
        experiment,
        unscaled: ran.federation.unscaled(&experiment.config().data),
        answers: answers.cloned().collect(),
        statements: &result.statements,
        out: path,
        seconds: ran.started.elapsed().as_secs_f64(),
    };
    let has_questions = !experiment.questions().is_empty();
    match (asked.answers.is_empty(), &result.ending) {
        (false, _) => asked.print(is_json),
        (true, Ending::Done) if has_questions => Err(CliError::Stopped(format!(
            "{}: the command was killed while it asked, so there is no answer, and epsilon \
             includes its cost; ask again",
            path.display()
        ))),
        (true, _) => Ok(()),
    }
}

/// The answers, to print.
struct Asked<'a> {
    experiment: &'a Experiment,
    /// How constants of a scale would apply to the features.
    unscaled: Option<Unscaled>,
    answers: Vec<Answer>,
    statements: &'a [PrivacyStatement],
    out: &'a Path,
    seconds: f64,
}

impl Asked<'_> {
    fn print(&self, is_json: bool) -> Result<(), CliError> {
        let mut out = anstream::stdout().lock();
        match is_json {
            true => writeln!(out, "{}", self.to_json())?,
            false => write!(out, "{}", self.to_text(std::io::stdout().is_terminal()))?,
        }
        Ok(())
    }

    /// The first estimate of the first question by itself, then all answers.
    fn to_json(&self) -> Value {
        let first = self.answers.first();
        let estimate = first.and_then(|answer| answer.estimates.first());
        let statement = self.statements.first();
        let epsilon = statement.map(|statement| statement.epsilon);
        json!({
            "question": first.map(|answer| &answer.name),
            "estimate": estimate.and_then(|estimate| estimate.value),
            "interval": estimate.map(|estimate| estimate.interval),
            "confidence": first.map(|answer| answer.confidence),
            "epsilon": epsilon.filter(|epsilon| epsilon.is_finite()),
            "delta": statement.map(|statement| statement.delta),
            "answers": self.answers,
            "scale": self.scale(),
            "devices": self.experiment.sampling().device_count(),
            "privacy": self.statements,
            "seconds": self.seconds,
            "out": self.out,
        })
    }

    /// The scale of the features from their moments.
    fn scale(&self) -> Option<ReleasedScale> {
        let unscaled = self.unscaled.as_ref()?;
        ReleasedScale::of(self.experiment.questions(), &self.answers, unscaled)
    }

    /// The scale in words, or why there is none.
    fn scale_in_words(&self) -> String {
        let is_of_moments = |answer: &Answer| answer.kind == QuestionKind::Moments;
        match self.scale() {
            Some(scale) => format!(
                "\nThe scale of these features, for a run with the same `privacy.ledger`:\n  \
                 --set '{scale}'\n"
            ),
            None if self.answers.iter().any(is_of_moments) => {
                "\nNo `data.scale` follows from these moments: ask with `data.scale` = \"none\" or \
                 \"unit\", without `[features]` and `data.norm_bound`.\n"
                    .to_owned()
            }
            None => String::new(),
        }
    }

    fn to_text(&self, is_terminal: bool) -> String {
        let mut rows = vec![["question", "figure", "estimate", "interval"].map(str::to_owned)];
        for answer in &self.answers {
            let percent = significant(100.0 * answer.confidence, 6);
            let all = answer.estimates.iter().chain([&answer.answered]);
            rows.extend(all.map(|estimate| {
                let interval = format!("{} ({percent} %)", interval(estimate));
                let value = estimate.value.map_or("unknown".to_owned(), number);
                [answer.name.clone(), estimate.name.clone(), value, interval]
            }));
        }
        let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
        let scale = self.scale_in_words();
        let statement = self.statements.first().map(PrivacyStatement::in_words);
        let statement = wrapped(&statement.unwrap_or_default(), is_terminal);
        format!(
            "{}{scale}\n{statement}\n\nwritten to {}\n",
            aligned(&rows),
            self.out.display()
        )
    }
}

fn interval(estimate: &Estimate) -> String {
    let [low, high] = estimate.interval;
    match (low.map(number), high.map(number)) {
        (Some(low), Some(high)) => format!("from {low} to {high}"),
        (Some(low), None) => format!("from {low} on"),
        (None, Some(high)) => format!("up to {high}"),
        (None, None) => "unknown".to_owned(),
    }
}

fn number(value: f64) -> String {
    significant(value, 4)
}
