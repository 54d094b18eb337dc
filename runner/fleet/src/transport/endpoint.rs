//! What a transport implements.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};

use super::options::Options;

/// The names of the schemes that need a feature, which has the same name.
pub(super) const MQTT: &str = "mqtt";
pub(super) const SERIAL: &str = "serial";
pub(super) const TLS: &str = "tls";

/// That of datagrams.
pub(super) const UDP: &str = "udp";

/// A kind of address.
pub(super) struct Scheme {
    /// The part of an address before the first colon.
    pub(super) name: &'static str,
    /// The form of the whole address, for messages.
    pub(super) syntax: &'static str,
    /// Parses what follows the colon, which is not empty; `None` if it is malformed.
    pub(super) parse: fn(&str) -> Option<Arc<dyn Endpoint>>,
}

/// What an attempt to connect becomes.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Transport>>> + Send + 'a>>;

/// Where a device is, or where devices connect to. `Display` shows what follows the scheme.
///
/// Both functions are called within a runtime of tokio.
pub trait Endpoint: fmt::Debug + fmt::Display + Send + Sync {
    /// Whether what is sent there may cross a network.
    fn leaves_this_machine(&self) -> bool;

    /// Connects.
    ///
    /// # Errors
    /// Those of the operating system.
    fn connect<'a>(&'a self, options: &'a Options) -> Connecting<'a>;

    /// Listens for connections.
    ///
    /// # Errors
    /// Those of the operating system, or [`io::ErrorKind::Unsupported`].
    fn listen(&self, options: &Options) -> io::Result<Box<dyn Listener>>;
}

/// A connection that was accepted.
pub struct Accepted {
    /// Becomes its bytes. A transport with a handshake makes it here, so that it keeps nobody else
    /// waiting; an error of the kind [`io::ErrorKind::InvalidData`] is worth telling an operator.
    pub opening: Connecting<'static>,
    /// The address of the peer, where transports have one: quotas are kept by it.
    pub source: Option<IpAddr>,
}

impl Accepted {
    /// A connection without a handshake.
    pub(super) fn open(transport: impl Transport + 'static, source: Option<IpAddr>) -> Self {
        let transport: Box<dyn Transport> = Box::new(transport);
        Self {
            opening: Box::pin(std::future::ready(Ok(transport))),
            source,
        }
    }
}

/// Accepts connections.
pub trait Listener: Send {
    /// The next connection.
    ///
    /// # Errors
    /// Those of the operating system.
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Accepted>>;
}

/// A stream of bytes in both directions. What was written is sent once it is flushed.
pub trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}
