//! A thread for each connection. A connection that breaks or blocks does not affect the others.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use smolfed_core::wire::refusal::Refusals;

use super::backoff::BackOff;
use super::connection::Connection;
use super::peer::ConnectionId;
use super::registry::Registry;
use super::transport::{Address, Listener, Transport, accept, read_some, write_all};

/// How long an accepted connection may stay without a session.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Accepted connections, however large the fleet: each has a thread.
const MAX_ACCEPTED: usize = 4096;

/// How long accepted connections are waited for at shutdown: enough for a frame that is being
/// written.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(250);

/// Bytes that are read from a connection before they are answered. Nothing more is read until the
/// answers are written, which bounds the output buffer: an answer has at most 256 bytes, and the
/// frame that it answers at least 31.
const READ_BYTES: usize = 1024;

/// How often a listener is polled, and the threads of its connections at shutdown.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Receives a sentence when a connection is made or lost.
pub type Report = Box<dyn Fn(&str) + Send + Sync>;

/// What the threads of a coordinator share.
pub struct SharedState {
    registry: Mutex<Registry>,
    /// Notified when bytes were received or a connection was lost.
    changed: Condvar,
    stop: AtomicBool,
    started: Instant,
    next_connection: AtomicU64,
    /// Accepted connections that are open.
    accepted: AtomicUsize,
    max_accepted: usize,
    /// Whether it was reported that a connection was rejected.
    is_full: AtomicBool,
    /// Refused frames that no device is known to have sent.
    unattributed: Mutex<Refusals>,
    report: Report,
}

impl SharedState {
    /// A coordinator without connections.
    #[must_use]
    pub fn new(registry: Registry, report: Report) -> Self {
        // A device that reconnects may leave a connection behind whose loss has not been noticed
        // yet.
        let max_accepted = (4 * registry.peers.len() + 16).min(MAX_ACCEPTED);
        Self {
            registry: Mutex::new(registry),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            started: Instant::now(),
            next_connection: AtomicU64::new(0),
            accepted: AtomicUsize::new(0),
            max_accepted,
            is_full: AtomicBool::new(false),
            unattributed: Mutex::new(Refusals::new()),
            report,
        }
    }

