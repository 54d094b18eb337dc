//! Pipes in the memory of this process. They have no textual address.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};

use tokio::io::DuplexStream;

use super::endpoint::{Connecting, Endpoint, Listener, Properties, Scheme, Transport};
use super::{Address, Options};
use crate::lock::lock;

/// Capacity of a pipe in bytes: many frames.
const ROOM: usize = 1 << 16;

/// Not a scheme of addresses, since only this program knows the other end.
const SCHEME: Scheme = Scheme {
    name: "memory",
    syntax: "",
    parse: |_| None,
    properties: Properties::STREAM,
};

/// One end of a pipe, until it is connected.
#[derive(Debug)]
struct Memory(Mutex<Option<DuplexStream>>);

/// Returns a pipe: the address of one end, and the other end.
pub(crate) fn pipe() -> (Address, DuplexStream) {
    let (one, other) = tokio::io::duplex(ROOM);
    let address = Address {
        scheme: &SCHEME,
        endpoint: Arc::new(Memory(Mutex::new(Some(one)))),
    };
    (address, other)
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pipe")
    }
}

impl Endpoint for Memory {
    fn leaves_this_machine(&self) -> bool {
        false
    }

    fn connect<'a>(&'a self, _: &'a Options) -> Connecting<'a> {
        let end = lock(&self.0).take();
        let end = end.ok_or_else(|| io::Error::from(ErrorKind::NotConnected));
        Box::pin(std::future::ready(
            end.map(|end| -> Box<dyn Transport> { Box::new(end) }),
        ))
    }

    fn listen(&self, _: &Options) -> io::Result<Box<dyn Listener>> {
        Err(ErrorKind::Unsupported.into())
    }
}
