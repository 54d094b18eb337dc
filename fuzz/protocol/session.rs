//! The device's side.

use smolfed::device::memory::SessionMemory;
use smolfed_core::crypto::Key;
use smolfed_core::harness::{CLASSES, FEATURES, PARAMETERS, Ram, policy};
use smolfed_core::identity::Identity;
use smolfed_core::ledger::{Budget, Ledger, Limits, MaxJump, Separation};
use smolfed_core::model::Softmax;
use smolfed_core::params::ClipNorm;
use smolfed_core::personal::store::flash::FlashStore;
use smolfed_core::personal::store::{BlockingStore, StateId, StateKind};
use smolfed_core::quantize::Grid;
use smolfed_core::question::{Kinds, Question};
use smolfed_core::samples::SampleSlice;
use smolfed_core::session::{Phase, Policy, QuestionPolicy, Session};
use smolfed_core::stream::{Root, Stream};
use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::Frame;
use smolfed_core::wire::greeting::{Greeting, Hello, Welcome, greeting};
use smolfed_core::wire::keys::{Chain, ChainKey};
use smolfed_core::wire::link::{CoordinatorEnd, Link};
use smolfed_core::wire::message::{
    Invitation, MODEL_CHUNK, Message, ModelGrid, PackedInvitation, Refused, Request, SHORT_CHUNK,
    Short, Values, WhyRefused,
};
use smolfed_core::wire::{Direction, FRAME_BYTES, VERSION};

use super::{Action, KEY, Script, invitation, raw, stream};

/// Limits accepted by the device.
const LIMITS: Limits = Limits {
    budget: Budget(4),
    separation: Separation(2),
    max_jump: MaxJump(1 << 16),
};

/// Tests a device against a coordinator that knows its key.
///
/// For any input, it must return and keep to its budget. It must never train twice for one round,
/// nor for a round too close to the last or far ahead, and send nothing longer than a frame.
pub fn session(bytes: &[u8]) {
    sends_an_update(bytes);
}

/// Runs [`session`] and returns whether the device had an update to send. Inputs that never reach
/// that point test little.
pub fn sends_an_update(bytes: &[u8]) -> bool {
    let model = Softmax::new(FEATURES, CLASSES);
    let mut memory = SessionMemory::new(&model, 2, CLASSES);
    let mut device = device(model, &mut memory);
    let features = [0.5; 2 * FEATURES];
    let samples = SampleSlice::new(&features, &[0u16, 3], FEATURES).expect("two samples");
    let mut script = Script(bytes);
    let mut coordinator = Coordinator::default();
    let (mut crossing, mut was_sending) = (false, false);
    let mut past = device.ledger().past();
    while let Some(action) = script.next() {
        let mut received = Vec::new();
        match action {
            Action::Silence => device.timeout(),
            Action::Reconnect => {
                crossing = true;
                device.timeout();
            }
            Action::Greeting => match hello(device.outgoing()) {
                Some(hello) => received = coordinator.greeting(&hello, device.ledger().chain()),
                None => device.timeout(),
            },
            action => received = coordinator.send(action),
        }
        // After a reconnect the device receives the next frames before its own frame is sent.
        let crosses = !received.is_empty() && core::mem::take(&mut crossing);
        let mut rest = received.as_slice();
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
        assert!(now.participations <= LIMITS.budget.0, "over its budget");
        let (more, later) = (now.participations - past.participations, now.next_round);
        assert!(more == 0 || later > past.next_round, "a round number twice");
        let jump = later.saturating_sub(past.next_round);
        assert!(
            jump <= LIMITS.max_jump.0 + 1,
            "further ahead than it accepts"
        );
        let is_apart = past.participations == 0 || jump >= LIMITS.separation.0;
        assert!(
            more == 0 || is_apart,
            "closer to the last one than it accepts"
        );
        past = now;
    }
    was_sending
}

/// Checks that the next state replaces any flash content of a personal model.
fn personal(bytes: &[u8]) {
    let mut flash = Ram::blank();
    for (place, byte) in flash.bytes.iter_mut().zip(bytes) {
        *place = *byte;
    }
    let mut store = FlashStore::new(flash).expect("flash of usual words");
    let id = |round| StateId {
        kind: StateKind::Model,
        owner: [1; 8],
        round,
    };
    let mut state = [0.0; 3];
    let before = id(bytes.len() as u32);
    let _ = store.load(&before, &mut state);
    let saved = store.save(&id(7), &[1.0, 2.0, 3.0], Some(&before));
    saved.expect("flash that can be written");
    assert_eq!(store.load(&id(7), &mut state), Ok(true));
    assert_eq!(state, [1.0, 2.0, 3.0]);
}

/// Tests a device's flash with any content, for its ledger and for its personal model.
///
/// Its ledger must be read or refused. A valid ledger must continue: a round begins, and is still
/// recorded after a restart.
pub fn flash(bytes: &[u8]) {
    personal(bytes);
    let mut flash = Ram::blank();
    for (place, byte) in flash.bytes.iter_mut().zip(bytes) {
        *place = *byte;
    }
    let Ok(mut ledger) = Ledger::open(flash) else {
        return;
    };
    let past = ledger.past();
    let round = past.next_round;
    let next = Limits {
        separation: Separation::NONE,
        ..LIMITS
    };
    if ledger.begin(round, &mut identity(), &next).is_ok() {
        let again = Ledger::open(ledger.into_flash()).expect("a ledger").past();
        assert_eq!(again.participations, past.participations + 1);
        assert_eq!(again.next_round, round + 1);
    }
}

