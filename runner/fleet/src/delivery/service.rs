//! The event loop of the delivery service (`smolfed deliver`), with one task per connection: its
//! limits and pauses, and the search for new versions.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use smolfed_core::wire::keys::ChainKey;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::conversation::{Context, Conversation};
use super::error::CatalogueError;
use super::figures::{Figures, Snapshot};
use super::published::Published;
use crate::admission::{Admission, Verdict};
use crate::backoff::BackOff;
use crate::link::Link;
use crate::lock::lock;
use crate::peer::ConnectionId;
use crate::transport::{Accepted, Address, Connecting, Listener, Options, Transport, accept};

/// Bytes read from a connection before they are answered.
const READ_BYTES: usize = 1024;

/// Refused frames after which an accepted connection without a session is closed.
const MAX_REFUSED: u32 = 256;

/// Pause in accepting after the system has refused a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often the service looks for new versions.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum factor by which the pause before an offer is repeated grows.
const MAX_FACTOR: u32 = 256;

/// What may change while the service runs.
#[derive(Debug)]
struct State {
    keys: BTreeMap<u32, ChainKey>,
    published: Arc<Published>,
}

/// Delivers the models of a folder.
#[derive(Debug)]
pub struct DeliveryService {
    folder: PathBuf,
    state: watch::Sender<Arc<State>>,
    figures: Figures,
    /// The newest connection of each device, and its end.
    newest: Mutex<BTreeMap<u32, (u64, CancellationToken)>>,
    next_connection: AtomicU64,
    link: Link,
    admission: Mutex<Admission>,
    /// Ends accepted connections, by number.
    ends: Mutex<BTreeMap<u64, CancellationToken>>,
    /// Whether a rejected connection was reported.
    is_full: AtomicBool,
    stop: CancellationToken,
}

/// A connection, from a device or anyone else.
struct Connection {
    number: u64,
    /// Where it was accepted from, if it was accepted. Some transports have no addresses.
    accepted: Option<Option<IpAddr>>,
    /// Ends it when another connection gets its place or its device.
    end: CancellationToken,
    has_session: bool,
}

impl Connection {
    const fn id(&self) -> ConnectionId {
        ConnectionId(self.number)
    }
}

impl DeliveryService {
    /// Returns a service for the devices with these keys, with places for this many accepted
    /// connections.
    ///
    /// # Errors
    /// [`CatalogueError`].
    pub fn open(
        folder: PathBuf,
        keys: BTreeMap<u32, ChainKey>,
        link: Link,
        max_connections: usize,
    ) -> Result<Arc<Self>, CatalogueError> {
        let published = Arc::new(Published::read(&folder)?);
        let (state, _) = watch::channel(Arc::new(State { keys, published }));
        Ok(Arc::new(Self {
            folder,
            state,
            figures: Figures::default(),
            newest: Mutex::default(),
            next_connection: AtomicU64::new(0),
            link,
            admission: Mutex::new(Admission::new(max_connections)),
            ends: Mutex::default(),
            is_full: AtomicBool::new(false),
            stop: CancellationToken::new(),
        }))
    }

