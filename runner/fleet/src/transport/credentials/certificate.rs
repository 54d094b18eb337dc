//! The certificate and private key that identify this side, from PEM files (`--tls-certificate`,
//! `--tls-key`), and their renewal during use.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, ServerConfig};

use super::provider::provider;
use crate::lock::lock;
use crate::transport::files::{OptionsError, wrong};

const CERTIFICATE: &str = "--tls-certificate";
const KEY: &str = "--tls-key";

/// A certificate that can be renewed during use.
pub struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    /// [`OptionsError`], also if they do not match.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, OptionsError> {
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            current: Mutex::new(Arc::new(certified(certificate, key)?)),
        })
    }

    /// Reads both files again. The next handshake uses the new contents. Connections stay open.
    ///
    /// # Errors
    /// [`OptionsError`]. The earlier certificate then stays.
    pub fn reload(&self) -> Result<(), OptionsError> {
        let renewed = certified(&self.certificate, &self.key)?;
        *lock(&self.current) = Arc::new(renewed);
        Ok(())
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&lock(&self.current)))
    }
}

/// Shows the paths of the files, and nothing of the key.
impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        write!(f, "Certificate({certificate}, {key})")
    }
}

/// Returns the configuration of a side with a certificate that accepts connections. Peers need no
/// certificate, since keys of the fleet identify them.
pub(in crate::transport) fn config(
    certificate: &Arc<Certificate>,
) -> io::Result<Arc<ServerConfig>> {
    let resolver: Arc<dyn ResolvesServerCert> = Arc::<Certificate>::clone(certificate);
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    Ok(Arc::new(config))
}

fn certified(certificate: &Path, key: &Path) -> Result<CertifiedKey, OptionsError> {
    let chain = certificates(CERTIFICATE, certificate)?;
    let private = private_key(key)?;
    CertifiedKey::from_der(chain, private, &provider()).map_err(|error| match error {
        Error::InconsistentKeys(_) => wrong(
            KEY,
            key,
            format!(
                "it does not belong to the certificate {}",
                certificate.display()
            ),
        ),
        Error::InvalidCertificate(_) => {
            wrong(CERTIFICATE, certificate, "the first certificate is damaged")
        }
        _ => wrong(
            KEY,
            key,
            "expected a key for RSA, ECDSA (P-256, P-384) or Ed25519",
        ),
    })
}

/// Returns all certificates of a PEM file, at least one.
pub(in crate::transport) fn certificates(
    flag: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, OptionsError> {
    let bytes = read(flag, path)?;
    let found: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|_| wrong(flag, path, "it is damaged: not entirely PEM"))?;
    if found.is_empty() {
        let expected = "expected a PEM file, in which `-----BEGIN CERTIFICATE-----` begins a \
                        certificate";
        return Err(wrong(flag, path, expected));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, OptionsError> {
    let bytes = zeroize::Zeroizing::new(read(KEY, path)?);
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
        let is_encrypted = bytes.windows(9).any(|part| part == b"ENCRYPTED");
        let what = match error {
            PemError::NoItemsFound if is_encrypted => {
                "it is encrypted, and its passphrase cannot be entered: decrypt it with `openssl \
                 pkey`, into a file that only its owner may read"
            }
            PemError::NoItemsFound => {
                "expected a PEM file, in which `-----BEGIN PRIVATE KEY-----` begins the key"
            }
            _ => "it is damaged: not entirely PEM",
        };
        wrong(KEY, path, what)
    })
}

/// Reads the file given by a flag.
fn read(flag: &'static str, path: &Path) -> Result<Vec<u8>, OptionsError> {
    std::fs::read(path).map_err(|source| OptionsError::Io {
        flag,
        path: path.to_owned(),
        source,
    })
}