type Device<'a> = Session<'a, Softmax<usize, usize>, Ram, Stream, FlashStore<Ram>>;

fn identity() -> Identity {
    Identity {
        device: 5,
        root: Root::from_seed(1),
    }
}

fn device(model: Softmax<usize, usize>, memory: &mut SessionMemory) -> Device<'_> {
    let policy = Policy {
        max_epochs: 2,
        ..policy(LIMITS)
    };
    let ledger =
        Ledger::create(Ram::blank(), [1; 8], Key::from_secret(KEY)).expect("a blank ledger");
    let (memory, nonces) = (memory.borrow(), stream());
    let store = FlashStore::new(Ram::blank()).expect("flash of usual words");
    let session = Session::with_store(identity(), policy, model, memory, ledger, nonces, store);
    let mut session = session.expect("a valid session");
    session.set_questions(QuestionPolicy {
        kinds: Kinds::ALL,
        max_answers: 2,
        ..QuestionPolicy::NONE
    });
    session
}

/// Returns an invitation to train, or a question.
fn asked(choice: u8) -> Invitation {
    let training = invitation(choice);
    let question = match choice & 12 {
        4 => Question::Confusion,
        8 => Question::Evaluate { bound: 2.0 },
        12 => Question::Count,
        _ => return training,
    };
    Invitation {
        grid: Grid::new(ClipNorm::new(1.0).expect("a valid norm"), 16).expect("a valid grid"),
        request: Some(Request::Question(question)),
        ..training
    }
}

/// The coordinator, as played by the script.
#[derive(Default)]
struct Coordinator {
    link: Option<Link<CoordinatorEnd>>,
    round: u32,
}

impl Coordinator {
    /// Returns the bytes that it sends.
    fn send(&mut self, action: Action<'_>) -> Vec<u8> {
        match action {
            Action::Bytes(bytes) => bytes.to_vec(),
            Action::Frame(kind, round, body) => {
                match Message::parse(kind, body, Direction::ToDevice) {
                    Ok(message) => self.seal(round, &message),
                    Err(_) => raw(kind, round, body).as_slice().to_vec(),
                }
            }
            Action::WellFormed(what, choice) => self.well_formed(what, choice),
            Action::NextRound => {
                self.round = self.round.saturating_add(1);
                Vec::new()
            }
            Action::Silence | Action::Reconnect | Action::Greeting => Vec::new(),
        }
    }

    fn well_formed(&mut self, what: u8, choice: u8) -> Vec<u8> {
        match what % 6 {
            0 => self.seal(
                self.round,
                &Message::Invitation(PackedInvitation::from(&asked(choice)).bytes()),
            ),
            1 if choice >= 128 => self.short_chunk(choice),
            1 => {
                let index = u16::from(choice % 4);
                let left = PARAMETERS.saturating_sub(usize::from(index) * MODEL_CHUNK);
                let values = [f32::from(choice); MODEL_CHUNK];
                let values = values.get(..left.clamp(1, MODEL_CHUNK)).unwrap_or_default();
                let values = Values::Floats(values);
                self.seal(self.round, &Message::ModelChunk { index, values })
            }
            2 => self.seal(self.round, &Message::WantUpdate(choice.into())),
            3 => self.seal(self.round, &Message::Done),
            4 if choice == 77 => self.seal(
                0,
                &Message::Refused(Refused {
                    reason: WhyRefused::Ledger,
                    experiment: &[],
                }),
            ),
            4 => self.seal(0, &Message::Wait),
            _ => {
                self.round = self.round.saturating_add(u32::from(choice % 3));
                Vec::new()
            }
        }
    }

    /// Returns a model chunk in grid steps, or in differences from a base.
    fn short_chunk(&mut self, choice: u8) -> Vec<u8> {
        let index = u16::from(choice % 4);
        let left = PARAMETERS.saturating_sub(usize::from(index) * MODEL_CHUNK);
        let (steps, base) = ([i16::from(choice); SHORT_CHUNK], [0; SHORT_CHUNK]);
        let length = left.clamp(1, SHORT_CHUNK);
        let steps = steps.get(..length).unwrap_or_default();
        let base = base.get(..length).filter(|_| choice & 32 != 0);
        let grid = ModelGrid::new(choice / 8 % 4).expect("a valid grid");
        let values = Short::to_send(grid, steps, base);
        self.seal(
            self.round,
            &Message::ModelChunk {
                index,
                values: Values::Short(values),
            },
        )
    }

    /// Starts a session with a device that sent `hello`.
    fn greeting(&mut self, hello: &Hello, chain: &ChainKey) -> Vec<u8> {
        let session = chain.session(5, &hello.nonce, &[9; 16]);
        let welcome = Welcome::new(&session, [9; 16], Ok(VERSION));
        self.link = Some(Link::new(session.cipher()));
        Greeting::Welcome(welcome).encoded().as_slice().to_vec()
    }

    fn seal(&mut self, round: u32, message: &Message<'_>) -> Vec<u8> {
        let frame = self.link.as_mut().map(|link| link.seal(round, message));
        frame.map_or_else(Vec::new, |frame| frame.as_slice().to_vec())
    }
}

/// Returns the hello in these bytes.
fn hello(bytes: &[u8]) -> Option<Hello> {
    let mut decoder = Decoder::new();
    let mut hello = None;
    for byte in bytes {
        if let Some(Ok(raw)) = decoder.push(*byte)
            && let Ok(frame) = Frame::parse(raw)
            && let Ok(Greeting::Hello(found)) = greeting(&frame, Direction::ToCoordinator)
        {
            hello = Some(found);
        }
    }
    hello
}
