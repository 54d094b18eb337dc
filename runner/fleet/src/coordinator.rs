//! The coordinator: a round with those devices of a cohort that are real.

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

/// Why the coordinator could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The keys.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// An address to listen at.
    #[error("cannot listen at {address}: {source}; choose another address with `--listen`")]
    Listen {
        /// The address.
        address: Address,
        /// Why.
        source: std::io::Error,
    },
    /// The threads of the event loop.
    #[error("cannot start the threads for connections: {0}")]
    Thread(std::io::Error),
    /// The nonces of sessions, the identifier of a run.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// Where devices are, and how long the coordinator waits for them.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Addresses that the coordinator connects to.
    pub dial: Vec<Address>,
    /// Addresses at which the coordinator accepts connections.
    pub listen: Vec<Address>,
    /// What connections need beside their addresses.
    pub options: Options,
    /// Time for a device to complete its part in a round, from the invitation to the update.
    pub timeout: Duration,
    /// How fast links are.
    pub link: Link,
    /// The shortest time from the beginning of a round to that of the next one.
    pub round_interval: Duration,
    /// Connections that are accepted at most; by default enough for all devices and some more.
    pub max_connections: Option<usize>,
    /// Devices that receive the model at the same time at most.
    pub in_flight: usize,
    /// Rounds in a row without an answer after which a device is put into quarantine; 0 for never.
    pub strikes: u32,
    /// Whether devices must greet with an X25519 handshake.
    pub requires_x25519: bool,
}

/// Connections beyond those of all devices: of devices that reconnect before the loss of the
/// earlier connection is noticed, and of strangers.
const SPARE_CONNECTIONS: usize = 1024;

/// Open files that are no connections of devices: run directory, ledger, data, the live page.
const OTHER_FILES: usize = 96;

/// How often the coordinator looks for devices that stall, though nothing happens.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// How long the coordinator waits after a change for others, which it then takes together.
const GATHER: Duration = Duration::from_millis(1);

/// How long connections are waited for at the end: enough for a frame that is being written.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(250);

/// The coordinator of a fleet.
#[derive(Debug)]
pub struct Coordinator {
    service: Arc<Service>,
    /// `None` once it is shut down.
    runtime: Option<Runtime>,
    tasks: TaskTracker,
    keys: FleetKeys,
    timeout: Duration,
    in_flight: usize,
    quarantine: Quarantine,
    terms: Terms,
    /// When a round may begin; `None` if the caller decides.
    presence: Option<PresenceRule>,
    stopping: Arc<Stopping>,
    /// The shortest time from the beginning of a round to that of the next one.
    round_interval: Duration,
    /// When the last round began.
    began: Option<Instant>,
}

impl Coordinator {
    /// Opens the connections. Devices that cannot be reached are tried again, until it is dropped.
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
        // Nonces must never repeat: those of a stream under a fresh secret do not.
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

    /// The same, with rounds that begin only while enough devices are connected.
    #[must_use]
    pub const fn waiting_for(mut self, rule: PresenceRule) -> Self {
        self.presence = Some(rule);
        self
    }

    /// The same, with rounds that end early where that is asked for.
    #[must_use]
    pub fn stopped_by(mut self, stopping: Arc<Stopping>) -> Self {
        self.stopping = stopping;
        self
    }

    /// Whether the device is a real one.
    #[must_use]
    pub fn has(&self, device: u32) -> bool {
        self.keys.members().contains(&device)
    }

    /// The real devices.
    #[must_use]
    pub fn devices(&self) -> Vec<u32> {
        self.keys.members().iter().copied().collect()
    }

    /// Waits until enough devices are connected for a round, or the run is to stop; whether it had
    /// to wait.
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

    /// Waits until the next round may begin after the last one, or the run is to stop; whether it
    /// had to wait. The times depend on the clock alone.
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

    /// The next round begins now.
    pub fn round_begins(&mut self) {
        self.began = Some(Instant::now());
    }

