//! `smolfed run` and its arguments for overrides, output, seed and threads, resuming and replay:
//! one experiment in a simulation.

mod preview;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::CliError;
use super::session::{Warned, agreed, connect, pool, progress_bar, stop_on_ctrl_c, warn_of};
use super::style::{fail, warn};
use super::summary::Summary;
use crate::divergence;
use preview::Preview;
use smolfed_data::{DataFolders, Federation};
use smolfed_engine::config::{Config, Override};
use smolfed_engine::experiment::Experiment;
use smolfed_engine::ranks::Communicator;
use smolfed_engine::round::RoundRecord;
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run::{self, Control, Ending, Run, RunError, RunResult};
use smolfed_engine::run_files::error::RunDirError;
use smolfed_engine::source::participation::{self, Participation};
use smolfed_engine::source::ranks::{Ranks, follow};
use smolfed_engine::source::replay::Replayed;
use smolfed_engine::source::{Simulated, Source};
use smolfed_fleet::monitor::drift::DriftWatch;
use smolfed_release::origin::Origin;
use smolfed_report::report;

/// Train one experiment and write its run directory.
///
/// Without FILE, the command runs the built-in experiment: DP-Fed-LS on the built-in digits.
/// `--set` sets any key of the file by its dotted name.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed run
  smolfed run experiment.toml --set privacy.epsilon=6 --set server.smoothing_factor=2
  smolfed run experiment.toml --dry-run
  smolfed run --resume runs/digits-1700000000
  smolfed run fleet-run/config.toml --participation fleet-run/participation.jsonl
  mpirun -n 4 smolfed run experiment.toml     # with the feature mpi: docs/scale.md")]
pub(super) struct Args {
    /// Experiment, a TOML file.
    file: Option<PathBuf>,
    /// Set a key of the experiment, for example privacy.epsilon=6 (repeatable).
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    overrides: Vec<Override>,
    /// Write the run to this directory [default: runs/<name>-<time>].
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Set the seed, the same as --set seed=N.
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "resume",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i64).range(0..)
    )]
    seed: Option<i64>,
    /// Train devices in fast arithmetic, the same as --set simulation.arithmetic=fast.
    ///
    /// The results are then not bit-identical to those of boards.
    #[arg(long, conflicts_with = "resume")]
    fast: bool,
    /// Use N threads [default: one per core].
    ///
    /// The result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<std::num::NonZeroUsize>,
    /// Print one JSON document to standard output and nothing else.
    #[arg(long)]
    json: bool,
    /// Print the whole privacy statement, and print the metrics of each round to standard error.
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,
    /// Print only warnings and errors.
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print the complete experiment with its epsilon and cost, without training or writing
    /// anything.
    ///
    /// The output also gives the numbers of devices and parameters, an estimate of the time, and
    /// the cost of a round to one device: bytes, packets, airtime over LoRaWAN, and instructions,
    /// time and battery charge on named boards.
    #[arg(long, conflicts_with_all = ["resume", "out", "participation"])]
    dry_run: bool,
    /// Continue a stopped run from its last checkpoint.
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    resume: Option<PathBuf>,
    /// Replay the cohorts and dropouts in this participation.jsonl, written by `smolfed serve`.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    participation: Option<PathBuf>,
    /// Write a checkpoint at this interval, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    checkpoint_every: u64,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let ranks = &*connect()?;
    let prepared = pool(args.threads).and_then(|pool| {
        let prepared = pool.install(|| Prepared::new(args, ranks))?;
        Ok((pool, prepared))
    });
    let name = |(_, prepared): &(_, Prepared)| prepared.name();
    let Some((pool, prepared)) = agreed(ranks, prepared, name)? else {
        return Ok(());
    };
    pool.install(|| match ranks.rank() {
        _ if args.dry_run => prepared.preview(args, ranks),
        0 => train(args, &prepared, ranks),
        _ => help(&prepared, ranks),
    })
}

/// The state of every rank before the run begins. Nothing is written yet.
struct Prepared {
    started: Instant,
    experiment: Experiment,
    federation: Federation,
    record: Option<Vec<Participation>>,
}

impl Prepared {
    fn new(args: &Args, ranks: &dyn Communicator) -> Result<Self, CliError> {
        let started = Instant::now();
        let (config, folders) = match &args.resume {
            Some(dir) => {
                let config = RunDir::open(dir)?.config()?;
                let path = RunDir::config_path(dir);
                (config, DataFolders::of_experiment(Some(&path)))
            }
            None => {
                let mut overrides = args.overrides.clone();
                overrides.extend(args.seed.map(|seed| Override::new("seed", seed.into())));
                let fast = || Override::new("simulation.arithmetic", "fast".into());
                overrides.extend(args.fast.then(fast));
                let config = Config::load(args.file.as_deref(), &overrides)?;
                (config, DataFolders::of_experiment(args.file.as_deref()))
            }
        };
        let record = record(args)?;
        if record.is_some() && ranks.count() > 1 {
            return Err(CliError::Usage(format!(
                "a recorded participation is repeated by one process, not by {} ranks",
                ranks.count()
            )));
        }
        let origin = record
            .as_ref()
            .map_or(Origin::Simulation, |rounds| Origin::Replay {
                id: participation::id(rounds),
            });
        let (experiment, federation) = run::prepare_from(config, &folders, origin)?;
        Ok(Self {
            started,
            experiment,
            federation,
            record,
        })
    }

