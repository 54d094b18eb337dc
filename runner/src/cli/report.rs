//! `smolfed report`: the report of a run, written anew.

use std::io::Write;
use std::path::PathBuf;

use super::CliError;
use smolfed_engine::run::directory::RunDir;
use smolfed_report::report;

/// Write the report of a run, report.html, into its directory.
///
/// `smolfed run` writes it as well; use this command for a run that failed or is still in progress,
/// or to rewrite a report with a newer version of smolfed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed report runs/digits-1700000000
  xdg-open \"$(smolfed report runs/digits-1700000000 --open-path)\"")]
pub(super) struct Args {
    /// The run directory.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Print the full path of the report and nothing else, for example to open it in a browser.
    #[arg(long)]
    open_path: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let path = report::write(&RunDir::open(&args.dir)?)?;
    if args.open_path {
        writeln!(out, "{}", std::path::absolute(&path)?.display())?;
    } else {
        writeln!(out, "written to {}", path.display())?;
    }
    Ok(())
}