    /// The devices. The threads of all connections wait for this lock.
    pub fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until bytes are received or a connection is lost, at most `timeout`.
    pub fn wait<'a>(
        &self,
        registry: MutexGuard<'a, Registry>,
        timeout: Duration,
    ) -> MutexGuard<'a, Registry> {
        let waited = self.changed.wait_timeout(registry, timeout);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Refused frames that no device is known to have sent, by reason.
    pub fn unattributed(&self) -> Refusals {
        *self.lock_unattributed()
    }

    fn lock_unattributed(&self) -> MutexGuard<'_, Refusals> {
        self.unattributed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the coordinator started.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Reports an event, in a sentence.
    pub fn report(&self, event: &str) {
        (self.report)(event);
    }

    /// Tells all threads to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Serves a connection until it is lost, `session_timeout` passes without a session, or the
    /// coordinator stops.
    fn serve(
        &self,
        transport: &mut dyn Transport,
        session_timeout: Option<Duration>,
    ) -> io::Result<()> {
        let id = ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed));
        let mut connection = Connection::new(id);
        let result = self.exchange_bytes(&mut connection, transport, session_timeout);
        connection.lost(&mut self.registry());
        self.changed.notify_all();
        result
    }

    fn exchange_bytes(
        &self,
        connection: &mut Connection,
        transport: &mut dyn Transport,
        session_timeout: Option<Duration>,
    ) -> io::Result<()> {
        let (mut buffer, mut out) = ([0; READ_BYTES], Vec::new());
        let mut last_session = self.now();
        while !self.is_stopped() {
            let read = read_some(transport, &mut buffer)?;
            let now = self.now();
            let bytes = buffer.get(..read).unwrap_or_default();
            let events = {
                let mut registry = self.registry();
                connection.receive(bytes, &mut registry, now, &mut out);
                connection.poll(&mut registry, now, &mut out);
                if connection.has_session(&registry) {
                    last_session = now;
                }
                registry.ledgers.take_events()
            };
            events.iter().for_each(|event| self.report(event));
            let refusals = connection.take_refusals();
            if refusals.total() > 0 {
                self.lock_unattributed().add(&refusals);
            }
            if read > 0 {
                self.changed.notify_all();
            }
            write_all(transport, &out)?;
            out.clear();
            let idle = now.saturating_sub(last_session);
            if session_timeout.is_some_and(|timeout| idle > timeout) {
                return Err(io::Error::new(ErrorKind::TimedOut, "no session was opened"));
            }
        }
        Ok(())
    }

    /// Keeps a connection to `address` until the coordinator stops.
    pub fn dial(&self, address: &Address) {
        let mut back_off = BackOff::new();
        let mut is_reported = false;
        while !self.is_stopped() {
            let error = match address.connect() {
                Ok(mut transport) => {
                    self.report(&format!("{address}: connected"));
                    (back_off, is_reported) = (BackOff::new(), false);
                    match self.serve(&mut *transport, None) {
                        Ok(()) => return,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if !is_reported {
                self.report(&format!("{address}: {error}; retrying"));
                is_reported = true;
            }
            back_off.wait(&self.stop);
        }
    }

    /// Accepts connections until the coordinator stops, and then waits for them briefly.
    pub fn accept(self: &Arc<Self>, listener: &dyn Listener) {
        self.accept_among(listener, Vec::new());
    }

    /// [`Self::accept`] with `threads` of connections that were accepted before.
    fn accept_among(self: &Arc<Self>, listener: &dyn Listener, mut threads: Vec<JoinHandle<()>>) {
        while !self.is_stopped() {
            match accept(listener) {
                Ok(Some(transport)) => threads.extend(self.spawn(transport)),
                Ok(None) => thread::sleep(POLL_INTERVAL),
                Err(error) => {
                    self.report(&format!("a connection could not be accepted: {error}"));
                    BackOff::new().wait(&self.stop);
                }
            }
            threads.retain(|thread| !thread.is_finished());
        }
        let end = Instant::now() + SHUTDOWN_GRACE;
        while Instant::now() < end && !threads.iter().all(JoinHandle::is_finished) {
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Starts the thread of an accepted connection, unless there are too many.
    fn spawn(self: &Arc<Self>, mut transport: Box<dyn Transport>) -> Option<JoinHandle<()>> {
        if self.accepted.load(Ordering::Relaxed) >= self.max_accepted {
            // Reported once: a flood of connections must not flood the log.
            if !self.is_full.swap(true, Ordering::Relaxed) {
                self.report("a connection was rejected: too many are open");
            }
            return None;
        }
        self.is_full.store(false, Ordering::Relaxed);
        let accepted = Accepted::new(Arc::clone(self));
        let spawned = thread::Builder::new().spawn(move || {
            // Devices may disconnect at any time: that is not reported.
            let _ = accepted.0.serve(&mut *transport, Some(SESSION_TIMEOUT));
        });
        match spawned {
            Ok(thread) => Some(thread),
            Err(error) => {
                self.report(&format!("a connection was rejected: {error}"));
                None
            }
        }
    }
}

/// An accepted connection, counted while it is open.
struct Accepted(Arc<SharedState>);

impl Accepted {
    fn new(shared: Arc<SharedState>) -> Self {
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for Accepted {
    fn drop(&mut self) {
        self.0.accepted.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for SharedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let accepted = self.accepted.load(Ordering::Relaxed);
        write!(f, "SharedState({accepted} accepted connections)")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::net::UnixStream;

    use smolfed_core::stream::{Purpose, Root, StreamId};

    use super::*;
    use crate::fleet::ledgers::KnownLedgers;

    fn shared_state() -> Arc<SharedState> {
        let nonces = Root::from_seed(1).stream(StreamId {
            purpose: Purpose::SessionNonces,
            round: 0,
            device: 0,
        });
        let registry = Registry::new(BTreeMap::new(), KnownLedgers::default(), nonces);
        Arc::new(SharedState::new(registry, Box::new(|_| {})))
    }

    /// A connection whose reads block for longer than the shutdown grace.
    struct Blocking(UnixStream);

    impl io::Read for Blocking {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            thread::sleep(Duration::from_secs(5));
            Err(ErrorKind::UnexpectedEof.into())
        }
    }

    impl io::Write for Blocking {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    #[test]
    fn shutdown_does_not_wait_for_a_blocked_connection() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let address: Address = format!("unix:{}", path.display()).parse().unwrap();
        let listener = address.listen().unwrap();
        let shared = shared_state();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let blocked = shared.spawn(Box::new(Blocking(ours))).unwrap();
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.accept_among(&*listener, vec![blocked])
        });
        let begun = Instant::now();
        shared.stop();
        accepting.join().unwrap();
        let elapsed = begun.elapsed();
        assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
        assert!(!path.exists(), "the socket is removed with its listener");
    }
}
