//! TLS over TCP: `tls:HOST:PORT`.
//!
//! For networks that require it. The protocol itself encrypts and authenticates, and none of its
//! properties depend on TLS: a certificate identifies the answering machine, and keys identify the
//! fleet.

mod explain;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::credentials::certificate::config;
use super::endpoint::{
    Accepted, Connecting, Endpoint, Listener, Properties, Scheme, TLS, Transport,
};
use super::options::Options;
use super::tcp::{Tcp, accepted};

/// Time limit for a handshake: two round trips, and signatures.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) const SCHEME: Scheme = Scheme {
    name: TLS,
    syntax: "tls:HOST:PORT",
    parse: |text| Some(Arc::new(Tls::parse(text)?)),
    properties: Properties {
        has_certificate: true,
        ..Properties::STREAM
    },
};

#[derive(Debug)]
struct Tls {
    tcp: Tcp,
    /// The host, which the certificate of the other side must name.
    name: ServerName<'static>,
}

impl Tls {
    fn parse(text: &str) -> Option<Self> {
        let tcp = Tcp::parse(text)?;
        let name = ServerName::try_from(tcp.host().to_owned()).ok()?;
        Some(Self { tcp, name })
    }

    async fn handshake(&self, options: &Options) -> io::Result<Box<dyn Transport>> {
        let authorities = options.authorities.as_ref();
        let authorities = authorities.ok_or_else(|| io::Error::from(ErrorKind::Unsupported))?;
        let connector = TlsConnector::from(Arc::clone(authorities.config()));
        let stream = self.tcp.stream().await?;
        let connecting = connector.connect(self.name.clone(), stream);
        let stream = within(connecting).await;
        let stream =
            stream.map_err(|error| explain::server(error, self.tcp.host(), authorities))?;
        Ok(Box::new(stream))
    }
}

impl fmt::Display for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tcp.fmt(f)
    }
}

impl Endpoint for Tls {
    fn leaves_this_machine(&self) -> bool {
        self.tcp.leaves_this_machine()
    }

    fn connect<'a>(&'a self, options: &'a Options) -> Connecting<'a> {
        Box::pin(self.handshake(options))
    }

    fn listen(&self, options: &Options) -> io::Result<Box<dyn Listener>> {
        let certificate = options.certificate.as_ref();
        let certificate = certificate.ok_or_else(|| io::Error::from(ErrorKind::Unsupported))?;
        let acceptor = TlsAcceptor::from(config(certificate)?);
        let listener = self.tcp.listener()?;
        Ok(Box::new(Encrypted { listener, acceptor }))
    }
}

/// Accepts connections. Each does its handshake in a separate task.
struct Encrypted {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Encrypted {
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        let (stream, source) = ready!(accepted(&self.listener, context))?;
        Poll::Ready(Ok(Accepted {
            opening: Box::pin(answer(self.acceptor.clone(), stream)),
            source: Some(source),
        }))
    }
}

/// Completes the handshake with a connected peer.
async fn answer(acceptor: TlsAcceptor, stream: TcpStream) -> io::Result<Box<dyn Transport>> {
    let stream = within(acceptor.accept(stream)).await;
    Ok(Box::new(stream.map_err(explain::client)?))
}

async fn within<T>(handshake: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let made = timeout(HANDSHAKE_TIMEOUT, handshake).await;
    made.map_err(|_| io::Error::from(ErrorKind::TimedOut))?
}
