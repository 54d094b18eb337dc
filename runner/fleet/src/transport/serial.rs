//! Serial lines: `serial:PATH[@BAUD]`.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use tokio_serial::SerialPortBuilderExt;

use super::endpoint::{Connecting, Endpoint, Listener, SERIAL, Scheme, Transport};
use super::options::Options;

/// Bits per second, if the address does not specify them.
const DEFAULT_BAUD: u32 = 115_200;

pub(super) const SCHEME: Scheme = Scheme {
    name: SERIAL,
    syntax: "serial:PATH[@BAUD]",
    parse: |text| Some(Arc::new(Serial::parse(text)?)),
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

impl Endpoint for Serial {
    fn leaves_this_machine(&self) -> bool {
        false
    }

    fn connect<'a>(&'a self, _: &'a Options) -> Connecting<'a> {
        Box::pin(async {
            let line = tokio_serial::new(&self.path, self.baud).open_native_async()?;
            Ok(Box::new(line) as Box<dyn Transport>)
        })
    }

    fn listen(&self, _: &Options) -> io::Result<Box<dyn Listener>> {
        Err(io::Error::new(
            ErrorKind::Unsupported,
            "a serial line does not accept connections: use --device",
        ))
    }
}
