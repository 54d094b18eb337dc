//! The secret of a private selection, in a file while it runs: an interrupted selection, repeated,
//! has the same number of trials and the same trials. If K were drawn again instead, large numbers,
//! which take longest, would be interrupted most often, and what is at last selected would come
//! from another law than the one that is charged.
//!
//! The file is written before the first trial and deleted when the result is recorded. Whoever
//! reads it knows K.

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

/// The file of the selection whose run is written to `out`.
pub(super) fn path(out: &Path) -> PathBuf {
    beside(out, "secret")
}

/// Deletes the secret of a selection that has a result.
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

/// The root of the selection among `candidates` whose run is written to `out`: that of an
/// interrupted one, else a new one that is on the disk when this returns.
///
/// # Errors
/// Why there is none, in a sentence: the file cannot be read or written, or is that of a selection
/// among other candidates or on other data, whose noise must not be used again.
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
                "{} is of an interrupted selection among other candidates or on other data: \
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
    // Under its name it is complete: a torn file would look like another selection's.
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

/// Names the candidates, in their order, and the data.
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
