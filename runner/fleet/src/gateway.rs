//! A gateway carries bytes between boards, on serial lines, and a coordinator that the boards
//! cannot reach themselves.
//!
//! It has no keys and understands none of the bytes, so it need not be trusted: it can cut, delay
//! or damage a connection, as anything between a device and its coordinator can. Each board has a
//! separate connection to the coordinator. When that breaks, the gateway reopens it and keeps the
//! line to the board open, because many boards restart when their line is opened.

use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use super::backoff::BackOff;
use super::transport::{Address, Options, Transport};

/// Maximum bytes per read.
const CHUNK: usize = 4096;

/// Time limit for writing a chunk. It takes 4.3 s on a serial line of 9,600 baud.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);

/// After a connection of at least this duration, the pauses restart.
const STABLE: Duration = Duration::from_secs(30);

/// The side that ended an exchange.
enum Ended {
    Board(io::Error),
    Coordinator(io::Error),
}

/// One board, and its coordinator.
#[derive(Debug)]
pub struct Gateway<'a> {
    /// Address of the board.
    pub board: &'a Address,
    /// Address of the coordinator.
    pub coordinator: &'a Address,
    /// Settings of connections besides the addresses.
    pub options: &'a Options,
}

impl Gateway<'_> {
    /// Carries bytes until it is dropped. Calls `report` when a connection is lost and when it is
    /// restored.
    pub async fn carry(&self, report: &(dyn Fn(String) + Sync)) {
        let mut pauses = Pauses::new();
        loop {
            let opened = Instant::now();
            let error = match self.board.connect(self.options).await {
                Ok(line) => {
                    pauses.connected(self.board, report);
                    self.carry_for(line, report).await
                }
                Err(error) => error,
            };
            pauses.pause(self.board, &error, opened, report).await;
        }
    }

    /// Carries bytes until the line to the board is lost.
    async fn carry_for(
        &self,
        line: Box<dyn Transport>,
        report: &(dyn Fn(String) + Sync),
    ) -> io::Error {
        let (mut from_board, mut to_board) = tokio::io::split(line);
        let mut pauses = Pauses::new();
        loop {
            let opened = Instant::now();
            // Bytes that a board sends meanwhile are useless later: it repeats them.
            let connected = tokio::select! {
                connected = self.coordinator.connect(self.options) => connected,
                error = discard(&mut from_board) => return error,
            };
            let error = match connected {
                Ok(connection) => {
                    pauses.connected(self.coordinator, report);
                    let (mut from, mut to) = tokio::io::split(connection);
                    let ended = exchange((&mut from_board, &mut to_board), (&mut from, &mut to));
                    match ended.await {
                        Ended::Board(error) => return error,
                        Ended::Coordinator(error) => error,
                    }
                }
                Err(error) => error,
            };
            tokio::select! {
                () = pauses.pause(self.coordinator, &error, opened, report) => {}
                error = discard(&mut from_board) => return error,
            }
        }
    }
}

/// The reader and the writer of one side.
type Side<'a, R, W> = (&'a mut R, &'a mut W);

/// Carries bytes in both directions until one side ends.
async fn exchange<R, W, S, V>(board: Side<'_, R, W>, coordinator: Side<'_, S, V>) -> Ended
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
    S: AsyncRead + Unpin,
    V: AsyncWrite + Unpin,
{
    // A zero ends a truncated frame, in both directions.
    if let Err(error) = write(board.1, &[0]).await {
        return Ended::Board(error);
    }
    if let Err(error) = write(coordinator.1, &[0]).await {
        return Ended::Coordinator(error);
    }
    tokio::select! {
        ended = copy(board.0, coordinator.1) => match ended {
            Copied::Read(error) => Ended::Board(error),
            Copied::Written(error) => Ended::Coordinator(error),
        },
        ended = copy(coordinator.0, board.1) => match ended {
            Copied::Read(error) => Ended::Coordinator(error),
            Copied::Written(error) => Ended::Board(error),
        },
    }
}

/// The operation that ended a copy.
enum Copied {
    Read(io::Error),
    Written(io::Error),
}

async fn copy(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) -> Copied {
    let mut bytes = vec![0; CHUNK];
    loop {
        let read = match from.read(&mut bytes).await {
            Ok(0) => return Copied::Read(ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) => return Copied::Read(error),
        };
        if let Err(error) = write(to, bytes.get(..read).unwrap_or_default()).await {
            return Copied::Written(error);
        }
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    let write = async {
        to.write_all(bytes).await?;
        to.flush().await
    };
    let written = timeout(WRITE_TIMEOUT, write).await;
    written.map_err(|_| io::Error::from(ErrorKind::TimedOut))?
}

/// Reads and discards bytes until the end.
async fn discard(from: &mut (impl AsyncRead + Unpin)) -> io::Error {
    let mut bytes = vec![0; CHUNK];
    loop {
        match from.read(&mut bytes).await {
            Ok(0) => return ErrorKind::UnexpectedEof.into(),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

/// Pauses between attempts to connect, which report each loss and each return once.
struct Pauses {
    back_off: BackOff,
    /// The last reported state of the connection. `None` at the beginning.
    is_there: Option<bool>,
}

impl Pauses {
    const fn new() -> Self {
        Self {
            back_off: BackOff::new(),
            is_there: None,
        }
    }

    fn connected(&mut self, address: &Address, report: &(dyn Fn(String) + Sync)) {
        if self.is_there.replace(true) != Some(true) {
            report(format!("{address}: connected"));
        }
    }

    async fn pause(
        &mut self,
        address: &Address,
        error: &io::Error,
        opened: Instant,
        report: &(dyn Fn(String) + Sync),
    ) {
        // A coordinator closes connections of silent boards every ten seconds. This is not
        // reported.
        let is_closed = error.kind() == ErrorKind::UnexpectedEof;
        if !is_closed && self.is_there.replace(false) != Some(false) {
            report(format!("{address}: {}; retrying", address.why(error)));
        }
        if opened.elapsed() > STABLE {
            self.back_off = BackOff::new();
        }
        sleep(self.back_off.next_pause()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_go_both_ways_until_one_side_ends() {
        let (board, mut far_board) = tokio::io::duplex(64);
        let (coordinator, mut far) = tokio::io::duplex(64);
        let carried = tokio::spawn(async move {
            let (mut a, mut b) = tokio::io::split(board);
            let (mut c, mut d) = tokio::io::split(coordinator);
            exchange((&mut a, &mut b), (&mut c, &mut d)).await
        });
        far_board.write_all(&[1, 2, 0]).await.unwrap();
        far.write_all(&[3, 0]).await.unwrap();
        let mut bytes = [9; 4];
        far.read_exact(&mut bytes).await.unwrap();
        assert_eq!(bytes, [0, 1, 2, 0], "behind a zero");
        far_board.read_exact(&mut bytes[..3]).await.unwrap();
        assert_eq!(bytes[..3], [0, 3, 0]);
        drop(far);
        assert!(matches!(carried.await.unwrap(), Ended::Coordinator(_)));
    }
}
