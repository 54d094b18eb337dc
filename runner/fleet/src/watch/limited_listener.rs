//! Limited connections to the live page, without silent ones. Otherwise they would take the open
//! files that devices need.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::lock::lock;

/// Maximum number of connections. The coordinator reserves as many files. A new one replaces the
/// one with the longest silence: a client that opens many, or sends a request byte by byte,
/// displaces its own, and no health check waits for it.
const MAX_CONNECTIONS: usize = 32;

/// Silence after which a connection is closed. Event streams send something every ten seconds.
const SILENCE: Duration = Duration::from_secs(30);

/// Pause in accepting after the system has refused a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections to the page.
pub(super) struct LimitedListener {
    listener: TcpListener,
    open: Arc<Mutex<OpenConnections>>,
}

/// The open connections.
#[derive(Default)]
struct OpenConnections {
    by_number: BTreeMap<u64, OpenConnection>,
    next: u64,
}

struct OpenConnection {
    /// Time of the last sent bytes, or of its acceptance.
    sent: Instant,
    displaced: CancellationToken,
}

impl OpenConnections {
    /// Returns a place for a connection, and a token that withdraws it.
    fn admit(&mut self) -> (u64, CancellationToken) {
        if self.by_number.len() >= MAX_CONNECTIONS {
            let silent = self.by_number.iter().min_by_key(|(_, open)| open.sent);
            if let Some(number) = silent.map(|(number, _)| *number)
                && let Some(silent) = self.by_number.remove(&number)
            {
                silent.displaced.cancel();
            }
        }
        let (number, displaced) = (self.next, CancellationToken::new());
        self.next += 1;
        let open = OpenConnection {
            sent: Instant::now(),
            displaced: displaced.clone(),
        };
        self.by_number.insert(number, open);
        (number, displaced)
    }
}

impl LimitedListener {
    pub(super) fn new(listener: TcpListener) -> Self {
        let open = Arc::default();
        Self { listener, open }
    }
}

impl Listener for LimitedListener {
    type Io = PageConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (PageConnection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, source)) => {
                    let (number, displaced) = lock(&self.open).admit();
                    let connection = PageConnection {
                        stream,
                        silence: Box::pin(sleep(SILENCE)),
                        displaced: Box::pin(displaced.cancelled_owned()),
                        number,
                        open: Arc::clone(&self.open),
                    };
                    return (connection, source);
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// One connection.
pub(super) struct PageConnection {
    stream: TcpStream,
    silence: Pin<Box<Sleep>>,
    displaced: Pin<Box<WaitForCancellationFutureOwned>>,
    number: u64,
    open: Arc<Mutex<OpenConnections>>,
}

impl PageConnection {
    /// Notes the result of sending.
    fn sent(&mut self, result: &Poll<io::Result<usize>>) {
        if matches!(result, Poll::Ready(Ok(_))) {
            let now = Instant::now();
            self.silence.as_mut().reset(now + SILENCE);
            if let Some(open) = lock(&self.open).by_number.get_mut(&self.number) {
                open.sent = now;
            }
        }
    }
}

impl Drop for PageConnection {
    fn drop(&mut self) {
        lock(&self.open).by_number.remove(&self.number);
    }
}

impl AsyncRead for PageConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // First, so that a request sent byte by byte is cut off as well.
        let is_displaced = self.displaced.as_mut().poll(context).is_ready();
        if is_displaced || self.silence.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for PageConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.sent(&result);
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.sent(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
