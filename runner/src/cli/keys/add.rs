//! `smolfed keys add`: the keys of devices that were provisioned later, from another file of keys.

use std::io::Write;
use std::path::PathBuf;

use super::access::{KeysArgs, SignalArgs, in_ranges};
use crate::cli::CliError;
use smolfed_fleet::helper::store;
use smolfed_fleet::keys::passphrase::PassphraseSource;
use smolfed_fleet::keys::stored::{Stored, real_path};

/// Add the devices of another keys file, written by a second `smolfed provision`.
///
/// The command adds all devices or none. It refuses a key that is revoked or in use by another
/// device, and a number that already has a key. A revoked device's number may get a new key. New
/// numbers take part in the next run. Add them between runs: an unfinished run cannot be resumed
/// with more devices.
///
/// With masked updates, each helper adds its file from that provisioning, or from `smolfed keys
/// rotate`, to its existing file. If a device already has a mask key there, the new key replaces
/// it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  smolfed provision experiment.toml --devices 100..200 --out more --set data.devices=200
  smolfed keys add more/keys.toml --keys fleet/keys.toml
  smolfed keys add more/helper-0.toml --keys helper-0.toml")]
pub(super) struct Args {
    /// Keys file to add.
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// Read the passphrase of the keys to add from this file [default: the same passphrase].
    #[arg(long, value_name = "FILE")]
    from_passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    keys: KeysArgs,
    #[command(flatten)]
    signal: SignalArgs,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    if store::is_one(args.keys.path()) {
        return of_helper(args, out);
    }
    let passphrase = match &args.from_passphrase_file {
        Some(path) => PassphraseSource::File(path.clone()),
        None => args.keys.passphrase(),
    };
    let from = real_path(&args.from)?;
    let new = Stored::read(&from, None, &passphrase)?.file;
    if from == real_path(args.keys.path())? {
        return Err(CliError::Usage(format!(
            "{}: these keys already belong to the fleet: give the keys.toml of another `smolfed \
             provision`",
            args.from.display()
        )));
    }
    let mut edit = args.keys.edit()?;
    // Privacy statements name the seed, so it must be that of all devices, or of none.
    if new.device_seed != edit.keys().device_seed {
        return Err(CliError::Usage(format!(
            "{}: its devices were provisioned {}, those of {} {}: they cannot be one fleet",
            args.from.display(),
            seed_of(new.device_seed),
            args.keys.path().display(),
            seed_of(edit.keys().device_seed),
        )));
    }
    if new.infer_only != edit.keys().infer_only {
        return Err(CliError::Usage(format!(
            "{}: devices that only infer and devices that train have separate keys files",
            args.from.display(),
        )));
    }
    edit.add(&new.keys, &new.elements)?;
    let count = edit.keys().keys.len() + edit.keys().vacant().len();
    let has_helpers = !edit.keys().links.is_empty();
    let notice = args.signal.notify_coordinator(edit.store()?);
    writeln!(
        out,
        "added: {}. The fleet has {count} devices.\n{notice}Remove {}: its keys are in {} now.",
        in_ranges(new.keys.keys().copied()),
        args.from.display(),
        args.keys.path().display(),
    )?;
    if has_helpers {
        writeln!(
            out,
            "Give each helper its helper-J.toml from the same folder. The helper adds it with \
             `smolfed keys add helper-J.toml --keys FILE`, where FILE is the file of its `smolfed \
             helper`."
        )?;
    }
    Ok(())
}

/// Adds mask keys to the file of a helper.
fn of_helper(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let (from, new) = store::read(&args.from)?;
    if from == real_path(args.keys.path())? {
        return Err(CliError::Usage(format!(
            "{}: these keys already belong to the helper: give its file from another `smolfed \
             provision` or `smolfed keys rotate`",
            args.from.display()
        )));
    }
    let (holder, replaced) = store::edit(args.keys.path(), |file| file.add(&new))?;
    let notice = args.signal.notify_helper(holder);
    let added = new.keys.keys().filter(|device| !replaced.contains(device));
    let names = |numbers: String| match numbers.as_str() {
        "" => "none".to_owned(),
        _ => numbers,
    };
    writeln!(
        out,
        "added: {}. Replaced: {}.\n{notice}Remove {}: its keys are in {} now.",
        names(in_ranges(added.copied())),
        names(in_ranges(replaced.iter().copied())),
        args.from.display(),
        args.keys.path().display(),
    )?;
    Ok(())
}

fn seed_of(seed: Option<u64>) -> String {
    match seed {
        Some(seed) => format!("with `--seed {seed}`"),
        None => "without `--seed`".to_owned(),
    }
}
