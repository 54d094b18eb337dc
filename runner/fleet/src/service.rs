//! The event loop of the coordinator (`smolfed serve`), with one task per connection: accepting,
//! connecting to devices, and closing after too many refused frames. A broken or blocked connection
//! does not affect the others.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, ready};
use std::time::Duration;

use smolfed_core::wire::VERSION;
use smolfed_core::wire::greeting::Versions;
use smolfed_core::wire::refusal::Refusals;
use tokio::io::ReadBuf;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::admission::{Admission, Verdict};
use super::backoff::BackOff;
use super::connection::Connection;
use super::link::Link;
use super::lock::lock;
use super::peer::ConnectionId;
use super::registry::Registry;
use super::transport::{Accepted, Address, Connecting, Listener, Options, Transport, accept};
use crate::monitor::Monitor;

/// Bytes read from a connection before they are answered. Reading pauses until the answers are
/// written, which bounds the output buffer: an answer has at most 256 bytes, and the frame that it
/// answers at least 31.
const READ_BYTES: usize = 4096;

/// Buffer capacity for answers that an idle connection keeps.
const KEPT_BYTES: usize = 1024;

/// Refused unattributed frames after which an accepted connection without a session is closed.
const MAX_REFUSED: u32 = 256;

/// Pause in accepting after the system has refused a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A distant time, for a timer that never fires.
const NEVER: Duration = Duration::from_secs(86_400);

/// Shared state of a coordinator's tasks.
pub struct Service {
    registry: Registry,
    admission: Mutex<Admission>,
    /// Wakers of the tasks, by connection.
    wakers: Mutex<HashMap<u64, Arc<Waker>>>,
    link: Link,
    stop: CancellationToken,
    /// Whether a reload of the keys was requested.
    is_reload_requested: AtomicBool,
    started: Instant,
    next_connection: AtomicU64,
    /// Whether a rejected connection was reported.
    is_full: AtomicBool,
    /// Refused frames without a known device.
    unattributed: Mutex<Refusals>,
    monitor: Monitor,
}

/// Origin of a connection.
#[derive(Clone)]
enum Source {
    /// The coordinator has opened it to this address.
    Dialled(String),
    /// It was accepted from this address, if its transport has addresses.
    Accepted(Option<IpAddr>),
}

impl Source {
    /// Returns the address that counts for admission, if it was accepted.
    const fn accepted(&self) -> Option<Option<IpAddr>> {
        match self {
            Self::Dialled(_) => None,
            Self::Accepted(address) => Some(*address),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dialled(address) => f.write_str(address),
            Self::Accepted(Some(address)) => address.fmt(f),
            Self::Accepted(None) => f.write_str("a local socket or a broker"),
        }
    }
}

/// Wakes the task of a connection.
struct Waker {
    notify: Notify,
    source: Source,
    /// Whether to close the connection, because another one has its place.
    is_displaced: AtomicBool,
}

/// A connection with its task's state.
struct Served {
    connection: Connection,
    id: ConnectionId,
    waker: Arc<Waker>,
    /// Its source, if it was accepted.
    accepted: Option<Option<IpAddr>>,
    has_session: bool,
    /// Time of its last session, or of its opening.
    last_session: Duration,
    refused: u32,
}

impl Service {
    /// Returns a coordinator without connections, with places for this many accepted ones.
    #[must_use]
    pub fn new(registry: Registry, max_connections: usize) -> Self {
        Self {
            registry,
            admission: Mutex::new(Admission::new(max_connections)),
            wakers: Mutex::default(),
            link: Link::default(),
            stop: CancellationToken::new(),
            is_reload_requested: AtomicBool::new(false),
            started: Instant::now(),
            next_connection: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            unattributed: Mutex::new(Refusals::new()),
            monitor: Monitor::default(),
        }
    }

    /// Sets the kind of links.
    #[must_use]
    pub fn on_link(self, link: Link) -> Self {
        Self { link, ..self }
    }

    /// Returns the devices.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the times of the links.
    #[must_use]
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// Returns the figures of the run.
    #[must_use]
    pub const fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// Returns the number of refused frames without a known device, by reason.
    pub fn unattributed(&self) -> Refusals {
        *lock(&self.unattributed)
    }

