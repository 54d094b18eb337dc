//! The output of `smolfed run` at its end, as text and JSON: quality, figures of devices, answers,
//! privacy statements, time.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use anstyle::Style;

use super::text::{aligned, wrapped};
use smolfed_engine::arithmetic::Local;
use smolfed_engine::evaluation::assessment::FinalAssessment;
use smolfed_engine::evaluation::devices::DeviceReport;
use smolfed_engine::evaluation::devices::Which;
use smolfed_engine::evaluation::samples::Evaluation;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::method::MethodName;
use smolfed_engine::question::Answer;
use smolfed_engine::round::{SimulationOnly, WindowTally};
use smolfed_engine::run::RunResult;
use smolfed_release::number::{counted, fixed, significant};
use smolfed_release::provenance::Provenance;
use smolfed_release::statement::{PrivacyStatement, Subject};
use smolfed_report::answers::{AnswerOfRound, in_one_line, latest};
use smolfed_report::windows;

/// The result of a run, to print.
pub(super) struct Summary {
    name: String,
    method: MethodName,
    devices: u32,
    rounds: usize,
    quality: Option<(&'static str, Evaluation)>,
    /// More figures of the final model.
    assessment: Option<FinalAssessment>,
    /// Whether that is of private samples, which only a simulation can evaluate.
    quality_is_private: bool,
    /// Accuracy on held-out samples of neighbours, and of a linear probe, of an encoder without
    /// labels.
    representation: [Option<f64>; 2],
    /// Updates by age and wasted participations, where rounds are windows of time.
    windows: Option<WindowTally>,
    /// The origin of these counts.
    size_origin: Provenance,
    /// The newest answer to each question, with its round.
    answers: Vec<(u32, Answer)>,
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
            name: experiment.config().name.clone(),
            method: experiment.config().method,
            devices: experiment.sampling().device_count(),
            rounds: result.records.len(),
            quality: test
                .map(|e| ("test", e))
                .or(validation.map(|e| ("validation", e))),
            assessment: result.assessment.clone(),
            quality_is_private: test.is_none() || on_devices,
            representation: [
                figure(|only| only.knn_accuracy),
                figure(|only| only.probe_accuracy),
            ],
            windows: WindowTally::of_records(&result.records),
            size_origin: Provenance::of_sizes(experiment.has_secret_sizes()),
            answers: latest(&result.records)
                .into_iter()
                .map(|found| (found.round, found.answer.clone()))
                .collect(),
            last_round: result
                .records
                .last()
                .map(|record| record.simulation_only.clone()),
            devices_report: result.devices.clone(),
            statements: result.statements.clone(),
            arithmetic: experiment.method().properties().arithmetic,
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
            "arithmetic": self.arithmetic.name().name(),
        });
        if let Some(object) = document.as_object_mut() {
            if !self.answers.is_empty() {
                let answers: Vec<_> = self.answers().collect();
                object.insert("answers".to_owned(), json!(answers));
            }
            if let Some(windows) = &self.windows {
                object.insert("ages".to_owned(), json!(windows.ages));
                object.insert("wasted".to_owned(), json!(windows.wasted));
            }
            if let Some(note) = self.arithmetic.note(self.devices) {
                object.insert("arithmetic_note".to_owned(), json!(note));
                let in_span = json!(self.arithmetic.in_span());
                object.insert("devices_in_span".to_owned(), in_span);
            }
            let figures = self.quality_figures().into_iter();
            // JSON has no infinity: null.
            let figures = figures.map(|(key, value)| (key, json!(value)));
            let figures: Vec<(String, Value)> = figures.chain(self.device_figures()).collect();
            let keys = figures.iter().map(|(key, _)| key.as_str());
            let origins: BTreeMap<&str, Provenance> = keys
                .map(|key| (key, Provenance::of_samples(self.is_private(key))))
                .chain([
                    ("seconds", Provenance::SimulationOnly),
                    ("devices", Provenance::of_device_count(&self.statements)),
                ])
                .chain((!self.answers.is_empty()).then_some(("answers", Provenance::Released)))
                .chain(
                    self.windows
                        .iter()
                        .flat_map(|_| ["ages", "wasted"].map(|key| (key, self.size_origin))),
                )
                .collect();
            let private = origins.keys().filter(|key| self.is_private(key));
            let private: Vec<&&str> = private.collect();
            let lists = [
                ("simulation_only".to_owned(), json!(private)),
                ("origin".to_owned(), json!(origins)),
            ];
            object.extend(figures.into_iter().chain(lists));
        }
        document
    }

    /// The newest answer to each question.
    fn answers(&self) -> impl Iterator<Item = AnswerOfRound<'_>> {
        let answers = self.answers.iter();
        answers.map(|(round, answer)| AnswerOfRound {
            round: *round,
            answer,
        })
    }

    /// What is known of the shared model, and of representations.
    fn quality_figures(&self) -> Vec<(String, f64)> {
        let mut figures = Vec::new();
        let mut add = |part: &str, all: &[(&str, Option<f64>)]| {
            for (key, value) in all {
                figures.extend(value.map(|value| (format!("{part}{key}"), value)));
            }
        };
        if let Some((part, evaluation)) = &self.quality {
            add(
                &format!("{part}_"),
                &[
                    ("accuracy", evaluation.accuracy),
                    ("rmse", evaluation.rmse),
                    ("loss", Some(evaluation.loss)),
                ],
            );
        }
        if let Some(FinalAssessment { part, figures, .. }) = &self.assessment {
            let (values, classes) = (figures.values, figures.classes.as_ref());
            let majority = classes.map(|figures| figures.accuracy_of_majority);
            add(
                &format!("{}_", part.name()),
                &[
                    ("f1", classes.map(|figures| figures.f1)),
                    ("accuracy_of_majority", majority),
                    ("mae", values.map(|figures| figures.mae)),
                    ("r2", values.and_then(|figures| figures.r2)),
                    ("rmse_of_mean", values.map(|figures| figures.rmse_of_mean)),
                ],
            );
        }
        let [neighbours, probe] = self.representation;
        add(
            "",
            &[
                ("knn_accuracy", neighbours),
                ("test_accuracy", probe),
                ("matrix_epsilon", self.matrices().map(|s| s.epsilon)),
            ],
        );
        figures
    }

    /// How each kind of model does over devices.
    fn device_figures(&self) -> Vec<(String, Value)> {
        let Some(report) = &self.devices_report else {
            return Vec::new();
        };
        let unit = if report.is_error { "rmse" } else { "accuracy" };
        let spreads = Which::ALL.into_iter().filter_map(|which| {
            let spread = json!(report.spread(which)?);
            Some((format!("device_{}_{unit}", which.name()), spread))
        });
        let result = json!(report.means().models.result());
        spreads
            .chain([(format!("device_{unit}"), result)])
            .collect()
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

    /// What a person should know before the figures.
    pub(super) fn warning(&self) -> Option<String> {
        let assessment = self.assessment.as_ref();
        let useless = assessment.filter(|assessment| assessment.figures.is_useless())?;
        let (part, baseline) = match useless.figures.values {
            Some(_) => (useless.part.name(), "mean"),
            None => (useless.part.name(), "most frequent class"),
        };
        Some(format!(
            "on the {part} samples the model is no better than always predicting their {baseline}"
        ))
    }

    /// A few lines for a person, with the whole privacy statement if it `is_verbose`. The writer
    /// removes bold where it is not wanted.
    pub(super) fn to_text(&self, is_terminal: bool, is_verbose: bool) -> String {
        let (bold, plain) = (BOLD.render(), BOLD.render_reset());
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{bold}{}{plain}: {}, {}, {} in {:.2} s",
            self.name,
            self.method.name(),
            counted(u64::from(self.devices), "device"),
            counted(self.rounds as u64, "round"),
            self.seconds
        );
        if let Some((part, evaluation)) = &self.quality {
            let note = match self.quality_is_private {
                true => " (simulation only)",
                false => "",
            };
            let more = self
                .assessment
                .as_ref()
                .filter(|more| more.part.name() == *part);
            let more = more.map_or(String::new(), |more| {
                format!(", {}", more.figures.in_one_line())
            });
            let _ = writeln!(text, "  {bold}{part} {evaluation}{plain}{more}{note}");
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
        if let Some(windows) = &self.windows {
            let _ = writeln!(text, "  {}", windows::in_one_line(windows));
        }
        for found in self.answers() {
            let _ = writeln!(text, "  {}", in_one_line(found.answer));
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
            let _ = match is_verbose {
                true => writeln!(text, "\n{}", wrapped(&statement.in_words(), is_terminal)),
                false => writeln!(text, "  {bold}{}{plain}", statement.in_one_line()),
            };
        }
        let out = self.out.display();
        let _ = match is_verbose || self.statements.is_empty() {
            true => writeln!(text, "\nwritten to {out}"),
            false => writeln!(
                text,
                "\nwritten to {out}: report.html states the conditions for this"
            ),
        };
        text
    }
}

