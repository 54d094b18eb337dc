//! The user name and password for a broker (`--mqtt-login`), from a file: others could see them on
//! the command line.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use zeroize::Zeroizing;

use super::files::{OptionsError, wrong};
use smolfed_release::durable::is_private;

const FLAG: &str = "--mqtt-login";

/// Maximum length of a login file.
const MAX_BYTES: u64 = 4096;

/// A user name and a password.
pub struct Login {
    pub(super) user: String,
    pub(super) password: Zeroizing<String>,
}

impl Login {
    /// Reads a file with the user name in its first line and the password in the second one.
    ///
    /// # Errors
    /// [`OptionsError`], also if others can read it.
    pub fn read(path: &Path) -> Result<Self, OptionsError> {
        let read = || {
            let file = File::open(path)?;
            let is_private = is_private(&file)?;
            let mut text = Zeroizing::new(String::new());
            file.take(MAX_BYTES).read_to_string(&mut text)?;
            Ok((is_private, text))
        };
        let (is_private, text) = read().map_err(|source: std::io::Error| OptionsError::Io {
            flag: FLAG,
            path: path.to_owned(),
            source,
        })?;
        if !is_private {
            let path_shown = path.display();
            let what = format!("others can read it: run `chmod 600 {path_shown}`");
            return Err(wrong(FLAG, path, what));
        }
        let mut lines = text.lines();
        match (lines.next(), lines.next(), lines.next()) {
            (Some(user), Some(password), None) if !user.is_empty() && !password.is_empty() => {
                Ok(Self {
                    user: user.to_owned(),
                    password: Zeroizing::new(password.to_owned()),
                })
            }
            _ => {
                let what = "expected two lines: the user name at the broker, and the password";
                Err(wrong(FLAG, path, what))
            }
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({})", self.user)
    }
}
