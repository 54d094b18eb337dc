//! Where devices are: `serial:PATH[@BAUD]`, `tcp:HOST:PORT`, `unix:PATH`.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};

/// Bits a second of a serial line unless the address says otherwise.
pub const DEFAULT_BAUD: u32 = 115_200;

/// How long a read waits for bytes before it returns without any.
pub const READ_WAIT: Duration = Duration::from_millis(20);

/// How long a frame may take to be written: a serial line of 9,600 baud needs 0.3 s for one.
const WRITE_WAIT: Duration = Duration::from_secs(2);

/// How long a connection may take to be made.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// Silence after which the system asks whether a TCP connection is still there, how often it asks, and
/// after how many questions without an answer the connection is broken: a device that lost its power
/// is noticed after half a minute, and its address dialled again. The system's own wait is hours.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(15), Duration::from_secs(5), 3);

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
    /// Whether what is sent there may cross a network.
    #[must_use]
    pub fn leaves_this_machine(&self) -> bool {
        let Self::Tcp(place) = self else {
            return false;
        };
        let host = place.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = |ip: IpAddr| ip.is_loopback();
        host != "localhost" && !host.parse().is_ok_and(is_loopback)
    }

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
                    Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_behind(path) => {
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

/// Whether there is a socket that nobody listens at any more: other files are never removed.
fn is_left_behind(path: &Path) -> bool {
    let refused = |error: io::Error| error.kind() == ErrorKind::ConnectionRefused;
    is_socket(path) && UnixStream::connect(path).is_err_and(refused)
}

fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

fn tcp(stream: TcpStream) -> io::Result<Box<dyn Transport>> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let (idle, every, questions) = KEEP_ALIVE;
    let keep_alive = TcpKeepalive::new()
        .with_time(idle)
        .with_interval(every)
        .with_retries(questions);
    SockRef::from(&stream).set_tcp_keepalive(&keep_alive)?;
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
        if let Self::Unix(_, path) = self
            && is_socket(path)
        {
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
        // Also for a line that takes a byte now and then.
        if Instant::now() >= deadline {
            return Err(ErrorKind::TimedOut.into());
        }
        match transport.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
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
    fn what_stays_on_this_machine_is_known() {
        for (text, leaves) in [
            ("tcp:127.0.0.1:1", false),
            ("tcp:[::1]:1", false),
            ("tcp:localhost:1", false),
            ("tcp:0.0.0.0:1", true),
            ("tcp:board.local:1", true),
            ("serial:/dev/ttyACM0", false),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.leaves_this_machine(), leaves, "{text}");
        }
    }

    #[test]
    fn tcp_connections_are_kept_alive() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let same = stream.try_clone().unwrap();
        let _transport = tcp(stream).unwrap();
        let socket = SockRef::from(&same);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEP_ALIVE.0);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEP_ALIVE.1);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEP_ALIVE.2);
    }

    #[test]
    fn a_socket_is_replaced_and_no_other_file_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("place");
        let address = Address::Unix(path.clone());
        std::fs::write(&path, "keys").unwrap();
        assert!(address.listen().is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"keys");
        std::fs::remove_file(&path).unwrap();

        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "left behind");
        let listener = address.listen().unwrap();
        assert!(address.listen().is_err(), "somebody listens");
        // Whatever took its place in the meantime stays as well.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "keys").unwrap();
        drop(listener);
        assert_eq!(std::fs::read(&path).unwrap(), b"keys");
    }

    /// Takes one byte every 100 ms.
    struct Drip;

    impl Read for Drip {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
    }

    impl Write for Drip {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            std::thread::sleep(Duration::from_millis(100));
            Ok(1)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_takes_a_byte_now_and_then_is_given_up() {
        let error = write_all(&mut Drip, &[0; 256]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
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
