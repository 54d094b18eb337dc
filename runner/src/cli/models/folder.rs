//! The option for the folder of models, shares in percent, and the message about the versions that
//! devices now get.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::cli::CliError;
use smolfed_fleet::delivery::published::Published;
use smolfed_fleet::delivery::service::words;

/// Folder of models.
#[derive(Debug, clap::Args)]
pub(super) struct FolderArgs {
    /// Use the models in this folder.
    #[arg(long, value_name = "DIR", default_value = "models")]
    pub(super) models: PathBuf,
}

/// Parses a share in percent, with or without its sign.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse();
    let percent = number
        .ok()
        .filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent.ok_or_else(|| "expected a percentage above 0 and at most 100".to_owned())
}

/// Says which versions devices get now.
pub(super) fn tell(folder: &Path, out: &mut impl Write) -> Result<(), CliError> {
    Ok(writeln!(out, "{}", words(&Published::read(folder)?))?)
}
