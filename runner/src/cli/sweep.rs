//! `smolfed sweep`, its arguments and its progress: a grid of experiments from one file, to one
//! table.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar};

use super::CliError;
use super::session::{agreed, connect, progress_bar, stop_on_ctrl_c};
use super::text::quoted;
use smolfed_data::DataFolders;
use smolfed_engine::config::Override;
use smolfed_engine::ranks::Communicator;
use smolfed_engine::run::directory::RunDir;
use smolfed_report::sweep::choice::choose;
use smolfed_report::sweep::{self, Document, Results, RunOutcome, Summaries, Sweep, Watch};

/// Time between the steps of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// Run a grid of experiments and write one table.
///
/// FILE is an experiment with an additional table `[sweep]`. Every combination of its variants,
/// grid values and seeds is one run. With a target privacy.epsilon, all methods are compared at
/// equal epsilon. Each result is saved when its run ends. Repeat the command to continue a stopped
/// sweep, or to add values or seeds. The output is results.jsonl, table.md, table.csv and plot.svg.
#[derive(Debug, clap::Args)]
#[command(after_help = r#"Example:
  smolfed sweep sweep.toml --seeds 5

In sweep.toml, after the keys of an experiment (see docs/experiments.md):
  [sweep]
  seeds = 10                        # seed, seed + 1, ..; or a list
  metric = "test_accuracy"          # or test_rmse, validation_accuracy, ..
  rows = "server.smoothing_factor"  # down the table; the rest goes across
  [sweep.grid]
  "privacy.epsilon" = [6, 7, 8, 9]
  "server.smoothing_factor" = [0, 1, 2, 3]

For an ablation with one change per row:
  [sweep]
  cumulative = true                 # each variant keeps the settings of those above it
  [[sweep.variants]]
  label = "as in the file"
  [[sweep.variants]]
  label = "clip once"
  set = { "train.clip" = "final" }

For a choice of settings that epsilon covers, with validation samples on each device:
  [privacy.selection]
  mean = 8                          # trials on average; their number stays secret
  [sweep]
  choose = "private"                # the chosen run alone is written, to OUT/chosen
  [sweep.private.grid]
  "privacy.clip_norm" = [0.1, 0.3, 1]"#)]
pub(super) struct Args {
    /// Sweep, a TOML file.
    file: PathBuf,
    /// Set a key of the file, for example rounds=10 or sweep.metric=test_loss (repeatable).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Write results and tables to this folder [default: sweeps/<name>].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Use N seeds, instead of the number in the file.
    #[arg(long, value_name = "N")]
    seeds: Option<u32>,
    /// Use N threads [default: one per core].
    ///
    /// The results do not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Start over: delete the existing results.
    #[arg(long)]
    fresh: bool,
    /// Print one JSON document to standard output and nothing else.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let ranks = &*connect()?;
    let prepared = Prepared::new(args, ranks);
    let Some(prepared) = agreed(ranks, prepared, |prepared| Ok(prepared.name()))? else {
        return Ok(());
    };
    match ranks.rank() {
        0 => lead(args, prepared, ranks),
        _ => {
            // Rank 0 decides when to stop, and says what went wrong.
            stop_on_ctrl_c()?;
            let _ = sweep::help(&prepared.sweep, &prepared.folders, ranks, prepared.threads);
            Ok(())
        }
    }
}

/// The state of every rank before the sweep begins. Nothing is written yet.
struct Prepared {
    sweep: Sweep,
    /// What is there already: rank 0 alone adds to it.
    results: Results,
    folders: DataFolders,
    threads: NonZeroUsize,
}

impl Prepared {
    fn new(args: &Args, ranks: &dyn Communicator) -> Result<Self, CliError> {
        let overrides = args.overrides.iter().map(|text| text.parse());
        let overrides = overrides.collect::<Result<Vec<Override>, _>>()?;
        let sweep = Sweep::load(&args.file, &overrides, args.seeds)?;
        if sweep.candidates.is_some() && ranks.count() > 1 {
            return Err(CliError::Usage(format!(
                "a private selection runs in one process, which keeps its secrets, not in {} ranks",
                ranks.count()
            )));
        }
        let out = match &args.out {
            Some(out) => out.clone(),
            None => Path::new("sweeps").join(&sweep.name),
        };
        if out.is_file() {
            return Err(CliError::Usage(format!(
                "`--out {}` is a file: choose a folder for the sweep",
                out.display()
            )));
        }
        if RunDir::config_path(&out).is_file() {
            return Err(CliError::Usage(format!(
                "`--out {}` is the directory of a run: choose another one for the sweep",
                out.display()
            )));
        }
        let results = if args.fresh || ranks.rank() > 0 {
            Results::fresh(&out)
        } else {
            Results::open(&out, &sweep.fingerprint).map_err(sweep::SweepError::from)?
        };
        let threads = match args.threads {
            Some(threads) => threads,
            None => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        };
        Ok(Self {
            sweep,
            results,
            folders: DataFolders::of_experiment(Some(&args.file)),
            threads,
        })
    }

