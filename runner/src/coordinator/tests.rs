//! The coordinator against the core's own session over lines that lose, damage, repeat and reorder,
//! and against devices that lie.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};
use proptest::{collection::vec, prelude::*};
use smolfed_core::ledger::{Budget, Ledger};
use smolfed_core::model::{ModelKind, Softmax};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::{ClipNorm, LearningRate, Penalty};
use smolfed_core::quantize::Grid;
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::{Identity, Phase, Policy, Session};
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};
use smolfed_core::train::{Clipping, Workspace, local_update};
use smolfed_core::wire::Direction;
use smolfed_core::wire::link::{Link, greet};
use smolfed_core::wire::mac::Key;
use smolfed_core::wire::message::{
    Decline, Hello, Invitation, Message, Shape, UPDATE_CHUNK_BYTES, UpdateChunk, update_chunks,
};
use smolfed_core::wire::pack;
use smolfed_core::wire::refusal::Refusal;

use super::exchange::{Absence, Offer, Verdict};
use super::line::{Line, Roster};
use super::peer::{LineId, PENDING, Peer, Terms};
use crate::device::memory::SessionMemory;

const FEATURES: usize = 20;
const CLASSES: usize = 6;
const PARAMETERS: usize = (FEATURES + 1) * CLASSES;
const STEP: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
struct Ram(Vec<u8>);
#[derive(Debug)]
struct Never;
impl NorFlashError for Never {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}
impl ErrorType for Ram {
    type Error = Never;
}
impl ReadNorFlash for Ram {
    const READ_SIZE: usize = 1;
    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Never> {
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
    fn erase(&mut self, from: u32, to: u32) -> Result<(), Never> {
        self.0[from as usize..to as usize].fill(0xff);
        Ok(())
    }
    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Never> {
        self.0[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

type Board = Session<'static, Softmax<usize, usize>, Ram, Stream>;

fn key(device: u32) -> Key {
    Key::from_secret([device as u8 + 1; 32])
}

fn stream(purpose: Purpose, round: u32, device: u32) -> Stream {
    Root::from_seed(11).stream(StreamId {
        purpose,
        round,
        device,
    })
}

fn model() -> Softmax<usize, usize> {
    Softmax::new(FEATURES, CLASSES)
}

/// A device that says it is `device`, with the key of `owner`, at its start number `start`.
fn board_with(device: u32, owner: u32, start: u32, policy: Policy) -> Board {
    let identity = Identity {
        device,
        key: key(owner),
        root: Root::from_seed(11),
    };
    let memory = Box::leak(Box::new(SessionMemory::new(&model(), 10)));
    let ledger = Ledger::create(Ram(vec![0xff; 128])).unwrap();
    let nonces = stream(Purpose::Initialisation, start, device);
    Session::new(identity, policy, model(), memory.borrow(), ledger, nonces).unwrap()
}

fn board(device: u32) -> Board {
    board_with(device, device, 0, policy())
}

fn policy() -> Policy {
    Policy {
        budget: Budget(50),
        least_noise_multiplier: 0,
        most_epochs: 10,
    }
}

fn shape() -> Shape {
    Shape {
        kind: ModelKind::Softmax,
        features: FEATURES as u16,
        outputs: CLASSES as u16,
    }
}

fn terms(noise: Option<DiscreteGaussian>) -> Terms {
    Terms {
        shape: shape(),
        local_noise: noise.is_some(),
    }
}

fn noise() -> Option<DiscreteGaussian> {
    DiscreteGaussian::new(3 << 20, 2).ok()
}

fn offer(number: u32, noise: Option<DiscreteGaussian>) -> Arc<Offer> {
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
        },
        model: (0..PARAMETERS).map(|i| (i % 7) as f32 * 0.01).collect(),
    })
}

fn data() -> (Vec<f32>, Vec<u16>) {
    let features = (0..FEATURES * 10)
        .map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0)
        .collect();
    (features, (0..10).map(|i| i % 6).collect())
}

/// What the device computes when nothing is between it and its coordinator.
fn expected(device: u32, offer: &Offer) -> Vec<i64> {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let mut memory = SessionMemory::new(&model(), samples.len());
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
    local_update(
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
        noise.add_to(&mut sum, own);
    }
    sum
}

/// A coordinator of devices 0 to 3 and the line of one of them.
struct Desk {
    roster: Roster,
    line: Line,
    lines: u64,
    now: Duration,
}

