//! What a transport implements.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// A kind of address.
pub(super) struct Scheme {
    /// The part of an address before the first colon.
    pub(super) name: &'static str,
    /// The form of the whole address, for messages.
    pub(super) syntax: &'static str,
    /// Parses what follows the colon, which is not empty; `None` if it is malformed.
    pub(super) parse: fn(&str) -> Option<Arc<dyn Endpoint>>,
}

/// Where a device is, or where devices connect to. `Display` shows what follows the scheme.
pub trait Endpoint: fmt::Debug + fmt::Display + Send + Sync {
    /// Whether what is sent there may cross a network.
    fn leaves_this_machine(&self) -> bool;

    /// Connects.
    ///
    /// # Errors
    /// Those of the operating system.
    fn connect(&self) -> io::Result<Box<dyn Transport>>;

    /// Listens for connections.
    ///
    /// # Errors
    /// Those of the operating system, or [`io::ErrorKind::Unsupported`].
    fn listen(&self) -> io::Result<Box<dyn Listener>>;
}

/// Accepts connections.
pub trait Listener: Send {
    /// The next connection; [`io::ErrorKind::WouldBlock`] if there is none.
    ///
    /// # Errors
    /// Those of the operating system.
    fn accept(&self) -> io::Result<Box<dyn Transport>>;
}

/// A stream of bytes whose reads and writes time out.
pub trait Transport: Read + Write + Send {}
impl<T: Read + Write + Send> Transport for T {}
