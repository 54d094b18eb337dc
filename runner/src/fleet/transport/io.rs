//! Reads and writes that time out, so that a peer cannot block the coordinator.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use super::endpoint::Transport;

/// How long a read waits for bytes before it returns without any.
pub(super) const READ_TIMEOUT: Duration = Duration::from_millis(20);

/// How long a frame may take to be written: a serial line of 9,600 baud needs 0.3 s for one.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads what arrives within the read time-out: `Ok(0)` means nothing did.
///
/// # Errors
/// Those of the operating system; [`ErrorKind::UnexpectedEof`] if the peer closed the connection.
pub fn read_some(transport: &mut dyn Transport, buffer: &mut [u8]) -> io::Result<usize> {
    match transport.read(buffer) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Err(error) if is_transient(&error) => Ok(0),
        read => read,
    }
}

/// Writes all of `bytes` within the write time-out.
///
/// # Errors
/// Those of the operating system; [`ErrorKind::TimedOut`] if the peer does not take the bytes.
pub fn write_all(transport: &mut dyn Transport, mut bytes: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + WRITE_TIMEOUT;
    while !bytes.is_empty() {
        // Checked after each write: a peer may take one byte now and then.
        if Instant::now() >= deadline {
            return Err(ErrorKind::TimedOut.into());
        }
        match transport.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// Takes one byte every 100 ms.
    struct Slow;

    impl Read for Slow {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
    }

    impl Write for Slow {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            std::thread::sleep(Duration::from_millis(100));
            Ok(1)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn writing_to_a_slow_peer_times_out() {
        let error = write_all(&mut Slow, &[0; 256]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
