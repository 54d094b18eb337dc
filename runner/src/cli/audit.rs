//! `smolfed audit`: attack the mechanism of an experiment, and its models.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;

use super::CliError;
use super::session::{in_pool, progress_bar};
use super::text::aligned;
use crate::audit::membership::Roc;
use crate::audit::target::{Fault, Target};
use crate::audit::{Finding, many_runs, one_run};
use crate::config::{Config, Method, Override};
use crate::data::DataFolders;
use crate::number::{lower, upper};
use crate::report;
use crate::report::plot::{Plot, stacked_file};
use crate::run::{self, Control};

/// Attack the mechanism of an experiment: prove that it loses no less than some epsilon.
///
/// Canary devices, each with the largest update that clipping allows, go through the code of a run
/// (sampling, clipping, grid, sum, noise, average) without its training; an attacker who sees every
/// average guesses which of them took part. A lower bound above the claimed epsilon is a bug.
///
/// With --membership the experiment is trained without noise, as DP-Fed and as DP-Fed-LS, and each
/// model is asked which examples it was trained on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed audit
  smolfed audit experiment.toml --runs 5000
  smolfed audit --set rounds=1 --fault noise-divided-twice
  smolfed audit mnist.toml --set data.validation=0.16 --membership --svg roc.svg")]
pub(super) struct Args {
    /// The experiment, a TOML file; without one the built-in digits.
    file: Option<PathBuf>,
    /// Set a key of the file, for example rounds=1; can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Names all randomness.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Canaries of the one run; at most one a device.
    #[arg(long, value_name = "M", default_value_t = 1000)]
    canaries: u32,
    /// Runs on which the rule is chosen, and runs on which it is judged, in each of two worlds.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    runs: u32,
    /// The probability that a lower bound is too high by chance.
    #[arg(long, value_name = "P", default_value_t = 1e-3)]
    error: f64,
    /// Plant a bug, to see the audit find it.
    #[arg(long, value_enum, default_value = "none")]
    fault: Fault,
    /// Ask the trained models which examples they were trained on, instead.
    #[arg(long)]
    membership: bool,
    /// With --membership: draw the curves into this file.
    #[arg(long, value_name = "FILE", requires = "membership")]
    svg: Option<PathBuf>,
    /// Print one JSON document to standard output and nothing else.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut (impl Write + Send)) -> Result<(), CliError> {
    if !(args.error > 0.0 && args.error < 1.0) {
        return Err(CliError::Usage(format!(
            "--error is {}: it must be above 0 and below 1",
            args.error
        )));
    }
    let overrides = args.overrides.iter().map(|text| text.parse());
    let mut overrides = overrides.collect::<Result<Vec<Override>, _>>()?;
    overrides.extend(
        args.seed
            .map(|seed| Override::new("seed", (seed as i64).into())),
    );
    let config = Config::load(args.file.as_deref(), &overrides)?;
    let folders = DataFolders::of_experiment(args.file.as_deref());
    in_pool(None, || match args.membership {
        true => membership(args, &config, &folders, out),
        false => mechanism(args, config, &folders, out),
    })?
}

fn mechanism(
    args: &Args,
    config: Config,
    folders: &DataFolders,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let (experiment, _) = run::prepare(config, folders)?;
    let target = Target::new(&experiment, args.fault)?;
    let privacy = &experiment.privacy;
    let claim = privacy.estimate(u64::from(target.rounds()))?;
    let bar = progress_bar(2, "attack");
    let seed = experiment.config.seed;
    let share = args.error / 2.0;
    let mut findings = one_run::audit(&target, seed, args.canaries, privacy.delta, share);
    bar.inc(1);
    findings.extend(many_runs::audit(
        &target,
        seed,
        args.runs,
        privacy.delta,
        share,
    ));
    bar.finish_and_clear();
    let largest = findings.iter().map(|f| f.epsilon_low).fold(0.0, f64::max);
    let is_refuted = largest > claim.epsilon;
    if args.json {
        let document = json!({
            "epsilon": Some(claim.epsilon).filter(|epsilon| epsilon.is_finite()),
            "delta": claim.delta,
            "accountant": claim.accountant,
            "fault": args.fault.name(),
            "error": args.error,
            "epsilon_low": largest,
            "is_refuted": is_refuted,
            "findings": findings,
        });
        writeln!(out, "{document}")?;
    } else {
        write!(out, "{}", table(&findings))?;
        writeln!(
            out,
            "\nclaimed: epsilon = {} at delta = {} (`{}`)\nproved:  epsilon >= {}, but for a \
             probability of {}",
            upper(claim.epsilon, 5),
            upper(claim.delta.get(), 4),
            claim.accountant,
            lower(largest, 4),
            args.error
        )?;
    }
    if is_refuted {
        return Err(CliError::Stopped(format!(
            "the claim is refuted: the mechanism loses at least epsilon = {}",
            lower(largest, 4)
        )));
    }
    Ok(())
}

