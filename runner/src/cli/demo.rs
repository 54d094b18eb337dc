//! `smolfed` without a command: the main job on built-in data, in a few seconds.

use std::io::{IsTerminal, Write};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::CliError;
use super::text::wrapped;
use crate::config::{Config, DEFAULT, Override};
use crate::data::DataFolders;
use crate::run::{self, Control, RunResult};
use crate::sweep::Mean;

/// Seeds that are averaged: the split of the data, the cohorts and the noise differ in each.
const SEEDS: i64 = 8;

/// Much noise, some, little.
const EPSILONS: [f64; 3] = [0.5, 1.0, 4.0];

/// Trains with and without Laplacian smoothing at the same privacy, and prints both.
pub(super) fn run() -> Result<(), CliError> {
    let started = Instant::now();
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "Private federated learning on the built-in digits: 280 devices of 5 images each.\n\
         Test accuracy in percent, mean of {SEEDS} seeds ± standard error, at the same privacy:\n"
    )?;
    writeln!(
        out,
        "  epsilon       DP-Fed    DP-Fed-LS     gain by smoothing (paired)"
    )?;
    let mut words = String::new();
    for epsilon in EPSILONS {
        let pairs = (1..=SEEDS)
            .into_par_iter()
            .map(|seed| {
                Ok((
                    one(epsilon, "dp-fed", 0.0, seed)?,
                    one(epsilon, "dp-fed-ls", 1.0, seed)?,
                ))
            })
            .collect::<Result<Vec<_>, CliError>>()?;
        let plain: Vec<f64> = pairs
            .iter()
            .filter_map(|(plain, _)| accuracy(plain))
            .collect();
        let smooth: Vec<f64> = pairs
            .iter()
            .filter_map(|(_, smooth)| accuracy(smooth))
            .collect();
        let gain: Vec<f64> = smooth.iter().zip(&plain).map(|(s, p)| s - p).collect();
        writeln!(
            out,
            "  {epsilon:>7} {:>12} {:>12} {:>17}",
            spread(&plain),
            spread(&smooth),
            spread(&gain)
        )?;
        if let Some(statement) = pairs.first().and_then(|(_, run)| run.statements.first()) {
            words = statement.in_words();
        }
    }
    writeln!(
        out,
        "\nSmoothing improves the accuracy where the noise dominates and reduces it elsewhere.\n\
         The privacy statement of the last row:\n"
    )?;
    writeln!(out, "{}\n", wrapped(&words, out.is_terminal()))?;
    writeln!(
        out,
        "Took {:.1} s. Next: `smolfed run` trains once and writes a report, `smolfed --help`.",
        started.elapsed().as_secs_f64()
    )?;
    Ok(())
}

fn one(epsilon: f64, method: &str, factor: f64, seed: i64) -> Result<RunResult, CliError> {
    let overrides = [
        Override::new("privacy.epsilon", epsilon.into()),
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
    Ok(run::execute(&experiment, &federation, None, control)?)
}

/// Test accuracy in percent.
fn accuracy(result: &RunResult) -> Option<f64> {
    Some(100.0 * result.records.last()?.test?.accuracy?)
}

/// Mean ± standard error of the mean.
fn spread(values: &[f64]) -> String {
    let Some(Mean {
        mean,
        standard_error,
    }) = Mean::new(values)
    else {
        return "–".to_owned();
    };
    format!("{mean:.1} ± {:.1}", standard_error.unwrap_or(f64::NAN))
}
