//! Settings of connections besides their addresses: certificates, a login.
//!
//! The files of [`TransportFiles`] are the same for all addresses of a command. They are read once,
//! before connecting, so that a bad one is an error of the command line.

#[cfg(any(feature = "mqtt", feature = "tls"))]
use std::sync::Arc;

#[cfg(feature = "tls")]
use super::credentials::{authorities::Authorities, certificate::Certificate};
use super::files::{OptionsError, TransportFiles};
#[cfg(feature = "mqtt")]
use super::login::Login;

/// Requirements of a command's addresses.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// An address at which this side needs a certificate for TLS.
    pub(super) certificate: Option<String>,
    /// Whether other sides identify themselves to this one over TLS.
    pub(super) authorities: bool,
    /// Whether an address has a broker.
    pub(super) login: bool,
}

/// Settings of connections besides their addresses. Copies share the contents of the files.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Certificate of this side for accepting connections over TLS.
    #[cfg(feature = "tls")]
    pub(super) certificate: Option<Arc<Certificate>>,
    /// Authorities trusted when connecting over TLS.
    #[cfg(feature = "tls")]
    pub(super) authorities: Option<Authorities>,
    /// Login for brokers. `None` connects anonymously.
    #[cfg(feature = "mqtt")]
    pub(super) login: Option<Arc<Login>>,
}

impl Options {
    /// Reads the files that addresses need.
    ///
    /// # Errors
    /// [`OptionsError`]: a file is invalid, missing, or not needed by any address.
    pub(super) fn read(files: &TransportFiles, needs: &Needs) -> Result<Self, OptionsError> {
        refuse_unused(files, needs)?;
        Ok(Self {
            #[cfg(feature = "tls")]
            certificate: certificate(files, needs)?,
            #[cfg(feature = "tls")]
            authorities: authorities(files, needs)?,
            #[cfg(feature = "mqtt")]
            login: match &files.mqtt_login {
                Some(file) => Some(Arc::new(Login::read(file)?)),
                None => None,
            },
        })
    }

    /// Reads the certificate and its key again, for later connections, since they are renewed every
    /// few months. Returns whether there is one.
    ///
    /// # Errors
    /// [`OptionsError`]. The earlier certificate then stays.
    pub fn reload(&self) -> Result<bool, OptionsError> {
        #[cfg(feature = "tls")]
        if let Some(certificate) = &self.certificate {
            return certificate.reload().map(|()| true);
        }
        Ok(false)
    }
}

/// Refuses a file that no address needs.
fn refuse_unused(files: &TransportFiles, needs: &Needs) -> Result<(), OptionsError> {
    for (is_given, is_needed, flag, user) in [
        (
            files.tls_certificate.is_some(),
            needs.certificate.is_some(),
            "--tls-certificate",
            "no `--listen tls:HOST:PORT` needs it",
        ),
        (
            files.tls_ca.is_some(),
            needs.authorities,
            "--tls-ca",
            "no connection to a tls:HOST:PORT needs it",
        ),
        (
            files.mqtt_login.is_some(),
            needs.login,
            "--mqtt-login",
            "no address mqtt:HOST:PORT needs it",
        ),
    ] {
        if is_given && !is_needed {
            return Err(OptionsError::Unused { flag, user });
        }
    }
    Ok(())
}

#[cfg(feature = "tls")]
fn certificate(
    files: &TransportFiles,
    needs: &Needs,
) -> Result<Option<Arc<Certificate>>, OptionsError> {
    let Some(address) = &needs.certificate else {
        return Ok(None);
    };
    match (&files.tls_certificate, &files.tls_key) {
        (Some(certificate), Some(key)) => Ok(Some(Arc::new(Certificate::read(certificate, key)?))),
        _ => Err(OptionsError::NoCertificate(address.clone())),
    }
}

#[cfg(feature = "tls")]
fn authorities(files: &TransportFiles, needs: &Needs) -> Result<Option<Authorities>, OptionsError> {
    match (needs.authorities, &files.tls_ca) {
        (false, _) => Ok(None),
        (true, Some(file)) => Authorities::of_file(file).map(Some),
        (true, None) => Authorities::of_system().map(Some),
    }
}
