//! A thread a connection: dials again when one breaks, accepts those that come in. A connection that
//! breaks or fills up never touches the others.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use smolfed_core::wire::refusal::Refusals;

use super::address::{Address, Listener, Transport, read_some, write_all};
use super::line::{Line, Roster};
use super::peer::LineId;

/// First and longest pause between two attempts to connect.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long a connection that came in may stay without a session.
const STRANGER_WAIT: Duration = Duration::from_secs(30);

/// Most connections that come in, however large the fleet: each has a thread.
const MOST_GUESTS: usize = 4096;

/// How long connections that came in are waited for at the end: enough for a frame that is being
/// written, and no more for a device that takes nothing.
const FAREWELL: Duration = Duration::from_millis(250);

/// Most bytes that are taken from a connection before they are answered. Nothing more is read until
/// the answers are written, so what waits for a device is bounded by what this much can ask for: a
/// frame of 256 bytes for each that came, and those have 31 at least.
const READ_BYTES: usize = 1024;

/// What a thread does while nothing happens.
const NAP: Duration = Duration::from_millis(20);

/// What all threads of a coordinator share.
pub struct Switchboard {
    roster: Mutex<Roster>,
    /// Rings when something came in.
    bell: Condvar,
    stop: AtomicBool,
    started: Instant,
    next_line: AtomicU64,
    /// Connections that came in and are there.
    guests: AtomicUsize,
    most_guests: usize,
    /// Whether it was said that there are too many.
    is_full: AtomicBool,
    /// Frames of nobody in particular that were left out.
    strangers: Mutex<Refusals>,
    /// Told what happens to connections.
    report: Box<dyn Fn(&str) + Send + Sync>,
}

impl Switchboard {
    /// A coordinator without connections. `report` is told in a sentence when one comes or goes.
    #[must_use]
    pub fn new(roster: Roster, report: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        // A device that reconnects may leave a connection behind that nobody has noticed yet.
        let most_guests = (4 * roster.peers.len() + 16).min(MOST_GUESTS);
        Self {
            roster: Mutex::new(roster),
            bell: Condvar::new(),
            stop: AtomicBool::new(false),
            started: Instant::now(),
            next_line: AtomicU64::new(0),
            guests: AtomicUsize::new(0),
            most_guests,
            is_full: AtomicBool::new(false),
            strangers: Mutex::new(Refusals::new()),
            report,
        }
    }

