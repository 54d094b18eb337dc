//! `smolfed ask`: questions to devices about their samples and an existing model, with its
//! arguments.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::run::{Ran, new_dir};
use super::serve::{FleetArgs, Setup, TrainingArgs};
use super::session::{in_pool, stop_on_ctrl_c, warn_of};
use super::{CliError, answers};
use smolfed_data::DataFolders;
use smolfed_engine::config::asking::AskedRun;
use smolfed_engine::config::{Config, Override};
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run::{self, Control};
use smolfed_release::statement::PrivacyStatement;

/// Ask devices about their samples and a model, and get noisy answers.
///
/// FILE has `[[questions]]`, and `[data]` and `[privacy]` as in an experiment. With --run, the data
/// and the model come from a run, and FILE has only the questions and their noise. FILE sets either
/// the cost of all answers together, `privacy.epsilon`, or their noise, `privacy.noise_multiplier`.
/// The command trains nothing.
///
/// By default, devices are simulated. With --keys, the command also asks the real devices of a
/// fleet. If the command is stopped, `smolfed run --resume` continues it, or with --keys `smolfed
/// serve --resume`.
#[derive(Debug, clap::Args)]
#[command(
    mut_args(of_a_fleet),
    after_help = "Examples:
  smolfed ask examples/ask-evaluate.toml
  smolfed ask examples/ask-evaluate.toml --model runs/digits/model.safetensors --json
  smolfed ask question.toml --run runs/digits --set privacy.epsilon=0.5
  smolfed ask question.toml --run runs/digits --keys fleet/keys.toml --listen tcp:0.0.0.0:7000"
)]
pub(super) struct Args {
    /// Questions, a TOML file.
    file: PathBuf,
    /// Ask about the data and the model of this run.
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// Ask about this model, the same as --set model.init=FILE.
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    model: Option<PathBuf>,
    /// Set a key of the file, for example privacy.epsilon=0.5 (repeatable).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<Override>,
    /// Write the run to this directory [default: runs/<name>-<time>].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Use N threads [default: one per core].
    ///
    /// The result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<std::num::NonZeroUsize>,
    /// Print one JSON document to standard output and nothing else.
    #[arg(long)]
    json: bool,
    #[command(flatten, next_help_heading = "Options for real devices")]
    fleet: FleetArgs,
}

/// The names of the arguments that ask simulated devices, too.
const OF_ALL_DEVICES: [&str; 7] = [
    "file",
    "run",
    "model",
    "overrides",
    "out",
    "threads",
    "json",
];

/// Requires keys for all options of a fleet.
fn of_a_fleet(arg: clap::Arg) -> clap::Arg {
    let id = arg.get_id().as_str();
    match id == "keys" || id == "color" || OF_ALL_DEVICES.contains(&id) {
        true => arg,
        false => arg.requires("keys"),
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let folders = DataFolders::of_experiment(Some(&args.file));
    if args.fleet.keys.is_none() {
        return in_pool(args.threads, || ask(args, &folders))?;
    }
    let read = |given: &[Override]| config(args, given);
    let setup = Setup::new(&args.fleet, &TrainingArgs::default(), &read, folders)?;
    let watch = args.fleet.operation.watch()?;
    in_pool(args.threads, || {
        let served = setup.train(args.out.as_deref(), args.json, watch)?;
        served.conclude(|ran, result| answers::show(ran, result, args.json))
    })?
}

/// Asks simulated devices.
fn ask(args: &Args, folders: &DataFolders) -> Result<(), CliError> {
    let started = Instant::now();
    let config = config(args, &[])?;
    let (experiment, federation) = run::prepare(config, folders)?;
    warn_of(&experiment, &federation);
    let dir = new_dir(args.out.as_deref(), experiment.config())?;
    let control = Control {
        stop: stop_on_ctrl_c()?,
        checkpoint_every: Duration::MAX,
        on_round: &mut |_| {},
    };
    let result = run::execute(&experiment, &federation, Some(&dir), control);
    let ran = Ran {
        experiment: &experiment,
        federation: &federation,
        dir: &dir,
        started,
    };
    ran.conclude(result, "run", |result| {
        answers::show(&ran, result, args.json)
    })
}

/// The configuration, with the run or the model of the command line.
fn config(args: &Args, given: &[Override]) -> Result<Config, CliError> {
    let mut overrides = [&args.overrides, given].concat();
    if let Some(model) = &args.model {
        let path = absolute(model)?.display().to_string();
        overrides.push(Override::new("model.init", path.into()));
    }
    let Some(run) = &args.run else {
        return Ok(Config::asking(&args.file, None, &overrides)?);
    };
    let dir = RunDir::open(run)?;
    let (config, model) = (
        RunDir::config_path(dir.path()),
        absolute(&dir.model_path())?,
    );
    // Neither without noise, nor where something is not covered.
    let is_proved = |statement: &PrivacyStatement| {
        statement.is_upper_bound() || statement.is_bound_of_schedule()
    };
    let run = AskedRun {
        config: &config,
        model: &model,
        has_statement: dir.privacy()?.iter().any(is_proved),
    };
    Ok(Config::asking(&args.file, Some(run), &overrides)?)
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|error| {
        let path = path.display();
        CliError::Usage(format!("{path}: {error}"))
    })
}
