//! Both sides of the protocol between devices and coordinator, against somebody who knows the key and
//! says anything in any order. The bytes are a script; what it means stands in [`Script::next`].

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};
use smolfed::coordinator::exchange::{Offer, Verdict};
use smolfed::coordinator::line::{Line, Roster};
use smolfed::coordinator::peer::{LineId, Peer, Terms};
use smolfed::device::memory::SessionMemory;
use smolfed_core::ledger::{Budget, Ledger};
use smolfed_core::model::{ModelKind, Softmax};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::{ClipNorm, LearningRate, Penalty};
use smolfed_core::quantize::Grid;
use smolfed_core::samples::SampleSlice;
use smolfed_core::session::{Identity, Policy, Session};
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};
use smolfed_core::train::Clipping;
use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::{Encoded, Frame, Header};
use smolfed_core::wire::link::{Link, greet};
use smolfed_core::wire::mac::Key;
use smolfed_core::wire::message::{
    Hello, Invitation, MODEL_CHUNK, Message, Shape, UPDATE_CHUNK_BYTES, UpdateChunk, Values,
    Welcome,
};
use smolfed_core::wire::{Direction, FRAME_BYTES, VERSION};

const FEATURES: usize = 20;
const CLASSES: usize = 6;
const PARAMETERS: usize = (FEATURES + 1) * CLASSES;
const KEY: [u8; 32] = [3; 32];
const BUDGET: u32 = 4;

/// Bytes as a series of actions.
struct Script<'a>(&'a [u8]);

/// What happens next.
enum Action<'a> {
    /// These bytes on the line.
    Bytes(&'a [u8]),
    /// A frame under the right key: kind, round, body.
    Frame(u8, u32, &'a [u8]),
    /// Something that makes sense, chosen by two numbers.
    Sensible(u8, u8),
    /// Time passes.
    Silence,
    /// The connection is another one.
    Reconnect,
    /// The round is over, and the next begins.
    NextRound,
    /// The greeting, as it should be.
    Greeting,
}

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn some(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.byte()?).min(self.0.len());
        let (some, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(some)
    }

    fn next(&mut self) -> Option<Action<'a>> {
        Some(match self.byte()? % 8 {
            0 => Action::Bytes(self.some()?),
            1 => Action::Frame(self.byte()?, u32::from(self.byte()?), self.some()?),
            2 | 3 => Action::Sensible(self.byte()?, self.byte()?),
            4 => Action::Silence,
            5 => Action::Reconnect,
            6 => Action::NextRound,
            _ => Action::Greeting,
        })
    }
}

/// Flash in memory.
struct Ram([u8; 128]);

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
        let place = self.0.get(offset as usize..).ok_or(Never)?;
        bytes.copy_from_slice(place.get(..bytes.len()).ok_or(Never)?);
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
        self.0
            .get_mut(from as usize..to as usize)
            .ok_or(Never)?
            .fill(0xff);
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Never> {
        let place = self.0.get_mut(offset as usize..).ok_or(Never)?;
        place
            .get_mut(..bytes.len())
            .ok_or(Never)?
            .copy_from_slice(bytes);
        Ok(())
    }
}

fn stream() -> Stream {
    Root::from_seed(1).stream(StreamId {
        purpose: Purpose::Initialisation,
        round: 0,
        device: 0,
    })
}

fn shape() -> Shape {
    Shape {
        kind: ModelKind::Softmax,
        features: FEATURES as u16,
        outputs: CLASSES as u16,
    }
}

/// An invitation that the device accepts, or almost.
fn invitation(choice: u8) -> Invitation {
    let noise = DiscreteGaussian::new(3 << 16, 2).expect("a sound σ");
    Invitation {
        shape: shape(),
        epochs: u32::from(choice % 4),
        batch_size: NonZeroU32::MIN,
        learning_rate: LearningRate::new(0.25).expect("a sound rate"),
        weight_decay: Penalty::NONE,
        proximal: Penalty::NONE,
        clipping: Clipping::EveryStep,
        gradient_smoothing: None,
        grid: Grid::new(ClipNorm::new(0.5).expect("a sound norm"), 16).expect("a sound grid"),
        noise: (choice & 16 != 0).then_some(noise),
    }
}

