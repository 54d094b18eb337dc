//! `smolfed audit`: attacks on the mechanism of an experiment, and on its models.

mod membership;
mod sources;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use indicatif::ProgressBar;
use serde_json::json;
use smolfed_accounting::Delta;

use super::CliError;
use super::session::{in_pool, progress_bar};
use super::text::{aligned, wrapped};
use smolfed_data::DataFolders;
use smolfed_data::missing_feature::MissingFeature;
use smolfed_engine::audit::attack::{self, Attack, Size};
use smolfed_engine::audit::channel::Channel;
use smolfed_engine::audit::check::{Check, ERROR};
use smolfed_engine::audit::correlated::Correlated;
use smolfed_engine::audit::direct;
use smolfed_engine::audit::matrices::Matrices;
use smolfed_engine::audit::target::{Target, TargetError};
use smolfed_engine::audit::view::View;
use smolfed_engine::audit::{Confidence, Finding};
use smolfed_engine::config::{Config, Override};
use smolfed_engine::experiment::Experiment;
use smolfed_engine::run;
use smolfed_engine::run::directory::RunDir;
use smolfed_release::Fault;
use smolfed_release::PrivacyStatement;
use smolfed_release::number::{lower, significant, upper};
use sources::{SourceName, SourceTests};

/// Attack the mechanism of an experiment and prove a lower bound on its epsilon.
///
/// Canary devices, each with the largest update that clipping allows, take part in the rounds of a
/// run (sampling, clipping, grid, sum, noise, average). Only local training is left out. An
/// attacker who sees every average tries to identify the canaries that took part. A lower bound
/// above the claimed epsilon reveals a bug.
///
/// Direct tests check each part of the mechanism: the noise of every round and block of
/// coordinates, the influence of one device, the cohorts, the charges. The exit code is 1 if a test
/// fails or the claim is refuted.
///
/// The attack runs on the devices of a simulation in one process. Tests of the cohorts, the sum and
/// the noise also run on the other sources. With --source, the whole audit runs on one source.
///
/// With --membership, the command trains the experiment three times: without noise, with DP-Fed and
/// with DP-Fed-LS. It runs a membership inference attack on each of the three models. With --run,
/// the report of that run shows the result.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed audit
  smolfed audit experiment.toml --runs 5000
  smolfed audit --source ranks
  smolfed audit --set rounds=1 --fault noise-divided-twice
  smolfed audit --membership --set data.validation=0.3 --set data.devices=100 --svg roc.svg
  smolfed audit --membership --run runs/mnist-1700000000")]
pub(super) struct Args {
    /// Experiment, a TOML file [default: the built-in digits].
    file: Option<PathBuf>,
    /// Set a key of the experiment, for example rounds=1 (repeatable).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Set the seed of all randomness, the same as --set seed=N.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Use M canaries in each run.
    ///
    /// The maximum is the number of devices, or of users if users have several devices.
    #[arg(
        long,
        value_name = "M",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    canaries: u32,
    /// Make N pairs of runs [default: as many as take a few seconds].
    ///
    /// More pairs bring the lower bound closer to the true epsilon. Additional pairs, a tenth of N,
    /// are used to choose the thresholds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Audit only this source of devices.
    ///
    /// By default, the attack runs on simulated devices, and some of the direct tests on all
    /// sources.
    #[arg(long, value_enum, value_name = "SOURCE", conflicts_with = "membership")]
    source: Option<SourceName>,
    /// Set the allowed probability that any lower bound is wrong.
    #[arg(long, value_name = "P", default_value_t = 1e-3)]
    error: f64,
    /// Inject a fault that the audit should detect (needs the feature faults).
    #[arg(long, value_enum, default_value = "none")]
    fault: Fault,
    /// Run a membership inference attack on trained models instead.
    #[arg(long)]
    membership: bool,
    /// Draw the ROC curves into this SVG file (needs --membership).
    #[arg(long, value_name = "FILE", requires = "membership")]
    svg: Option<PathBuf>,
    /// Use the experiment of this run directory (needs --membership).
    ///
    /// The ROC curves are added to the report of the run.
    #[arg(long, value_name = "DIR", requires = "membership",
        conflicts_with_all = ["file", "overrides", "seed"])]
    run: Option<PathBuf>,
    /// Print one JSON document to standard output and nothing else.
    #[arg(long)]
    json: bool,
}

