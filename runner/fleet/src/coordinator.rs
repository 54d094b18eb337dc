//! The coordinator: runs rounds and time windows with real devices, waits for devices and for the
//! next round, and reloads keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::wire::keys::{ChainKey, Fingerprint};
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::TaskTracker;

use super::exchange::{Absence, ExchangeOutcome, Offer};
use super::keys::{FleetKeys, KeysError};
use super::ledgers::KnownLedgers;
use super::link::Link;
use super::lock::lock;
use super::peer::{Peer, Terms};
use super::presence::{NobodyConnected, PresenceRule};
use super::quarantine::{Quarantine, report};
use super::registry::Registry;
use super::service::Service;
use super::transport::{Address, Listener, Options};
use super::turns::Turns;
use super::windows::{WindowResult, Windows};
use crate::stopping::Stopping;
use smolfed_release::entropy::{EntropyError, secret};

/// Error when starting the coordinator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The keys are unusable.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// An address to listen on is not available.
    #[error("cannot listen at {address}: {source}; choose another address with `--listen`")]
    Listen {
        /// The address.
        address: Address,
        /// Cause.
        source: std::io::Error,
    },
    /// The threads of the event loop cannot start.
    #[error("cannot start the threads for connections: {0}")]
    Thread(std::io::Error),
    /// No randomness for the nonces of sessions or the identifier of a run.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// Addresses of the devices, and the time limits of the coordinator.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Addresses that the coordinator connects to.
    pub dial: Vec<Address>,
    /// Addresses at which the coordinator accepts connections.
    pub listen: Vec<Address>,
    /// Settings of connections besides the addresses.
    pub options: Options,
    /// Time for a device to complete its part in a round, from the invitation to the update.
    pub timeout: Duration,
    /// Speed of the links.
    pub link: Link,
    /// Minimum time between the beginnings of two rounds.
    pub round_interval: Duration,
    /// Maximum number of accepted connections. The default is the number of devices and some more.
    pub max_connections: Option<usize>,
    /// Maximum number of devices that receive the model at the same time.
    pub in_flight: usize,
    /// Consecutive rounds without an answer before a device is quarantined, or 0 for never.
    pub strikes: u32,
    /// Whether devices must greet with an X25519 handshake.
    pub requires_x25519: bool,
}

/// Connections beyond those of all devices: for devices that reconnect before the coordinator
/// notices the loss of the earlier connection, and for strangers.
const SPARE_CONNECTIONS: usize = 1024;

/// Open files other than connections: run directory, ledger, data, live page.
const OTHER_FILES: usize = 96;

/// Interval at which the coordinator checks for stalled devices.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Time that the coordinator waits after a change, to process several changes together.
const GATHER: Duration = Duration::from_millis(1);

/// Time to wait for connections at the end: enough to finish writing a frame.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(250);

/// The coordinator of a fleet.
#[derive(Debug)]
pub struct Coordinator {
    service: Arc<Service>,
    /// `None` after shutdown.
    runtime: Option<Runtime>,
    tasks: TaskTracker,
    keys: FleetKeys,
    timeout: Duration,
    in_flight: usize,
    quarantine: Quarantine,
    terms: Terms,
    /// Presence rule for the start of a round. `None` if the caller decides.
    presence: Option<PresenceRule>,
    stopping: Arc<Stopping>,
    /// Minimum time between the beginnings of two rounds.
    round_interval: Duration,
    /// Start of the last round.
    began: Option<Instant>,
}

