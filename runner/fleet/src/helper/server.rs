//! Connections to a helper: their maximum number and time limits, and the questions of one
//! coordinator.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::service::HelperService;
use super::slot::CoordinatorSlot;
use crate::helper_link::link::{Link, LinkError, LinkKey, ephemeral};
use crate::helper_link::message::{Question, Reply};
use crate::lock::lock;
use crate::transport::{Accepted, Listener, accept};

/// Maximum number of connections: one coordinator, its next connection, and some without keys.
const MAX_CONNECTIONS: usize = 32;

/// Time limit of a connection for its handshake and first message.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit for sending a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause in accepting after the system has refused a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Shared state of the connections.
#[derive(Debug)]
pub struct Server {
    service: Mutex<HelperService>,
    link: LinkKey,
    slot: CoordinatorSlot,
    places: Arc<Semaphore>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Server {
    /// Returns a helper without connections.
    #[must_use]
    pub fn new(service: HelperService) -> Arc<Self> {
        Arc::new(Self {
            link: service.link().clone(),
            service: Mutex::new(service),
            slot: CoordinatorSlot::default(),
            places: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Returns the running service.
    #[must_use]
    pub const fn service(&self) -> &Mutex<HelperService> {
        &self.service
    }

    /// Returns whether a coordinator is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.slot.is_taken()
    }

    /// Accepts connections until the helper stops.
    pub async fn accept(self: Arc<Self>, mut listener: Box<dyn Listener>) {
        loop {
            // The semaphore is never closed.
            let place = Arc::clone(&self.places).acquire_owned().await.ok();
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = accept(&mut *listener) => accepted,
            };
            match accepted {
                Ok(accepted) => {
                    let server = Arc::clone(&self);
                    self.tasks.spawn(async move {
                        server.serve(accepted).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    let sentence = format!("a connection could not be accepted: {error}");
                    tracing::warn!(reason = "accept", "{sentence}");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Stops accepting connections, and waits until the answers in progress have left.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Serves a connection until its end.
    async fn serve(&self, accepted: Accepted) {
        let greeted = async {
            let stream = accepted.opening.await?;
            let mut link = Link::answer(stream, &self.link, ephemeral()?).await?;
            let first = link.receive().await?;
            Ok::<_, LinkError>((link, first))
        };
        let greeted = tokio::select! {
            () = self.stop.cancelled() => return,
            greeted = timeout(HELLO_TIMEOUT, greeted) => greeted,
        };
        let (mut link, process) = match greeted {
            Ok(Ok((link, first))) => match Question::parse(&first) {
                Ok(Question::Hello(process)) => (link, process),
                _ => return refused("the first message is not a hello"),
            },
            Ok(Err(error)) => return refused(&error.to_string()),
            Err(_) => return refused("nothing was sent"),
        };
        let Some(ends) = self.slot.take(process) else {
            refused("another coordinator is connected");
            let _ = timeout(SEND_TIMEOUT, link.send(&Reply::Busy.to_bytes())).await;
            return;
        };
        tracing::info!(reason = "connected", "the coordinator is connected");
        let why = self.talk(&mut link, &ends).await;
        self.slot.leave(&ends);
        let why = why.err().map_or_else(
            || "the helper is stopping, or the coordinator has connected again".to_owned(),
            |error| error.to_string(),
        );
        tracing::info!(
            reason = "disconnected",
            "the coordinator disconnected: {why}"
        );
    }

    /// Answers questions until the connection ends or must end. Answers a received question first.
    async fn talk(&self, link: &mut Link, ends: &CancellationToken) -> Result<(), LinkError> {
        let mut reply = self.state();
        loop {
            let bytes = reply.to_bytes();
            let sent = timeout(SEND_TIMEOUT, link.send(&bytes)).await;
            sent.map_err(|_| std::io::Error::from(std::io::ErrorKind::TimedOut))??;
            let question = tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                () = ends.cancelled() => return Ok(()),
                question = link.receive() => question?,
            };
            reply = match Question::parse(&question) {
                Ok(Question::Ask) => self.state(),
                Ok(Question::Request(request)) => {
                    // Seconds of arithmetic for a large model. Other connections continue.
                    tokio::task::block_in_place(|| lock(&self.service).answer(&request))
                }
                Ok(Question::Hello(_)) | Err(_) => return Err(LinkError::Message),
            };
        }
    }

    fn state(&self) -> Reply {
        // An answer to an earlier connection may hold the service for seconds.
        tokio::task::block_in_place(|| Reply::State(lock(&self.service).state()))
    }
}

/// Logs a connection from another client than the coordinator.
fn refused(why: &str) {
    tracing::warn!(reason = "connection", "a connection was refused: {why}");
}
