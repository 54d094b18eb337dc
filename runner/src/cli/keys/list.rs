//! `smolfed keys list`: the listing, as text and JSON, of devices with keys and without, and of
//! revoked (withdrawn) keys with their date and reason.

use std::io::Write;

use serde_json::json;

use super::access::{KeysArgs, in_ranges};
use crate::cli::CliError;
use crate::cli::text::aligned;
use smolfed_fleet::keys::file::KeyDigest;
use smolfed_fleet::keys::lock::Holder;
use smolfed_fleet::keys::stored::{Stored, real_path};

/// List the revoked keys and the devices that have keys, without showing any key.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed keys list --keys fleet/keys.toml
  smolfed keys list --keys fleet/keys.toml --json")]
pub(super) struct Args {
    #[command(flatten)]
    keys: KeysArgs,
    /// Print one JSON document and nothing else, with the digest of each key.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let path = real_path(args.keys.path())?;
    let Stored { file, vault } = Stored::read(&path, None, &args.keys.passphrase())?;
    let holder = Holder::of(&path);
    if args.json {
        let devices = file.keys.iter().map(|(number, key)| {
            json!({
                "number": number,
                "digest": KeyDigest::of(key).to_string(),
                "element": file.elements.contains(number),
            })
        });
        let revoked = file.revoked.iter().map(|revoked| {
            json!({
                "number": revoked.number,
                "digest": revoked.digest.to_string(),
                "date": revoked.date,
                "reason": revoked.reason,
                "element": revoked.element,
            })
        });
        let document = json!({
            "keys": path,
            "encrypted": vault.is_some(),
            "device_seed": file.device_seed,
            "in_use": holder != Holder::Absent,
            "devices": devices.collect::<Vec<_>>(),
            "revoked": revoked.collect::<Vec<_>>(),
            "without_key": file.vacant(),
        });
        return Ok(writeln!(out, "{document}")?);
    }
    let state = match (vault.is_some(), holder) {
        (true, Holder::Absent) => ", encrypted",
        (false, Holder::Absent) => "",
        (true, _) => ", encrypted, in use by a coordinator",
        (false, _) => ", in use by a coordinator",
    };
    writeln!(out, "{}{state}", path.display())?;
    let numbers = in_ranges(file.keys.keys().copied());
    writeln!(out, "devices with keys: {} ({numbers})", file.keys.len())?;
    if !file.elements.is_empty() {
        let (count, numbers) = (
            file.elements.len(),
            in_ranges(file.elements.iter().copied()),
        );
        writeln!(out, "in secure elements: {count} ({numbers})")?;
    }
    let vacant = file.vacant();
    if !vacant.is_empty() {
        let count = vacant.len();
        writeln!(out, "devices without keys: {count} ({})", in_ranges(vacant))?;
    }
    if file.revoked.is_empty() {
        return Ok(());
    }
    let head = ["device", "revoked", "reason"].map(str::to_owned);
    let rows = file.revoked.iter().map(|revoked| {
        let reason = revoked.reason.clone().unwrap_or_default();
        vec![revoked.number.to_string(), revoked.date.clone(), reason]
    });
    let rows: Vec<_> = std::iter::once(head.to_vec()).chain(rows).collect();
    Ok(write!(out, "\n{}", aligned(&rows))?)
}
