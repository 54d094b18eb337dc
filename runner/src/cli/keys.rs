//! `smolfed keys`: lists, withdraws, adds and exchanges the keys of a fleet, and readmits devices
//! in quarantine.

mod access;
mod add;
mod encrypt;
mod list;
mod readmit;
mod revoke;
mod rotate;

use std::io::Write;

use clap::Subcommand;

use super::CliError;

/// List, revoke, rotate or encrypt the keys of a fleet, even while a coordinator runs, or add keys
/// between runs.
///
/// Each change replaces the file atomically, and concurrent changes are kept. A running coordinator
/// gets SIGHUP and applies the change. See docs/keys.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed keys list --keys fleet/keys.toml
  smolfed keys revoke 17 --keys fleet/keys.toml --reason \"stolen from the site\"
  smolfed keys rotate 17 experiment.toml --keys fleet/keys.toml --out device-17")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Args),
    Revoke(revoke::Args),
    Readmit(readmit::Args),
    Add(add::Args),
    Rotate(rotate::Args),
    Encrypt(encrypt::Args),
    Decrypt(encrypt::DecryptArgs),
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    match &args.command {
        Command::List(args) => list::run(args, out),
        Command::Revoke(args) => revoke::run(args, out),
        Command::Readmit(args) => readmit::run(args, out),
        Command::Add(args) => add::run(args, out),
        Command::Rotate(args) => rotate::run(args, out),
        Command::Encrypt(args) => encrypt::run(args, out),
        Command::Decrypt(args) => encrypt::decrypt(args, out),
    }
}
