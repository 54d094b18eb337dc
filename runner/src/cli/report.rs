//! `smolfed report`: the report of a run, written anew.

use std::io::Write;
use std::path::PathBuf;

use super::CliError;
use crate::report;
use crate::run_dir::RunDir;

/// Write the report of a run, report.html, into its directory.
///
/// `smolfed run` writes it as well; this command is for runs that broke down or are still going
/// on, and for reports by a newer smolfed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed report runs/digits-1700000000
  xdg-open \"$(smolfed report runs/digits-1700000000 --open-path)\"")]
pub(super) struct Args {
    /// The run directory.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Print the full path of the report and nothing else, to hand it to a browser.
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