    /// A round with the real devices of `cohort`, while the caller does something `meanwhile`.
    /// Takes at most the time-out, or as long as `meanwhile`.
    ///
    /// # Errors
    /// [`KeysError`] if the round number cannot be recorded as used; no device was invited then.
    pub fn round<T>(
        &mut self,
        offer: Offer,
        cohort: &[u32],
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(BTreeMap<u32, ExchangeOutcome>, T), KeysError> {
        self.take_over();
        self.keys.use_round(offer.number)?;
        let offer = Arc::new(offer);
        // A file that is wrong, or that cannot be written, costs no round: what was known stays.
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

    /// A window of time in which devices get the version of `offer`, until it ends.
    ///
    /// # Errors
    /// [`KeysError`] if the round number cannot be recorded as used; no device was invited then.
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
            // A device that sleeps gets no strike.
            let outcome = ExchangeOutcome::Missing(*absence);
            if self.quarantine.note(*device, offer.number, false, &outcome) {
                report(*device);
            }
        }
        self.save_quarantine();
        Ok(result)
    }

    /// Takes over keys that were changed, if that was asked for.
    fn take_over(&mut self) {
        take_over(&mut self.keys, &self.service, self.terms);
    }

    /// From now on [`Service::request_reload`] is called when a command asks for it: it may.
    ///
    /// # Errors
    /// [`KeysError::Io`].
    pub fn reload_on_hangup(&mut self) -> Result<(), KeysError> {
        self.keys.reload_on_hangup()
    }

    /// Puts devices into quarantine for what they did in a round.
    fn judge(&mut self, offer: &Offer, outcomes: &BTreeMap<u32, ExchangeOutcome>) {
        let number = offer.number;
        // A device that is late for a message may still be at its update before, which a quorum cut
        // off: how fast others are would decide. And a round gives one strike.
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
            // One that has come under another key in the meantime has no part in the round.
            let outcome = peer.close();
            let outcome = outcome.unwrap_or(ExchangeOutcome::Missing(Absence::Revoked));
            outcomes.insert(*device, outcome);
        }
        self.service.monitor().round_ends(outcomes.values());
        outcomes
    }

    /// Runs a task beside the connections, until the coordinator is dropped.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }

    /// What the table of devices is made from while a round runs.
    #[must_use]
    pub fn service(&self) -> Arc<Service> {
        Arc::clone(&self.service)
    }

    /// The fingerprint of a device's ledger, by which its masks are named; `None` before it has
    /// come.
    #[must_use]
    pub fn ledger_of(&self, device: u32) -> Option<Fingerprint> {
        self.service.registry().ledgers().fingerprint(device)
    }

    /// The lowest round number that the fleet has not used.
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
            // Those that are still writing then are cut off.
            let ended = async { tokio::time::timeout(SHUTDOWN_GRACE, self.tasks.wait()).await };
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        }
        // Chain keys are written now and then. After an orderly end all are on disk: from then on a
        // copy of a device, or a ledger put back, is behind.
        if let Err(error) = self.service.registry().ledgers().save_all() {
            tracing::error!(reason = "keys", "{error}");
        }
    }
}

/// Waits until the round is over for all devices that are awaited, or until the deadline, and gives
/// devices their turns meanwhile.
fn wait(
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
        // A device is invited only once its ledger is on disk.
        match registry.ledgers().save(service.now()) {
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

/// Takes over keys that were changed, if that was asked for: sessions under a key that is gone end
/// at once.
fn take_over(keys: &mut FleetKeys, service: &Service, terms: Terms) {
    if !service.take_reload() {
        return;
    }
    let changes = match keys.reload() {
        Ok(changes) => changes,
        Err(error) => {
            tracing::error!(reason = "keys", "the keys stay as they were: {error}");
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

/// Places for accepted connections: as many as asked for, or as the system allows.
fn places(endpoints: &Endpoints, devices: usize) -> usize {
    let wanted = endpoints
        .max_connections
        .unwrap_or(devices + SPARE_CONNECTIONS);
    let needed = (wanted + OTHER_FILES) as u64;
    // A failure leaves the limit as it was, which then says what is possible.
    let files = rlimit::increase_nofile_limit(needed).unwrap_or(needed);
    let possible = usize::try_from(files)
        .unwrap_or(usize::MAX)
        .saturating_sub(OTHER_FILES);
    if possible < wanted && !endpoints.listen.is_empty() {
        tracing::warn!(
            reason = "open files",
            files,
            needed,
            "the system allows {files} open files, enough for {possible} connections of the \
             {wanted} that are wanted: raise it with `ulimit -n {needed}` or LimitNOFILE={needed}"
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