    /// Prints what the run would be.
    fn preview(&self, args: &Args, ranks: &dyn Communicator) -> Result<(), CliError> {
        if ranks.rank() > 0 {
            return Ok(());
        }
        warn_of(&self.experiment, &self.federation);
        let preview = Preview::new(&self.experiment, &self.federation)?;
        preview.write(args.json, &mut std::io::stdout().lock())
    }

    /// What the ranks of a run must have in common.
    fn name(&self) -> Result<String, RunDirError> {
        let experiment = &self.experiment;
        let name = run::name(experiment.config(), &self.federation, experiment.origin())?;
        // Noise follows from a ledger as well, which another run may have changed meanwhile.
        let made = format!("{:?} {:?}", experiment.release(), experiment.training());
        let made = crc32fast::hash(made.as_bytes());
        Ok(format!(
            "{}-{made:08x}",
            run::state_name(&name, &self.federation, false)
        ))
    }

    /// Where the devices are.
    fn source<'a>(&'a self, ranks: &'a dyn Communicator) -> Result<Box<dyn Source + 'a>, CliError> {
        let federation = &self.federation;
        Ok(match &self.record {
            Some(rounds) => {
                let replayed = Replayed::new(federation, rounds.clone(), &self.experiment);
                let refused = |reason| CliError::Usage(format!("the participation: {reason}"));
                Box::new(replayed.map_err(refused)?)
            }
            None if ranks.count() > 1 => Box::new(Ranks::lead(federation, ranks)),
            None => Box::new(Simulated(federation)),
        })
    }
}

/// Trains devices for rank 0, which prints and writes.
fn help(prepared: &Prepared, ranks: &dyn Communicator) -> Result<(), CliError> {
    // Rank 0 decides when to stop.
    stop_on_ctrl_c()?;
    if let Err(error) = follow(&prepared.experiment, &prepared.federation, ranks) {
        fail(error);
        // Without leaving MPI in order, which would wait for the others: the launcher ends them.
        std::process::exit(1);
    }
    Ok(())
}

/// The directory of a new run. Files of a failed run there are kept under another name.
pub(super) fn new_dir(out: Option<&Path>, config: &Config) -> Result<RunDir, RunDirError> {
    if let Some(out) = out
        && let Some(kept) = RunDir::set_aside(out)?
    {
        warn(format!(
            "{} held a run that ended before its first checkpoint; it is {} now",
            out.display(),
            kept.display()
        ));
    }
    RunDir::create_for(out, config)
}

fn train(args: &Args, prepared: &Prepared, ranks: &dyn Communicator) -> Result<(), CliError> {
    let Prepared {
        experiment,
        federation,
        started,
        ..
    } = prepared;
    let root = experiment.root().map_err(RunError::from)?;
    // The first, as the others wait for it.
    let mut source = prepared.source(ranks)?;
    warn_of(experiment, federation);
    let dir = match &args.resume {
        Some(dir) => RunDir::resume(dir)?,
        None => new_dir(args.out.as_deref(), experiment.config())?,
    };
    if let Some(path) = &args.participation {
        dir.copy_participation(path)?;
    }
    let bar = match args.quiet {
        true => ProgressBar::hidden(),
        false => progress_bar(u64::from(experiment.config().rounds), "round"),
    };
    let mut warned = Warned::default();
    let before = match &args.resume {
        Some(_) => dir.records()?,
        None => Vec::new(),
    };
    let mut drifts = DriftWatch::after(&before);
    let control = Control {
        stop: stop_on_ctrl_c()?,
        checkpoint_every: Duration::from_secs(args.checkpoint_every),
        on_round: &mut |record| {
            let line = progress_line(record);
            if args.verbose {
                bar.suspend(|| eprintln!("round {}: {line}", record.round + 1));
            }
            bar.suspend(|| {
                warned.see(experiment, record);
                let drifts = drifts.see(record).into_iter();
                drifts.filter(|drift| drift.is_new).for_each(warn);
            });
            bar.set_message(line);
            bar.set_position(u64::from(record.round) + 1);
        },
    };
    let run = Run {
        experiment,
        federation,
        dir: Some(&dir),
        root,
        helpers: None,
    };
    let result = run.execute(&mut *source, control);
    // The other ranks are done before the report is written.
    drop(source);
    bar.finish_and_clear();
    if let Ok(result) = &result {
        let diverged = divergence::of_simulation(experiment, federation, &result.records);
        diverged.into_iter().for_each(warn);
    }
    let print = Print::of(args.quiet, args.json, args.verbose);
    let ran = Ran {
        experiment,
        federation,
        dir: &dir,
        started: *started,
    };
    ran.conclude(result, "run", |result| ran.summarise(result, print))
}

