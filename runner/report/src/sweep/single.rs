//! One run of a sweep, from its configuration to its figures. It leaves nothing on disk.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::metric::Metric;
use super::results::Figures;
use smolfed_data::Federation;
use smolfed_engine::config::Config;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run::{self, Ending, RunResult};
use smolfed_release::statement::PrivacyStatement;

/// The result of a run of a sweep.
pub(super) struct Trained {
    pub(super) evaluations: Vec<Figures>,
    pub(super) privacy: Vec<PrivacyStatement>,
    pub(super) seconds: f64,
}

impl Trained {
    /// Returns the result of a run of this duration.
    pub(super) fn new(result: RunResult, seconds: f64) -> Self {
        let evaluated = result.records.iter().map(|record| Figures {
            rounds: record.round + 1,
            figures: Metric::of_round(record),
        });
        Self {
            evaluations: evaluated
                .filter(|round| !round.figures.is_empty())
                .collect(),
            privacy: result.statements,
            seconds,
        }
    }

    /// Keeps what a private selection may show: nothing from the devices' rows and validation
    /// samples, whose released score has noise, and no time, which reveals the number of trials.
    pub(super) fn of_selection(mut self) -> Self {
        for evaluation in &mut self.evaluations {
            evaluation
                .figures
                .retain(|metric, _| metric.is_of_test_samples());
        }
        self.evaluations.retain(|round| !round.figures.is_empty());
        Self {
            seconds: 0.0,
            ..self
        }
    }
}

/// Does one run, from its configuration to its figures. Returns the reason if there are none.
pub(super) fn train(config: &Config, federation: &Federation) -> Result<Trained, String> {
    let started = Instant::now();
    let experiment =
        Experiment::new(config.clone(), federation).map_err(|error| error.to_string())?;
    let result = run_to_the_end(&experiment, federation, None)?;
    Ok(Trained::new(result, started.elapsed().as_secs_f64()))
}

/// Runs an experiment, and writes it into `dir` if given.
pub(super) fn run_to_the_end(
    experiment: &Experiment,
    federation: &Federation,
    dir: Option<&RunDir>,
) -> Result<RunResult, String> {
    let federation = &*experiment.scaled(federation);
    let control = run::Control {
        stop: &AtomicBool::new(false),
        checkpoint_every: Duration::MAX,
        on_round: &mut |_| {},
    };
    let result = run::execute(experiment, federation, dir, control);
    let result = result.map_err(|error| error.to_string())?;
    match result.ending {
        Ending::Done => Ok(result),
        Ending::Interrupted => Err("the run was interrupted".to_owned()),
        Ending::OverBudget(error) | Ending::GaveUp(error) => Err(error.to_string()),
    }
}
