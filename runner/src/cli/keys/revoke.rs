//! `smolfed keys revoke`: the withdrawal of the keys of devices that are lost, stolen or out of
//! service, with date and reason.

use std::io::Write;

use super::access::{KeysArgs, SignalArgs, in_ranges, now};
use crate::cli::CliError;
use smolfed_fleet::helper::store;
use smolfed_fleet::keys::edit;

/// Revoke the keys of devices that are lost, stolen, cloned or out of service.
///
/// The command erases a key from the file and keeps its digest, so that the key is refused even if
/// another file contains it. If you restore an older copy of this file, revoke the key again. A
/// running coordinator ends the device's session. The device remains in the federation and counts
/// as missing whenever it is sampled, so the accounting does not change. `smolfed keys rotate`
/// gives its number to another device. With masked updates, also revoke the device in each helper's
/// own file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed keys revoke 17 --keys fleet/keys.toml
  smolfed keys revoke 17 23 --keys fleet/keys.toml --reason \"stolen from the site\"
  smolfed keys revoke 17 --keys helper-0.toml")]
pub(super) struct Args {
    /// Numbers of the devices.
    #[arg(value_name = "NUMBER", required = true)]
    numbers: Vec<u32>,
    #[command(flatten)]
    keys: KeysArgs,
    /// Store this one-line reason with the date.
    #[arg(long, value_name = "TEXT", value_parser = edit::reason)]
    reason: Option<String>,
    #[command(flatten)]
    signal: SignalArgs,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    if store::is_one(args.keys.path()) {
        return of_helper(args, out);
    }
    let mut edit = args.keys.edit()?;
    let date = now();
    for number in &args.numbers {
        edit.revoke(*number, &date, args.reason.as_deref())?;
    }
    let left = edit.keys().keys.len();
    let has_helpers = !edit.keys().links.is_empty();
    let notice = args.signal.notify_coordinator(edit.store()?);
    let mut numbers = args.numbers.clone();
    numbers.sort_unstable();
    writeln!(
        out,
        "revoked: {}. Devices with keys: {left}.\n{notice}A revoked device counts as missing \
         whenever it is drawn, until `smolfed keys rotate` gives its number another key.",
        in_ranges(numbers)
    )?;
    if has_helpers {
        writeln!(
            out,
            "Tell each helper. It revokes the device with `smolfed keys revoke NUMBER --keys \
             FILE`, where FILE is the file of its `smolfed helper`."
        )?;
    }
    Ok(())
}

/// Revokes mask keys in the file of a helper.
fn of_helper(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    if args.reason.is_some() {
        return Err(CliError::Usage(format!(
            "`--reason`: {} is the file of a helper, which keeps no reasons",
            args.keys.path().display()
        )));
    }
    let (holder, left) = store::edit(args.keys.path(), |file| {
        args.numbers
            .iter()
            .try_for_each(|number| file.revoke(*number))?;
        Ok(file.keys.len())
    })?;
    let notice = args.signal.notify_helper(holder);
    let mut numbers = args.numbers.clone();
    numbers.sort_unstable();
    writeln!(
        out,
        "revoked: {}. Devices with mask keys: {left}.\n{notice}The helper refuses a list with one \
         of them.",
        in_ranges(numbers)
    )?;
    Ok(())
}