impl Desk {
    fn new(noise: Option<DiscreteGaussian>) -> Self {
        let peer = |device| (device, Peer::new(device, key(device), terms(noise)));
        let peers: BTreeMap<u32, Peer> = (0..4).map(peer).collect();
        Self {
            roster: Roster::new(peers, stream(Purpose::Initialisation, 0, 99)),
            line: Line::new(LineId(0)),
            lines: 0,
            now: Duration::ZERO,
        }
    }

    fn peer(&mut self, device: u32) -> &mut Peer {
        self.roster.peers.get_mut(&device).unwrap()
    }

    /// Bytes in, bytes out, and some time.
    fn hear(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.now += STEP;
        let mut out = vec![];
        self.line
            .receive(bytes, &mut self.roster, self.now, &mut out);
        self.line.poll(&mut self.roster, self.now, &mut out);
        out
    }

    /// The connection breaks, and another one is there.
    fn reconnect(&mut self) {
        self.line.lost(&mut self.roster);
        self.lines += 1;
        self.line = Line::new(LineId(self.lines));
    }
}

/// One turn of both sides, each hearing the other through `line`.
fn turn(board: &mut Board, desk: &mut Desk, line: &mut impl FnMut(Vec<u8>) -> Vec<u8>) {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    if board.outgoing().is_empty() {
        board.timeout();
    }
    let said = board.outgoing().to_vec();
    board.sent();
    let heard = if said.is_empty() { said } else { line(said) };
    let answer = desk.hear(&heard);
    let answer = if answer.is_empty() {
        answer
    } else {
        line(answer)
    };
    let mut rest = answer.as_slice();
    while !rest.is_empty() {
        rest = &rest[board.receive(rest)..];
        if board.phase() == Phase::Training {
            board.train(&samples);
        }
    }
}

fn run(
    board: &mut Board,
    desk: &mut Desk,
    device: u32,
    mut line: impl FnMut(Vec<u8>) -> Vec<u8>,
) -> Verdict {
    for _ in 0..5_000 {
        if desk.peer(device).is_settled() {
            return desk.peer(device).close().unwrap();
        }
        turn(board, desk, &mut line);
    }
    panic!("no end: {board:?}, {:?}", desk.peer(device));
}