impl Coordinator {
    /// Opens the connections. Retries unreachable devices until the coordinator is dropped.
    ///
    /// # Errors
    /// [`FleetError::Keys`], [`FleetError::Listen`], [`FleetError::Entropy`],
    /// [`FleetError::Thread`].
    pub fn new(keys: FleetKeys, terms: Terms, endpoints: &Endpoints) -> Result<Self, FleetError> {
        let terms = Terms {
            handshake: endpoints.requires_x25519,
            ..terms
        };
        let peers = keys.keys().iter();
        let peer =
            |device, key: &ChainKey| Peer::new(device, key.clone(), terms).on_link(&endpoints.link);
        let peers = peers.map(|(device, key)| (*device, peer(*device, key)));
        // Nonces must never repeat. Nonces from a stream under a fresh secret do not.
        let nonces = Root::from_secret(*secret()?).stream(StreamId {
            purpose: Purpose::SessionNonces,
            round: 0,
            device: 0,
        });
        let registry = Registry::new(
            peers.collect(),
            KnownLedgers::open(keys.path(), keys.vault())?,
            nonces,
        );
        let quarantine = Quarantine::open(keys.path(), endpoints.strikes)?;
        let places = places(endpoints, registry.device_count());
        let service = Arc::new(Service::new(registry, places).on_link(endpoints.link));
        let runtime = Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(FleetError::Thread)?;
        let tasks = TaskTracker::new();
        let within = runtime.enter();
        let opened = endpoints.listen.iter();
        let opened = opened.map(|address| listen(address, &endpoints.options));
        for listener in opened.collect::<Vec<_>>() {
            let (listener, connections) = (listener?, tasks.clone());
            let spawn = move |task| drop(connections.spawn(task));
            tasks.spawn(Arc::clone(&service).accept(listener, spawn));
        }
        for address in &endpoints.dial {
            let options = endpoints.options.clone();
            tasks.spawn(Arc::clone(&service).dial(address.clone(), options));
        }
        drop(within);
        Ok(Self {
            service,
            runtime: Some(runtime),
            tasks,
            keys,
            timeout: endpoints.timeout,
            in_flight: endpoints.in_flight,
            quarantine,
            terms,
            presence: None,
            stopping: Arc::default(),
            round_interval: endpoints.round_interval,
            began: None,
        })
    }

    /// Makes rounds wait until enough devices are connected.
    #[must_use]
    pub const fn waiting_for(mut self, rule: PresenceRule) -> Self {
        self.presence = Some(rule);
        self
    }

    /// Lets `stopping` end rounds early.
    #[must_use]
    pub fn stopped_by(mut self, stopping: Arc<Stopping>) -> Self {
        self.stopping = stopping;
        self
    }

    /// Returns whether the device is a real one.
    #[must_use]
    pub fn has(&self, device: u32) -> bool {
        self.keys.members().contains(&device)
    }

    /// Returns the real devices.
    #[must_use]
    pub fn devices(&self) -> Vec<u32> {
        self.keys.members().iter().copied().collect()
    }

    /// Waits until enough devices are connected for a round, or the run is to stop. Returns whether
    /// it had to wait.
    ///
    /// # Errors
    /// [`NobodyConnected`].
    pub fn wait_for_devices(&mut self) -> Result<bool, NobodyConnected> {
        let Some(rule) = self.presence else {
            return Ok(false);
        };
        let (keys, service, terms) = (&mut self.keys, &*self.service, self.terms);
        let mut look = || {
            take_over(keys, service, terms);
            rule.presence(service.registry(), keys.members(), service.now())
        };
        rule.wait(service, &self.stopping, &mut look)
    }