/// The participation to repeat: of the command line, or of the run that is resumed.
fn record(args: &Args) -> Result<Option<Vec<Participation>>, CliError> {
    let path = match (&args.participation, &args.resume) {
        (Some(path), _) if path.is_file() => path.clone(),
        (Some(path), _) => {
            let path = path.display();
            return Err(CliError::Usage(format!(
                "`--participation {path}`: there is no such file; `smolfed serve` writes one"
            )));
        }
        (None, Some(dir)) => {
            let dir = RunDir::open(dir)?;
            if dir.is_of_fleet() {
                let path = dir.path().display();
                return Err(CliError::Usage(format!(
                    "{path} is a run with real devices: smolfed serve --resume {path}"
                )));
            }
            let path = dir.participation_path();
            if !path.is_file() {
                return Ok(None);
            }
            path
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(participation::read(&path)?))
}

/// How the summary of a run is printed.
#[derive(Clone, Copy)]
pub(super) enum Print {
    Nothing,
    Json,
    Text { is_verbose: bool },
}

impl Print {
    pub(super) const fn of(is_quiet: bool, is_json: bool, is_verbose: bool) -> Self {
        match (is_quiet, is_json) {
            (true, _) => Self::Nothing,
            (false, true) => Self::Json,
            (false, false) => Self::Text { is_verbose },
        }
    }
}

/// A run that has ended.
pub(super) struct Ran<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) federation: &'a Federation,
    pub(super) dir: &'a RunDir,
    pub(super) started: Instant,
}

impl Ran<'_> {
    /// Writes the report and shows the results. `command` resumes the run if it was stopped.
    pub(super) fn conclude(
        &self,
        result: Result<RunResult, RunError>,
        command: &str,
        show: impl FnOnce(&RunResult) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let path = self.dir.path();
        let result = result.map_err(|error| explain(error, path, command))?;
        report::write(self.dir)?;
        show(&result)?;
        match result.ending {
            Ending::Done => Ok(()),
            Ending::Interrupted => Err(CliError::Stopped(format!(
                "stopped after {} of {} rounds; resume with: smolfed {command} --resume {}",
                result.records.len(),
                self.experiment.config().rounds,
                path.display()
            ))),
            Ending::OverBudget(error) => Err(CliError::Stopped(error.to_string())),
            Ending::GaveUp(error) => Err(explain(*error, path, command)),
        }
    }

    /// Prints the summary, after its warnings.
    pub(super) fn summarise(&self, result: &RunResult, print: Print) -> Result<(), CliError> {
        let seconds = self.started.elapsed();
        let summary = Summary::new(self.experiment, result, self.dir.path(), seconds);
        for warning in [repetition(&result.repeated_rounds), summary.warning()] {
            warning.into_iter().for_each(warn);
        }
        let mut out = anstream::stdout().lock();
        let is_terminal = std::io::stdout().is_terminal();
        match print {
            Print::Nothing => {}
            Print::Json => writeln!(out, "{}", summary.to_json())?,
            Print::Text { is_verbose } => {
                write!(out, "{}", summary.to_text(is_terminal, is_verbose))?;
            }
        }
        Ok(())
    }
}

/// Returns a warning about rounds that were charged again.
fn repetition(repeated: &[u32]) -> Option<String> {
    let (first, last) = (repeated.first()?, repeated.last()?);
    let rounds = match repeated.len() {
        1 => format!("round {first}"),
        count => format!("{count} rounds, from round {first} to round {last},"),
    };
    Some(format!(
        "{rounds} had been charged before, and the ledger does not show that the releases were the \
         same (another build of smolfed charged them, or one that recorded no digests): they are \
         charged again, count twice in epsilon, and are without a proof, since both may have the \
         same noise"
    ))
}

/// A run that failed can be resumed if it has a checkpoint.
fn explain(error: RunError, dir: &Path, command: &str) -> CliError {
    if dir.join("checkpoint").is_dir() && !error.is_bad_input() {
        let dir = dir.display();
        CliError::Stopped(format!(
            "{error}; resume with: smolfed {command} --resume {dir}"
        ))
    } else {
        error.into()
    }
}

fn progress_line(record: &RoundRecord) -> String {
    let is_private = record.test.is_none() || record.test_is_simulation_only;
    let note = if is_private { " (simulation only)" } else { "" };
    let quality = record.test.or(record.simulation_only.validation);
    let quality = quality.map_or(String::new(), |found| format!("{found}{note}, "));
    let leader = record
        .experts
        .iter()
        .max_by(|a, b| a.weight.total_cmp(&b.weight));
    let leader = leader.map_or(String::new(), |leader| {
        format!(
            ", filter \"{}\" {:.0} %",
            leader.expert,
            100.0 * leader.weight
        )
    });
    match record.epsilon {
        Some(epsilon) => format!("{quality}epsilon {epsilon:.3}{leader}"),
        None => format!("{quality}no privacy{leader}"),
    }
}
