//! The sources of the passphrase of encrypted keys. The command line is not one of them, since
//! other users of the machine can read it.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use console::Term;
use zeroize::Zeroizing;

use super::error::{KeysError, content, io};
use smolfed_release::durable::is_private;

/// The variable with the path of a file.
const VARIABLE: &str = "SMOLFED_KEYS_PASSPHRASE_FILE";

/// The folder of a systemd unit's credentials, and the name of our credential.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";
const CREDENTIAL: &str = "smolfed-keys-passphrase";

const MAX_BYTES: u64 = 4096;

/// Shorter ones can be guessed at any cost per guess.
const MIN_BYTES: usize = 8;

/// Source of the passphrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassphraseSource {
    /// The first line of a file that only its owner can read.
    File(PathBuf),
    /// The user at the terminal.
    Terminal,
    /// No source: an encrypted file is refused.
    Nowhere,
}

impl PassphraseSource {
    /// Returns the first source that exists: the file `given`, the file in
    /// `SMOLFED_KEYS_PASSPHRASE_FILE`, the credential `smolfed-keys-passphrase` of a systemd unit,
    /// or a terminal.
    #[must_use]
    pub fn find(given: Option<&Path>) -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(path) = given {
            return Self::File(path.to_path_buf());
        }
        if let Some(path) = variable(VARIABLE) {
            return Self::File(path.into());
        }
        let credential = variable(CREDENTIALS).map(|dir| PathBuf::from(dir).join(CREDENTIAL));
        match credential.filter(|path| path.exists()) {
            Some(path) => Self::File(path),
            None if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => {
                Self::Terminal
            }
            None => Self::Nowhere,
        }
    }

    /// Returns the passphrase of `keys`.
    ///
    /// # Errors
    /// [`KeysError`] for a file that is unreadable, readable by others, or empty, and if there is
    /// nobody to ask.
    pub fn read(&self, keys: &Path) -> Result<Zeroizing<Vec<u8>>, KeysError> {
        match self {
            Self::File(path) => read(path),
            Self::Terminal => ask(&format!("Passphrase of {}: ", keys.display())),
            Self::Nowhere => Err(content(keys)(format!(
                "is encrypted: give its passphrase with `--passphrase-file FILE`, or name the file \
                 in {VARIABLE}"
            ))),
        }
    }

    /// Returns a passphrase for encrypting keys: asked for twice, and not too short.
    ///
    /// # Errors
    /// As [`Self::read`], and if it has fewer than eight bytes, or the two differ.
    pub fn choose(&self, keys: &Path) -> Result<Zeroizing<Vec<u8>>, KeysError> {
        let passphrase = match self {
            Self::Terminal => {
                let first = ask(&format!("New passphrase of {}: ", keys.display()))?;
                if first != ask("Repeat it: ")? {
                    return Err(content(keys)("the two passphrases differ".to_owned()));
                }
                first
            }
            Self::Nowhere => {
                return Err(content(keys)(format!(
                    "needs a passphrase: give it with `--passphrase-file FILE`, or name the file \
                     in {VARIABLE}"
                )));
            }
            Self::File(path) => read(path)?,
        };
        if passphrase.len() < MIN_BYTES {
            let place = match self {
                Self::File(path) => path,
                _ => keys,
            };
            return Err(content(place)(format!(
                "a passphrase of {} bytes is too short: use {MIN_BYTES} or more, for example six \
                 random words",
                passphrase.len()
            )));
        }
        Ok(passphrase)
    }
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeysError> {
    let file = File::open(path).map_err(io("read", path))?;
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        let reason = "is a folder: give the file with the passphrase";
        return Err(content(path)(reason.to_owned()));
    }
    if !is_private(&file).map_err(io("read", path))? {
        return Err(KeysError::Readable {
            path: path.display().to_string(),
            what: "the passphrase",
        });
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_BYTES as usize + 1));
    let mut file = file.take(MAX_BYTES + 1);
    file.read_to_end(&mut bytes).map_err(io("read", path))?;
    if bytes.len() as u64 > MAX_BYTES {
        let reason = format!("is longer than {MAX_BYTES} bytes: is it the passphrase?");
        return Err(content(path)(reason));
    }
    // The first line without its line end, which editors add.
    if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        bytes.truncate(end);
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    if bytes.is_empty() {
        let reason = "is empty: its first line must be the passphrase";
        return Err(content(path)(reason.to_owned()));
    }
    Ok(bytes)
}

fn ask(prompt: &str) -> Result<Zeroizing<Vec<u8>>, KeysError> {
    let terminal = Term::stderr();
    let answer = terminal
        .write_str(prompt)
        .and_then(|()| terminal.read_secure_line())
        .map_err(io("read", Path::new("the terminal")))?;
    Ok(Zeroizing::new(answer.into_bytes()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PassphraseSource) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passphrase");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (dir, PassphraseSource::File(path))
    }

    #[test]
    fn the_first_line_of_a_private_file_counts() {
        for text in [
            "six words",
            "six words\n",
            "six words\r\n",
            "six words\nnot\n",
        ] {
            let (_dir, source) = file(text, 0o400);
            let keys = Path::new("keys.toml");
            assert_eq!(source.read(keys).unwrap().as_slice(), b"six words");
            assert_eq!(source.choose(keys).unwrap().as_slice(), b"six words");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let long = "x".repeat(5000);
        for (text, mode, expected) in [
            ("", 0o600, "is empty"),
            ("\nsecond", 0o600, "is empty"),
            (long.as_str(), 0o600, "is longer than 4096"),
            ("six words", 0o640, "chmod 600"),
            ("short", 0o600, "is too short"),
        ] {
            let (_dir, source) = file(text, mode);
            let error = source.choose(Path::new("keys.toml")).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        let error = PassphraseSource::Nowhere.read(Path::new("keys.toml"));
        assert!(error.unwrap_err().to_string().contains("is encrypted"));
    }
}