    /// Waits until the next round may begin, or the run is to stop. Returns whether it had to wait.
    /// The times depend only on the clock.
    pub fn wait_for_interval(&self) -> bool {
        let end = self.began.map(|began| began + self.round_interval);
        let mut has_waited = false;
        while let Some(end) = end.filter(|_| !self.stopping.is_asked()) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(LOOK_INTERVAL.min(left));
            has_waited = true;
        }
        has_waited
    }

    /// Notes that the next round begins now.
    pub fn round_begins(&mut self) {
        self.began = Some(Instant::now());
    }

    /// Runs a round with the real devices of `cohort`, while the caller runs `meanwhile`. Takes at
    /// most the time-out, or as long as `meanwhile`.
    ///
    /// # Errors
    /// [`KeysError`] if the round number cannot be recorded as used. No device is invited then.
    pub fn round<T>(
        &mut self,
        offer: Offer,
        cohort: &[u32],
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(BTreeMap<u32, ExchangeOutcome>, T), KeysError> {
        self.take_over();
        self.keys.use_round(offer.number)?;
        let offer = Arc::new(offer);
        // A file that is invalid or cannot be written costs no round. The known entries stay.
        if let Err(error) = self.quarantine.refresh() {
            tracing::error!(reason = "quarantine", "{error}");
        }
        let is_out = |device: &u32| self.quarantine.has(*device);
        let (out, drawn): (Vec<u32>, Vec<u32>) = cohort
            .iter()
            .filter(|device| self.has(**device))
            .partition(|device| is_out(device));
        let deadline = Instant::now() + self.timeout;
        let registry = self.service.registry();
        let turns = Turns::new(registry, &offer, &drawn, self.in_flight);
        self.service.monitor().round_begins(drawn.len());
        let result = std::thread::scope(|scope| {
            let (service, stopping) = (&*self.service, &*self.stopping);
            let (keys, terms) = (&mut self.keys, self.terms);
            scope.spawn(move || {
                let mut take_over = || take_over(keys, service, terms);
                wait(service, turns, deadline, stopping, &mut take_over);
                service.monitor().awaits_no_more();
            });
            meanwhile()
        });
        let mut outcomes = self.close(&drawn);
        self.judge(&offer, &outcomes);
        let absence = ExchangeOutcome::Missing(Absence::Quarantined);
        outcomes.extend(out.into_iter().map(|device| (device, absence.clone())));
        Ok((outcomes, result))
    }

    /// Runs a window of time in which devices get the version of `offer`.
    ///
    /// # Errors
    /// [`KeysError`] if the round number cannot be recorded as used. No device is invited then.
    pub fn window(
        &mut self,
        offer: Offer,
        windows: &mut Windows,
    ) -> Result<WindowResult, KeysError> {
        self.take_over();
        self.keys.use_round(offer.number)?;
        let offer = Arc::new(offer);
        if let Err(error) = self.quarantine.refresh() {
            tracing::error!(reason = "quarantine", "{error}");
        }
        let now = Instant::now();
        let deadline = windows.next_end(now);
        let registry = self.service.registry();
        let mut result = WindowResult::default();
        let members = self.keys.members().iter().copied();
        let members = members.filter(|device| !self.quarantine.has(*device));
        let devices = windows.open(registry, members, &offer, &mut result);
        let cohort_size = windows.rule().cohort_size as usize;
        let turns = Turns::of_window(registry, cohort_size, &devices, self.in_flight);
        let monitor = self.service.monitor();
        monitor.window_begins(devices.len(), deadline - now);
        let (service, stopping) = (&*self.service, &*self.stopping);
        let (keys, terms) = (&mut self.keys, self.terms);
        let mut take_over = || take_over(keys, service, terms);
        wait(service, turns, deadline, stopping, &mut take_over);
        service.monitor().awaits_no_more();
        windows.close(registry, &devices, offer.number, &mut result);
        self.service.monitor().window_ends(&result);
        for (device, absence) in &result.missing {
            // A sleeping device gets no strike.
            let outcome = ExchangeOutcome::Missing(*absence);
            if self.quarantine.note(*device, offer.number, false, &outcome) {
                report(*device);
            }
        }
        self.save_quarantine();
        Ok(result)
    }

    /// Reloads the keys, if requested.
    fn take_over(&mut self) {
        take_over(&mut self.keys, &self.service, self.terms);
    }

    /// Lets commands request a reload, which must reach [`Service::request_reload`].
    ///
    /// # Errors
    /// [`KeysError::Io`].
    pub fn reload_on_hangup(&mut self) -> Result<(), KeysError> {
        self.keys.reload_on_hangup()
    }

    /// Quarantines devices because of their outcomes in a round.
    fn judge(&mut self, offer: &Offer, outcomes: &BTreeMap<u32, ExchangeOutcome>) {
        let number = offer.number;
        // A device that is late for a message may still be busy with its earlier update, which a
        // quorum cut off. The speed of others would then decide. And a round gives only one strike.
        let is_update = !offer.invitation.is_matrix();
        let gives_strikes = is_update && offer.places.is_none() && !self.stopping.is_asked();
        for (device, outcome) in outcomes {
            if self
                .quarantine
                .note(*device, number, gives_strikes, outcome)
            {
                report(*device);
            }
        }
        self.save_quarantine();
    }

    fn save_quarantine(&mut self) {
        if self.quarantine.is_unsaved()
            && let Err(error) = self.quarantine.save()
        {
            tracing::error!(reason = "quarantine", "{error}");
        }
    }

    fn close(&mut self, drawn: &[u32]) -> BTreeMap<u32, ExchangeOutcome> {
        let mut outcomes = BTreeMap::new();
        for device in drawn {
            let Some(peer) = self.service.registry().peer(*device) else {
                outcomes.insert(*device, ExchangeOutcome::Missing(Absence::Revoked));
                continue;
            };
            let mut peer = lock(&peer);
            // A device that has returned under another key has no part in the round.
            let outcome = peer.close();
            let outcome = outcome.unwrap_or(ExchangeOutcome::Missing(Absence::Revoked));
            outcomes.insert(*device, outcome);
        }
        self.service.monitor().round_ends(outcomes.values());
        outcomes
    }

    /// Runs a task alongside the connections, until the coordinator is dropped.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }

    /// Returns the service, from which the table of devices is made during a round.
    #[must_use]
    pub fn service(&self) -> Arc<Service> {
        Arc::clone(&self.service)
    }

    /// Returns the fingerprint of a device's ledger, which names its masks. `None` before it has
    /// arrived.
    #[must_use]
    pub fn ledger_of(&self, device: u32) -> Option<Fingerprint> {
        self.service.registry().ledgers().fingerprint(device)
    }

    /// Returns the lowest round number that the fleet has not used.
    #[must_use]
    pub const fn next_round(&self) -> u32 {
        self.keys.next_round()
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.service.stop();
        self.tasks.close();
        if let Some(runtime) = self.runtime.take() {
            // Cuts off connections that are still writing then.
            let ended = async { tokio::time::timeout(SHUTDOWN_GRACE, self.tasks.wait()).await };
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        }
        // Chain keys are written now and then. After an orderly end all are on disk, so that a copy
        // of a device, or a restored old ledger, is behind from then on.
        let saved = self.service.registry().ledgers().save_all();
        if let Err(error) = saved {
            tracing::error!(reason = "keys", "{error}");
        }
    }
}

