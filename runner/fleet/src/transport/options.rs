//! What connections need beside their addresses: certificates, a login.
//!
//! An address says where; the files of [`TransportFiles`] are the same for all addresses of a
//! command. They are read once, before anything is connected, so that a wrong one is an error of
//! the command line.

use std::sync::Arc;

use super::files::{OptionsError, TransportFiles};
use super::mqtt::login::Login;
use super::tls::authorities::Authorities;
use super::tls::certificate::Certificate;

/// What the addresses of a command need.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// An address at which this side must prove itself over TLS.
    pub(super) certificate: Option<String>,
    /// Whether others prove themselves to this side over TLS.
    pub(super) authorities: bool,
    /// Whether there is a broker.
    pub(super) login: bool,
}

/// What connections need beside their addresses. Copies share what was read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// With what this side proves itself where it accepts connections over TLS.
    pub(super) certificate: Option<Arc<Certificate>>,
    /// Whom it believes where it connects over TLS.
    pub(super) authorities: Option<Authorities>,
    /// How brokers know this side; without it, not at all.
    pub(super) login: Option<Arc<Login>>,
}

impl Options {
    /// Reads what addresses need.
    ///
    /// # Errors
    /// [`OptionsError`]: a file that is wrong or missing, or that no address needs.
    pub(super) fn read(files: &TransportFiles, needs: Needs) -> Result<Self, OptionsError> {
        let certificate = match (&files.tls_certificate, &files.tls_key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => None,
        };
        let certificate = match (needs.certificate, certificate) {
            (None, None) => None,
            (Some(address), None) => return Err(OptionsError::NoCertificate(address)),
            (None, Some(_)) => {
                return Err(OptionsError::Unused {
                    flag: "--tls-certificate",
                    user: "no `--listen tls:HOST:PORT` needs it",
                });
            }
            (Some(_), Some((certificate, key))) => {
                Some(Arc::new(Certificate::read(certificate, key)?))
            }
        };
        let authorities = match (needs.authorities, &files.tls_ca) {
            (false, None) => None,
            (false, Some(_)) => {
                return Err(OptionsError::Unused {
                    flag: "--tls-ca",
                    user: "no connection to a tls:HOST:PORT needs it",
                });
            }
            (true, Some(file)) => Some(Authorities::of_file(file)?),
            (true, None) => Some(Authorities::of_system()?),
        };
        if files.mqtt_login.is_some() && !needs.login {
            return Err(OptionsError::Unused {
                flag: "--mqtt-login",
                user: "no address mqtt:HOST:PORT needs it",
            });
        }
        let login = files.mqtt_login.as_deref().map(Login::read).transpose()?;
        Ok(Self {
            certificate,
            authorities,
            login: login.map(Arc::new),
        })
    }

    /// Reads the certificate and its key again, for connections from now on: they are renewed every
    /// few months. Whether there is one.
    ///
    /// # Errors
    /// [`OptionsError`]; the certificate of before stays.
    pub fn reload(&self) -> Result<bool, OptionsError> {
        match &self.certificate {
            None => Ok(false),
            Some(certificate) => certificate.reload().map(|()| true),
        }
    }
}