impl Args {
    fn size(&self, experiment: &Experiment, default_pairs: impl FnOnce() -> u32) -> Size {
        Size {
            seed: experiment.config().seed,
            pairs: self.runs.unwrap_or_else(default_pairs),
            canaries: self.canaries,
        }
    }

    const fn confidence(&self, delta: Delta) -> Confidence {
        Confidence {
            delta,
            error: self.error,
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut (impl Write + IsTerminal + Send)) -> Result<(), CliError> {
    if !(args.error > 0.0 && args.error < 1.0) {
        return Err(CliError::Usage(format!(
            "--error is {}: it must be above 0 and below 1",
            args.error
        )));
    }
    if args.fault != Fault::None && !Fault::ARE_COMPILED {
        let missing = MissingFeature {
            part: "planted faults",
            feature: "faults",
        };
        let name = args.fault.name();
        return Err(CliError::Usage(format!("`--fault {name}`: {missing}")));
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
    let matrices = Matrices::new(&experiment, args.fault)?;
    let bar = progress_bar(3, "direct tests, attack");
    let mut parts = Vec::new();
    let correlated = Correlated::new(&experiment, &federation, args.fault)?;
    let source = args.source.unwrap_or_default();
    let fits = source == SourceName::default()
        || correlated.is_none() && source.devices().fits(&experiment);
    if !fits {
        let reason = "`--source`: correlated noise is audited on simulated devices, and a fleet \
                      does not smooth gradients here: leave it out";
        return Err(CliError::Usage(reason.to_owned()));
    }
    if !experiment.questions().is_empty() && (correlated.is_some() || source == SourceName::Fleet) {
        let reason = "`[[questions]]`: answers are audited on simulated devices and ranks, with \
                      independent noise: leave the questions out";
        return Err(CliError::Usage(reason.to_owned()));
    }
    match (
        correlated,
        Target::new(&experiment, &federation, args.fault),
    ) {
        (Some(correlated), _) => {
            for view in correlated.views() {
                let seen = correlated.clone().seen_by(view);
                parts.push(Part::of_correlated(args, &experiment, &seen)?);
            }
        }
        (None, Ok(target)) => {
            let target = target.with_devices(source.devices());
            for view in View::for_experiment(&experiment) {
                let seen = target.clone().seen_by(view);
                parts.push(Part::of_updates(args, &experiment, &seen, &bar)?);
                parts.extend(Part::of_answers(args, &experiment, &seen)?);
            }
            if let (Some(part), None) = (parts.first_mut(), args.source) {
                let seen = target.seen_by(part.view);
                part.others = SourceTests::of_others(&seen, experiment.config().seed)?;
            }
        }
        // Devices may send matrices with noise beside updates without any.
        (None, Err(TargetError::NothingClaimed)) if matrices.is_some() => {}
        (None, Err(error)) => return Err(error.into()),
    }
    if let Some(matrices) = &matrices {
        parts.push(Part::of_matrices(args, &experiment, matrices)?);
    }
    bar.finish_and_clear();
    if args.json {
        writeln!(out, "{}", document(args, &parts))?;
    } else {
        for (index, part) in parts.iter().enumerate() {
            let blank = if index == 0 { "" } else { "\n" };
            write!(out, "{blank}{}", part.text(args.error, out.is_terminal()))?;
        }
    }
    verdict(&parts)
}

/// What was audited, with a claim of its own.
struct Part {
    claim: PrivacyStatement,
    /// The name of the question whose answers were audited, if they alone were.
    question: Option<String>,
    /// Whose view it is, where there are several.
    view: View,
    pairs: u32,
    attack: Attack,
    checks: Vec<Check>,
    /// Direct tests of other sources, in the first part.
    others: Vec<SourceTests>,
}

impl Part {
    fn of_updates(
        args: &Args,
        experiment: &Experiment,
        target: &Target<'_>,
        bar: &ProgressBar,
    ) -> Result<Self, CliError> {
        let privacy = experiment.privacy();
        // The claim of the run's accountant comes first.
        let claims = privacy.statements(u64::from(target.rounds()))?;
        let claim = claims.into_iter().next();
        let claim = claim.ok_or(TargetError::NothingClaimed)?;
        let mut checks = direct::audit(target, experiment.config().seed, direct::VALUES)?;
        bar.inc(1);
        let default = || Size::default_pairs(target, args.canaries);
        let size = args.size(experiment, default);
        let attack = attack::audit(target, size, args.confidence(privacy.delta))?;
        bar.inc(1);
        checks.extend(direct::curve(target, &attack, privacy.delta));
        Ok(Self {
            others: Vec::new(),
            claim,
            question: None,
            view: target.view(),
            pairs: size.pairs,
            attack,
            checks,
        })
    }

    /// Attacks on the answers to each question alone. The direct tests of answers are among those
    /// of the updates.
    fn of_answers(
        args: &Args,
        experiment: &Experiment,
        target: &Target<'_>,
    ) -> Result<Vec<Self>, CliError> {
        let mut parts = Vec::new();
        for asked in target.questions() {
            let Some(claim) = target.statement_of(asked)? else {
                continue;
            };
            let default = || Size::default_pairs_of_answers(target, asked, args.canaries);
            let size = args.size(experiment, default);
            let confidence = args.confidence(claim.delta);
            parts.push(Self {
                attack: attack::audit_answers(target, asked, size, confidence)?,
                checks: Vec::new(),
                others: Vec::new(),
                question: Some(asked.name.clone()),
                pairs: size.pairs,
                view: target.view(),
                claim,
            });
        }
        Ok(parts)
    }

    fn of_correlated(
        args: &Args,
        experiment: &Experiment,
        correlated: &Correlated<'_>,
    ) -> Result<Self, CliError> {
        let size = args.size(experiment, || correlated.default_pairs(args.canaries));
        let claim = correlated.claim.clone();
        Ok(Self {
            attack: correlated.attack(size, args.confidence(claim.delta))?,
            checks: correlated.checks(size.seed)?,
            others: Vec::new(),
            question: None,
            pairs: size.pairs,
            view: correlated.view(),
            claim,
        })
    }

    fn of_matrices(
        args: &Args,
        experiment: &Experiment,
        matrices: &Matrices,
    ) -> Result<Self, CliError> {
        let size = args.size(experiment, || matrices.default_pairs(args.canaries));
        let claim = matrices.claim.clone();
        Ok(Self {
            attack: matrices.attack(size, args.confidence(claim.delta)),
            checks: matrices.checks(size.seed, direct::VALUES)?,
            others: Vec::new(),
            question: None,
            pairs: size.pairs,
            view: View::default(),
            claim,
        })
    }

    /// Who looks, where there are several views.
    fn who(&self) -> Option<&'static str> {
        self.view.name(self.claim.trust)
    }

    fn claimed(&self) -> f64 {
        self.view.epsilon(&self.claim)
    }

    fn epsilon_low(&self) -> f64 {
        let bounds = self.attack.findings.iter().map(|f| f.epsilon_low);
        bounds.fold(0.0, f64::max)
    }

    fn is_refuted(&self) -> bool {
        self.epsilon_low() > self.claimed()
    }

    /// All direct tests, with those of other sources.
    fn all_checks(&self) -> impl Iterator<Item = &Check> {
        let others = self.others.iter().flat_map(|source| &source.checks);
        self.checks.iter().chain(others)
    }

    fn is_as_claimed(&self) -> bool {
        self.all_checks().all(|check| check.is_as_claimed)
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "claim": self.claim,
            "view": self.who(),
            "question": self.question,
            "claimed_epsilon": Some(self.claimed()).filter(|epsilon| epsilon.is_finite()),
            "runs": self.pairs,
            "canaries": self.attack.canaries,
            "epsilon_low": self.epsilon_low(),
            "epsilon_estimate": self.attack.epsilon_estimate,
            "is_refuted": self.is_refuted(),
            "findings": self.attack.findings,
            "is_as_claimed": self.is_as_claimed(),
            "checks": self.checks,
            "other_sources": self.others,
            "checks_error": ERROR * self.all_checks().count() as f64,
        })
    }