/// Waits until the round is over for all awaited devices, or until the deadline. Meanwhile gives
/// devices their turns.
pub(super) fn wait(
    service: &Service,
    mut turns: Turns<'_>,
    deadline: Instant,
    stopping: &Stopping,
    take_over: &mut dyn FnMut(),
) {
    let registry = service.registry();
    let mut is_reported = false;
    loop {
        take_over();
        // A device is invited only once its ledger is on disk. This statement also releases the
        // ledgers, which a device locks after itself.
        let saved = registry.ledgers().save(service.now());
        match saved {
            Ok(()) => {
                for connection in turns.advance(service.now()) {
                    service.wake(connection);
                }
            }
            Err(error) if !is_reported => {
                tracing::error!(reason = "ledgers", "no device is invited: {error}");
                is_reported = true;
            }
            Err(_) => {}
        }
        service.monitor().awaits(turns.awaited());
        let deadline = stopping.deadline(deadline);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || turns.is_over() {
            return;
        }
        let mut changes = registry.changes(LOOK_INTERVAL.min(left));
        if !changes.is_empty() {
            std::thread::sleep(GATHER.min(left));
            changes.append(&mut registry.changes(Duration::ZERO));
        }
        for device in changes {
            turns.look_at(device);
        }
    }
}

/// Reloads the keys, if requested. Sessions under a deleted key end at once.
fn take_over(keys: &mut FleetKeys, service: &Service, terms: Terms) {
    if !service.take_reload() {
        return;
    }
    let changes = match keys.reload() {
        Ok(changes) => changes,
        Err(error) => {
            tracing::error!(reason = "keys", "the keys were not changed: {error}");
            return;
        }
    };
    let registry = service.registry();
    for device in changes.removed.iter().chain(&changes.replaced) {
        registry.remove(*device);
    }
    for device in changes.added.iter().chain(&changes.replaced) {
        if let Some(key) = keys.keys().get(device) {
            let peer = Peer::new(*device, key.clone(), terms);
            registry.insert(*device, peer.on_link(service.link()));
        }
    }
    registry.ledgers().seal_with(keys.vault());
    tracing::info!(
        reason = "keys",
        "the keys were read again: {} added, {} revoked, {} replaced",
        changes.added.len(),
        changes.removed.len(),
        changes.replaced.len()
    );
}

/// Returns the number of accepted connections: the requested number, or the system's limit.
fn places(endpoints: &Endpoints, devices: usize) -> usize {
    let wanted = endpoints
        .max_connections
        .unwrap_or(devices + SPARE_CONNECTIONS);
    let needed = (wanted + OTHER_FILES) as u64;
    // A failure leaves the limit as it was, and the limit then says how many are possible.
    let files = rlimit::increase_nofile_limit(needed).unwrap_or(needed);
    let possible = usize::try_from(files)
        .unwrap_or(usize::MAX)
        .saturating_sub(OTHER_FILES);
    if possible < wanted && !endpoints.listen.is_empty() {
        tracing::warn!(
            reason = "open files",
            files,
            needed,
            "the system allows {files} open files, enough for {possible} of {wanted} wanted \
             connections: raise the limit with `ulimit -n {needed}` or LimitNOFILE={needed}"
        );
    }
    wanted.min(possible)
}

fn listen(address: &Address, options: &Options) -> Result<Box<dyn Listener>, FleetError> {
    address
        .listen(options)
        .map_err(|source| FleetError::Listen {
            address: address.clone(),
            source,
        })
}
