//! The interface (trait) of a transport: the syntax of its addresses, connecting and listening.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};

use super::options::Options;

/// Names of the schemes that need a feature of the same name.
pub(super) const MQTT: &str = "mqtt";
pub(super) const SERIAL: &str = "serial";
pub(super) const TLS: &str = "tls";

/// A kind of address.
#[derive(Debug)]
pub(super) struct Scheme {
    /// The part of an address before the first colon.
    pub(super) name: &'static str,
    /// The form of the whole address, for messages.
    pub(super) syntax: &'static str,
    /// Parses the non-empty part after the colon. `None` if it is malformed.
    pub(super) parse: fn(&str) -> Option<Arc<dyn Endpoint>>,
    /// The properties of its connections.
    pub(super) properties: Properties,
}

/// The properties of the connections of a scheme.
#[derive(Debug)]
pub(super) struct Properties {
    /// Connections lose nothing and carry any bytes, as helpers require.
    pub(super) is_reliable: bool,
    /// Both sides meet at a broker, where coordinators listen and devices connect.
    pub(super) has_broker: bool,
    /// The side that listens has a certificate.
    pub(super) has_certificate: bool,
}

impl Properties {
    /// A stream of bytes between both sides.
    pub(super) const STREAM: Self = Self {
        is_reliable: true,
        has_broker: false,
        has_certificate: false,
    };
    /// A line or packets, which may lose or change bytes.
    pub(super) const LOSSY: Self = Self {
        is_reliable: false,
        ..Self::STREAM
    };
}

/// The result of an attempt to connect.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Transport>>> + Send + 'a>>;

/// Address of a device, or for devices to connect to. `Display` shows the part after the scheme.
///
/// Both functions are called within a runtime of tokio.
pub trait Endpoint: fmt::Debug + fmt::Display + Send + Sync {
    /// Returns whether messages to this address may cross a network.
    fn leaves_this_machine(&self) -> bool;

    /// Connects.
    ///
    /// # Errors
    /// The errors of the operating system.
    fn connect<'a>(&'a self, options: &'a Options) -> Connecting<'a>;

    /// Listens for connections.
    ///
    /// # Errors
    /// The errors of the operating system, or [`io::ErrorKind::Unsupported`].
    fn listen(&self, options: &Options) -> io::Result<Box<dyn Listener>>;
}

/// An accepted connection.
pub struct Accepted {
    /// Opens the stream. A transport does its handshake here, so that it delays no other
    /// connection. An error of the kind [`io::ErrorKind::InvalidData`] is worth reporting to an
    /// operator.
    pub opening: Connecting<'static>,
    /// The address of the peer, if the transport has one, for quotas.
    pub source: Option<IpAddr>,
}

impl Accepted {
    /// Returns a connection without a handshake.
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
    /// Returns the next connection.
    ///
    /// # Errors
    /// The errors of the operating system.
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Accepted>>;
}

/// A stream of bytes in both directions. Written bytes are sent once flushed.
pub trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}