    /// Returns the time since the coordinator started.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Makes the coordinator reload its keys, in the current round or before the next one.
    pub fn request_reload(&self) {
        self.is_reload_requested.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_reload(&self) -> bool {
        self.is_reload_requested.swap(false, Ordering::Relaxed)
    }

    /// Tells all tasks to end.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Makes a connection send its due messages.
    pub fn wake(&self, connection: ConnectionId) {
        let waker = lock(&self.wakers).get(&connection.0).cloned();
        if let Some(waker) = waker {
            waker.notify.notify_one();
        }
    }

    /// Opens a connection and serves it until it is lost, stays without a session, or the
    /// coordinator stops.
    async fn serve(
        &self,
        opening: Connecting<'_>,
        id: ConnectionId,
        source: Source,
    ) -> io::Result<()> {
        let accepted = source.accepted();
        let waker = Arc::new(Waker {
            notify: Notify::new(),
            source,
            is_displaced: AtomicBool::new(false),
        });
        lock(&self.wakers).insert(id.0, Arc::clone(&waker));
        let mut served = Served {
            connection: Connection::on_link(id, &self.link),
            id,
            waker,
            accepted,
            has_session: false,
            last_session: self.now(),
            refused: 0,
        };
        let result = match self.open(&served, opening).await {
            Ok(Some(mut transport)) => self.exchange(&mut served, &mut *transport).await,
            Ok(None) => Ok(()),
            Err(error) => {
                if error.kind() == ErrorKind::InvalidData {
                    tracing::warn!(reason = "handshake", "a connection was not opened: {error}");
                }
                Err(error)
            }
        };
        served.connection.lost(&self.registry, self.now());
        lock(&self.wakers).remove(&id.0);
        if let Some(source) = accepted {
            lock(&self.admission).close(id, source, served.has_session);
        }
        result
    }

    /// Completes the handshake of a connection, if its transport has one. Returns `None` if the
    /// coordinator stops or another connection gets its place meanwhile.
    async fn open(
        &self,
        served: &Served,
        opening: Connecting<'_>,
    ) -> io::Result<Option<Box<dyn Transport>>> {
        tokio::select! {
            opened = timeout(self.link.session_timeout, opening) => {
                opened.map_err(|_| io::Error::from(ErrorKind::TimedOut))?.map(Some)
            }
            () = self.stop.cancelled() => Ok(None),
            // Nothing else wakes it before it is open.
            () = served.waker.notify.notified() => Ok(None),
        }
    }

    async fn exchange(&self, served: &mut Served, transport: &mut dyn Transport) -> io::Result<()> {
        let mut out = Vec::new();
        let waker = Arc::clone(&served.waker);
        let mut timer = pin!(sleep(Duration::ZERO));
        let mut due = Duration::ZERO;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                read = self.receive(served, transport, &mut out) => read?,
                () = waker.notify.notified() => {}
                () = &mut timer => {}
            }
            self.follow(served)?;
            served.connection.poll(self.now(), &mut out);
            if !out.is_empty() {
                self.link.write(transport, &out).await?;
                out.clear();
                out.shrink_to(KEPT_BYTES);
            }
            let next = self.next_due(served);
            // Resetting a timer takes a lock. Most frames do not change it.
            if next != due || timer.is_elapsed() {
                due = next;
                timer.as_mut().reset(self.started + due);
            }
        }
    }

    /// Waits for bytes and answers them. Reads to the stack, so that a silent connection needs no
    /// buffer.
    async fn receive(
        &self,
        served: &mut Served,
        transport: &mut dyn Transport,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        std::future::poll_fn(|context| {
            let mut bytes = [0; READ_BYTES];
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut *transport).poll_read(context, &mut buffer))?;
            let bytes = buffer.filled();
            if bytes.is_empty() {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
            let now = self.now();
            served.connection.receive(bytes, &self.registry, now, out);
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Updates the state of a connection after an event on it.
    fn follow(&self, served: &mut Served) -> io::Result<()> {
        let refusals = served.connection.take_refusals();
        if refusals.total() > 0 {
            served.refused = served.refused.saturating_add(refusals.total());
            lock(&self.unattributed).add(&refusals);
        }
        self.report(served);
        let has_session = served.connection.has_session();
        if has_session {
            served.last_session = self.now();
        }
        let Some(source) = served.accepted else {
            return Ok(());
        };
        if served.waker.is_displaced.load(Ordering::Relaxed) {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if has_session != served.has_session {
            let mut admission = lock(&self.admission);
            if !has_session {
                admission.waits(served.id, source);
            } else if !admission.stop_waiting(served.id, source) {
                // Another connection has just taken its place.
                return Err(ErrorKind::ConnectionAborted.into());
            }
            (served.has_session, served.refused) = (has_session, 0);
        }
        let idle = self.now().saturating_sub(served.last_session);
        if !has_session && (idle > self.link.session_timeout || served.refused > MAX_REFUSED) {
            return Err(io::Error::new(ErrorKind::TimedOut, "no session was opened"));
        }
        Ok(())
    }

    /// Logs the events of a connection's devices.
    fn report(&self, served: &mut Served) {
        if served.connection.take_refused() {
            let events = self.registry.ledgers().take_events();
            for event in events {
                // The sentence names the device.
                tracing::warn!(
                    reason = "ledger or key",
                    private = event,
                    "a device is refused: its ledger or its key is not the known one; `--log-file` \
                     and devices.json say which one"
                );
            }
        }
        if let Some(device) = served.connection.take_alarm() {
            self.monitor.session_conflict();
            tracing::warn!(
                reason = "two sessions",
                private = format!("device {device}: sessions replace each other"),
                "sessions of a device on several connections replace each other: another board has \
                 its key, or its line keeps breaking; `--log-file` says which device"
            );
        }
        if let Some((device, versions)) = served.connection.take_incompatible() {
            report_incompatible(device, versions);
        }
        if let Some((device, other)) = served.connection.take_displaced() {
            self.second_session(device, served, other);
        }
    }

    /// Handles a device that has opened a session while another one under its key was open. The
    /// older connection then sends a `Call`. A device that is still there answers it with a
    /// greeting. Otherwise the connection is closed.
    fn second_session(&self, device: u32, served: &Served, other: ConnectionId) {
        let Some(first) = lock(&self.wakers).get(&other.0).cloned() else {
            return;
        };
        first.notify.notify_one();
        self.monitor.second_session();
        tracing::warn!(
            reason = "second session",
            private = format!(
                "device {device}: a second session, from {}, has replaced the one from {}",
                served.waker.source, first.source
            ),
            "a device has opened a second session while its first one was open: it has \
             reconnected, or another board has its key; `--log-file` says which device, and from \
             which addresses"
        );
    }

    /// Returns the next time at which the task of a connection has something to do.
    fn next_due(&self, served: &Served) -> Duration {
        let due = served.connection.due().unwrap_or(NEVER);
        if served.accepted.is_some() && !served.has_session {
            // Just after the limit, so that it is then exceeded.
            let limit = served.last_session + self.link.session_timeout + Duration::from_millis(1);
            return due.min(limit);
        }
        due
    }

    fn next_id(&self) -> ConnectionId {
        ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed))
    }

    /// Keeps a connection to `address` until the coordinator stops.
    pub async fn dial(self: Arc<Self>, address: Address, options: Options) {
        let mut back_off = BackOff::new();
        let mut is_reported = false;
        while !self.stop.is_cancelled() {
            let connected = tokio::select! {
                () = self.stop.cancelled() => return,
                connected = address.connect(&options) => connected,
            };
            let error = match connected {
                Ok(transport) => {
                    tracing::info!(reason = "connected", %address, "{address}: connected");
                    (back_off, is_reported) = (BackOff::new(), false);
                    let source = Source::Dialled(address.to_string());
                    let opened: Connecting<'_> = Box::pin(std::future::ready(Ok(transport)));
                    match self.serve(opened, self.next_id(), source).await {
                        Ok(()) => return,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if !is_reported {
                let why = address.why(&error);
                tracing::warn!(reason = "not connected", %address, "{address}: {why}; retrying");
                is_reported = true;
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = sleep(back_off.next_pause()) => {}
            }
        }
    }

    /// Accepts connections until the coordinator stops. `spawn` starts the task of a connection.
    pub async fn accept(
        self: Arc<Self>,
        mut listener: Box<dyn Listener>,
        spawn: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>),
    ) {
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = accept(&mut *listener) => accepted,
            };
            match accepted {
                Ok(accepted) => {
                    if let Some(task) = Arc::clone(&self).admit(accepted) {
                        spawn(task);
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        reason = "accept",
                        "a connection could not be accepted: {error}"
                    );
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Returns the task of an accepted connection, if there is a place for it.
    fn admit(
        self: Arc<Self>,
        accepted: Accepted,
    ) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let (id, source) = (self.next_id(), accepted.source);
        let verdict = lock(&self.admission).admit(id, source);
        match verdict {
            Verdict::Admitted => self.is_full.store(false, Ordering::Relaxed),
            Verdict::Replaces(displaced) => {
                self.report_full("one that has no session gives way to each new one");
                let waker = lock(&self.wakers).get(&displaced.0).cloned();
                if let Some(waker) = waker {
                    waker.is_displaced.store(true, Ordering::Relaxed);
                    waker.notify.notify_one();
                }
            }
            Verdict::Full => {
                self.report_full("new ones are rejected; `--max-connections` is the limit");
                return None;
            }
        }
        let opening = accepted.opening;
        Some(Box::pin(async move {
            // Devices may disconnect at any time. This is not reported.
            let _ = self.serve(opening, id, Source::Accepted(source)).await;
        }))
    }

    /// Reports once that all places are taken: a flood of connections must not flood the log.
    fn report_full(&self, what: &str) {
        if !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                reason = "full",
                "the maximum number of connections is open: {what}"
            );
        }
    }
}

/// Logs which side must be updated. The device's Hello was authentic.
fn report_incompatible(device: u32, versions: Versions) {
    let Versions { lowest, highest } = versions;
    let theirs = match lowest == highest {
        true => format!("version {lowest}"),
        false => format!("versions {lowest} to {highest}"),
    };
    let older = match highest < VERSION {
        true => "the device",
        false => "the coordinator",
    };
    let sentence = |who: &str| {
        format!(
            "{who} speaks {theirs} of the protocol, and this coordinator version {VERSION}: \
             update {older}"
        )
    };
    tracing::warn!(
        reason = "version",
        private = sentence(&format!("device {device}")),
        "{}",
        sentence("a device")
    );
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = lock(&self.admission).open();
        write!(f, "Service({open} accepted connections)")
    }
}
