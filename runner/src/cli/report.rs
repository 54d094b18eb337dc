//! `smolfed report`: the report of a run, written anew, or a public page without private figures.

use std::io::Write;
use std::path::PathBuf;

use super::CliError;
use smolfed_engine::run::directory::RunDir;
use smolfed_report::report::{self, Audience};

/// Write the report of a run, report.html, into its directory.
///
/// `smolfed run` writes it as well. Use this command for a run that failed or is still in progress,
/// or to rewrite a report with a newer version of smolfed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed report runs/digits-1700000000
  smolfed report runs/digits-1700000000 --public --out digits.html
  xdg-open \"$(smolfed report runs/digits-1700000000 --open-path)\"")]
pub(super) struct Args {
    /// Run directory.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Write a page to share, with only the figures that epsilon covers.
    ///
    /// The page has neither figures on private samples nor the sizes of secret cohorts. Needs
    /// --out.
    #[arg(long, requires = "file")]
    public: bool,
    /// Write the page to FILE instead of report.html in the run directory.
    #[arg(long = "out", value_name = "FILE", id = "file")]
    file: Option<PathBuf>,
    /// Print only the full path of the report, for example to open it in a browser.
    #[arg(long)]
    open_path: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let dir = RunDir::open(&args.dir)?;
    let audience = match args.public {
        true => Audience::Public,
        false => Audience::Owner,
    };
    let path = match &args.file {
        None => report::write(&dir)?,
        Some(path) => {
            report::write_to(&dir, audience, path)?;
            path.clone()
        }
    };
    if args.open_path {
        writeln!(out, "{}", std::path::absolute(&path)?.display())?;
    } else {
        writeln!(out, "written to {}", path.display())?;
    }
    Ok(())
}
