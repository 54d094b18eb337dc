//! Where devices are: `serial:PATH[@BAUD]`, `tcp:HOST:PORT`, `unix:PATH`.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Bits a second of a serial line unless the address says otherwise.
pub const DEFAULT_BAUD: u32 = 115_200;

/// How long a read waits for bytes before it returns without any.
pub const READ_WAIT: Duration = Duration::from_millis(20);

/// How long a frame may take to be written: a serial line of 9,600 baud needs 0.3 s for one.
const WRITE_WAIT: Duration = Duration::from_secs(2);

/// How long a connection may take to be made.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// Where a device is, or where it is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A serial line.
    Serial {
        /// The device file.
        path: String,
        /// Bits a second.
        baud: u32,
    },
    /// A host and a port.
    Tcp(String),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// An address that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address: expected serial:PATH[@BAUD], tcp:HOST:PORT or unix:PATH")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = || AddressError(text.to_owned());
        let (scheme, rest) = text.split_once(':').ok_or_else(error)?;
        if rest.is_empty() {
            return Err(error());
        }
        match scheme {
            "serial" => {
                let (path, baud) = match rest.rsplit_once('@') {
                    None => (rest, DEFAULT_BAUD),
                    Some((path, baud)) => (path, baud.parse().map_err(|_| error())?),
                };
                if path.is_empty() || baud == 0 {
                    return Err(error());
                }
                let path = path.to_owned();
                Ok(Self::Serial { path, baud })
            }
            "tcp" => {
                let (host, port) = rest.rsplit_once(':').ok_or_else(error)?;
                let is_port = port.parse::<u16>().is_ok();
                (is_port && !host.is_empty())
                    .then(|| Self::Tcp(rest.to_owned()))
                    .ok_or_else(error)
            }
            "unix" => Ok(Self::Unix(rest.into())),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serial { path, baud } => write!(f, "serial:{path}@{baud}"),
            Self::Tcp(place) => write!(f, "tcp:{place}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A stream of bytes whose reads return after [`READ_WAIT`] and whose writes give up.
pub trait Transport: Read + Write + Send {}
impl<T: Read + Write + Send> Transport for T {}

impl Address {
    /// Connects.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn connect(&self) -> io::Result<Box<dyn Transport>> {
        match self {
            Self::Serial { path, baud } => {
                let port = serialport::new(path, *baud).timeout(READ_WAIT).open()?;
                Ok(Box::new(port))
            }
            Self::Tcp(place) => {
                let mut last = io::Error::from(ErrorKind::NotFound);
                for address in place.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, CONNECT_WAIT) {
                        Ok(stream) => return tcp(stream),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Self::Unix(path) => unix(UnixStream::connect(path)?),
        }
    }

    /// Listens. A socket that an earlier process left behind is replaced.
    ///
    /// # Errors
    /// Whatever the system says; serial lines cannot be listened on.
    pub fn listen(&self) -> io::Result<Listener> {
        match self {
            Self::Serial { .. } => Err(io::Error::new(
                ErrorKind::Unsupported,
                "a serial line is opened, not listened on: use --device",
            )),
            Self::Tcp(place) => {
                let listener = TcpListener::bind(place)?;
                listener.set_nonblocking(true)?;
                Ok(Listener::Tcp(listener))
            }
            Self::Unix(path) => {
                let listener = match UnixListener::bind(path) {
                    Err(error) if error.kind() == ErrorKind::AddrInUse => {
                        if UnixStream::connect(path).is_ok() {
                            return Err(error);
                        }
                        std::fs::remove_file(path)?;
                        UnixListener::bind(path)?
                    }
                    other => other?,
                };
                listener.set_nonblocking(true)?;
                Ok(Listener::Unix(listener, path.clone()))
            }
        }
    }
}

fn tcp(stream: TcpStream) -> io::Result<Box<dyn Transport>> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(READ_WAIT))?;
    stream.set_write_timeout(Some(WRITE_WAIT))?;
    Ok(Box::new(stream))
}

fn unix(stream: UnixStream) -> io::Result<Box<dyn Transport>> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(READ_WAIT))?;
    stream.set_write_timeout(Some(WRITE_WAIT))?;
    Ok(Box::new(stream))
}

/// Where connections come in.
#[derive(Debug)]
pub enum Listener {
    /// At a port.
    Tcp(TcpListener),
    /// At a socket, which is removed with the value.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// The connection that came first, if there is one; does not wait.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn accept(&self) -> io::Result<Option<Box<dyn Transport>>> {
        let accepted = match self {
            Self::Tcp(listener) => listener.accept().and_then(|(stream, _)| tcp(stream)),
            Self::Unix(listener, _) => listener.accept().and_then(|(stream, _)| unix(stream)),
        };
        match accepted {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            other => other.map(Some),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // That it may stay behind does no harm: the next one replaces it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Reads what there is within [`READ_WAIT`]: `Ok(0)` is nothing, an end is an error.
///
/// # Errors
/// Whatever the system says; [`ErrorKind::UnexpectedEof`] if the other side closed the connection.
pub fn read_some(transport: &mut dyn Transport, buffer: &mut [u8]) -> io::Result<usize> {
    match transport.read(buffer) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(0),
            _ => Err(error),
        },
        read => read,
    }
}

/// Writes all of `bytes`, or gives up after a while: a line that takes nothing holds nobody up.
///
/// # Errors
/// Whatever the system says; [`ErrorKind::TimedOut`] if the line takes nothing.
pub fn write_all(transport: &mut dyn Transport, mut bytes: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + WRITE_WAIT;
    while !bytes.is_empty() {
        match transport.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    if Instant::now() < deadline => {}
                _ => return Err(error),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in ["serial:/dev/ttyACM0@9600", "tcp:[::1]:7000", "unix:/run/x"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        let serial: Address = "serial:/dev/ttyACM0".parse().unwrap();
        assert_eq!(serial.to_string(), "serial:/dev/ttyACM0@115200");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "tcp",
            "tcp:",
            "tcp:host",
            "tcp:host:",
            "tcp::1",
            "tcp:host:70000",
            "unix:",
            "udp:host:1",
            "serial:@9600",
            "serial:/dev/x@",
            "serial:/dev/x@0",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("serial:PATH"), "{error}");
        }
    }
}
