//! `smolfed keys encrypt` and `smolfed keys decrypt`: the encryption of keys on disk with a
//! passphrase, its change, and its removal.

use std::io::Write;
use std::path::PathBuf;

use super::access::KeysArgs;
use crate::cli::CliError;
use crate::cli::provision::vault;
use smolfed_fleet::chains::ChainKeys;
use smolfed_fleet::keys::edit::Edit;
use smolfed_fleet::keys::lock::Holder;
use smolfed_fleet::keys::passphrase::PassphraseSource;
use smolfed_fleet::keys::vault::Vault;

/// Encrypt the keys with a passphrase, or change the passphrase of encrypted keys.
///
/// The cipher is XChaCha20-Poly1305, and Argon2id derives its key from the passphrase. From then
/// on, commands and coordinators need the passphrase. If it is lost, so are the keys. A running
/// coordinator continues. Earlier copies, and traces of the old file on a disk, are not encrypted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed keys encrypt --keys fleet/keys.toml --passphrase-file passphrase
  smolfed keys encrypt --keys fleet/keys.toml --passphrase-file old --new-passphrase-file new")]
pub(super) struct Args {
    #[command(flatten)]
    keys: KeysArgs,
    /// Read the new passphrase from this file, for keys that are already encrypted.
    #[arg(long, value_name = "FILE")]
    new_passphrase_file: Option<PathBuf>,
}

/// Decrypt encrypted keys and store them in plain text.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  smolfed keys decrypt --keys fleet/keys.toml --passphrase-file passphrase")]
pub(super) struct DecryptArgs {
    #[command(flatten)]
    keys: KeysArgs,
}

/// Runs `smolfed keys encrypt`.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let edit = args.keys.edit()?;
    let source = match (edit.is_sealed(), &args.new_passphrase_file) {
        (_, Some(path)) => PassphraseSource::File(path.clone()),
        (false, None) => args.keys.passphrase(),
        (true, None) => {
            return Err(CliError::Usage(format!(
                "{} is encrypted already: `--new-passphrase-file FILE` gives it another passphrase",
                args.keys.path().display()
            )));
        }
    };
    let vault = vault(&source, edit.path())?;
    store(edit, Some(vault))?;
    writeln!(
        out,
        "{} is encrypted. Keep the passphrase apart from it and from its backups: without it the \
         keys are lost. Earlier copies of the file are not encrypted.",
        args.keys.path().display()
    )?;
    Ok(())
}

/// Runs `smolfed keys decrypt`.
pub(super) fn decrypt(args: &DecryptArgs, out: &mut impl Write) -> Result<(), CliError> {
    let edit = args.keys.edit()?;
    let path = args.keys.path().display();
    if !edit.is_sealed() {
        return Err(CliError::Usage(format!("{path} is not encrypted")));
    }
    store(edit, None)?;
    writeln!(out, "{path} is no longer encrypted.")?;
    Ok(())
}

/// Stores the keys, and the chain keys with them: a coordinator that runs stores its own, once it
/// is told.
fn store(mut edit: Edit, vault: Option<Vault>) -> Result<(), CliError> {
    let path = edit.path().to_path_buf();
    let mut chains = ChainKeys::open(&path, edit.vault())?;
    chains.seal_with(vault.as_ref());
    edit.seal_with(vault);
    let holder = edit.store()?;
    match holder {
        Holder::Absent => chains.store()?,
        Holder::Process(_) | Holder::Unreachable => {
            chains.forget();
            // One that cannot be told goes on with what it has, and is told the next time.
            let _ = holder.signal();
        }
    }
    Ok(())
}