fn table(findings: &[Finding]) -> String {
    let head = ["attack", "looks at", "epsilon at least", "evidence"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(findings.iter().map(|finding| {
        vec![
            finding.test.to_owned(),
            finding.statistic.to_owned(),
            lower(finding.epsilon_low, 4),
            finding.evidence.clone(),
        ]
    }));
    aligned(&rows)
}

/// Trains three models of one experiment and attacks each.
fn membership(
    args: &Args,
    config: &Config,
    folders: &DataFolders,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let mut curves = Vec::new();
    for (label, config) in variants(config) {
        let (experiment, federation) = run::prepare(config, folders)?;
        let bar = progress_bar(u64::from(experiment.config.rounds), "round");
        let control = Control {
            stop: &AtomicBool::new(false),
            checkpoint_every: Duration::MAX,
            on_round: &mut |_| bar.inc(1),
        };
        let result = run::execute(&experiment, &federation, None, control);
        bar.finish_and_clear();
        let roc = Roc::of_model(&experiment.task, &result?.model, &federation)
            .map_err(|error| CliError::Stopped(error.to_string()))?
            .ok_or_else(|| {
                CliError::Usage(
                    "no examples to compare with: keep some training examples back with, for \
                     example, --set data.validation=0.2 (a share is drawn at random, a number takes the last \
                     rows)"
                        .to_owned(),
                )
            })?;
        curves.push((label, roc));
    }
    if let Some(path) = &args.svg {
        draw(path, &report::roc_plot(&curves))?;
    }
    if args.json {
        let models: Vec<_> = curves
            .iter()
            .map(|(label, roc)| json!({ "model": label, "roc": roc }))
            .collect();
        writeln!(out, "{}", json!({ "models": models }))?;
        return Ok(());
    }
    let head = ["model", "area under the curve", "hits at 1 % false alarms"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(curves.iter().map(|(label, roc)| {
        vec![
            (*label).to_owned(),
            format!("{:.4}", roc.area),
            format!("{:.2} %", 100.0 * roc.hit_rate_at_1_percent),
        ]
    }));
    write!(out, "{}", aligned(&rows))?;
    if let Some((_, roc)) = curves.first() {
        writeln!(
            out,
            "\n{} members and {} training examples that no device held; 0.5 is guessing",
            roc.members, roc.others
        )?;
    }
    Ok(())
}

/// The experiment without noise, with noise, and with noise and smoothing.
fn variants(config: &Config) -> [(&'static str, Config); 3] {
    let mut plain = config.clone();
    plain.method = Method::DpFed;
    plain.server.smoothing_factor = 0.0;
    let mut open = plain.clone();
    open.privacy.epsilon = None;
    open.privacy.noise_multiplier = None;
    open.privacy.noise_std = None;
    open.privacy.max_epsilon = None;
    open.privacy.clip_norm = None;
    let mut smooth = config.clone();
    smooth.method = Method::DpFedLs;
    if smooth.server.smoothing_factor <= 0.0 {
        smooth.server.smoothing_factor = 1.0;
    }
    [
        ("no privacy", open),
        ("DP-Fed", plain),
        ("DP-Fed-LS", smooth),
    ]
}

fn draw(path: &Path, plot: &Plot) -> Result<(), CliError> {
    std::fs::write(path, stacked_file(std::slice::from_ref(plot)))
        .map_err(|error| CliError::Stopped(format!("cannot write {}: {error}", path.display())))
}
