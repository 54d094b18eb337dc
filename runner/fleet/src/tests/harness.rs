//! A coordinator without transports, and the core's session at the other end.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};
use smolfed_core::bit::{BitRequest, clip_bit};
use smolfed_core::crypto::Key;
use smolfed_core::identity::Identity;
use smolfed_core::ledger::{Budget, Ledger, Limits, MaxJump, Separation};
use smolfed_core::model::{BATCH_GROUP, Model, ModelKind, Softmax};
use smolfed_core::noise::{DiscreteGaussian, Sigma};
use smolfed_core::params::{ClipNorm, LearningRate, NoiseMultiplier, Penalty};
use smolfed_core::quantize::Grid;
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::{Greeter, Phase, Policy, Session};
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};
use smolfed_core::train::{Clipping, Workspace, local_update};
use smolfed_core::wire::keys::ChainKey;
use smolfed_core::wire::message::{Invitation, ModelShape};

use crate::connection::Connection;
use crate::device::memory::SessionMemory;
use crate::exchange::{ExchangeOutcome, Offer};
use crate::ledgers::KnownLedgers;
use crate::lock::lock;
use crate::peer::{ConnectionId, Peer, Terms};
use crate::registry::{Registry, SharedPeer};
use smolfed_release::ReceivedUpdate;