/// A device, against a coordinator that knows its key.
///
/// It must return, whatever the coordinator says; keep to its budget; never train twice for one round;
/// and say nothing longer than a frame.
pub fn session(bytes: &[u8]) {
    let model = Softmax::new(FEATURES, CLASSES);
    let mut memory = SessionMemory::new(&model, 2);
    let identity = Identity {
        device: 5,
        key: Key::from_secret(KEY),
        root: Root::from_seed(1),
    };
    let policy = Policy {
        budget: Budget(BUDGET),
        least_noise_multiplier: 0,
        most_epochs: 2,
    };
    let ledger = Ledger::create(Ram([0xff; 128])).expect("a blank ledger");
    let session = Session::new(identity, policy, model, memory.borrow(), ledger, stream());
    let mut device = session.expect("a sound session");
    let features = [0.5; 2 * FEATURES];
    let samples = SampleSlice::new(&features, &[0u16, 3], FEATURES).expect("two samples");
    let mut link: Option<Link> = None;
    let (mut script, mut round, mut past) = (Script(bytes), 0, device.ledger().past());
    while let Some(action) = script.next() {
        let mut said = Vec::new();
        let mut say = |link: &mut Option<Link>, round, message: &Message<'_>| {
            if let Some(link) = link {
                said.extend_from_slice(link.seal(round, message).as_slice());
            }
        };
        match action {
            Action::Bytes(bytes) => said.extend_from_slice(bytes),
            Action::Frame(kind, round, body) => {
                match Message::parse(kind, body, Direction::ToDevice) {
                    Ok(message) => say(&mut link, round, &message),
                    Err(_) => said.extend_from_slice(raw(kind, round, body).as_slice()),
                }
            }
            Action::Sensible(what, choice) => match what % 6 {
                0 => say(&mut link, round, &Message::Invitation(invitation(choice))),
                1 => {
                    let index = u16::from(choice % 4);
                    let left = PARAMETERS.saturating_sub(usize::from(index) * MODEL_CHUNK);
                    let values = [f32::from(choice); MODEL_CHUNK];
                    let values = values.get(..left.clamp(1, MODEL_CHUNK)).unwrap_or_default();
                    let values = Values::Floats(values);
                    say(&mut link, round, &Message::ModelChunk { index, values });
                }
                2 => say(&mut link, round, &Message::WantUpdate(choice.into())),
                3 => say(&mut link, round, &Message::Done),
                4 => say(&mut link, 0, &Message::Wait),
                _ => round = round.saturating_add(u32::from(choice % 3)),
            },
            Action::Silence | Action::Reconnect => device.timeout(),
            Action::NextRound => round = round.saturating_add(1),
            Action::Greeting => {
                if let Some(hello) = hello(device.outgoing()) {
                    let session = Key::from_secret(KEY).session(5, &hello.nonce, &[9; 16]);
                    let welcome = Message::Welcome(Welcome {
                        version: VERSION,
                        nonce: [9; 16],
                    });
                    let frame = greet(&welcome, &session, Direction::ToDevice);
                    said.extend_from_slice(frame.as_slice());
                    link = Some(Link::new(session, Direction::ToDevice));
                } else {
                    device.timeout();
                }
            }
        }
        let mut rest = said.as_slice();
        while !rest.is_empty() {
            let taken = device.receive(rest);
            assert!(taken > 0, "no progress");
            rest = rest.get(taken..).expect("no more than there is");
            assert!(device.outgoing().len() <= FRAME_BYTES);
        }
        device.train(&samples);
        let now = device.ledger().past();
        assert!(now.participations <= BUDGET, "over its budget");
        let (more, later) = (now.participations - past.participations, now.next_round);
        assert!(more == 0 || later > past.next_round, "a round number twice");
        past = now;
    }
}

/// A frame that no message has, under some key.
fn raw(kind: u8, round: u32, body: &[u8]) -> Encoded {
    let header = Header {
        version: VERSION,
        kind,
        round,
        sequence: 1,
    };
    Encoded::seal(header, body, &Key::from_secret(KEY), Direction::ToDevice)
}

/// The hello in these bytes.
fn hello(bytes: &[u8]) -> Option<Hello> {
    let mut decoder = Decoder::new();
    let mut hello = None;
    for byte in bytes {
        if let Some(Ok(raw)) = decoder.push(*byte)
            && let Ok(frame) = Frame::parse(raw)
            && let Ok(Message::Hello(found)) =
                Message::parse(frame.header.kind, frame.body, Direction::ToCoordinator)
        {
            hello = Some(found);
        }
    }
    hello
}