    /// What the ranks of a sweep must have in common.
    fn name(&self) -> String {
        let (sweep, version) = (&self.sweep, env!("CARGO_PKG_VERSION"));
        let cells = sweep.cells.iter().map(|cell| cell.to_json());
        let cells: Vec<_> = cells.collect();
        format!(
            "{}-{version} {cells:?} {:?}",
            sweep.fingerprint, sweep.seeds
        )
    }
}

fn lead(args: &Args, prepared: Prepared, ranks: &dyn Communicator) -> Result<(), CliError> {
    let Prepared {
        sweep,
        mut results,
        folders,
        threads,
    } = prepared;
    let out = results.dir().to_path_buf();
    let outcome = run_missing(&sweep, &mut results, &folders, ranks, threads)?;
    let is_private = sweep.candidates.is_some();
    if is_private {
        results.sort().map_err(sweep::SweepError::from)?;
    }
    if outcome.left > 0 {
        return Err(CliError::Stopped(format!(
            "stopped with {} runs left; results are saved in {}: repeat the command to continue",
            outcome.left,
            out.display()
        )));
    }
    let summaries = Summaries::new(&sweep, &results, &outcome.refusals)?;
    let command = command(args);
    let chosen = choose(&sweep, &results, &summaries)?;
    let (sweep, summaries, choice) = match &chosen {
        None => (&sweep, &summaries, None),
        Some(reduced) => (&reduced.sweep, &reduced.summaries, Some(&reduced.choice)),
    };
    let document = Document {
        sweep,
        summaries,
        choice,
        command: &command,
    };
    document.write(&out).map_err(sweep::SweepError::from)?;
    if is_private {
        sweep::times::make_equal(&out).map_err(sweep::SweepError::from)?;
    }
    let mut stdout = std::io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", document.to_json(&out))?;
    } else {
        write!(
            stdout,
            "{}\nwritten to {}\n",
            document.to_text(),
            out.display()
        )?;
    }
    Ok(())
}

fn run_missing(
    sweep: &Sweep,
    results: &mut Results,
    folders: &DataFolders,
    ranks: &dyn Communicator,
    threads: NonZeroUsize,
) -> Result<RunOutcome, CliError> {
    let stop = stop_on_ctrl_c()?;
    let all = sweep.cells.len() * sweep.seeds.len();
    let bar = match sweep.candidates {
        None => progress_bar(all as u64, "run"),
        // Neither a number of trials nor a time.
        Some(_) => ProgressBar::new_spinner().with_message("selecting among private trials"),
    };
    let is_counted = sweep.candidates.is_none();
    let watch = Watch {
        stop,
        on_start: &|missing| {
            if !is_counted {
                bar.enable_steady_tick(TICK);
                return;
            }
            let found = (all - missing) as u64;
            bar.set_position(found);
            bar.reset_eta();
            if found > 0 {
                bar.println(format!("{found} of {all} runs are already done"));
            }
        },
        on_run: &|| {
            if is_counted {
                advance(&bar);
            }
        },
    };
    let outcome = sweep::execute(sweep, results, folders, ranks, threads, &watch);
    bar.finish_and_clear();
    Ok(outcome?)
}

fn advance(bar: &ProgressBar) {
    bar.inc(1);
    bar.set_message(format!("{} left", HumanDuration(bar.eta())));
}

/// The command as it was given, without what changes no figure.
fn command(args: &Args) -> String {
    let mut words = vec![
        "smolfed sweep".to_owned(),
        quoted(&args.file.display().to_string()),
    ];
    words.extend(
        args.overrides
            .iter()
            .map(|text| format!("--set {}", quoted(text))),
    );
    words.extend(args.seeds.map(|seeds| format!("--seeds {seeds}")));
    let out = args.out.as_ref();
    words.extend(out.map(|out| format!("--out {}", quoted(&out.display().to_string()))));
    words.join(" ")
}
