//! Explanations of failed TLS handshakes, with advice: unknown authorities, another name, expired
//! certificates.

use std::io::{self, ErrorKind};
use std::time::{Duration, SystemTime};

use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

use crate::transport::credentials::authorities::Authorities;

/// Explains why this side ends the handshake after connecting to `host`.
pub(super) fn server(error: io::Error, host: &str, authorities: &Authorities) -> io::Error {
    with_reason(error, |reason| match reason {
        Error::InvalidCertificate(why) => certificate(why, host, authorities),
        Error::InvalidMessage(_) => {
            "it does not speak TLS: connect to it with tcp:HOST:PORT, or to another port".to_owned()
        }
        Error::AlertReceived(alert) => format!("it ends the handshake: {}", name(*alert)),
        other => format!("the handshake failed: {other}"),
    })
}

/// Explains why the handshake with a connected peer failed.
pub(super) fn client(error: io::Error) -> io::Error {
    with_reason(error, |reason| match reason {
        Error::InvalidMessage(_) => {
            "a peer at a tls: address does not speak TLS: devices connect with `--connect \
             tls:HOST:PORT`"
                .to_owned()
        }
        Error::AlertReceived(alert) => format!(
            "a peer does not accept the certificate, and says: {}",
            name(*alert)
        ),
        other => format!("the handshake with a peer failed: {other}"),
    })
}

/// Replaces the sentence of a TLS error.
fn with_reason(error: io::Error, sentence: impl Fn(&Error) -> String) -> io::Error {
    let reason = error.get_ref().and_then(|inner| inner.downcast_ref());
    match reason {
        Some(reason) => io::Error::new(ErrorKind::InvalidData, sentence(reason)),
        None if error.kind() == ErrorKind::UnexpectedEof => io::Error::new(
            ErrorKind::UnexpectedEof,
            "closed during the handshake of TLS",
        ),
        None => error,
    }
}

fn certificate(why: &CertificateError, host: &str, authorities: &Authorities) -> String {
    match why {
        // The second one: another authority of the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => authorities.refusal(),
        CertificateError::NotValidForName => {
            format!("its certificate is for a name other than {host}")
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            // Each name comes as `DnsName("coordinator.example")`.
            let names: Vec<&str> = presented
                .iter()
                .map(|name| name.split('"').nth(1).unwrap_or(name))
                .collect();
            let names = match names.as_slice() {
                [] => "no name (a subjectAltName)".to_owned(),
                names => names.join(", "),
            };
            format!("its certificate is for {names}, and not for {host}")
        }
        CertificateError::Expired => "its certificate has expired".to_owned(),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("its certificate has expired, on {}", day(*not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "its certificate is valid from {} on: is the clock of this machine right?",
            day(*not_before)
        ),
        other if is_of_authority(other) => {
            "its certificate belongs to an authority, not a server: make one with \
             basicConstraints=CA:FALSE"
                .to_owned()
        }
        other => format!("its certificate is not accepted: {other}"),
    }
}

/// Returns whether a server used a certificate with CA:TRUE, as created by `openssl req -x509` by
/// default. The certificate library has no variant for it.
fn is_of_authority(why: &CertificateError) -> bool {
    matches!(why, CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity"))
}

fn name(alert: AlertDescription) -> String {
    let words = match alert {
        AlertDescription::UnknownCA => "it is signed by no authority that is trusted there",
        AlertDescription::CertificateExpired => "it has expired",
        AlertDescription::BadCertificate => "it is for another name, or malformed",
        AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion => {
            "no common version or cipher"
        }
        other => {
            return other
                .as_str()
                .map_or_else(|| format!("{other:?}"), str::to_owned);
        }
    };
    words.to_owned()
}

fn day(time: UnixTime) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(time.as_secs());
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.get(..10).unwrap_or_default().to_owned()
}
