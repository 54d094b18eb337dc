//! `smolfed models export` and `smolfed models verify`: files for delivery by other means, and the
//! check of their signature.

use std::io::Write;
use std::path::PathBuf;

use super::folder::FolderArgs;
use crate::cli::CliError;
use smolfed_core::delivery::{Header, PublisherKey};
use smolfed_fleet::delivery::catalogue::{Catalogue, signed_file, words};
use smolfed_fleet::delivery::publisher::public_key;
use smolfed_release::durable::write_atomically;

/// Write the signed file of a version, for delivery by other means.
///
/// A device accepts it from any source, for example a phone or a firmware update.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  smolfed models export 2 --out model-2.sfm")]
pub(super) struct ExportArgs {
    /// Version.
    #[arg(value_name = "VERSION")]
    version: u32,
    #[command(flatten)]
    folder: FolderArgs,
    /// Write the file here. An existing file is not overwritten.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Check the signature of a model file, and describe its model.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed models verify model-2.sfm --publisher models/publisher.pub")]
pub(super) struct Args {
    /// Model file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Check the signature with this public key: 64 hexadecimal digits, or a file with them.
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    publisher: PublisherKey,
}

/// Runs `smolfed models export`.
pub(super) fn export(args: &ExportArgs, out: &mut impl Write) -> Result<(), CliError> {
    let folder = &args.folder.models;
    Catalogue::read(folder)?.version(args.version)?;
    let (_, file) = signed_file(folder, args.version)?;
    let path = args.out.display();
    if args.out.exists() {
        return Err(CliError::Usage(format!(
            "{path} already exists and is not overwritten: choose another --out"
        )));
    }
    let written = write_atomically(&args.out, &file);
    written.map_err(|error| CliError::Stopped(format!("{path}: {error}")))?;
    Ok(writeln!(
        out,
        "version {}, {} bytes in {path}",
        args.version,
        file.len()
    )?)
}

/// Runs `smolfed models verify`.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let path = args.file.display();
    let refused = |reason: &str| CliError::Usage(format!("{path}: {reason}"));
    let file = std::fs::read(&args.file).map_err(|error| refused(&error.to_string()))?;
    let header = file.first_chunk().and_then(Header::read);
    let header = header.ok_or_else(|| refused("not a model file of this version"))?;
    let length = header
        .file_bytes()
        .and_then(|length| usize::try_from(length).ok());
    if length != Some(file.len()) {
        return Err(refused("the length of the file does not fit the model"));
    }
    if !args.publisher.has_signed_file(&file) {
        return Err(refused(
            "the signature is not the publisher's, or the file is damaged",
        ));
    }
    Ok(writeln!(
        out,
        "version {}, {}: the signature is the publisher's",
        header.version,
        words(&header.shape, header.recipe.as_ref())
    )?)
}
