//! `smolfed keys readmit`: the end of the quarantine (exclusion) of devices, which are invited
//! again.

use std::io::Write;

use super::access::{KeysArgs, in_ranges};
use crate::cli::CliError;
use smolfed_fleet::quarantine::Quarantine;

/// Readmit devices that the coordinator quarantined because they stalled or lied.
///
/// They are invited again from the next round on, even while the coordinator runs. Without numbers,
/// the command lists the devices in quarantine with the reason.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed keys readmit --keys fleet/keys.toml
  smolfed keys readmit 17 --keys fleet/keys.toml")]
pub(super) struct Args {
    /// Numbers of the devices.
    #[arg(value_name = "NUMBER")]
    numbers: Vec<u32>,
    #[command(flatten)]
    keys: KeysArgs,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let path = args.keys.real_path()?;
    let mut quarantine = Quarantine::open(&path, 0)?;
    if args.numbers.is_empty() {
        for entry in quarantine.entries() {
            let (number, since, reason) = (entry.number, entry.since, &entry.reason);
            writeln!(out, "device {number}: {reason}; since round number {since}")?;
        }
        return Ok(());
    }
    for number in &args.numbers {
        if !quarantine.readmit(*number) {
            return Err(CliError::Usage(format!(
                "device {number} is not in quarantine; `smolfed keys readmit` lists the devices in \
                 it"
            )));
        }
    }
    quarantine.save()?;
    let mut numbers = args.numbers.clone();
    numbers.sort_unstable();
    writeln!(
        out,
        "readmitted: {}, from the next round on.",
        in_ranges(numbers)
    )?;
    Ok(())
}
