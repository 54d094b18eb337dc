//! The token of an operator (`--http-token-file`), which gives access to the list of devices, to
//! secret counts and to answers that no finite ε covers, and limits on its length.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use blake2::{Blake2s256, Digest};
use zeroize::Zeroizing;

use smolfed_release::durable::is_private;

/// Minimum length. Shorter tokens can be guessed.
const MIN_LENGTH: usize = 16;

/// Maximum length of a token file.
const MAX_LENGTH: u64 = 4096;

/// Error for a token file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It cannot be read.
    #[error("`--http-token-file {path}`: {source}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Others can read it.
    #[error("`--http-token-file {path}` can be read by others: `chmod 600 {path}`")]
    Readable {
        /// The file.
        path: String,
    },
    /// It is not a token.
    #[error(
        "`--http-token-file {path}`: expected one line of at least {MIN_LENGTH} letters, digits \
         and signs, for example of `openssl rand -hex 16 > {path}`"
    )]
    Content {
        /// The file.
        path: String,
    },
}

/// The digest of a token. The token itself is not kept.
pub struct Token([u8; 32]);

impl Token {
    /// Reads a token.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let name = path.display().to_string();
        let read = || {
            let file = File::open(path)?;
            let is_private = is_private(&file)? || is_credential(path);
            let mut text = Zeroizing::new(String::new());
            file.take(MAX_LENGTH).read_to_string(&mut text)?;
            Ok((is_private, text))
        };
        let (is_private, text) = match read() {
            Ok(read) => read,
            Err(source) => return Err(TokenError::Io { path: name, source }),
        };
        if !is_private {
            return Err(TokenError::Readable { path: name });
        }
        let token = text.trim();
        match token.len() >= MIN_LENGTH && token.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self::from_bytes(token.as_bytes())),
            false => Err(TokenError::Content { path: name }),
        }
    }

    fn from_bytes(token: &[u8]) -> Self {
        Self(Blake2s256::digest(token).into())
    }

    /// Returns whether this is the token. Compares all bytes of the digests, so that the time
    /// depends neither on the length of the token nor on a correct prefix.
    #[must_use]
    pub fn is(&self, given: &[u8]) -> bool {
        let given = Self::from_bytes(given);
        let bits = self.0.iter().zip(given.0);
        let difference = bits.fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
        difference == 0
    }
}

/// Returns whether the file is from `LoadCredential=`: systemd lets only the service's user read it
/// by an access control list, which looks like a group in the mode.
fn is_credential(path: &Path) -> bool {
    let folder = std::env::var_os("CREDENTIALS_DIRECTORY");
    folder.is_some_and(|folder| !folder.is_empty() && path.starts_with(folder))
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn tokens_are_private_lines_of_some_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        assert!(
            Token::read(&path)
                .unwrap_err()
                .to_string()
                .contains("token")
        );
        for (text, mode, expected) in [
            ("0123456789abcdef\n", 0o600, None),
            ("0123456789abcde\n", 0o600, Some("at least 16")),
            ("0123456789 abcdef", 0o600, Some("at least 16")),
            ("", 0o600, Some("at least 16")),
            ("0123456789abcdef\n", 0o640, Some("chmod 600")),
        ] {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = Token::read(&path);
            match expected {
                None => assert!(read.unwrap().is(b"0123456789abcdef")),
                Some(words) => assert!(read.unwrap_err().to_string().contains(words)),
            }
        }
    }

    #[test]
    fn only_the_whole_token_is_right() {
        let token = Token::from_bytes(b"0123456789abcdef");
        assert!(token.is(b"0123456789abcdef"));
        for wrong in [
            &b"0123456789abcdeF"[..],
            b"0123456789abcdef0",
            b"",
            b"0123456789abcde",
        ] {
            assert!(!token.is(wrong));
        }
    }
}