/// The coordinator, against a device that knows its own key and one that does not.
///
/// It must return, whatever they say; answer at most a frame for each that came, and a call; let in no
/// update beyond its bound; and never offer what is over.
pub fn coordinator(bytes: &[u8]) {
    let mut script = Script(bytes);
    let local_noise = script.byte().is_some_and(|byte| byte & 1 != 0);
    let terms = Terms {
        shape: shape(),
        local_noise,
    };
    let key = Key::from_secret(KEY);
    let peers = [(5, key.clone()), (6, Key::from_secret([4; 32]))];
    let peers = peers.map(|(device, key)| (device, Peer::new(device, key, terms)));
    let mut roster = Roster::new(BTreeMap::from(peers), stream());
    let mut line = Line::new(LineId(0));
    let (mut lines, mut number, mut now) = (0, 0, Duration::ZERO);
    let mut link: Option<Link> = None;
    let mut offer = None;
    while let Some(action) = script.next() {
        let mut said = Vec::new();
        let mut say = |link: &mut Option<Link>, round, message: &Message<'_>| {
            if let Some(link) = link {
                said.extend_from_slice(link.seal(round, message).as_slice());
            }
        };
        let mut nonce = None;
        match action {
            Action::Bytes(bytes) => said.extend_from_slice(bytes),
            Action::Frame(kind, round, body) => {
                match Message::parse(kind, body, Direction::ToCoordinator) {
                    Ok(message) => say(&mut link, round, &message),
                    Err(_) => said.extend_from_slice(raw(kind, round, body).as_slice()),
                }
            }
            Action::Sensible(what, choice) => match what % 4 {
                0 => say(&mut link, number, &Message::Ready),
                1 => say(
                    &mut link,
                    number,
                    &Message::WantModel(u16::from(choice % 4)),
                ),
                _ => {
                    let width = invitation(if local_noise { 16 } else { 0 }).width();
                    let count = smolfed_core::wire::pack::capacity(width, UPDATE_CHUNK_BYTES);
                    let index = u16::from(choice % 4);
                    let left = PARAMETERS
                        .saturating_sub(usize::from(index) * count)
                        .min(count);
                    let packed = [choice / 64; UPDATE_CHUNK_BYTES];
                    let length = smolfed_core::wire::pack::packed_bytes(width, left);
                    let chunk = UpdateChunk {
                        index,
                        negated: choice & 32 != 0,
                        packed: packed.get(..length).unwrap_or_default(),
                    };
                    say(&mut link, number, &Message::UpdateChunk(chunk));
                }
            },
            Action::Silence => now += Duration::from_millis(700),
            Action::Reconnect => {
                line.lost(&mut roster);
                lines += 1;
                line = Line::new(LineId(lines));
            }
            Action::NextRound => {
                number += 1;
                let next = Arc::new(Offer {
                    number,
                    invitation: invitation(if local_noise { 17 } else { 1 }),
                    model: vec![0.5; PARAMETERS],
                });
                for peer in roster.peers.values_mut() {
                    check(peer.close(), offer.as_ref());
                    peer.offer(Arc::clone(&next));
                }
                offer = Some(next);
            }
            Action::Greeting => {
                let fresh = [number as u8; 16];
                let hello = Message::Hello(Hello {
                    device: 5,
                    nonce: fresh,
                    lowest_version: 1,
                    highest_version: 1,
                    shape: shape(),
                    needs_local_noise: false,
                });
                let frame = greet(&hello, &key, Direction::ToCoordinator);
                said.extend_from_slice(frame.as_slice());
                nonce = Some(fresh);
            }
        }
        let mut out = Vec::new();
        line.receive(&said, &mut roster, now, &mut out);
        line.poll(&mut roster, now, &mut out);
        let frames = said.iter().filter(|byte| **byte == 0).count();
        // An answer each, an invitation each, and a call.
        assert!(
            out.len() <= (frames + 4) * FRAME_BYTES,
            "{} bytes",
            out.len()
        );
        if let Some(nonce) = nonce.and_then(|nonce| Some((nonce, welcome(&out)?))) {
            let session = key.session(5, &nonce.0, &nonce.1);
            link = Some(Link::new(session, Direction::ToCoordinator));
        }
        let stranger = roster.peers.get(&6);
        assert!(
            stranger.is_some_and(|peer| !peer.is_reachable()),
            "without its key"
        );
    }
    for peer in roster.peers.values_mut() {
        check(peer.close(), offer.as_ref());
    }
}

/// The coordinator's nonce in these bytes.
fn welcome(bytes: &[u8]) -> Option<[u8; 16]> {
    let mut decoder = Decoder::new();
    let mut nonce = None;
    for byte in bytes {
        if let Some(Ok(raw)) = decoder.push(*byte)
            && let Ok(frame) = Frame::parse(raw)
            && let Ok(Message::Welcome(found)) =
                Message::parse(frame.header.kind, frame.body, Direction::ToDevice)
        {
            nonce = Some(found.nonce);
        }
    }
    nonce
}

fn check(verdict: Option<Verdict>, offer: Option<&Arc<Offer>>) {
    let (Some(Verdict::Answered(integers)), Some(offer)) = (verdict, offer) else {
        return;
    };
    assert_eq!(integers.len(), PARAMETERS);
    let squares: u128 = integers
        .iter()
        .map(|q| u128::from(q.unsigned_abs()).pow(2))
        .sum();
    let bound = offer.invitation.grid.bound();
    assert!(
        offer.invitation.noise.is_some() || squares <= bound.into(),
        "beyond its bound"
    );
}