    /// The devices. No other thread moves while this is held.
    pub fn roster(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something came in, at most `time`.
    pub fn wait<'a>(
        &self,
        roster: MutexGuard<'a, Roster>,
        time: Duration,
    ) -> MutexGuard<'a, Roster> {
        let waited = self.bell.wait_timeout(roster, time);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Frames of nobody in particular that were left out.
    pub fn strangers(&self) -> Refusals {
        *self
            .strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the coordinator started.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Tells whoever watches.
    pub fn say(&self, what: &str) {
        (self.report)(what);
    }

    /// Ends all threads, soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.bell.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn sleep(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.is_stopped() && Instant::now() < end {
            thread::sleep(NAP.min(time));
        }
    }

    /// Talks on a connection until it breaks or the coordinator stops.
    fn talk(&self, transport: &mut dyn Transport, is_guest: bool) -> io::Result<()> {
        let id = LineId(self.next_line.fetch_add(1, Ordering::Relaxed));
        let mut line = Line::new(id);
        let result = self.talk_on(&mut line, transport, is_guest);
        line.lost(&mut self.roster());
        self.bell.notify_all();
        result
    }

    fn talk_on(
        &self,
        line: &mut Line,
        transport: &mut dyn Transport,
        is_guest: bool,
    ) -> io::Result<()> {
        let (mut buffer, mut out) = ([0; READ_BYTES], Vec::new());
        let mut known = self.now();
        while !self.is_stopped() {
            let read = read_some(transport, &mut buffer)?;
            let now = self.now();
            let bytes = buffer.get(..read).unwrap_or_default();
            {
                let mut roster = self.roster();
                line.receive(bytes, &mut roster, now, &mut out);
                line.poll(&mut roster, now, &mut out);
                if line.has_session(&roster) {
                    known = now;
                }
            }
            let refusals = line.take_refusals();
            if refusals.total() > 0 {
                let mut strangers = self.strangers.lock();
                let strangers = strangers.as_mut().unwrap_or_else(|poison| poison.get_mut());
                strangers.add(&refusals);
            }
            if read > 0 {
                self.bell.notify_all();
            }
            write_all(transport, &out)?;
            out.clear();
            if is_guest && now.saturating_sub(known) > STRANGER_WAIT {
                return Err(io::Error::new(ErrorKind::TimedOut, "it opened no session"));
            }
        }
        Ok(())
    }

    /// Keeps a connection to `address` until the coordinator stops.
    pub fn dial(&self, address: &Address) {
        let mut pause = BACK_OFF.0;
        let mut silent = false;
        while !self.is_stopped() {
            let error = match address.connect() {
                Ok(mut transport) => {
                    self.say(&format!("{address}: connected"));
                    (pause, silent) = (BACK_OFF.0, false);
                    match self.talk(&mut *transport, false) {
                        Ok(()) => return,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if !silent {
                self.say(&format!("{address}: {error}; trying again"));
                silent = true;
            }
            self.sleep(pause);
            pause = (2 * pause).min(BACK_OFF.1);
        }
    }

    /// Takes the connections that come in until the coordinator stops. Those that are there then end by
    /// themselves, and are waited for a moment.
    pub fn accept(self: &Arc<Self>, listener: &Listener) {
        self.accept_beside(listener, Vec::new());
    }

    /// [`Self::accept`] beside the threads of connections that are there.
    fn accept_beside(
        self: &Arc<Self>,
        listener: &Listener,
        mut threads: Vec<thread::JoinHandle<()>>,
    ) {
        while !self.is_stopped() {
            match listener.accept() {
                Ok(Some(transport)) => threads.extend(self.welcome(transport)),
                Ok(None) => thread::sleep(NAP),
                Err(error) => {
                    self.say(&format!("a connection was not accepted: {error}"));
                    self.sleep(BACK_OFF.0);
                }
            }
            threads.retain(|thread| !thread.is_finished());
        }
        let end = Instant::now() + FAREWELL;
        while Instant::now() < end && !threads.iter().all(thread::JoinHandle::is_finished) {
            thread::sleep(NAP);
        }
    }

    fn welcome(
        self: &Arc<Self>,
        mut transport: Box<dyn Transport>,
    ) -> Option<thread::JoinHandle<()>> {
        if self.guests.load(Ordering::Relaxed) >= self.most_guests {
            // Once: whoever floods the port shall not flood the log.
            if !self.is_full.swap(true, Ordering::Relaxed) {
                self.say("a connection was turned away: there are too many");
            }
            return None;
        }
        self.is_full.store(false, Ordering::Relaxed);
        let guest = Guest::new(Arc::clone(self));
        let spawned = thread::Builder::new().spawn(move || {
            // That a guest has left is no news.
            let _ = guest.0.talk(&mut *transport, true);
        });
        match spawned {
            Ok(thread) => Some(thread),
            Err(error) => {
                self.say(&format!("a connection was turned away: {error}"));
                None
            }
        }
    }
}

/// A connection that came in, counted for as long as it is there.
struct Guest(Arc<Switchboard>);

impl Guest {
    fn new(switchboard: Arc<Switchboard>) -> Self {
        switchboard.guests.fetch_add(1, Ordering::Relaxed);
        Self(switchboard)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.guests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Switchboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Switchboard({} guests)",
            self.guests.load(Ordering::Relaxed)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::net::UnixStream;

    use smolfed_core::stream::{Purpose, Root, StreamId};

    use super::*;

    fn switchboard() -> Arc<Switchboard> {
        let nonces = Root::from_seed(1).stream(StreamId {
            purpose: Purpose::SessionNonces,
            round: 0,
            device: 0,
        });
        let roster = Roster::new(BTreeMap::new(), nonces);
        Arc::new(Switchboard::new(roster, Box::new(|_| {})))
    }

    /// A connection whose thread is busy for longer than anybody wants to wait.
    struct Busy(UnixStream);

    impl io::Read for Busy {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            thread::sleep(Duration::from_secs(5));
            Err(ErrorKind::UnexpectedEof.into())
        }
    }

    impl io::Write for Busy {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    #[test]
    fn the_end_does_not_wait_for_a_connection_that_hangs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("place");
        let listener = Address::Unix(path.clone()).listen().unwrap();
        let shared = switchboard();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let hanging = shared.welcome(Box::new(Busy(ours))).unwrap();
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.accept_beside(&listener, vec![hanging])
        });
        let begun = Instant::now();
        shared.stop();
        accepting.join().unwrap();
        assert!(
            begun.elapsed() < Duration::from_secs(3),
            "{:?}",
            begun.elapsed()
        );
        assert!(!path.exists(), "the socket is gone with its listener");
    }
}
