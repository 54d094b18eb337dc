//! Serial lines (UART): `serial:PATH[@BAUD]`, with the default baud rate.

use std::fmt;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_serial::{SerialPortBuilderExt, SerialStream};

use super::endpoint::{Connecting, Endpoint, Listener, Properties, SERIAL, Scheme, Transport};
use super::options::Options;

/// Bits per second, if the address does not specify them.
const DEFAULT_BAUD: u32 = 115_200;

pub(super) const SCHEME: Scheme = Scheme {
    name: SERIAL,
    syntax: "serial:PATH[@BAUD]",
    parse: |text| Some(Arc::new(Serial::parse(text)?)),
    properties: Properties::LOSSY,
};

#[derive(Debug)]
struct Serial {
    /// The device file.
    path: String,
    /// Bits per second.
    baud: u32,
}

impl Serial {
    fn parse(text: &str) -> Option<Self> {
        let (path, baud) = match text.rsplit_once('@') {
            None => (text, DEFAULT_BAUD),
            Some((path, baud)) => (path, baud.parse().ok()?),
        };
        let path = path.to_owned();
        (!path.is_empty() && baud > 0).then_some(Self { path, baud })
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, baud } = self;
        write!(f, "{path}@{baud}")
    }
}

/// An open line. A flush does not wait until the bytes are on the wire: that would block the thread
/// of all other connections, without end if the board takes no more bytes. A write waits for room
/// in the buffer of the operating system instead, which a time-out can end.
struct Line(SerialStream);

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Endpoint for Serial {
    fn leaves_this_machine(&self) -> bool {
        false
    }

    fn connect<'a>(&'a self, _: &'a Options) -> Connecting<'a> {
        Box::pin(async {
            let line = tokio_serial::new(&self.path, self.baud).open_native_async()?;
            Ok(Box::new(Line(line)) as Box<dyn Transport>)
        })
    }

    fn listen(&self, _: &Options) -> io::Result<Box<dyn Listener>> {
        Err(io::Error::new(
            ErrorKind::Unsupported,
            "a serial line does not accept connections: use --device",
        ))
    }
}