    fn text(&self, error: f64, is_terminal: bool) -> String {
        let who = self.who().map_or(String::new(), |who| {
            let claimed = upper(self.claimed(), 5);
            format!("View of the {who}, against whom epsilon = {claimed} is claimed:\n\n")
        });
        let asked = self.question.as_ref();
        let asked = asked.map_or(String::new(), |name| {
            format!("Answers to \"{name}\" alone:\n\n")
        });
        format!(
            "{who}{asked}{}\n{}\n\
             proved:    epsilon >= {} (wrong with probability at most {error})\n\
             estimated: epsilon = {} (from a fit, not a proof)\nclaimed:   {}\n",
            table(&self.attack.findings),
            self.verdicts(),
            lower(self.epsilon_low(), 4),
            significant(self.attack.epsilon_estimate, 3),
            wrapped(&self.claim.in_words(), is_terminal)
        )
    }

    /// The table of the direct tests, and a line for each of the other sources.
    fn verdicts(&self) -> String {
        if self.checks.is_empty() {
            return String::new();
        }
        let mut text = verdicts(&self.checks);
        for source in &self.others {
            text.push_str(&source.text());
        }
        text
    }
}

/// The JSON document: that of the updates if something is claimed about them, with that of the
/// matrices, if there are any, in `matrices`, and those of single questions in `answers`.
fn document(args: &Args, parts: &[Part]) -> serde_json::Value {
    let mut parts = parts.iter().map(Part::json);
    let mut document = parts.next().unwrap_or_default();
    document["fault"] = args.fault.name().into();
    document["error"] = args.error.into();
    let (answers, parts): (Vec<_>, Vec<_>) = parts.partition(|part| part["question"].is_string());
    if !answers.is_empty() {
        document["answers"] = answers.into();
    }
    let parts = parts.into_iter();
    let (views, others): (Vec<_>, Vec<_>) = parts.partition(|part| part["view"].is_string());
    if !views.is_empty() {
        document["other_views"] = views.into();
    }
    if let Some(matrices) = others.into_iter().next() {
        document["matrices"] = matrices;
    }
    document
}

