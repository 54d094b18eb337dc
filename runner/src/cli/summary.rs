//! What `smolfed run` prints when it ends.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::text::{aligned, wrapped};
use crate::arithmetic::Local;
use crate::evaluation::devices::DeviceReport;
use crate::evaluation::devices::Which;
use crate::evaluation::samples::Evaluation;
use crate::experiment::Experiment;
use crate::method::MethodName;
use crate::number::{fixed, significant};
use crate::privacy::statement::{PrivacyStatement, Subject};
use crate::round::SimulationOnly;
use crate::run::RunResult;

/// The result of a run, to print.
pub(super) struct Summary {
    name: String,
    method: MethodName,
    devices: u32,
    rounds: usize,
    quality: Option<(&'static str, Evaluation)>,
    /// Whether that is of private samples, which only a simulation can evaluate.
    quality_is_private: bool,
    /// Accuracy on held-out samples of neighbours, and of a linear probe, of an encoder without
    /// labels.
    representation: [Option<f64>; 2],
    last_round: Option<SimulationOnly>,
    devices_report: Option<DeviceReport>,
    statements: Vec<PrivacyStatement>,
    /// How devices calculated.
    arithmetic: Local,
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
        let on_devices = newest_first().any(|record| record.test_is_simulation_only);
        let validation = newest_first().find_map(|record| record.simulation_only.validation);
        let figure = |get: fn(&SimulationOnly) -> Option<f64>| {
            newest_first().find_map(|record| get(&record.simulation_only))
        };
        Self {
            name: experiment.config.name.clone(),
            method: experiment.config.method,
            devices: experiment.sampling.device_count(),
            rounds: result.records.len(),
            quality: test
                .map(|e| ("test", e))
                .or(validation.map(|e| ("validation", e))),
            quality_is_private: test.is_none() || on_devices,
            representation: [
                figure(|only| only.knn_accuracy),
                figure(|only| only.probe_accuracy),
            ],
            last_round: result
                .records
                .last()
                .map(|record| record.simulation_only.clone()),
            devices_report: result.devices.clone(),
            statements: result.statements.clone(),
            arithmetic: experiment.method.arithmetic(),
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
            "arithmetic": self.arithmetic.name.name(),
        });
        let note = self.arithmetic.note(self.devices);
        if let (Some(note), Some(object)) = (note, document.as_object_mut()) {
            object.insert("arithmetic_note".to_owned(), json!(note));
            let in_span = json!(self.arithmetic.in_span);
            object.insert("devices_in_span".to_owned(), in_span);
        }
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
        let [neighbours, probe] = self.representation;
        if let Some(object) = document.as_object_mut() {
            let figures = [
                ("knn_accuracy", neighbours),
                ("test_accuracy", probe),
                (
                    "matrix_epsilon",
                    self.matrices().map(|statement| statement.epsilon),
                ),
            ];
            for (key, value) in figures {
                // JSON has no infinity: null.
                object.extend(value.map(|value| (key.to_owned(), json!(value))));
            }
        }
        if let (Some(report), Some(object)) = (&self.devices_report, document.as_object_mut()) {
            let unit = if report.is_error { "rmse" } else { "accuracy" };
            for which in Which::ALL {
                if let Some(spread) = report.spread(which) {
                    object.insert(format!("device_{}_{unit}", which.name()), json!(spread));
                }
            }
            object.insert(
                format!("device_{unit}"),
                json!(report.means().models.result()),
            );
        }
        if let Some(object) = document.as_object_mut() {
            let keys: Vec<String> = object
                .keys()
                .filter(|key| self.is_private(key))
                .cloned()
                .collect();
            object.insert("simulation_only".to_owned(), json!(keys));
        }
        document
    }

    /// Whether a figure reads private data without noise, so that only a simulation knows it.
    fn is_private(&self, key: &str) -> bool {
        let is_of = |part: &str| key.starts_with(part);
        let [_, probe] = self.representation;
        is_of("device_")
            || key == "knn_accuracy"
            || (key == "test_accuracy" && probe.is_some())
            || (self.quality_is_private && (is_of("test_") || is_of("validation_")))
    }

    /// The statement about correlation matrices, if devices send some.
    fn matrices(&self) -> Option<&PrivacyStatement> {
        let is_it = |s: &&PrivacyStatement| s.subject == Subject::CorrelationMatrices;
        self.statements.iter().find(is_it)
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
            let note = match self.quality_is_private {
                true => " (simulation only)",
                false => "",
            };
            let _ = writeln!(text, "  {bold}{part} {evaluation}{plain}{note}");
        }
        let names = ["nearest neighbours", "linear probe"];
        let figures = names.iter().zip(self.representation);
        let figures = figures
            .filter_map(|(name, share)| Some(format!("{name} {} %", fixed(100.0 * share?, 2))));
        let figures: Vec<String> = figures.collect();
        if !figures.is_empty() {
            let figures = figures.join(", ");
            let _ = writeln!(
                text,
                "  {bold}held-out samples: {figures}{plain} (simulation only)"
            );
        }
        if let Some(report) = &self.devices_report {
            text.push_str(&devices_in_words(report));
        }
        if let Some(only) = &self.last_round {
            text.push_str(&last_round_in_words(only));
        }
        if let Some(note) = self.arithmetic.note(self.devices) {
            let _ = writeln!(text, "\n{}", wrapped(&note, is_terminal));
        }
        for statement in &self.statements {
            let _ = writeln!(text, "\n{}", wrapped(&statement.in_words(), is_terminal));
        }
        let _ = writeln!(text, "\nwritten to {}", self.out.display());
        text
    }
}

/// A table with a line for each kind of model.
fn devices_in_words(report: &DeviceReport) -> String {
    let head = ["", "mean", "worst", "10th", "median", "90th"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for which in Which::ALL {
        rows.extend(report.spread(which).map(|spread| {
            let q = spread.quantiles;
            let worst = if report.is_error { q.max } else { q.min };
            let figures = [spread.mean, worst, q.p10, q.median, q.p90];
            let words = |x: f64| match report.is_error {
                true => significant(x, 4),
                false => format!("{} %", fixed(100.0 * x, 1)),
            };
            let name = format!("  {}", report.words(which));
            [name].into_iter().chain(figures.map(words)).collect()
        }));
    }
    format!(
        "  on the samples of each of {} devices (simulation only):\n{}",
        report.devices.len(),
        aligned(&rows)
    )
}

/// Norms and clipping of the updates, and the devices that were left out.
fn last_round_in_words(only: &SimulationOnly) -> String {
    let mut text = String::new();
    if let Some(norm) = only.update_norm {
        let _ = writeln!(
            text,
            "  update norms {:.3} to {:.3}, median {:.3}; {:.0} % clipped (last round, simulation \
             only)",
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
    text
}
