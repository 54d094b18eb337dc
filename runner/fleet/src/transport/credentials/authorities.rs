//! The certificate authorities (CA) that are accepted when this side connects over TLS: those of
//! `--tls-ca`, or those of the system.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::certificate::certificates;
use super::provider::provider;
use crate::transport::files::{OptionsError, wrong};

const FLAG: &str = "--tls-ca";

/// Certificate authorities, from a file or the system.
#[derive(Clone)]
pub struct Authorities {
    /// `None` for the system's authorities.
    file: Option<PathBuf>,
    config: Arc<ClientConfig>,
}

impl Authorities {
    /// Reads the authorities in a PEM file, and trusts no others.
    ///
    /// # Errors
    /// [`OptionsError`].
    pub fn of_file(path: &Path) -> Result<Self, OptionsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(FLAG, path)? {
            let added = roots.add(certificate);
            added.map_err(|_| wrong(FLAG, path, "a certificate in it is damaged"))?;
        }
        Self::new(Some(path.to_owned()), roots)
    }

    /// Returns the authorities that the operating system trusts.
    ///
    /// # Errors
    /// [`OptionsError::NoAuthorities`].
    pub fn of_system() -> Result<Self, OptionsError> {
        let mut roots = RootCertStore::empty();
        // Systems have some obsolete ones that cannot be parsed.
        let found = rustls_native_certs::load_native_certs();
        let (usable, _) = roots.add_parsable_certificates(found.certs);
        if usable == 0 {
            return Err(OptionsError::NoAuthorities);
        }
        Self::new(None, roots)
    }

    fn new(file: Option<PathBuf>, roots: RootCertStore) -> Result<Self, OptionsError> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|_| OptionsError::NoAuthorities)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            file,
            config: Arc::new(config),
        })
    }

    /// Returns the configuration of a side that trusts them.
    pub(in crate::transport) const fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }

    /// Returns the sentence for a certificate of another authority.
    pub(in crate::transport) fn refusal(&self) -> String {
        match &self.file {
            Some(file) => {
                let file = file.display();
                format!("its certificate is signed by no authority in {file}")
            }
            None => "its certificate is signed by no authority that this system trusts: give \
                     `--tls-ca FILE`"
                .to_owned(),
        }
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authorities({:?})", self.file)
    }
}
