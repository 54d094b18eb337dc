//! TCP: `tcp:HOST:PORT`, with the time limit of connecting, and the keep-alive probes by which a
//! dead connection is noticed.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::time::timeout;

use super::endpoint::{Accepted, Connecting, Endpoint, Listener, Properties, Scheme, Transport};
use super::options::Options;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Pending connections in the operating system: a fleet that returns after an outage connects at
/// once. The system's own limit may be lower (net.core.somaxconn).
const BACKLOG: i32 = 4096;

/// Keep-alive probes begin after this much silence, are repeated at this interval, and the
/// connection breaks after this many unanswered ones. A device's loss of power is then noticed
/// within a minute, instead of hours with the operating system's defaults.
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(15);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_ALIVE_PROBES: u32 = 3;

/// Linux sends no probes while data are unacknowledged. Without this limit it would take a quarter
/// of an hour to notice the loss of a selected device, and half a minute for another one. It
/// replaces the number of probes, so that both take a minute.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(60);

pub(super) const SCHEME: Scheme = Scheme {
    name: "tcp",
    syntax: "tcp:HOST:PORT",
    parse: |text| Some(Arc::new(Tcp::parse(text)?)),
    properties: Properties::STREAM,
};

/// A host and a port.
#[derive(Debug)]
pub(super) struct Tcp(String);

impl Tcp {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        port.parse::<u16>().ok()?;
        (!host.is_empty()).then(|| Self(text.to_owned()))
    }

    /// Returns the host, without the brackets of an IPv6 address.
    pub(super) fn host(&self) -> &str {
        let host = self.0.rsplit_once(':').map_or("", |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Connects to the first of the host's addresses that answers.
    pub(super) async fn stream(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::from(ErrorKind::NotFound);
        for address in lookup_host(&self.0).await? {
            let connecting = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
            match connecting.map_err(|_| ErrorKind::TimedOut.into()).flatten() {
                Ok(stream) => return configured(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Listens on the first of the host's addresses that belongs to this machine.
    pub(super) fn listener(&self) -> io::Result<TcpListener> {
        let mut last = io::Error::from(ErrorKind::NotFound);
        for address in self.0.to_socket_addrs()? {
            let bind = || {
                let socket = Socket::new(
                    Domain::for_address(address),
                    Type::STREAM,
                    Some(Protocol::TCP),
                )?;
                socket.set_reuse_address(true)?;
                socket.set_nonblocking(true)?;
                socket.bind(&address.into())?;
                socket.listen(BACKLOG)?;
                TcpListener::from_std(socket.into())
            };
            match bind() {
                Ok(listener) => return Ok(listener),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl fmt::Display for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Endpoint for Tcp {
    fn leaves_this_machine(&self) -> bool {
        let is_loopback = |ip: IpAddr| ip.is_loopback();
        self.host() != "localhost" && !self.host().parse().is_ok_and(is_loopback)
    }

    fn connect<'a>(&'a self, _: &'a Options) -> Connecting<'a> {
        Box::pin(async { Ok(Box::new(self.stream().await?) as Box<dyn Transport>) })
    }

    fn listen(&self, _: &Options) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(self.listener()?))
    }
}

impl Listener for TcpListener {
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        let (stream, source) = ready!(accepted(self, context))?;
        Poll::Ready(Ok(Accepted::open(stream, Some(source))))
    }
}

/// Returns the next connection, with the address of the peer.
pub(super) fn accepted(
    listener: &TcpListener,
    context: &mut Context<'_>,
) -> Poll<io::Result<(TcpStream, IpAddr)>> {
    let (stream, address) = ready!(listener.poll_accept(context))?;
    Poll::Ready(configured(stream).map(|stream| (stream, address.ip())))
}

fn configured(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let keep_alive = TcpKeepalive::new()
        .with_time(KEEP_ALIVE_TIME)
        .with_interval(KEEP_ALIVE_INTERVAL)
        .with_retries(KEEP_ALIVE_PROBES);
    let socket = SockRef::from(&stream);
    socket.set_tcp_keepalive(&keep_alive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_are_kept_alive() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap());
        let stream = configured(stream.await.unwrap()).unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEP_ALIVE_TIME);
        assert_eq!(
            socket.tcp_keepalive_interval().unwrap(),
            KEEP_ALIVE_INTERVAL
        );
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEP_ALIVE_PROBES);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNACKNOWLEDGED));
    }
}
