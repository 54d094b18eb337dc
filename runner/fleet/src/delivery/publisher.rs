//! The key pair that signs model files (`publisher.key` and `publisher.pub`). Its public half is in
//! the firmware of all devices.

use std::io::ErrorKind;
use std::path::Path;

use ed25519_dalek::{Signer, SigningKey};
use smolfed_core::delivery::{Encoding, FileDigest, Header, PublisherKey};
use smolfed_release::durable::{create_private, is_private, write_atomically};
use smolfed_release::entropy::secret;

use super::error::CatalogueError;
use crate::keys::file::{push_digits, secret as parsed};

/// The file of the secret key in a folder of models.
pub const SECRET: &str = "publisher.key";

/// The file of the public key: 64 hexadecimal digits.
pub const PUBLIC: &str = "publisher.pub";

/// The key of a publisher.
pub struct Publisher(SigningKey);

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Publisher")
    }
}

impl Publisher {
    /// Reads the key of a folder. `None` without one, as on a machine that only delivers.
    ///
    /// # Errors
    /// [`CatalogueError`].
    pub fn open(folder: &Path) -> Result<Option<Self>, CatalogueError> {
        let path = folder.join(SECRET);
        let io = |source| CatalogueError::io(&path, source);
        let file = match std::fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        if !is_private(&file).map_err(io)? {
            return Err(CatalogueError::Open(path.display().to_string()));
        }
        let text = zeroize::Zeroizing::new(std::io::read_to_string(file).map_err(io)?);
        let secret = parsed(text.trim());
        let secret = secret.ok_or_else(|| CatalogueError::Key(path.display().to_string()))?;
        let publisher = Self(SigningKey::from_bytes(&secret));
        match published_key(folder)? {
            None => publisher.write_public(folder)?,
            Some(key) if key == PublisherKey::new(&publisher.public()) => {}
            Some(_) => return Err(CatalogueError::OtherKey(path.display().to_string())),
        }
        Ok(Some(publisher))
    }

    /// Creates the key of a folder that never had one.
    ///
    /// # Errors
    /// [`CatalogueError`].
    pub fn create(folder: &Path) -> Result<Self, CatalogueError> {
        if published_key(folder)?.is_some() {
            return Err(CatalogueError::NoKey(folder.display().to_string()));
        }
        let secret = secret().map_err(|error| CatalogueError::Entropy(error.to_string()))?;
        let publisher = Self(SigningKey::from_bytes(&secret));
        let mut text = zeroize::Zeroizing::new(String::with_capacity(65));
        push_digits(&mut text, &secret);
        text.push('\n');
        let path = folder.join(SECRET);
        create_private(&path, text.as_bytes())
            .map_err(|source| CatalogueError::io(&path, source))?;
        publisher.write_public(folder)?;
        Ok(publisher)
    }

    fn write_public(&self, folder: &Path) -> Result<(), CatalogueError> {
        let path = folder.join(PUBLIC);
        let line = format!("{}\n", hex::encode(self.public()));
        write_atomically(&path, line.as_bytes()).map_err(|source| CatalogueError::io(&path, source))
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// Returns a signed file with this header.
    #[must_use]
    pub fn sign(&self, header: &Header, parameters: &[f32]) -> Vec<u8> {
        let mut file = header.write().to_vec();
        for value in parameters {
            match header.encoding {
                Encoding::Words => file.extend(value.to_le_bytes()),
                Encoding::Short(grid) => file.extend(grid.round(*value).to_le_bytes()),
            }
        }
        let mut digest = FileDigest::default();
        digest.update(&file);
        file.extend(self.0.sign(&digest.signed_bytes()).to_bytes());
        file
    }
}

/// Reads the public key of a folder. `None` without a file, and `Some(None)` for another content.
fn published_key(folder: &Path) -> Result<Option<Option<PublisherKey>>, CatalogueError> {
    let path = folder.join(PUBLIC);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(public_key(text.trim()).ok())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CatalogueError::io(&path, error)),
    }
}

/// Returns the public key of a folder.
///
/// # Errors
/// [`CatalogueError`].
pub fn key_of(folder: &Path) -> Result<PublisherKey, CatalogueError> {
    let path = folder.join(PUBLIC).display().to_string();
    published_key(folder)?
        .flatten()
        .ok_or(CatalogueError::Key(path))
}

/// Reads a public key from its 64 hexadecimal digits, or from a file with them.
///
/// # Errors
/// A sentence about the key.
pub fn public_key(text: &str) -> Result<PublisherKey, String> {
    let parse = |digits: &str| {
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits.trim(), &mut bytes).ok()?;
        PublisherKey::new(&bytes)
    };
    let expected = "expected 64 hexadecimal digits of a public key";
    if let Some(key) = parse(text) {
        return Ok(key);
    }
    let content = std::fs::read_to_string(text)
        .map_err(|error| format!("{text}: {error}; give `{PUBLIC}` of a folder of models"))?;
    parse(&content).ok_or_else(|| format!("{text}: {expected}"))
}
