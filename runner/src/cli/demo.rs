//! `smolfed` without a command: the main job on built-in data, in a few seconds.

use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::CliError;
use crate::config::{Config, DEFAULT, Override};
use crate::data::DataFolders;
use crate::run::{self, Control, RunError, RunResult};

/// Seeds that are averaged: data split, cohorts and noise differ in each.
const SEEDS: i64 = 8;

/// Trains with and without Laplacian smoothing at the same privacy, and prints both.
pub(super) fn run() -> Result<(), CliError> {
    let started = Instant::now();
    let rows = [
        ("DP-Fed", "dp-fed", 0.0),
        ("DP-Fed-LS, smoothing factor 1", "dp-fed-ls", 1.0),
        ("DP-Fed-LS, smoothing factor 2", "dp-fed-ls", 2.0),
    ];
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "Training on the built-in digits, {SEEDS} seeds of each method.\n"
    )?;
    let mut words = String::new();
    writeln!(
        out,
        "  {:<32} {:>9}  {:>14}",
        "method", "epsilon", "test accuracy"
    )?;
    for (title, method, factor) in rows {
        let results = (1..=SEEDS)
            .into_par_iter()
            .map(|seed| one(method, factor, seed))
            .collect::<Result<Vec<_>, _>>()?;
        let accuracies: Vec<f64> = results.iter().filter_map(accuracy).collect();
        let (mean, error) = mean_and_standard_error(&accuracies);
        if let Some(statement) = results.first().and_then(|result| result.statements.first()) {
            words = statement.in_words();
            writeln!(
                out,
                "  {title:<32} {:>9.3}  {:>6.2} ± {:.2} %",
                statement.epsilon,
                100.0 * mean,
                100.0 * error
            )?;
        }
    }
    writeln!(out, "\n{words}\n")?;
    writeln!(
        out,
        "Took {:.1} s. Next: `smolfed run` writes one such run with its report; `smolfed --help`.",
        started.elapsed().as_secs_f64()
    )?;
    Ok(())
}

fn one(method: &str, factor: f64, seed: i64) -> Result<RunResult, CliError> {
    let overrides = [
        Override::new("method", method.into()),
        Override::new("server.smoothing_factor", factor.into()),
        Override::new("seed", seed.into()),
        Override::new("evaluate_every", 0.into()),
    ];
    let config = Config::parse(DEFAULT, "the built-in experiment", &overrides)?;
    let (experiment, federation) = run::prepare(config, &DataFolders::of_experiment(None))?;
    let control = Control {
        stop: &AtomicBool::new(false),
        checkpoint_every: Duration::MAX,
        on_round: &mut |_| {},
    };
    run::execute(&experiment, &federation, None, control).map_err(|error: RunError| error.into())
}

fn accuracy(result: &RunResult) -> Option<f64> {
    result.records.last()?.test?.accuracy
}

/// Mean, and the standard error of the mean.
fn mean_and_standard_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum();
    (mean, (squares / (count - 1.0) / count).sqrt())
}