/// Figures that count.
const BOLD: Style = Style::new().bold();

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
    let count = report.devices.len();
    let mut text = format!(
        "  on the samples of each of {count} devices (simulation only):\n{}",
        aligned(&rows)
    );
    for which in Which::ALL {
        let models = report.devices.iter().map(|device| device.models.get(which));
        let found = models.flatten().count();
        if (1..count).contains(&found) {
            let _ = writeln!(
                text,
                "  {}: without {} devices whose training diverged",
                report.words(which),
                count - found
            );
        }
    }
    for which in &report.diverged {
        let words = report.words(*which);
        let _ = writeln!(text, "  {words}: the training of every device diverged");
    }
    text
}

/// Norms and clipping of the updates, and the devices that were left out.
fn last_round_in_words(only: &SimulationOnly) -> String {
    let mut text = String::new();
    if let Some(norm) = only.update_norm {
        let _ = writeln!(
            text,
            "  update norms {} to {}, median {}; {:.0} % clipped (last round, simulation only)",
            significant(norm.min, 3),
            significant(norm.max, 3),
            significant(norm.median, 3),
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

#[cfg(test)]
mod tests {
    use smolfed_core::params::LearningRate;
    use smolfed_data::DataFolders;
    use smolfed_engine::config::{Config, DEFAULT};
    use smolfed_engine::round::RoundRecord;
    use smolfed_engine::run::{Ending, prepare};

    use super::*;

    /// The summary of rounds with these updates by age and wasted participations.
    fn summary(rounds: &[(&[u32], Option<u32>)]) -> Summary {
        let config = Config::parse(DEFAULT, "the default", &[]).unwrap();
        let folders = DataFolders::of_experiment(None);
        let (experiment, _) = prepare(config, &folders).unwrap();
        let records = (0..)
            .zip(rounds)
            .map(|(round, (ages, wasted))| RoundRecord {
                ages: ages.to_vec(),
                wasted: *wasted,
                ..RoundRecord::new(round, LearningRate::new(0.1).unwrap())
            });
        let result = RunResult {
            records: records.collect(),
            model: Vec::new(),
            statements: Vec::new(),
            spectrum: None,
            devices: None,
            assessment: None,
            repeated_rounds: Vec::new(),
            ending: Ending::Done,
        };
        Summary::new(&experiment, &result, Path::new("run"), Duration::ZERO)
    }

    const WINDOWS: [(&[u32], Option<u32>); 2] = [(&[40, 10, 0], Some(0)), (&[21, 20, 9], Some(1))];

    #[test]
    fn windows_have_a_line_of_their_own() {
        let text = summary(&WINDOWS).to_text(false, false);
        let line = "\n  updates by age: 61 %, 30 %, 9 %; wasted participations 1.0 %\n";
        assert!(text.contains(line), "{text}");
        let without = summary(&[(&[], None)]).to_text(false, false);
        assert!(!without.contains("by age"), "{without}");
    }

    /// A draw that must stay secret has no public counts.
    #[test]
    fn counts_of_windows_have_the_origin_of_sizes() {
        let document = summary(&WINDOWS).to_json();
        let counts = (&document["ages"], &document["wasted"]);
        assert_eq!(counts, (&json!([61, 30, 9]), &json!(1)));
        for (origin, name) in [
            (Provenance::Public, "public"),
            (Provenance::SimulationOnly, "simulation-only"),
        ] {
            let summary = Summary {
                size_origin: origin,
                ..summary(&WINDOWS)
            };
            let document = summary.to_json();
            for key in ["ages", "wasted"] {
                assert_eq!(document["origin"][key], json!(name), "{key}");
            }
        }
        let without = summary(&[(&[], None)]).to_json();
        assert!(without.get("ages").is_none() && without["origin"].get("ages").is_none());
    }
}