#[test]
fn rounds_bring_the_bits_of_the_simulator() {
    for noise in [None, noise()] {
        let (mut desk, mut board) = (Desk::new(noise), board(2));
        for number in [3, 4, 9] {
            let offer = offer(number, noise);
            desk.peer(2).offer(Arc::clone(&offer));
            let verdict = run(&mut board, &mut desk, 2, |bytes| bytes);
            assert_eq!(verdict, Verdict::Answered(expected(2, &offer)));
        }
        assert_eq!(desk.peer(2).refusals().total(), 0);
        assert_eq!(desk.peer(2).state(), "ready");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A third of what is said is lost, damaged, repeated, cut, delayed or mixed with garbage, and
    /// now and then the connection itself is another one.
    #[test]
    fn a_bad_line_costs_turns_and_nothing_else(
        faults in vec((0u8..24, any::<u16>()), 200),
        with_noise in any::<bool>(),
    ) {
        let noise = noise().filter(|_| with_noise);
        let (mut desk, mut board) = (Desk::new(noise), board(1));
        let offer = offer(5, noise);
        desk.peer(1).offer(Arc::clone(&offer));
        let mut faults = faults.iter().cycle();
        let (mut last, mut late) = (vec![], vec![]);
        let mut verdict = None;
        for count in 0..20_000 {
            if desk.peer(1).is_settled() {
                verdict = desk.peer(1).close();
                break;
            }
            if count % 37 == 36 {
                desk.reconnect();
            }
            turn(&mut board, &mut desk, &mut |bytes| {
                let (fault, at) = faults.next().unwrap();
                let at = usize::from(*at) % bytes.len();
                let mut out = bytes.clone();
                match fault {
                    0 => out.clear(),
                    1 => out[at] ^= 0x10,
                    2 => out.extend(&bytes),
                    3 => out.truncate(at),
                    4 => out = [&[0x55; 300][..], &[0], &bytes].concat(),
                    5 => out = [&last[..], &bytes].concat(),
                    6 => out = std::mem::replace(&mut late, out),
                    _ => {}
                }
                last = bytes;
                out
            });
        }
        // A session that was lost after the model came costs the round; else the bits are right.
        match verdict {
            Some(Verdict::Answered(integers)) => prop_assert_eq!(integers, expected(1, &offer)),
            other => prop_assert_eq!(other, Some(Verdict::Missing(Absence::SessionLost))),
        }
        prop_assert_eq!(board.ledger().past().participations, 1);
    }

    #[test]
    fn random_bytes_are_left_out_and_counted(
        bytes in vec(prop_oneof![Just(0u8), any::<u8>()], 0..2_000),
    ) {
        let mut desk = Desk::new(None);
        desk.hear(&[]);
        prop_assert!(desk.hear(&bytes).len() < 100, "a call at most");
        let pieces = bytes.split(|byte| *byte == 0).rev().skip(1);
        let pieces = pieces.filter(|piece| !piece.is_empty()).count();
        prop_assert_eq!(desk.line.refusals().total() as usize, pieces);
    }
}

/// A device whose every word the test chooses.
struct Liar {
    link: Link,
    device: u32,
}

impl Liar {
    /// Opens a session as `device`.
    fn new(desk: &mut Desk, device: u32) -> Self {
        let mut link = None;
        let nonce = [7; 16];
        let answer = desk.hear(&hello(device, device, nonce));
        for frame in frames(&answer) {
            if let Ok(Message::Welcome(welcome)) =
                Message::parse(frame.0, &frame.1, Direction::ToDevice)
            {
                let session = key(device).session(device, &nonce, &welcome.nonce);
                link = Some(Link::new(session, Direction::ToCoordinator));
            }
        }
        let mut liar = Self {
            link: link.unwrap(),
            device,
        };
        liar.say(desk, 0, &Message::Ready);
        liar
    }

    /// Says something; returns the kinds of the answers.
    fn say(&mut self, desk: &mut Desk, round: u32, message: &Message<'_>) -> Vec<u8> {
        let bytes = self.link.seal(round, message);
        let answer = desk.hear(bytes.as_slice());
        frames(&answer).into_iter().map(|(kind, _)| kind).collect()
    }

    /// Asks for all of the model.
    fn fetch(&mut self, desk: &mut Desk, round: u32) {
        for index in 0..3 {
            assert!(
                self.say(desk, round, &Message::WantModel(index))
                    .contains(&19)
            );
        }
        assert_eq!(desk.peer(self.device).state(), "trains");
    }

    /// Sends an update as one value after the other.
    fn send(&mut self, desk: &mut Desk, offer: &Offer, values: &[i64], negated: bool) -> Vec<u8> {
        let width = offer.invitation.width();
        let count = pack::capacity(width, UPDATE_CHUNK_BYTES);
        let mut kinds = vec![];
        for (index, values) in values.chunks(count).enumerate() {
            let mut packed = [0; UPDATE_CHUNK_BYTES];
            let used = pack::pack(values.iter().copied(), width, &mut packed).unwrap();
            let chunk = UpdateChunk {
                index: index as u16,
                negated,
                packed: &packed[..used],
            };
            kinds = self.say(desk, offer.number, &Message::UpdateChunk(chunk));
        }
        kinds
    }
}

fn hello(device: u32, owner: u32, nonce: [u8; 16]) -> Vec<u8> {
    let hello = Message::Hello(Hello {
        device,
        nonce,
        lowest_version: 1,
        highest_version: 1,
        shape: shape(),
        needs_local_noise: false,
    });
    let frame = greet(&hello, &key(owner), Direction::ToCoordinator);
    frame.as_slice().to_vec()
}

/// Kinds and bodies of the frames in these bytes.
fn frames(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut decoder = smolfed_core::wire::cobs::Decoder::new();
    let mut frames = vec![];
    for byte in bytes {
        if let Some(Ok(raw)) = decoder.push(*byte) {
            let frame = smolfed_core::wire::frame::Frame::parse(raw).unwrap();
            frames.push((frame.header.kind, frame.body.to_vec()));
        }
    }
    frames
}

#[test]
fn updates_that_cannot_be_are_refused_by_name() {
    let bound = 1i64 << 20;
    let one = |at: usize, value: i64| {
        let mut values = vec![0; PARAMETERS];
        values[at] = value;
        values
    };
    let mut two = one(3, bound - 1);
    two[90] = bound - 1;
    let cases = [
        (one(5, -bound), false, Some(one(5, -bound))),
        (one(5, -bound), true, Some(one(5, bound))),
        (one(5, bound - 1), false, Some(one(5, bound - 1))),
        (two, false, None),
        // Negated without need: two ways to say the same would let a device mark its update.
        (one(5, 3), true, None),
        (vec![-bound; PARAMETERS], false, None),
    ];
    for (values, negated, accepted) in cases {
        let mut desk = Desk::new(None);
        let offer = offer(1, None);
        desk.peer(0).offer(Arc::clone(&offer));
        let mut liar = Liar::new(&mut desk, 0);
        liar.fetch(&mut desk, 1);
        let kinds = liar.send(&mut desk, &offer, &values, negated);
        let expected = match accepted {
            Some(values) => (22, Verdict::Answered(values)),
            None => (24, Verdict::Missing(Absence::OutOfBound)),
        };
        assert_eq!((kinds[0], desk.peer(0).close().unwrap()), expected);
    }
}

#[test]
fn malformed_chunks_and_lying_lengths_are_counted_and_the_round_waits_on() {
    let mut desk = Desk::new(None);
    let offer = offer(1, None);
    desk.peer(0).offer(Arc::clone(&offer));
    let mut liar = Liar::new(&mut desk, 0);
    let chunk = |index, negated, packed| {
        Message::UpdateChunk(UpdateChunk {
            index,
            negated,
            packed,
        })
    };
    // Before it has the model.
    liar.say(&mut desk, 1, &chunk(0, false, &[0; 221]));
    assert_eq!(desk.peer(0).refusals().get(Refusal::Unexpected), 1);
    liar.say(&mut desk, 1, &Message::WantModel(3));
    assert_eq!(desk.peer(0).refusals().get(Refusal::Body), 1);
    liar.fetch(&mut desk, 1);
    // A chunk that is too short, one that is not next, another round, and the end before it.
    liar.say(&mut desk, 1, &chunk(0, false, &[0; 220]));
    liar.say(&mut desk, 1, &chunk(1, false, &[0; 111]));
    liar.say(&mut desk, 2, &chunk(0, false, &[0; 221]));
    let chunks = update_chunks(PARAMETERS, 21);
    assert_eq!(chunks, 2);
    let refusals = *desk.peer(0).refusals();
    assert_eq!(refusals.get(Refusal::Body), 2);
    assert_eq!(refusals.get(Refusal::Unexpected), 2);
    assert_eq!(refusals.get(Refusal::Round), 1);
    // The flag may not change on the way.
    assert_eq!(liar.say(&mut desk, 1, &chunk(0, false, &[0; 221]))[0], 21);
    liar.say(&mut desk, 1, &chunk(1, true, &[0; 111]));
    assert_eq!(desk.peer(0).refusals().get(Refusal::Body), 3);
    assert!(!desk.peer(0).is_settled());
    assert_eq!(liar.say(&mut desk, 1, &chunk(1, false, &[0; 111]))[0], 22);
    assert_eq!(
        desk.peer(0).close().unwrap(),
        Verdict::Answered(vec![0; PARAMETERS])
    );
}

#[test]
fn another_key_or_another_name_opens_no_session() {
    let mut desk = Desk::new(None);
    desk.hear(&[]);
    // Device 1 claims to be device 0; a device that nobody knows.
    let mut other = board_with(0, 1, 0, policy());
    let mut unknown = board(7);
    for _ in 0..10 {
        turn(&mut other, &mut desk, &mut |bytes| bytes);
        turn(&mut unknown, &mut desk, &mut |bytes| bytes);
    }
    assert!(desk.peer(0).refusals().get(Refusal::Tag) >= 10);
    assert!(desk.line.refusals().get(Refusal::Tag) >= 10);
    assert!((0..4).all(|device| !desk.peer(device).is_reachable()));
}

#[test]
fn a_recorded_hello_does_not_end_a_session() {
    let mut desk = Desk::new(None);
    let offer = offer(1, None);
    let mut board = board(3);
    let mut tape = vec![];
    for _ in 0..3 {
        turn(&mut board, &mut desk, &mut |bytes| {
            tape.extend(&bytes);
            bytes
        });
    }
    assert!(desk.peer(3).is_reachable());
    desk.peer(3).offer(Arc::clone(&offer));
    // More than are kept.
    for number in 0..5 * PENDING as u8 {
        turn(&mut board, &mut desk, &mut |bytes| bytes);
        desk.hear(&tape);
        desk.hear(&hello(3, 3, [number; 16]));
    }
    let verdict = run(&mut board, &mut desk, 3, |bytes| bytes);
    assert_eq!(verdict, Verdict::Answered(expected(3, &offer)));
}

#[test]
fn a_device_that_may_have_begun_is_not_asked_again() {
    let mut desk = Desk::new(None);
    desk.peer(0).offer(offer(1, None));
    let mut first = Liar::new(&mut desk, 0);
    first.say(&mut desk, 1, &Message::WantModel(0));
    // Not all of the model: it cannot have begun, and is invited again.
    let mut second = restart(&mut desk, 1);
    second.fetch(&mut desk, 1);
    assert!(!desk.peer(0).is_settled());
    restart(&mut desk, 2);
    assert!(desk.peer(0).is_settled());
    let expected = Verdict::Missing(Absence::SessionLost);
    assert_eq!(desk.peer(0).close().unwrap(), expected);
}

fn restart(desk: &mut Desk, start: u8) -> Liar {
    let nonce = [100 + start; 16];
    let answer = desk.hear(&hello(0, 0, nonce));
    let (_, body) = frames(&answer)
        .into_iter()
        .find(|(kind, _)| *kind == 3)
        .unwrap();
    let Ok(Message::Welcome(welcome)) = Message::parse(3, &body, Direction::ToDevice) else {
        panic!("no welcome");
    };
    let session = key(0).session(0, &nonce, &welcome.nonce);
    let mut liar = Liar {
        link: Link::new(session, Direction::ToCoordinator),
        device: 0,
    };
    liar.say(desk, 0, &Message::Ready);
    liar
}

#[test]
fn whoever_misses_a_round_is_named_with_the_reason() {
    let verdict = |desk: &mut Desk| desk.peer(0).close().unwrap();
    let missing = Verdict::Missing;
    let mut desk = Desk::new(None);
    desk.peer(0).offer(offer(1, None));
    assert_eq!(verdict(&mut desk), missing(Absence::NotConnected));
    let mut liar = Liar::new(&mut desk, 0);
    desk.peer(0).offer(offer(2, None));
    assert_eq!(verdict(&mut desk), missing(Absence::Silent));
    desk.peer(0).offer(offer(3, None));
    liar.fetch(&mut desk, 3);
    assert_eq!(verdict(&mut desk), missing(Absence::Late));
    // What comes too late is answered, so that the device need not wait.
    assert_eq!(liar.say(&mut desk, 3, &Message::WantModel(0))[0], 24);
    desk.peer(0).offer(offer(4, None));
    liar.say(&mut desk, 4, &Message::Decline(Decline::Budget));
    assert!(desk.peer(0).is_settled());
    assert_eq!(
        verdict(&mut desk),
        missing(Absence::Declined(Decline::Budget))
    );
}

#[test]
fn devices_that_do_not_fit_the_federation_are_told_why_and_fall_silent() {
    let insists = Policy {
        least_noise_multiplier: 1,
        ..policy()
    };
    let mut desk = Desk::new(None);
    let mut board = board_with(0, 0, 0, insists);
    for _ in 0..5 {
        turn(&mut board, &mut desk, &mut |bytes| bytes);
    }
    assert!(matches!(board.phase(), Phase::Refused(_)));
    assert_eq!(
        desk.peer(0).state(),
        "refused: the federation's devices add no noise"
    );
}

/// A coordinator that lies about the budget is the device's to stop: its own count decides.
#[test]
fn a_device_stops_at_its_own_budget() {
    let twice = Policy {
        budget: Budget(2),
        ..policy()
    };
    let (mut desk, mut board) = (Desk::new(None), board_with(0, 0, 0, twice));
    let mut verdicts = vec![];
    for number in 0..4 {
        desk.peer(0).offer(offer(number, None));
        verdicts.push(run(&mut board, &mut desk, 0, |bytes| bytes));
    }
    assert!(matches!(
        verdicts[..2],
        [Verdict::Answered(_), Verdict::Answered(_)]
    ));
    let spent = Verdict::Missing(Absence::Declined(Decline::Budget));
    assert_eq!(verdicts[2..], [spent.clone(), spent]);
}
