//! `smolfed run --dry-run`: sizes, privacy cost and time (duration) of a run before it starts, and
//! the cost of a round to a device.
//!
//! The round that is timed releases nothing: its result is dropped, unseen and unwritten.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use serde_json::json;

use crate::cli::CliError;
use crate::cost::DeviceCost;
use smolfed_data::Federation;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::round::TrainingLoop;
use smolfed_engine::run::RunError;
use smolfed_engine::source::Simulated;
use smolfed_fleet::source::terms::ServeError;
use smolfed_release::number::{counted, lower, significant};
use smolfed_release::provenance::Provenance;
use smolfed_release::statement::PrivacyStatement;

/// What is known of a run before it begins.
pub(super) struct Preview<'a> {
    experiment: &'a Experiment,
    federation: &'a Federation,
    /// Those of all rounds.
    statements: Vec<PrivacyStatement>,
    /// Time of one round with these threads, its evaluation included.
    seconds_per_round: f64,
    /// The cost of a round to a real device, or why there is none in it.
    device_cost: Result<DeviceCost, ServeError>,
}

impl<'a> Preview<'a> {
    /// Accounts for all rounds and times one.
    ///
    /// # Errors
    /// [`RunError`] as for a run.
    pub(super) fn new(
        experiment: &'a Experiment,
        federation: &'a Federation,
    ) -> Result<Self, RunError> {
        let statements = experiment.statements(experiment.config().rounds, &[])?;
        let mut training = TrainingLoop::simulation(experiment, federation)?;
        let started = Instant::now();
        training.step(&mut Simulated(federation))?;
        Ok(Self {
            experiment,
            federation,
            statements,
            seconds_per_round: started.elapsed().as_secs_f64(),
            device_cost: DeviceCost::of(experiment, federation),
        })
    }

    /// The complete experiment below comments with the sizes, or one JSON document.
    ///
    /// # Errors
    /// [`CliError`] if the configuration has no text form or the output takes nothing.
    pub(super) fn write(&self, is_json: bool, out: &mut dyn Write) -> Result<(), CliError> {
        if is_json {
            return Ok(writeln!(out, "{}", self.to_json())?);
        }
        for (name, text) in self.facts() {
            writeln!(out, "# {name:<10} {text}")?;
        }
        Ok(write!(out, "\n{}", self.experiment.config().to_toml()?)?)
    }

    fn samples(&self) -> u64 {
        self.federation.sample_counts().map(u64::from).sum()
    }

    fn parameters(&self) -> usize {
        self.experiment.task().parameter_count()
    }

    fn seconds(&self) -> f64 {
        self.seconds_per_round * f64::from(self.experiment.config().rounds)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let (config, federation) = (&self.experiment.config(), self.federation);
        let parameters = self.parameters();
        let mut facts = vec![
            ("devices", federation.device_count().to_string()),
            (
                "samples",
                format!(
                    "{} to train on, {} to validate, {} to test (simulation only: no epsilon \
                     covers how many rows there are)",
                    self.samples(),
                    federation.validation().len(),
                    federation.test().len()
                ),
            ),
            (
                "model",
                format!(
                    "{parameters} parameters, {} bytes",
                    parameters * size_of::<f32>()
                ),
            ),
            (
                "a step",
                format!(
                    "{} in the first round",
                    self.experiment.training().learning_rate.get()
                ),
            ),
            (
                "a device",
                format!(
                    "sends {} numbers a round",
                    self.experiment.method().properties().shared_count
                ),
            ),
            (
                "time",
                format!(
                    "roughly {:.1} s for {}, by one round of {:.3} s",
                    self.seconds(),
                    counted(u64::from(config.rounds), "round"),
                    self.seconds_per_round
                ),
            ),
        ];
        facts.extend(self.questions());
        if self.statements.is_empty() {
            facts.push(("privacy", "no noise, so no epsilon".to_owned()));
        }
        let statements = self.statements.iter();
        facts.extend(statements.map(|statement| ("privacy", statement.in_words())));
        match &self.device_cost {
            Ok(cost) => facts.extend(cost.facts()),
            Err(error) => facts.push(("a board", format!("takes no part: {error}"))),
        }
        facts
    }

    /// What each question costs, and how exact its answer will be.
    fn questions(&self) -> impl Iterator<Item = (&'static str, String)> {
        let rounds = self.experiment.config().rounds;
        let questions = self.experiment.questions().iter();
        questions.map(move |question| {
            let count = question.side.schedule.count(rounds);
            let z = question.side.event.mechanism.noise_multiplier().get();
            let text = format!(
                "\"{}\", asked {}, of {:.0} devices with a noise multiplier of {}: a standard \
                 error of {} by noise",
                question.name,
                counted(u64::from(count), "time"),
                question.attendance.expected_size(),
                lower(z, 5),
                significant(question.standard_error(), 3)
            );
            ("question", text)
        })
    }

    fn to_json(&self) -> serde_json::Value {
        let errors = self.experiment.questions().iter();
        let errors = errors.map(|question| {
            json!({
                "name": question.name,
                "noise_multiplier": question.side.event.mechanism.noise_multiplier(),
                "times": question.side.schedule.count(self.experiment.config().rounds),
                "standard_error": question.standard_error(),
            })
        });
        let questions: Vec<serde_json::Value> = errors.collect();
        let statement = self.statements.first();
        let epsilon = statement.map(|statement| statement.epsilon);
        let counts = ["train_samples", "validation_samples", "test_samples"];
        let times = ["seconds_per_round", "seconds"];
        // Instructions follow the mean number of samples.
        let private = counts.into_iter().chain(times).chain(["device_cost"]);
        let origin: BTreeMap<&str, Provenance> = private
            .map(|key| (key, Provenance::SimulationOnly))
            .collect();
        json!({
            "origin": origin,
            "config": self.experiment.config(),
            "devices": self.federation.device_count(),
            "train_samples": self.samples(),
            "validation_samples": self.federation.validation().len(),
            "test_samples": self.federation.test().len(),
            "parameters": self.parameters(),
            "shared_parameters": self.experiment.method().properties().shared_count,
            "rounds": self.experiment.config().rounds,
            "seconds_per_round": self.seconds_per_round,
            "seconds": self.seconds(),
            "device_cost": self.device_cost.as_ref().ok().map(DeviceCost::to_json),
            "epsilon": epsilon.filter(|epsilon| epsilon.is_finite()),
            "delta": statement.map(|statement| statement.delta),
            "questions": questions,
            "privacy": self.statements,
        })
    }
}
