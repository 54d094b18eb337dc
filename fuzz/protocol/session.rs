//! The device's side.

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};
use smolfed::device::memory::SessionMemory;
use smolfed_core::ledger::{Budget, Ledger};
use smolfed_core::model::Softmax;
use smolfed_core::samples::SampleSlice;
use smolfed_core::session::{Identity, Phase, Policy, Session};
use smolfed_core::stream::Root;
use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::Frame;
use smolfed_core::wire::link::{CoordinatorEnd, Link, greet};
use smolfed_core::wire::mac::Key;
use smolfed_core::wire::message::{Hello, MODEL_CHUNK, Message, Values, Welcome};
use smolfed_core::wire::{Direction, FRAME_BYTES, VERSION};

use super::{Action, CLASSES, FEATURES, KEY, PARAMETERS, Script, invitation, raw, stream};

/// Most participations of the device.
const BUDGET: u32 = 4;

/// A device, against a coordinator that knows its key.
///
/// It must return, whatever the coordinator says; keep to its budget; never train twice for one round;
/// and say nothing longer than a frame.
pub fn session(bytes: &[u8]) {
    sends_an_update(bytes);
}

/// [`session`], and whether the device had an update to send: inputs that never come as far test little.
pub fn sends_an_update(bytes: &[u8]) -> bool {
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
    let mut link: Option<Link<CoordinatorEnd>> = None;
    let (mut crossing, mut was_sending) = (false, false);
    let (mut script, mut round, mut past) = (Script(bytes), 0, device.ledger().past());
    while let Some(action) = script.next() {
        let mut said = Vec::new();
        let mut say = |link: &mut Option<Link<CoordinatorEnd>>, round, message: &Message<'_>| {
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
                0 => say(
                    &mut link,
                    round,
                    &Message::Invitation((&invitation(choice)).into()),
                ),
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
            Action::Silence => device.timeout(),
            Action::Reconnect => {
                crossing = true;
                device.timeout();
            }
            Action::NextRound => round = round.saturating_add(1),
            Action::Greeting => {
                if let Some(hello) = hello(device.outgoing()) {
                    let session = Key::from_secret(KEY).session(5, &hello.nonce, &[9; 16]);
                    let welcome = Message::Welcome(Welcome {
                        version: VERSION,
                        nonce: [9; 16],
                    });
                    let frame = greet::<CoordinatorEnd>(&welcome, &session);
                    said.extend_from_slice(frame.as_slice());
                    link = Some(Link::<CoordinatorEnd>::new(session));
                } else {
                    device.timeout();
                }
            }
        }
        // After a new connection it does not get its own frame out before it hears the next ones.
        let crosses = !said.is_empty() && core::mem::take(&mut crossing);
        let mut rest = said.as_slice();
        while !rest.is_empty() {
            if !crosses {
                device.sent();
            }
            let taken = device.receive(rest);
            assert!(taken > 0, "no progress");
            rest = rest.get(taken..).expect("no more than there is");
            assert!(device.outgoing().len() <= FRAME_BYTES);
        }
        device.train(&samples);
        was_sending |= device.phase() == Phase::Sending;
        let now = device.ledger().past();
        assert!(now.participations <= BUDGET, "over its budget");
        let (more, later) = (now.participations - past.participations, now.next_round);
        assert!(more == 0 || later > past.next_round, "a round number twice");
        past = now;
    }
    was_sending
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
