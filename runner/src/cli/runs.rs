//! `smolfed runs`: existing runs, listed, compared, and exported to other programs.

use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::CliError;
use super::text::aligned;
use smolfed_report::runs::compare::Comparison;
use smolfed_report::runs::export::{FORMATS, Format, format_named};
use smolfed_report::runs::list::Listing;
use smolfed_report::runs::{OutputFile, selection, write_new};

/// List the runs in a folder, compare some of them, or export them to other programs.
///
/// Without a subcommand, it prints one line per run directory at or below DIR, the most recently
/// written last. A sweep takes one line. A damaged run directory is listed with a description of
/// the damage. See docs/runs.md.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  smolfed runs
  smolfed runs experiments --json
  smolfed runs compare runs/a runs/b --html comparison.html
  smolfed runs export runs/* --format tensorboard --out logs"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    /// Folder to search, including its subfolders.
    ///
    /// Type ./compare or ./export for a folder of that name.
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Print one JSON document and nothing else.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    Compare(CompareArgs),
    Export(ExportArgs),
}

/// Compare the figures, privacy and configurations of runs.
///
/// Prints the figures after the last round, the best figures, the privacy cost of each run, and the
/// configuration keys that differ.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed runs compare runs/a runs/b
  smolfed runs compare runs/* --html comparison.html")]
struct CompareArgs {
    /// Run directories, two or more.
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    runs: Vec<PathBuf>,
    /// Write a page with the curves of all runs as well.
    ///
    /// An existing file is not overwritten.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON document and nothing else.
    #[arg(long)]
    json: bool,
}

/// Write the figures of runs in a format that other programs read.
///
/// A figure is named by the path of its keys in metrics.jsonl, joined by dots (in TensorBoard, by
/// slashes). Private figures have the prefix `simulation_only.`. Rounds count from 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed runs export runs/* --format csv --out runs.csv
  smolfed runs export runs/a runs/b --format tensorboard --out logs
  smolfed runs export runs/* --format mlflow --out mlruns")]
struct ExportArgs {
    /// Run directories.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Write the output in this format.
    #[arg(long, value_parser = formats())]
    format: &'static Format,
    /// Write to this file or folder.
    ///
    /// Existing files and folders are not overwritten.
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
}

/// The formats by their names.
fn formats() -> impl TypedValueParser<Value = &'static Format> {
    let names = FORMATS.iter();
    let names = names.map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(names)
        .try_map(|name| format_named(&name).ok_or_else(|| format!("{name} is not a format")))
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    match &args.command {
        None => list(args, out),
        Some(RunsCommand::Compare(args)) => compare(args, out),
        Some(RunsCommand::Export(args)) => export(args, out),
    }
}

fn list(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let listing = Listing::read(&args.dir)?;
    if args.json {
        return Ok(writeln!(out, "{}", listing.to_json())?);
    }
    if listing.is_empty() {
        let dir = args.dir.display();
        return Ok(writeln!(
            out,
            "there is no run in {dir} or below it: `smolfed run` writes one to runs/<name>-<time>"
        )?);
    }
    let (rows, notes) = listing.table();
    Ok(write!(out, "{}{}", aligned(&rows), below(&notes))?)
}

fn compare(args: &CompareArgs, out: &mut impl Write) -> Result<(), CliError> {
    let runs = selection::open(&args.runs)?;
    let comparison = Comparison::new(&runs);
    if let Some(path) = &args.html {
        write_new(path, &[OutputFile::whole(comparison.to_html()?)])?;
    }
    if args.json {
        return Ok(writeln!(out, "{}", comparison.to_json())?);
    }
    let (figures, notes) = comparison.figures();
    writeln!(out, "{}{}", aligned(&figures), below(&notes))?;
    match comparison.differences().as_slice() {
        [] | [_] => writeln!(out, "the configurations are the same")?,
        rows => write!(out, "{}", aligned(rows))?,
    }
    if let Some(path) = &args.html {
        writeln!(out, "\nwritten to {}", path.display())?;
    }
    Ok(())
}

fn export(args: &ExportArgs, out: &mut impl Write) -> Result<(), CliError> {
    let runs = selection::open(&args.runs)?;
    let files = (args.format.files)(&runs, &std::path::absolute(&args.out)?);
    write_new(&args.out, &files)?;
    Ok(writeln!(out, "written to {}", args.out.display())?)
}

/// Lines below a table.
fn below(notes: &[String]) -> String {
    let lines = notes.iter().map(|note| format!("{note}\n"));
    match notes.is_empty() {
        true => String::new(),
        false => format!("\n{}", lines.collect::<String>()),
    }
}
