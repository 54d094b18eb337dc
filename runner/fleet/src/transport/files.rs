//! The files that connections need besides their addresses (certificates, authorities, login), and
//! the errors if one is missing, unused or unusable.

use std::io;
#[cfg(any(feature = "mqtt", feature = "tls"))]
use std::path::Path;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Error for an invalid or missing file of connections.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// It cannot be read.
    #[error("`{flag} {}`: cannot read it: {source}", path.display())]
    Io {
        /// The flag.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Its contents are invalid.
    #[error("`{flag} {}`: {what}", path.display())]
    Content {
        /// The flag.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// The problem, and the expected contents.
        what: String,
    },
    /// An address needs a file, and none was given.
    #[error("`{0}`: give `--tls-certificate FILE` and `--tls-key FILE`, which authenticate it")]
    NoCertificate(String),
    /// A file was given that no address needs.
    #[error("`{flag}`: {user}")]
    Unused {
        /// The flag.
        flag: &'static str,
        /// The kind of address that would need it.
        user: &'static str,
    },
    /// The system has no certificate authorities.
    #[error(
        "this system has no certificate authorities (the package ca-certificates): give \
         `--tls-ca FILE`"
    )]
    NoAuthorities,
}

/// The files that connections need, as the command line and `fleet.toml` name them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct TransportFiles {
    /// Accept TLS connections with the certificate in this PEM file.
    ///
    /// It is required if this command accepts connections at tls:HOST:PORT. The file must also
    /// contain any intermediate certificates.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_certificate: Option<PathBuf>,
    /// Read the private key of the certificate from this PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// Trust the authorities in this PEM file for connections to tls:HOST:PORT.
    ///
    /// By default, the command trusts the authorities of the system.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<PathBuf>,
    /// Log in to the broker at mqtt:HOST:PORT with the user name and password in this file.
    ///
    /// The file has two lines, the user name and the password, and only its owner may read it.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mqtt_login: Option<PathBuf>,
}

impl TransportFiles {
    /// Returns whether no file is given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Falls back to the files of `stored` for the ones not given.
    #[must_use]
    pub fn or(self, stored: &Self) -> Self {
        Self {
            tls_certificate: self.tls_certificate.or(stored.tls_certificate.clone()),
            tls_key: self.tls_key.or(stored.tls_key.clone()),
            tls_ca: self.tls_ca.or(stored.tls_ca.clone()),
            mqtt_login: self.mqtt_login.or(stored.mqtt_login.clone()),
        }
    }

    /// Returns the same files with absolute paths.
    ///
    /// # Errors
    /// The errors of the operating system.
    pub fn absolute(&self) -> io::Result<Self> {
        let absolute = |path: &Option<PathBuf>| path.as_ref().map(std::path::absolute).transpose();
        Ok(Self {
            tls_certificate: absolute(&self.tls_certificate)?,
            tls_key: absolute(&self.tls_key)?,
            tls_ca: absolute(&self.tls_ca)?,
            mqtt_login: absolute(&self.mqtt_login)?,
        })
    }
}

/// Returns an error for a file with invalid contents.
#[cfg(any(feature = "mqtt", feature = "tls"))]
pub(super) fn wrong(flag: &'static str, path: &Path, what: impl Into<String>) -> OptionsError {
    OptionsError::Content {
        flag,
        path: path.to_owned(),
        what: what.into(),
    }
}
