//! `smolfed provision --infer`: devices that only infer. They need no experiment: a number and a
//! key.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use smolfed_core::crypto::Key;
use smolfed_core::provision::{HEADER_BYTES, write_recipient};
use zeroize::Zeroizing;

use super::output::{Files, Output};
use crate::cli::CliError;
use crate::cli::session::progress_bar;
use crate::cli::text::quoted;
use smolfed_fleet::keys::file::KeyFile;
use smolfed_fleet::keys::stored::Stored;
use smolfed_fleet::keys::vault::Vault;
use smolfed_release::entropy::secret;

/// Room for a record and its checksum.
const RECORD_BYTES: usize = HEADER_BYTES + 4;

/// Writes the records and the keys of devices that only infer.
pub(super) fn run(
    devices: &Range<u32>,
    dir: &Path,
    vault: Option<Vault>,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let files = Files {
        dir,
        archive: None,
        records: None,
    };
    let keys_path = dir.join("keys.toml");
    files.check_free(devices, std::slice::from_ref(&keys_path))?;
    let mut output = Output::create(&files)?;
    let mut keys = BTreeMap::new();
    let bar = progress_bar(devices.len() as u64, "device");
    for device in devices.clone() {
        let key = secret().map_err(|error| CliError::Stopped(error.to_string()))?;
        let mut record = Zeroizing::new(vec![0; RECORD_BYTES]);
        let written = write_recipient(device, &Key::from_secret(*key), &mut record);
        written.map_err(|error| CliError::Stopped(format!("device {device}: {error}")))?;
        output.write_beside(&dir.join(format!("device-{device}.bin")), &record)?;
        keys.insert(device, key);
        bar.inc(1);
    }
    bar.finish_and_clear();
    output.sync()?;
    // The keys come last: without them nothing else is in use.
    let file = KeyFile {
        keys,
        infer_only: true,
        ..KeyFile::default()
    };
    let bytes = Stored { file, vault }.to_bytes();
    output.finish(&keys_path, &bytes.map_err(CliError::Stopped)?)?;
    let folder = quoted(&dir.display().to_string());
    writeln!(
        out,
        "{} devices that only infer in {folder}: keys.toml is for the service, device-K.bin for \
         device K.\n\n  smolfed deliver --keys {folder}/keys.toml --listen tcp:0.0.0.0:7200",
        devices.len(),
    )?;
    Ok(())
}
