//! The secret of a private selection, in a file while it runs: a repeated interrupted selection has
//! the same number of trials and the same trials. If K were drawn again instead, large numbers,
//! which take longest, would be interrupted most often, and the final selection would follow
//! another distribution than the charged one.
//!
//! The file is written before the first trial and deleted when the result is recorded. It reveals K
//! to its readers.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use smolfed_core::stream::Root;
use zeroize::Zeroizing;

use smolfed_data::Federation;
use smolfed_engine::config::Config;
use smolfed_engine::run_files::error::{RunDirError, io};
use smolfed_release::durable::{create_private, sync_folder};
use smolfed_release::entropy;

/// Returns the secret's file of the selection whose run is written to `out`.
pub(super) fn path(out: &Path) -> PathBuf {
    beside(out, "secret")
}

/// Deletes the secret of a completed selection.
///
/// # Errors
/// [`RunDirError::Io`].
pub(in crate::sweep) fn forget(out: &Path) -> Result<(), RunDirError> {
    let path = path(out);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("delete", &path)(error)),
        _ => Ok(()),
    }
}

/// Returns the root of the selection among `candidates` whose run is written to `out`: the root of
/// an interrupted one, or a new one that is already on disk.
///
/// # Errors
/// The reason, in a sentence: the file cannot be read or written, or belongs to a selection among
/// other candidates or on other data, whose noise must not be used again.
pub(super) fn root(
    out: &Path,
    candidates: &[Config],
    federation: &Federation,
) -> Result<Root, String> {
    let path = path(out);
    let fingerprint = fingerprint(candidates, federation)?;
    let known = fs::read_to_string(&path).map(Zeroizing::new);
    match known {
        Ok(text) => read(&text, &fingerprint).ok_or_else(|| {
            format!(
                "{} belongs to an interrupted selection among other candidates or on other data: \
                 repeat that one, or choose another --out",
                path.display()
            )
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => create(&path, &fingerprint),
        Err(error) => Err(io("read", &path)(error).to_string()),
    }
}

fn create(path: &Path, fingerprint: &str) -> Result<Root, String> {
    let secret = entropy::secret().map_err(|error| error.to_string())?;
    let number = Zeroizing::new(hex::encode(*secret));
    let text = Zeroizing::new(format!("{fingerprint}\n{}\n", *number));
    // Complete under its final name: a torn file would look like another selection's.
    let partial = beside(path, "partial");
    let write = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match fs::remove_file(&partial) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => create_private(&partial, text.as_bytes())?,
        };
        fs::rename(&partial, path)?;
        sync_folder(path)
    };
    write().map_err(|error| io("write", path)(error).to_string())?;
    Ok(Root::from_secret(*secret))
}

fn read(text: &str, fingerprint: &str) -> Option<Root> {
    let (known, number) = text.trim_end().split_once('\n')?;
    let mut secret = Zeroizing::new([0; 32]);
    hex::decode_to_slice(number, &mut *secret).ok()?;
    (known == fingerprint).then(|| Root::from_secret(*secret))
}

/// Returns a fingerprint of the candidates, in order, and of the data.
fn fingerprint(candidates: &[Config], federation: &Federation) -> Result<String, String> {
    let mut hasher = crc32fast::Hasher::new();
    for candidate in candidates {
        let text = candidate.to_toml().map_err(|error| error.to_string())?;
        hasher.update(text.as_bytes());
    }
    let candidates = hasher.finalize();
    Ok(format!(
        "{candidates:08x}-{:016x}",
        federation.fingerprint()
    ))
}

fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(extension);
    path.with_file_name(name)
}
