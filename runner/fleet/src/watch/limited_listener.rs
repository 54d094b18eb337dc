//! Connections to the live page: few, and none that is silent. Otherwise they would take the open
//! files that devices need.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Connections at the same time: the coordinator leaves room for as many files.
const MAX_CONNECTIONS: usize = 32;

/// A connection on which nothing was sent for so long is closed. Streams of events send something
/// every ten seconds.
const SILENCE: Duration = Duration::from_secs(30);

/// How long nothing is accepted after the system has refused a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections to the page.
pub(super) struct LimitedListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl LimitedListener {
    pub(super) fn new(listener: TcpListener) -> Self {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Self { listener, places }
    }
}

impl Listener for LimitedListener {
    type Io = PageConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (PageConnection, SocketAddr) {
        loop {
            // The semaphore is never closed.
            let place = Arc::clone(&self.places).acquire_owned().await.ok();
            match self.listener.accept().await {
                Ok((stream, source)) => {
                    let silence = Box::pin(sleep(SILENCE));
                    let connection = PageConnection {
                        stream,
                        silence,
                        _place: place,
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
    _place: Option<OwnedSemaphorePermit>,
}

impl PageConnection {
    /// Notes what was sent.
    fn sent(&mut self, result: &Poll<io::Result<usize>>) {
        if matches!(result, Poll::Ready(Ok(_))) {
            self.silence.as_mut().reset(Instant::now() + SILENCE);
        }
    }
}

impl AsyncRead for PageConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // First: a request that comes a byte at a time is cut off as well.
        if self.silence.as_mut().poll(context).is_ready() {
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
