//! `smolfed ask`: questions about a model that is there.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::CliError;
use super::run::new_dir;
use super::session::{in_pool, stop_on_ctrl_c, warn_of};
use super::text::{aligned, wrapped};
use smolfed_data::DataFolders;
use smolfed_engine::config::asking::AskedRun;
use smolfed_engine::config::{Config, Override};
use smolfed_engine::experiment::Experiment;
use smolfed_engine::question::{Answer, Estimate};
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run::{self, Control};
use smolfed_release::number::significant;
use smolfed_release::statement::PrivacyStatement;
use smolfed_report::report;

/// Ask devices about their samples and a model, and get noisy answers.
///
/// FILE has `[[questions]]`, and `[data]` and `[privacy]` as in an experiment. With --run, the data
/// and the model come from a run, and FILE has only the questions and their noise. FILE sets either
/// the cost of all answers together, `privacy.epsilon`, or their noise, `privacy.noise_multiplier`.
/// The command trains nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed ask examples/ask-evaluate.toml
  smolfed ask examples/ask-evaluate.toml --model runs/digits/model.safetensors --json
  smolfed ask question.toml --run runs/digits --set privacy.epsilon=0.5")]
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
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    in_pool(args.threads, || ask(args))?
}

fn ask(args: &Args) -> Result<(), CliError> {
    let started = Instant::now();
    let config = config(args)?;
    let folders = DataFolders::of_experiment(Some(&args.file));
    let (experiment, federation) = run::prepare(config, &folders)?;
    warn_of(&experiment, &federation);
    let dir = new_dir(args.out.as_deref(), experiment.config())?;
    let control = Control {
        stop: stop_on_ctrl_c()?,
        checkpoint_every: Duration::MAX,
        on_round: &mut |_| {},
    };
    let result = run::execute(&experiment, &federation, Some(&dir), control)?;
    report::write(&dir)?;
    let answers = result.records.iter().flat_map(|record| &record.answers);
    let asked = Asked {
        experiment: &experiment,
        answers: answers.cloned().collect(),
        statements: &result.statements,
        out: dir.path(),
        seconds: started.elapsed().as_secs_f64(),
    };
    let mut out = anstream::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", asked.to_json())?,
        false => write!(out, "{}", asked.to_text(std::io::stdout().is_terminal()))?,
    }
    Ok(())
}

/// The configuration, with the run or the model of the command line.
fn config(args: &Args) -> Result<Config, CliError> {
    let mut overrides = args.overrides.clone();
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

/// What was asked, to print.
struct Asked<'a> {
    experiment: &'a Experiment,
    answers: Vec<Answer>,
    statements: &'a [PrivacyStatement],
    out: &'a Path,
    seconds: f64,
}

impl Asked<'_> {
    /// The first estimate of the first question by itself, then all answers.
    fn to_json(&self) -> Value {
        let first = self.answers.first();
        let estimate = first.and_then(|answer| answer.estimates.first());
        let statement = self.statements.first();
        let epsilon = statement.map(|statement| statement.epsilon);
        json!({
            "question": first.map(|answer| &answer.name),
            "estimate": estimate.and_then(|estimate| estimate.value),
            "interval": estimate.map(|estimate| estimate.interval),
            "confidence": first.map(|answer| answer.confidence),
            "epsilon": epsilon.filter(|epsilon| epsilon.is_finite()),
            "delta": statement.map(|statement| statement.delta),
            "answers": self.answers,
            "devices": self.experiment.sampling().device_count(),
            "privacy": self.statements,
            "seconds": self.seconds,
            "out": self.out,
        })
    }

    fn to_text(&self, is_terminal: bool) -> String {
        let mut rows = vec![["question", "figure", "estimate", "interval"].map(str::to_owned)];
        for answer in &self.answers {
            let percent = significant(100.0 * answer.confidence, 6);
            let all = answer.estimates.iter().chain([&answer.answered]);
            rows.extend(all.map(|estimate| {
                let interval = format!("{} ({percent} %)", interval(estimate));
                let value = estimate.value.map_or("unknown".to_owned(), number);
                [answer.name.clone(), estimate.name.clone(), value, interval]
            }));
        }
        let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
        let statement = self.statements.first().map(PrivacyStatement::in_words);
        let statement = wrapped(&statement.unwrap_or_default(), is_terminal);
        format!(
            "{}\n{statement}\n\nwritten to {}\n",
            aligned(&rows),
            self.out.display()
        )
    }
}

fn interval(estimate: &Estimate) -> String {
    let [low, high] = estimate.interval;
    match (low.map(number), high.map(number)) {
        (Some(low), Some(high)) => format!("from {low} to {high}"),
        (Some(low), None) => format!("from {low} on"),
        (None, Some(high)) => format!("up to {high}"),
        (None, None) => "unknown".to_owned(),
    }
}

fn number(value: f64) -> String {
    significant(value, 4)
}
