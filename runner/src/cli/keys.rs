//! `smolfed keys`: the keys of a fleet, listed, withdrawn, added and exchanged.

mod add;
mod encrypt;
mod list;
mod revoke;
mod rotate;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Subcommand;
use humantime::format_rfc3339_seconds;

use super::CliError;
use crate::fleet::keys::KeysError;
use crate::fleet::keys::edit::Edit;
use crate::fleet::keys::lock::Holder;
use crate::fleet::keys::passphrase::PassphraseSource;

/// List the keys of a fleet; revoke, add, rotate or encrypt them, also while a coordinator runs.
///
/// The file is replaced atomically, and two changes at the same time are both made. A coordinator
/// that runs is sent SIGHUP and takes the change over. See docs/keys.md.
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
    Add(add::Args),
    Rotate(rotate::Args),
    Encrypt(encrypt::Args),
    Decrypt(encrypt::DecryptArgs),
}

/// Which keys.
#[derive(Debug, clap::Args)]
struct KeysArgs {
    /// The keys of the fleet, written by `smolfed provision`.
    #[arg(long, value_name = "FILE", default_value = "keys.toml")]
    keys: PathBuf,
    /// The file whose first line is the passphrase of encrypted keys. By default the one that
    /// SMOLFED_KEYS_PASSPHRASE_FILE names, or the systemd credential smolfed-keys-passphrase, or the
    /// terminal.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl KeysArgs {
    fn passphrase(&self) -> PassphraseSource {
        PassphraseSource::find(self.passphrase_file.as_deref())
    }

    fn edit(&self) -> Result<Edit, KeysError> {
        Edit::begin(&self.keys, &self.passphrase())
    }

    /// The file, as it was given.
    fn path(&self) -> &Path {
        &self.keys
    }
}

/// Whether a running coordinator is told.
#[derive(Debug, clap::Args)]
struct SignalArgs {
    /// Do not send SIGHUP to a running coordinator, which then takes the change over when it gets
    /// one, or when it is started again.
    #[arg(long)]
    no_signal: bool,
}

impl SignalArgs {
    /// Tells a coordinator, and returns a sentence about it; nothing if there is none.
    fn tell(&self, holder: Holder) -> &'static str {
        match holder {
            Holder::Nobody => "",
            Holder::Process(_) if !self.no_signal && holder.signal() => {
                "The running coordinator was told, and takes it over now.\n"
            }
            Holder::Process(_) => {
                "A coordinator is running: it takes this over when it gets SIGHUP.\n"
            }
            Holder::Unreachable => {
                "A coordinator is running: it takes this over when it is started again.\n"
            }
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    match &args.command {
        Command::List(args) => list::run(args, out),
        Command::Revoke(args) => revoke::run(args, out),
        Command::Add(args) => add::run(args, out),
        Command::Rotate(args) => rotate::run(args, out),
        Command::Encrypt(args) => encrypt::run(args, out),
        Command::Decrypt(args) => encrypt::decrypt(args, out),
    }
}

/// The date of a change, in UTC.
fn now() -> String {
    format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// Numbers in words: ranges of those in a row.
fn in_ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = ranges.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    });
    text.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(in_ranges([]), "");
        assert_eq!(in_ranges([7]), "7");
        assert_eq!(
            in_ranges([0, 1, 2, 5, 6, u32::MAX]),
            "0 to 2, 5, 6, 4294967295"
        );
    }
}
