//! A coordinator without transports, and the core's session at the other end.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use smolfed_core::bit::BitRequest;
use smolfed_core::crypto::Key;
use smolfed_core::harness::{self, data, deliver, invitation, simulated, transmit};
use smolfed_core::identity::Identity;
use smolfed_core::ledger::{Budget, Ledger, Limits, MaxJump, Separation};
use smolfed_core::model::{BATCH_GROUP, Model, Softmax};
use smolfed_core::noise::Sigma;
use smolfed_core::samples::SampleSlice;
use smolfed_core::session::{Greeter, Phase, Policy, Session};
use smolfed_core::stream::{Purpose, Root, Stream};
use smolfed_core::wire::keys::ChainKey;
use smolfed_core::wire::message::Invitation;

use crate::connection::Connection;
use crate::device::memory::SessionMemory;
use crate::exchange::{ExchangeOutcome, Offer};
use crate::ledgers::KnownLedgers;
use crate::link::Link;
use crate::lock::lock;
use crate::peer::{ConnectionId, Peer, Terms};
use crate::registry::{Registry, SharedPeer};
use smolfed_release::ReceivedUpdate;

pub(super) use smolfed_core::harness::{CLASSES, FEATURES, PARAMETERS, Ram, noise, shape};

pub(super) const STEP: Duration = Duration::from_millis(200);

pub(super) type Board<R = Stream> = Session<'static, Softmax<usize, usize>, Ram, R>;

pub(super) fn key(device: u32) -> Key {
    Key::from_secret([device as u8 + 1; 32])
}

pub(super) fn stream(purpose: Purpose, round: u32, device: u32) -> Stream {
    harness::stream(&Root::from_seed(11), purpose, round, device)
}

pub(super) fn model() -> Softmax<usize, usize> {
    Softmax::new(FEATURES, CLASSES)
}

fn scratch() -> usize {
    model().scratch_count(BATCH_GROUP)
}

/// The nonce of the devices' ledgers.
pub(super) const NONCE: [u8; 8] = [3; 8];

/// Returns a device that claims to be `device`, with the key of `owner`, after `start` restarts.
pub(super) fn board_with(device: u32, owner: u32, start: u32, policy: Policy) -> Board {
    let ledger = Ledger::create(Ram::blank(), NONCE, key(owner)).unwrap();
    board_of(device, start, policy, ledger)
}

/// Returns a device with this ledger.
pub(super) fn board_of(device: u32, start: u32, policy: Policy, ledger: Ledger<Ram>) -> Board {
    let nonces = stream(Purpose::Initialisation, start, device);
    board_by(nonces, device, policy, ledger)
}

/// Returns a device with this ledger that greets with these nonces.
pub(super) fn board_by<R: Greeter>(
    nonces: R,
    device: u32,
    policy: Policy,
    ledger: Ledger<Ram>,
) -> Board<R> {
    let identity = Identity {
        device,
        root: Root::from_seed(11),
    };
    let memory = Box::leak(Box::new(SessionMemory::new(&model(), 10, scratch())));
    Session::new(identity, policy, model(), memory.borrow(), ledger, nonces).unwrap()
}

pub(super) fn board(device: u32) -> Board {
    board_with(device, device, 0, policy())
}

pub(super) fn policy() -> Policy {
    harness::policy(Limits {
        budget: Budget(50),
        separation: Separation::NONE,
        max_jump: MaxJump::DEFAULT,
    })
}

pub(super) fn terms(noise: Option<Sigma>) -> Terms {
    Terms {
        recipe: None,
        shape: shape(),
        local_noise: noise.is_some(),
        handshake: false,
    }
}

pub(super) fn offer(number: u32, noise: Option<Sigma>) -> Arc<Offer> {
    let model = harness::model().to_vec();
    Arc::new(Offer::new(number, invitation(noise), model))
}

/// Returns an offer with an adaptive clip norm. The noise also covers the bit.
pub(super) fn offer_with_bit(number: u32, noise: Option<Sigma>) -> Arc<Offer> {
    let offer = Arc::into_inner(offer(number, noise)).unwrap();
    Arc::new(Offer {
        invitation: Invitation {
            bit: Some(BitRequest { noise }),
            ..offer.invitation
        },
        ..offer
    })
}

