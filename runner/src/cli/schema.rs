//! `smolfed schema`: the JSON schema with which editors complete and check experiment files.

use std::io::Write;

use super::CliError;
use smolfed_report::sweep;

#[cfg(test)]
mod reference;

/// Print the JSON schema of experiment and sweep files, for completion and checks in editors.
///
/// Write it to a file, and name that file in the first line of an experiment:
/// `#:schema ./smolfed.schema.json`. Even Better TOML in VS Code, Taplo and others read this line.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  smolfed schema > smolfed.schema.json")]
pub(super) struct Args {}

/// Runs the command.
pub(super) fn run(out: &mut dyn Write) -> Result<(), CliError> {
    Ok(writeln!(out, "{:#}", sweep::schema())?)
}