/// The end of an audit: a failure if a bound refutes its claim, or a direct test does.
fn verdict(parts: &[Part]) -> Result<(), CliError> {
    let mut reasons = Vec::new();
    for part in parts {
        let bound = part.is_refuted().then(|| {
            let epsilon = lower(part.epsilon_low(), 4);
            match &part.question {
                None => format!("the epsilon of this mechanism is at least {epsilon}"),
                Some(name) => {
                    format!("the epsilon of the answers to \"{name}\" is at least {epsilon}")
                }
            }
        });
        let failed = part.all_checks().filter(|check| !check.is_as_claimed);
        let failed = failed.map(|check| format!("{} ({})", check.test, check.evidence));
        for reason in bound.into_iter().chain(failed) {
            // What concerns all views fails in each.
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    if reasons.is_empty() {
        return Ok(());
    }
    let reasons = reasons.join("; ");
    Err(CliError::Stopped(format!(
        "the claim is refuted: {reasons}"
    )))
}

fn verdicts(checks: &[Check]) -> String {
    let head = ["direct test", "as claimed", "evidence"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(checks.iter().map(|check| {
        let verdict = if check.is_as_claimed { "yes" } else { "NO" };
        vec![
            check.test.to_owned(),
            verdict.to_owned(),
            check.evidence.clone(),
        ]
    }));
    aligned(&rows)
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
