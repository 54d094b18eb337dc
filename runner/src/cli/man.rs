//! `smolfed man`: the manual pages.

use std::path::PathBuf;

use super::CliError;

/// Write a manual page for each command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  smolfed man ~/.local/share/man/man1 && man smolfed-run")]
pub(super) struct Args {
    /// Folder for the pages, created if it does not exist.
    folder: PathBuf,
}

/// Runs the command. `commands` describes the whole command line.
pub(super) fn run(args: &Args, commands: clap::Command) -> Result<(), CliError> {
    let write = || {
        std::fs::create_dir_all(&args.folder)?;
        clap_mangen::generate_to(commands, &args.folder)
    };
    let folder = args.folder.display();
    write().map_err(|error| CliError::Usage(format!("cannot write to {folder}: {error}")))
}
