//! `smolfed audit`: attacks on the mechanism of an experiment, and on its models.

mod membership;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use serde_json::json;

use super::CliError;
use super::session::{in_pool, progress_bar};
use super::text::{aligned, wrapped};
use crate::audit::target::{Target, TargetError};
use crate::audit::{Confidence, Finding, many_runs, one_run};
use crate::config::{Config, Override};
use crate::data::DataFolders;
use crate::number::lower;
use crate::release::Fault;
use crate::run;
use crate::run::directory::RunDir;

/// Attack the mechanism of an experiment, and prove a lower bound on its epsilon.
///
/// Canary devices, each with the largest update that clipping allows, go through the rounds of a
/// run (sampling, clipping, grid, sum, noise, average); only local training is left out. An
/// attacker who sees every average guesses which of them took part. A lower bound above the claimed
/// epsilon reveals a bug.
///
/// With --membership, the experiment is trained without noise, as DP-Fed and as DP-Fed-LS, and a
/// membership inference attack is run on each of the three models; with --run, the report of that
/// run shows the result.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed audit
  smolfed audit experiment.toml --runs 5000
  smolfed audit --set rounds=1 --fault noise-divided-twice
  smolfed audit --membership --set data.validation=0.3 --set data.devices=100 --svg roc.svg
  smolfed audit --membership --run runs/mnist-1700000000")]
pub(super) struct Args {
    /// The experiment, a TOML file; the built-in digits by default.
    file: Option<PathBuf>,
    /// Set a key of the file, for example rounds=1; can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// The seed of all randomness; the same as --set seed=N.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Canaries in the attack on one run; at most the number of devices.
    #[arg(long, value_name = "M", default_value_t = 1000)]
    canaries: u32,
    /// Runs in the attack on many runs: N with and N without the canary to choose the threshold,
    /// and as many again to evaluate it.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    runs: u32,
    /// The probability with which any of the lower bounds may be wrong.
    #[arg(long, value_name = "P", default_value_t = 1e-3)]
    error: f64,
    /// Inject a fault that the audit should detect.
    #[arg(long, value_enum, default_value = "none")]
    fault: Fault,
    /// Run a membership inference attack on trained models instead.
    #[arg(long)]
    membership: bool,
    /// With --membership: draw the ROC curves into this file, as SVG.
    #[arg(long, value_name = "FILE", requires = "membership")]
    svg: Option<PathBuf>,
    /// With --membership: take the experiment of this run directory, and add the ROC curves to its
    /// report.
    #[arg(long, value_name = "DIR", requires = "membership",
        conflicts_with_all = ["file", "overrides", "seed"])]
    run: Option<PathBuf>,
    /// Print one JSON document to standard output and nothing else.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut (impl Write + IsTerminal + Send)) -> Result<(), CliError> {
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
    let dir = args.run.as_deref().map(RunDir::open).transpose()?;
    let config = match &dir {
        Some(dir) => dir.config()?,
        None => Config::load(args.file.as_deref(), &overrides)?,
    };
    let of_run = args.run.as_deref().map(RunDir::config_path);
    let folders = DataFolders::of_experiment(of_run.as_deref().or(args.file.as_deref()));
    in_pool(None, || match args.membership {
        true => {
            let request = membership::Request {
                config: &config,
                folders: &folders,
                dir: dir.as_ref(),
                svg: args.svg.as_deref(),
                json: args.json,
            };
            membership::run(&request, out)
        }
        false => mechanism(args, config, &folders, out),
    })?
}

fn mechanism(
    args: &Args,
    config: Config,
    folders: &DataFolders,
    out: &mut (impl Write + IsTerminal),
) -> Result<(), CliError> {
    let (experiment, federation) = run::prepare(config, folders)?;
    let target = Target::new(&experiment, &federation, args.fault)?;
    let privacy = &experiment.privacy;
    // The claim of the run's accountant comes first.
    let claims = privacy.statements(u64::from(target.rounds()))?;
    let claim = claims.first().ok_or(TargetError::NothingClaimed)?;
    let bar = progress_bar(2, "attack");
    let seed = experiment.config.seed;
    let confidence = Confidence {
        delta: privacy.delta,
        error: args.error / 2.0,
    };
    let mut findings = one_run::audit(&target, seed, args.canaries, confidence)?;
    bar.inc(1);
    findings.extend(many_runs::audit(&target, seed, args.runs, confidence)?);
    bar.finish_and_clear();
    let largest = findings.iter().map(|f| f.epsilon_low).fold(0.0, f64::max);
    let is_refuted = largest > claim.epsilon;
    if args.json {
        let document = json!({
            "claim": claim,
            "fault": args.fault.name(),
            "error": args.error,
            "epsilon_low": largest,
            "is_refuted": is_refuted,
            "findings": findings,
        });
        writeln!(out, "{document}")?;
    } else {
        write!(out, "{}", table(&findings))?;
        let words = wrapped(&claim.in_words(), out.is_terminal());
        writeln!(
            out,
            "\nproved:  epsilon >= {} (wrong with probability at most {})\nclaimed: {words}",
            lower(largest, 4),
            args.error
        )?;
    }
    if is_refuted {
        return Err(CliError::Stopped(format!(
            "the claim is refuted: the epsilon of this mechanism is at least {}",
            lower(largest, 4)
        )));
    }
    Ok(())
}

fn table(findings: &[Finding]) -> String {
    let head = ["attack", "statistic", "epsilon at least", "evidence"];
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
