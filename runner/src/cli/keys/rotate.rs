//! `smolfed keys rotate`: a new key, record and ledger for a device, and the withdrawal
//! (revocation) of its old key.

use std::io::Write;
use std::path::PathBuf;

use super::access::{KeysArgs, SignalArgs, now};
use crate::cli::CliError;
use crate::cli::provision::{DeviceArgs, Files, HelperArgs, HelperFiles, Issuer, Output, prepare};
use smolfed_fleet::keys::edit;

/// Give a device a new key, record and ledger, and revoke its old key.
///
/// The command first writes the new files to a folder, as `smolfed provision` does, and then
/// exchanges the key in one step. Until the device has its new files, it cannot take part. A device
/// with a secure element gets new secrets for it.
///
/// The new ledger counts participations from 0. Earlier participations still count against the
/// device's data, so set `--budget` to the remaining number, unless the device now has different
/// data.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed keys rotate 17 experiment.toml --keys fleet/keys.toml --out device-17
  smolfed keys rotate 17 experiment.toml --keys fleet/keys.toml --out device-17 --budget 12 \\
      --reason \"board replaced\"")]
pub(super) struct Args {
    /// Number of the device.
    number: u32,
    /// Experiment, a TOML file [default: the built-in experiment].
    file: Option<PathBuf>,
    /// Write the new files of the device to this folder.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    keys: KeysArgs,
    /// Store this one-line reason with the date of revocation.
    #[arg(long, value_name = "TEXT", value_parser = edit::reason)]
    reason: Option<String>,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    signal: SignalArgs,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let number = args.number;
    check_role(&args.keys)?;
    let (experiment, federation) = prepare(args.file.as_ref(), &args.device.overrides)?;
    if number >= federation.device_count() {
        return Err(CliError::Usage(format!(
            "the experiment's federation has devices 0 to {}: there is no device {number}",
            federation.device_count().saturating_sub(1)
        )));
    }
    let mut edit = args.keys.edit()?;
    let mut device = args.device.clone();
    device.element |= edit.has_element(number);
    let file = args.file.as_deref();
    let issuer = Issuer::new(&device, (&experiment, &federation), file, None)?;
    if !edit.keys().vacant().contains(&number) {
        edit.revoke(number, &now(), args.reason.as_deref())?;
    }
    let issued = issuer.issue(number)?;
    edit.add(&[(number, issued.key.clone())].into(), &issued.in_element())?;
    let links = edit.keys().links.clone();
    let (usual, limits) = (HelperArgs::default(), issuer.limits());
    let seed = edit.keys().device_seed;
    let mut helpers = HelperFiles::new(&usual, &experiment, limits, seed, &links, 1)?;
    if helpers.count() != links.len() {
        return Err(CliError::Usage(format!(
            "the experiment has {} helpers, and the fleet of {} was provisioned with {}",
            helpers.count(),
            args.keys.path().display(),
            links.len()
        )));
    }
    helpers.add(&issued);
    let paths: Vec<PathBuf> = HelperFiles::paths(links.len() as u8, &args.out).collect();
    let files = Files {
        dir: &args.out,
        archive: None,
        records: None,
    };
    files.check_free(&(number..number + 1), &paths)?;
    // The device's files come first: a key that no device has would be a device lost.
    let mut output = Output::create(&files)?;
    output.write(&issued)?;
    helpers.write(&mut output, &args.out, false)?;
    output.sync()?;
    let holder = edit.store()?;
    output.keep();
    let notice = args.signal.notify_coordinator(holder);
    let (folder, budget) = (args.out.display(), issuer.limits().budget.0);
    let element = match device.element {
        true => format!(" {folder}/device-{number}.element into its secure element,"),
        false => String::new(),
    };
    writeln!(
        out,
        "device {number} has a new key; the old one is revoked.\n{notice}Write \
         {folder}/device-{number}.bin to the device,{element} and {folder}/device-{number}.ledger \
         where its ledger was, then delete them here.\nIts new ledger counts from 0 of {budget} \
         participations; those of the old ledger still count for the same data: `--budget` sets \
         the remaining ones."
    )?;
    if !links.is_empty() {
        writeln!(
            out,
            "Give {folder}/helper-J.toml to helper J, who adds it with `smolfed keys add \
             helper-J.toml --keys FILE`, where FILE is the file of its `smolfed helper`. Then \
             delete it here."
        )?;
    }
    Ok(())
}

/// Refuses devices that only infer, which have no experiment.
fn check_role(keys: &KeysArgs) -> Result<(), CliError> {
    if !keys.edit()?.keys().infer_only {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "{}: these devices only infer: revoke the key, provision another number with `smolfed \
         provision --infer`, and add it with `smolfed keys add`",
        keys.path().display()
    )))
}