/// Returns the device's update, computed without the protocol.
pub(super) fn expected(device: u32, offer: &Offer) -> ReceivedUpdate {
    let (root, global) = (Root::from_seed(11), offer.model.as_slice());
    let global = global.try_into().unwrap();
    let sent = simulated(&root, device, offer.number, &offer.invitation, global).unwrap();
    ReceivedUpdate::from(sent.update.to_vec()).with_bit(sent.bit.unwrap_or_default())
}

/// A coordinator of devices 0 to 3 and the connection of one of them.
pub(super) struct Harness {
    pub(super) registry: Registry,
    peers: BTreeMap<u32, SharedPeer>,
    pub(super) connection: Connection,
    pub(super) connections: u64,
    pub(super) now: Duration,
}

impl Harness {
    pub(super) fn new(noise: Option<Sigma>) -> Self {
        Self::with(KnownLedgers::default(), noise)
    }

    /// Returns a coordinator that remembers these ledgers.
    pub(super) fn with(ledgers: KnownLedgers, noise: Option<Sigma>) -> Self {
        Self::under(terms(noise), ledgers)
    }

    pub(super) fn under(terms: Terms, ledgers: KnownLedgers) -> Self {
        Self::of(terms, ledgers, &Link::default())
    }

    /// Returns a coordinator whose devices are on such links.
    pub(super) fn on_link(link: &Link) -> Self {
        Self::of(terms(None), KnownLedgers::default(), link)
    }

    fn of(terms: Terms, ledgers: KnownLedgers, link: &Link) -> Self {
        let key = |device| ChainKey::new(key(device));
        let peer = |device| (device, Peer::new(device, key(device), terms).on_link(link));
        let registry = Registry::new(
            (0..4).map(peer).collect(),
            ledgers,
            stream(Purpose::Initialisation, 0, 99),
        );
        let shared = |device| (device, registry.peer(device).unwrap());
        Self {
            peers: (0..4).map(shared).collect(),
            registry,
            connection: Connection::new(ConnectionId(0)),
            connections: 0,
            now: Duration::ZERO,
        }
    }

    pub(super) fn peer(&self, device: u32) -> MutexGuard<'_, Peer> {
        lock(&self.peers[&device])
    }

    /// Adds a device, or replaces the one with its number.
    pub(super) fn insert(&mut self, device: u32, peer: Peer) {
        self.registry.insert(device, peer);
        self.peers
            .insert(device, self.registry.peer(device).unwrap());
    }

    /// Receives bytes and returns the answer, while time passes.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.now += STEP;
        let mut out = vec![];
        self.connection
            .receive(bytes, &self.registry, self.now, &mut out);
        self.connection.poll(self.now, &mut out);
        out
    }

    /// Breaks the connection and opens another one.
    pub(super) fn reconnect(&mut self) {
        self.connection.lost(&self.registry, self.now);
        self.connections += 1;
        self.connection = Connection::new(ConnectionId(self.connections));
    }
}

/// Exchanges the pending bytes of both ends, as `line` delivers them.
pub(super) fn turn<R: Greeter>(
    board: &mut Board<R>,
    harness: &mut Harness,
    line: &mut impl FnMut(Vec<u8>) -> Vec<u8>,
) {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    if board.outgoing().is_empty() {
        board.timeout();
    }
    let mut sent = vec![];
    transmit(board, |bytes| sent.extend_from_slice(bytes));
    let mut carry = |bytes: Vec<u8>| if bytes.is_empty() { bytes } else { line(bytes) };
    let answer = harness.receive(&carry(sent));
    deliver(board, &carry(answer), |board| {
        if board.phase() == Phase::Training {
            board.train(&samples);
        }
    });
}

pub(super) fn run<R: Greeter>(
    board: &mut Board<R>,
    harness: &mut Harness,
    device: u32,
    mut line: impl FnMut(Vec<u8>) -> Vec<u8>,
) -> ExchangeOutcome {
    for _ in 0..5_000 {
        if harness.peer(device).is_settled() {
            return harness.peer(device).close().unwrap();
        }
        turn(board, harness, &mut line);
    }
    panic!("no outcome: {board:?}, {:?}", harness.peer(device));
}
