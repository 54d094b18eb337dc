//! TCP: `tcp:HOST:PORT`.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use super::endpoint::{Endpoint, Listener, Scheme, Transport};
use super::io::{READ_TIMEOUT, WRITE_TIMEOUT};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Keep-alive probes begin after this much silence, are repeated at this interval, and the
/// connection is broken after so many without an answer. So the loss of a device's power is noticed
/// within half a minute, where the operating system's defaults take hours.
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(15);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_ALIVE_PROBES: u32 = 3;

pub(super) const SCHEME: Scheme = Scheme {
    name: "tcp",
    syntax: "tcp:HOST:PORT",
    parse: |text| Some(Arc::new(Tcp::parse(text)?)),
};

/// A host and a port.
#[derive(Debug)]
struct Tcp(String);

impl Tcp {
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        port.parse::<u16>().ok()?;
        (!host.is_empty()).then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Endpoint for Tcp {
    fn leaves_this_machine(&self) -> bool {
        let host = self.0.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = |ip: IpAddr| ip.is_loopback();
        host != "localhost" && !host.parse().is_ok_and(is_loopback)
    }

    fn connect(&self) -> io::Result<Box<dyn Transport>> {
        let mut last = io::Error::from(ErrorKind::NotFound);
        for address in self.0.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => return configured(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn listen(&self) -> io::Result<Box<dyn Listener>> {
        let listener = TcpListener::bind(&self.0)?;
        listener.set_nonblocking(true)?;
        Ok(Box::new(listener))
    }
}

impl Listener for TcpListener {
    fn accept(&self) -> io::Result<Box<dyn Transport>> {
        configured(Self::accept(self)?.0)
    }
}

fn configured(stream: TcpStream) -> io::Result<Box<dyn Transport>> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let keep_alive = TcpKeepalive::new()
        .with_time(KEEP_ALIVE_TIME)
        .with_interval(KEEP_ALIVE_INTERVAL)
        .with_retries(KEEP_ALIVE_PROBES);
    SockRef::from(&stream).set_tcp_keepalive(&keep_alive)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    Ok(Box::new(stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_kept_alive() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let same = stream.try_clone().unwrap();
        let _transport = configured(stream).unwrap();
        let socket = SockRef::from(&same);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEP_ALIVE_TIME);
        assert_eq!(
            socket.tcp_keepalive_interval().unwrap(),
            KEEP_ALIVE_INTERVAL
        );
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEP_ALIVE_PROBES);
    }
}