    /// Returns the figures.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let state = Arc::clone(&self.state.borrow());
        self.figures.snapshot(state.keys.len(), &state.published)
    }

    /// Describes the shares of the current versions.
    #[must_use]
    pub fn shares(&self) -> String {
        words(&self.state.borrow().published)
    }

    /// Replaces the keys. Sessions under a removed or replaced key end.
    pub fn set_keys(&self, keys: BTreeMap<u32, ChainKey>) {
        self.state.send_modify(|state| {
            let published = Arc::clone(&state.published);
            *state = Arc::new(State { keys, published });
        });
    }

    /// Tells all tasks to end.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Looks for new versions until the service stops. A folder that cannot be read changes
    /// nothing.
    pub async fn follow(self: Arc<Self>) {
        let mut is_reported = false;
        while !self.stop.is_cancelled() {
            sleep(LOOK_INTERVAL).await;
            let published = Arc::clone(&self.state.borrow().published);
            if !published.is_outdated(&self.folder) {
                continue;
            }
            match Published::read(&self.folder) {
                Ok(published) => {
                    let shares = words(&published);
                    tracing::info!(reason = "versions", "{shares}");
                    is_reported = false;
                    self.state.send_modify(|state| {
                        *state = Arc::new(State {
                            keys: state.keys.clone(),
                            published: Arc::new(published),
                        });
                    });
                }
                Err(error) if !is_reported => {
                    tracing::error!(
                        reason = "versions",
                        "the versions stay as they were: {error}"
                    );
                    is_reported = true;
                }
                Err(_) => {}
            }
        }
    }

    /// Accepts connections until the service stops.
    pub async fn accept(self: Arc<Self>, mut listener: Box<dyn Listener>) {
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = accept(&mut *listener) => accepted,
            };
            match accepted {
                Ok(accepted) => self.admit(accepted),
                Err(error) => {
                    let sentence = format!("a connection could not be accepted: {error}");
                    tracing::warn!(reason = "accept", "{sentence}");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves an accepted connection, if there is a place for it.
    fn admit(self: &Arc<Self>, accepted: Accepted) {
        let connection = self.connection(Some(accepted.source));
        let (id, end) = (connection.id(), connection.end.clone());
        lock(&self.ends).insert(connection.number, end);
        let verdict = lock(&self.admission).admit(id, accepted.source);
        match verdict {
            Verdict::Admitted => self.is_full.store(false, Ordering::Relaxed),
            Verdict::Replaces(other) => {
                self.report_full("each new connection replaces one without a session");
                if let Some(end) = lock(&self.ends).get(&other.0) {
                    end.cancel();
                }
            }
            Verdict::Full => {
                lock(&self.ends).remove(&id.0);
                return self.report_full("new ones are rejected; `--max-connections` is the limit");
            }
        }
        let (service, opening) = (Arc::clone(self), accepted.opening);
        tokio::spawn(async move {
            // Devices may disconnect at any time. This is not reported.
            let _ = service.serve(opening, connection).await;
        });
    }

    fn connection(&self, accepted: Option<Option<IpAddr>>) -> Connection {
        Connection {
            number: self.next_connection.fetch_add(1, Ordering::Relaxed),
            accepted,
            end: CancellationToken::new(),
            has_session: false,
        }
    }

    /// Reports once that all places are taken.
    fn report_full(&self, consequence: &str) {
        if !self.is_full.swap(true, Ordering::Relaxed) {
            let sentence = "the maximum number of connections is open";
            tracing::warn!(reason = "full", "{sentence}: {consequence}");
        }
    }

    /// Keeps a connection to `address` until the service stops.
    pub async fn dial(self: Arc<Self>, address: Address, options: Options) {
        let (mut back_off, mut is_reported) = (BackOff::new(), false);
        while !self.stop.is_cancelled() {
            let connected = tokio::select! {
                () = self.stop.cancelled() => return,
                connected = address.connect(&options) => connected,
            };
            let error = match connected {
                Ok(transport) => {
                    tracing::info!(reason = "connected", %address, "{address}: connected");
                    (back_off, is_reported) = (BackOff::new(), false);
                    let opened: Connecting<'_> = Box::pin(std::future::ready(Ok(transport)));
                    match self.serve(opened, self.connection(None)).await {
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

    /// Serves a connection until it is lost, an accepted one stays without a session, or the
    /// service stops.
    async fn serve(&self, opening: Connecting<'_>, mut connection: Connection) -> io::Result<()> {
        let mut conversation = Conversation::default();
        let served = async {
            let mut transport = tokio::select! {
                () = connection.end.cancelled() => return Err(ErrorKind::ConnectionAborted.into()),
                opened = timeout(self.link.session_timeout, opening) => {
                    opened.map_err(|_| io::Error::from(ErrorKind::TimedOut))??
                }
            };
            self.exchange(&mut conversation, &mut *transport, &mut connection)
                .await
        };
        let result = served.await;
        let device = conversation.device();
        conversation.lost(&self.figures);
        self.forget(device, connection.number);
        lock(&self.ends).remove(&connection.number);
        if let Some(source) = connection.accepted {
            lock(&self.admission).close(connection.id(), source, connection.has_session);
        }
        result
    }

    async fn exchange(
        &self,
        conversation: &mut Conversation,
        transport: &mut dyn Transport,
        connection: &mut Connection,
    ) -> io::Result<()> {
        let mut state = self.state.subscribe();
        let (mut bytes, mut out) = ([0; READ_BYTES], Vec::new());
        let end = connection.end.clone();
        let mut clock = Clock::new();
        let mut timer = pin!(sleep(Duration::ZERO));
        loop {
            let (mut count, mut is_due) = (0, false);
            tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                () = end.cancelled() => return Err(ErrorKind::ConnectionAborted.into()),
                read = transport.read(&mut bytes) => {
                    count = read?;
                    if count == 0 {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                changed = state.changed() => {
                    changed.map_err(|_| ErrorKind::ConnectionAborted)?;
                    conversation.check(&state.borrow().keys, &self.figures);
                }
                () = &mut timer => is_due = true,
            }
            let now = Arc::clone(&state.borrow_and_update());
            let context = Context {
                keys: &now.keys,
                published: &now.published,
                figures: &self.figures,
            };
            let before = conversation.device();
            conversation.receive(bytes.get(..count).unwrap_or_default(), context, &mut out);
            conversation.poll(context, &mut out);
            self.keep_place(connection, conversation.has_session())?;
            match conversation.device() {
                None if is_due => Conversation::call(&mut out),
                Some(_) if is_due => conversation.repeat(context, &mut out),
                Some(device) if before != Some(device) => {
                    self.forget(before, connection.number);
                    self.displace(device, connection);
                }
                _ => {}
            }
            if !out.is_empty() {
                tokio::select! {
                    () = end.cancelled() => return Err(ErrorKind::ConnectionAborted.into()),
                    written = self.link.write(transport, &out) => written?,
                }
                out = Vec::new();
            }
            let has_changed = clock.follow(conversation);
            if connection.accepted.is_some() && clock.is_over(conversation, &self.link) {
                return Err(io::Error::new(ErrorKind::TimedOut, "the device is silent"));
            }
            // Noise on the line must not put a call off.
            if is_due || has_changed {
                timer.as_mut().reset(clock.next(is_due, &self.link));
            }
        }
    }

    /// Notes the newest connection of a device, and ends an older one.
    fn displace(&self, device: u32, connection: &Connection) {
        let entry = (connection.number, connection.end.clone());
        if let Some((older, end)) = lock(&self.newest).insert(device, entry)
            && older != connection.number
        {
            end.cancel();
        }
    }

    /// Keeps the place of an accepted connection with a session, so that no other connection gets
    /// it.
    ///
    /// # Errors
    /// Another connection has just got it.
    fn keep_place(&self, connection: &mut Connection, has_session: bool) -> io::Result<()> {
        let Some(source) = connection.accepted else {
            return Ok(());
        };
        if has_session != connection.has_session {
            let mut admission = lock(&self.admission);
            if !has_session {
                admission.waits(connection.id(), source);
            } else if !admission.stop_waiting(connection.id(), source) {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            connection.has_session = has_session;
        }
        Ok(())
    }

    /// Forgets a connection of a device, unless a newer one has replaced it.
    fn forget(&self, device: Option<u32>, number: u64) {
        let mut newest = lock(&self.newest);
        if let Some(device) = device
            && newest
                .get(&device)
                .is_some_and(|(known, _)| *known == number)
        {
            newest.remove(&device);
        }
    }
}

/// The times of a connection.
struct Clock {
    seen: Seen,
    /// Time of the last authentic frame, of the end of the session, or of the beginning.
    since: Instant,
    /// Factor of the pause before an offer is repeated.
    factor: u32,
}

/// The state of a conversation that its times depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    heard: u64,
    has_session: bool,
    is_awaited: bool,
}

impl Seen {
    fn of(conversation: &Conversation) -> Self {
        Self {
            heard: conversation.heard(),
            has_session: conversation.has_session(),
            is_awaited: conversation.is_awaited(),
        }
    }
}

impl Clock {
    fn new() -> Self {
        Self {
            seen: Seen::of(&Conversation::default()),
            since: Instant::now(),
            factor: 1,
        }
    }

    /// Notes the events on a connection. Returns whether they change its times.
    fn follow(&mut self, conversation: &Conversation) -> bool {
        let (before, now) = (self.seen, Seen::of(conversation));
        self.seen = now;
        if before.heard != now.heard || before.has_session != now.has_session {
            (self.since, self.factor) = (Instant::now(), 1);
        }
        before != now
    }

    /// Whether an accepted connection has been silent for too long, or only sends garbage.
    fn is_over(&self, conversation: &Conversation, link: &Link) -> bool {
        let silence = self.since.elapsed();
        match self.seen.has_session {
            // The device begins a new session long before.
            true => silence > 2 * link.idle_timeout(),
            false => silence > link.session_timeout || conversation.refused() > MAX_REFUSED,
        }
    }

    /// Returns when to call, to repeat an offer, or to look at the silence again.
    fn next(&mut self, is_due: bool, link: &Link) -> Instant {
        let pause = match (self.seen.has_session, self.seen.is_awaited) {
            (false, _) => link.call_interval,
            (true, true) => {
                if is_due {
                    self.factor = (2 * self.factor).min(MAX_FACTOR);
                }
                link.invite_pause * self.factor
            }
            (true, false) => link.idle_timeout(),
        };
        Instant::now() + pause
    }
}

/// Describes the shares of the current versions.
#[must_use]
pub fn words(published: &Published) -> String {
    let shares = published.catalogue.shares.iter();
    let shares = shares.map(|share| format!("version {} to {} %", share.version, share.percent));
    let shares: Vec<String> = shares.collect();
    format!("delivering {} of the devices", shares.join(" and "))
}