pub(super) const FEATURES: usize = 20;
pub(super) const CLASSES: usize = 6;
pub(super) const PARAMETERS: usize = (FEATURES + 1) * CLASSES;
pub(super) const STEP: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
pub(super) struct Ram(pub(super) Vec<u8>);
#[derive(Debug)]
pub(super) struct Infallible;
impl NorFlashError for Infallible {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}
impl ErrorType for Ram {
    type Error = Infallible;
}
impl ReadNorFlash for Ram {
    const READ_SIZE: usize = 1;
    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.copy_from_slice(&self.0[offset as usize..][..bytes.len()]);
        Ok(())
    }
    fn capacity(&self) -> usize {
        self.0.len()
    }
}
impl NorFlash for Ram {
    const WRITE_SIZE: usize = 1;
    const ERASE_SIZE: usize = 64;
    fn erase(&mut self, from: u32, to: u32) -> Result<(), Infallible> {
        self.0[from as usize..to as usize].fill(0xff);
        Ok(())
    }
    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Infallible> {
        self.0[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

pub(super) type Board<R = Stream> = Session<'static, Softmax<usize, usize>, Ram, R>;

pub(super) fn key(device: u32) -> Key {
    Key::from_secret([device as u8 + 1; 32])
}

pub(super) fn stream(purpose: Purpose, round: u32, device: u32) -> Stream {
    Root::from_seed(11).stream(StreamId {
        purpose,
        round,
        device,
    })
}

pub(super) fn model() -> Softmax<usize, usize> {
    Softmax::new(FEATURES, CLASSES)
}

fn scratch() -> usize {
    model().scratch_count(BATCH_GROUP)
}

/// The nonce of the devices' ledgers.
pub(super) const NONCE: [u8; 8] = [3; 8];

/// A device that claims to be `device`, with the key of `owner`, after `start` restarts.
pub(super) fn board_with(device: u32, owner: u32, start: u32, policy: Policy) -> Board {
    let ledger = Ledger::create(Ram(vec![0xff; 256]), NONCE, key(owner)).unwrap();
    board_of(device, start, policy, ledger)
}

/// A device with this ledger.
pub(super) fn board_of(device: u32, start: u32, policy: Policy, ledger: Ledger<Ram>) -> Board {
    let nonces = stream(Purpose::Initialisation, start, device);
    board_by(nonces, device, policy, ledger)
}

/// The same, which greets by these nonces.
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
    Policy {
        limits: Limits {
            budget: Budget(50),
            separation: Separation::NONE,
            max_jump: MaxJump::DEFAULT,
        },
        min_noise_multiplier: NoiseMultiplier::NONE,
        min_matrix_noise_multiplier: NoiseMultiplier::NONE,
        max_epochs: 10,
        hides_number: false,
        helpers: 0,
    }
}

pub(super) fn shape() -> ModelShape {
    ModelShape {
        kind: ModelKind::Softmax,
        features: FEATURES as u16,
        outputs: CLASSES as u16,
        network: None,
        integer: None,
    }
}

pub(super) fn terms(noise: Option<Sigma>) -> Terms {
    Terms {
        shape: shape(),
        local_noise: noise.is_some(),
        handshake: false,
    }
}

pub(super) fn noise() -> Option<Sigma> {
    Sigma::new(3 << 20, 2).ok()
}

pub(super) fn offer(number: u32, noise: Option<Sigma>) -> Arc<Offer> {
    Arc::new(Offer {
        number,
        invitation: Invitation {
            shape: shape(),
            epochs: 2,
            batch_size: NonZeroU32::new(4).unwrap(),
            learning_rate: LearningRate::new(0.25).unwrap(),
            weight_decay: Penalty::NONE,
            proximal: Penalty::NONE,
            clipping: Clipping::EveryStep,
            gradient_smoothing: None,
            grid: Grid::new(ClipNorm::new(0.5).unwrap(), 20).unwrap(),
            noise,
            bit: None,
            masks: None,
            request: None,
        },
        tails: BTreeMap::new(),
        places: None,
        last_rounds: BTreeMap::new(),
        model: (0..PARAMETERS).map(|i| (i % 7) as f32 * 0.01).collect(),
    })
}

pub(super) fn data() -> (Vec<f32>, Vec<u16>) {
    let features = (0..FEATURES * 10)
        .map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0)
        .collect();
    (features, (0..10).map(|i| i % 6).collect())
}

/// The same of an adaptive clip norm; under noise the bit has it too.
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

/// The device's update, computed without the protocol.
pub(super) fn expected(device: u32, offer: &Offer) -> ReceivedUpdate {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let mut memory = SessionMemory::new(&model(), samples.len(), scratch());
    let Workspace {
        local,
        update,
        order,
        scratch,
    } = memory.borrow().work;
    let shuffle = &mut stream(Purpose::BatchShuffle, offer.number, device);
    let asked = &offer.invitation;
    let work = Workspace {
        local,
        update: &mut *update,
        order,
        scratch,
    };
    let report = local_update(
        &model(),
        &samples,
        &offer.model,
        &asked.training(),
        shuffle,
        work,
    )
    .unwrap();
    let mut integers = vec![0; PARAMETERS];
    asked.grid.quantize_into(update, &mut integers).unwrap();
    let mut sum: Vec<i64> = integers.into_iter().map(i64::from).collect();
    if let Some(noise) = asked.noise {
        let own = &mut stream(Purpose::DeviceNoise, offer.number, device);
        DiscreteGaussian::of(noise).add_to(&mut sum, own);
    }
    let mut bit = [0];
    if let Some(request) = asked.bit {
        bit = [clip_bit(&asked.grid, report.norm)];
        if let Some(noise) = request.noise {
            let own = &mut stream(Purpose::DeviceBitNoise, offer.number, device);
            DiscreteGaussian::of(noise).add_to(&mut bit, own);
        }
    }
    ReceivedUpdate::from(sum).with_bit(bit[0])
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

    /// A coordinator that remembers these ledgers.
    pub(super) fn with(ledgers: KnownLedgers, noise: Option<Sigma>) -> Self {
        Self::under(terms(noise), ledgers)
    }

    pub(super) fn under(terms: Terms, ledgers: KnownLedgers) -> Self {
        let peer = |device| (device, Peer::new(device, ChainKey::new(key(device)), terms));
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

    /// A device in the place of the one with its number.
    pub(super) fn insert(&mut self, device: u32, peer: Peer) {
        self.registry.insert(device, peer);
        self.peers
            .insert(device, self.registry.peer(device).unwrap());
    }

    /// Bytes in, bytes out, and time passes.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.now += STEP;
        let mut out = vec![];
        self.connection
            .receive(bytes, &self.registry, self.now, &mut out);
        self.connection.poll(self.now, &mut out);
        out
    }

    /// The connection breaks and is replaced by another one.
    pub(super) fn reconnect(&mut self) {
        self.connection.lost(&self.registry);
        self.connections += 1;
        self.connection = Connection::new(ConnectionId(self.connections));
    }
}

/// Both ends receive what the other one has sent, as `line` delivers it.
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
    while !board.outgoing().is_empty() {
        sent.extend_from_slice(board.outgoing());
        board.sent();
    }
    let mut deliver = |bytes: Vec<u8>| if bytes.is_empty() { bytes } else { line(bytes) };
    let answer = harness.receive(&deliver(sent));
    let answer = deliver(answer);
    let mut rest = answer.as_slice();
    while !rest.is_empty() {
        rest = &rest[board.receive(rest)..];
        if board.phase() == Phase::Training {
            board.train(&samples);
        }
    }
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
