//! What `smolfed run` prints when it ends.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::text::wrapped;
use crate::config::Method;
use crate::experiment::Experiment;
use crate::privacy::statement::PrivacyStatement;
use crate::rounds::SimulationOnly;
use crate::run::RunResult;
use crate::simulate::Evaluation;

/// The result of a run, to print.
pub(super) struct Summary {
    name: String,
    method: Method,
    devices: u32,
    rounds: usize,
    quality: Option<(&'static str, Evaluation)>,
    last_round: Option<SimulationOnly>,
    statements: Vec<PrivacyStatement>,
    seconds: f64,
    out: PathBuf,
}

impl Summary {
    pub(super) fn new(
        experiment: &Experiment,
        result: &RunResult,
        out: &Path,
        elapsed: Duration,
    ) -> Self {
        let newest_first = || result.records.iter().rev();
        let test = newest_first().find_map(|record| record.test);
        let validation = newest_first().find_map(|record| record.simulation_only.validation);
        Self {
            name: experiment.config.name.clone(),
            method: experiment.config.method,
            devices: experiment.sampling.device_count(),
            rounds: result.records.len(),
            quality: test
                .map(|e| ("test", e))
                .or(validation.map(|e| ("validation", e))),
            last_round: result
                .records
                .last()
                .map(|record| record.simulation_only.clone()),
            statements: result.statements.clone(),
            seconds: elapsed.as_secs_f64(),
            out: out.to_path_buf(),
        }
    }

    /// One JSON document. `epsilon` is null where there is no finite one.
    pub(super) fn to_json(&self) -> Value {
        let statement = self.statements.first();
        let epsilon = statement
            .map(|s| s.epsilon)
            .filter(|epsilon| epsilon.is_finite());
        let mut document = json!({
            "name": self.name,
            "method": self.method.name(),
            "epsilon": epsilon,
            "delta": statement.map(|s| s.delta),
            "rounds": self.rounds,
            "devices": self.devices,
            "seconds": self.seconds,
            "out": self.out,
            "privacy": self.statements,
        });
        if let (Some((part, evaluation)), Some(object)) = (&self.quality, document.as_object_mut())
        {
            let figures = [
                ("accuracy", evaluation.accuracy),
                ("rmse", evaluation.rmse),
                ("loss", Some(evaluation.loss)),
            ];
            for (key, value) in figures {
                if let Some(value) = value {
                    object.insert(format!("{part}_{key}"), json!(value));
                }
            }
        }
        document
    }

    /// A few lines for a person; bold where the terminal can.
    pub(super) fn to_text(&self, is_terminal: bool) -> String {
        let (bold, plain) = if is_terminal {
            ("\x1b[1m", "\x1b[0m")
        } else {
            ("", "")
        };
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{bold}{}{plain}: {}, {} devices, {} rounds in {:.2} s",
            self.name,
            self.method.name(),
            self.devices,
            self.rounds,
            self.seconds
        );
        if let Some((part, evaluation)) = &self.quality {
            let _ = writeln!(text, "  {bold}{part} {evaluation}{plain}");
        }
        if let Some(only) = &self.last_round {
            if let Some(norm) = only.update_norm {
                let _ = writeln!(
                    text,
                    "  update norms {:.3} to {:.3}, median {:.3}; {:.0} % of clippings shrank \
                     something (last round, simulation only)",
                    norm.min,
                    norm.max,
                    norm.median,
                    100.0 * only.clipped_share
                );
            }
            for (reason, count) in &only.left_out {
                let _ = writeln!(
                    text,
                    "  {count} devices left out in the last round: {reason}"
                );
            }
        }
        for statement in &self.statements {
            let _ = writeln!(text, "\n{}", wrapped(&statement.in_words(), is_terminal));
        }
        let _ = writeln!(text, "\nwritten to {}", self.out.display());
        text
    }
}
