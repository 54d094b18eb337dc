//! `smolfed` without a command (demonstration): training on built-in data without and with
//! denoising, and on image gradients, at several values of ε, in a few seconds.

use std::io::{IsTerminal, Write};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::CliError;
use super::text::wrapped;
use smolfed_data::DataFolders;
use smolfed_engine::config::{Config, DEFAULT, Override};
use smolfed_engine::round::origin_of;
use smolfed_engine::run::{self, Control, RunResult};
use smolfed_release::provenance::Figure;
use smolfed_report::sweep::Mean;

/// Seeds that are averaged: the split of the data, the cohorts and the noise differ in each.
const SEEDS: i64 = 8;

/// Much noise, some, little.
const EPSILONS: [f64; 3] = [0.5, 1.0, 4.0];

/// The compared settings. The privacy is the same.
const VARIANTS: [&[(&str, &str)]; 4] = [
    &[("method", "dp-fed"), ("server.smoothing_factor", "0")],
    &[("method", "dp-fed-ls"), ("server.smoothing_factor", "1")],
    &[("method", "dp-fed-ls"), ("server.denoiser", "auto")],
    &[
        ("method", "dp-fed"),
        ("server.smoothing_factor", "0"),
        ("features.kind", "gradients"),
        ("features.cell", "2"),
        ("train.learning_rate", "auto"),
    ],
];

/// Trains on pixels without denoising, with Laplacian smoothing and with automatic denoising, and
/// on gradients in their place, at the same privacy, and prints all of them.
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
        "{:58}difference from DP-Fed\n  epsilon {:>11} {:>11} {:>11} {:>11}   {:>11} {:>11} {:>11}",
        "", "DP-Fed", "DP-Fed-LS", "auto", "gradients", "DP-Fed-LS", "auto", "gradients"
    )?;
    let mut words = String::new();
    for epsilon in EPSILONS {
        let runs = (1..=SEEDS)
            .into_par_iter()
            .map(|seed| {
                VARIANTS
                    .iter()
                    .map(|keys| one(epsilon, keys, seed))
                    .collect()
            })
            .collect::<Result<Vec<Vec<_>>, CliError>>()?;
        let of = |variant: usize| -> Vec<Figure> {
            runs.iter()
                .filter_map(|runs| accuracy(&runs[variant]))
                .collect()
        };
        let [plain, smooth, auto, gradients] = [of(0), of(1), of(2), of(3)];
        let gain = |over: &[Figure]| -> Vec<Figure> {
            let pairs = over.iter().zip(&plain);
            pairs.map(|(with, without)| with.less(*without)).collect()
        };
        writeln!(
            out,
            "  {epsilon:>7} {:>11} {:>11} {:>11} {:>11}   {:>11} {:>11} {:>11}",
            spread(&plain),
            spread(&smooth),
            spread(&auto),
            spread(&gradients),
            spread(&gain(&smooth)),
            spread(&gain(&auto)),
            spread(&gain(&gradients))
        )?;
        let first = runs.first().and_then(|runs| runs.first());
        if let Some(statement) = first.and_then(|run| run.statements.first()) {
            words = statement.in_words();
        }
    }
    writeln!(
        out,
        "\nDifferences are paired by seed. Smoothing improves the accuracy where noise dominates\n\
         and reduces it elsewhere. Automatic denoising judges by itself, from released numbers.\n\
         Gradients are a fixed function of each image, which costs no privacy.\n\
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

fn one(epsilon: f64, keys: &[(&str, &str)], seed: i64) -> Result<RunResult, CliError> {
    let mut overrides = vec![
        Override::new("privacy.epsilon", epsilon.into()),
        Override::new("seed", seed.into()),
        Override::new("evaluate_every", 0.into()),
    ];
    for (key, value) in keys {
        overrides.push(format!("{key}={value}").parse()?);
    }
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
fn accuracy(result: &RunResult) -> Option<Figure> {
    let record = result.records.last()?;
    Some(Figure {
        value: 100.0 * record.test?.accuracy?,
        origin: origin_of("test", &record.origin),
    })
}

/// Mean ± standard error of the mean.
fn spread(figures: &[Figure]) -> String {
    let Some(found) = Mean::new(figures) else {
        return "–".to_owned();
    };
    let (mean, mark) = (found.mean, found.origin.mark());
    format!(
        "{mean:.1} ± {:.1}{mark}",
        found.standard_error.unwrap_or(f64::NAN)
    )
}
