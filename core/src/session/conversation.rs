//! What is said when: the protocol's states, and the answer to each frame.

use embedded_storage::nor_flash::NorFlash;
use rand_core::Rng;

use super::{
    Identity, Memory, Phase, Policy, REPETITIONS,
    round::{Outgoing, Packed, Round},
};
use crate::{
    ledger::{Ledger, LedgerError},
    model::Model,
    samples::Samples,
    wire::{
        Direction, VERSION,
        frame::{Encoded, Frame},
        link::{DeviceEnd, Link, greet_into, open_greeting},
        mac::Nonce,
        message::{
            Decline, Hello, Invitation, MODEL_CHUNK, Message, Shape, UpdateChunk, Values,
            is_greeting, model_chunks, update_chunks,
        },
        refusal::{Refusal, Refusals},
    },
};

/// All of a session but the frame that is coming in, which its answers borrow.
pub(super) struct Conversation<'a, M, F, R> {
    pub(super) identity: Identity,
    pub(super) policy: Policy,
    pub(super) shape: Shape,
    pub(super) model: M,
    pub(super) memory: Memory<'a>,
    pub(super) ledger: Ledger<F>,
    pub(super) nonces: R,
    pub(super) nonce: Nonce,
    pub(super) link: Option<Link<DeviceEnd>>,
    pub(super) phase: Phase,
    pub(super) round: Option<Round>,
    /// The round's update, from the end of training on.
    pub(super) update: Option<Outgoing>,
    pub(super) packed: Packed,
    pub(super) repetitions: u32,
    pub(super) outgoing: Encoded,
    pub(super) refusals: Refusals,
}

/// What to say next, once the frame that led to it is forgotten.
#[derive(Clone, Copy)]
enum Answer {
    Nothing,
    Ready,
    Hello,
    Decline(u32, Decline),
    /// What the phase has to say.
    Go,
}

impl<M, F, R> Conversation<'_, M, F, R>
where
    M: Model,
    F: NorFlash,
    R: Rng,
{
    /// Takes a frame that came out of COBS.
    pub(super) fn hear(&mut self, raw: Result<&[u8], Refusal>) {
        match raw.and_then(|raw| self.frame(raw)) {
            Ok(answer) => self.say(answer),
            Err(refusal) => self.refusals.count(refusal),
        }
    }

    /// [`super::Session::timeout`].
    pub(super) fn timeout(&mut self) {
        match self.phase {
            Phase::Idle | Phase::Training | Phase::Refused(_) => {}
            Phase::Silent => self.say(Answer::Hello),
            // Hello is said for as long as nobody answers: how often is up to the firmware.
            Phase::Greeting => self.greet(),
            Phase::Ready | Phase::Receiving | Phase::Sending if self.repetitions >= REPETITIONS => {
                self.say(Answer::Hello);
            }
            Phase::Ready => {
                self.repetitions += 1;
                self.say(Answer::Ready);
            }
            Phase::Receiving | Phase::Sending => {
                self.repetitions += 1;
                self.say(Answer::Go);
            }
        }
    }

    /// [`super::Session::train`].
    pub(super) fn train<S: Samples<Target = M::Target>>(&mut self, samples: &S) {
        let Some(Round { number, .. }) = self.round else {
            return;
        };
        if self.phase != Phase::Training {
            return;
        }
        match self.prepare(samples) {
            Ok(()) => {
                self.phase = Phase::Sending;
                self.pack();
                self.say(Answer::Go);
            }
            Err(reason) => {
                self.leave_round();
                self.say(Answer::Decline(number, reason));
            }
        }
    }

    /// The round is over for this device.
    fn leave_round(&mut self) {
        self.round = None;
        self.update = None;
        self.phase = Phase::Idle;
    }

    #[inline(never)]
    fn frame(&mut self, raw: &[u8]) -> Result<Answer, Refusal> {
        let frame = Frame::parse(raw)?;
        if is_greeting(frame.header.kind) {
            return self.greeting(&frame);
        }
        // Frames of a session that this device does not know are not authentic to it.
        let message = self
            .link
            .as_mut()
            .ok_or(Refusal::Unexpected)?
            .open(&frame)?;
        self.message(frame.header.round, message)
    }

    #[inline(never)]
    fn greeting(&mut self, frame: &Frame<'_>) -> Result<Answer, Refusal> {
        let session = |nonce: &Nonce| {
            let session = self
                .identity
                .key
                .session(self.identity.device, &self.nonce, nonce);
            if frame.is_authentic(&session, Direction::ToDevice) {
                Ok(session)
            } else {
                Err(Refusal::Tag)
            }
        };
        match (open_greeting::<DeviceEnd>(frame)?, self.phase) {
            // Anybody may call; a round that is going on is not disturbed by it.
            (Message::Call, Phase::Silent | Phase::Idle | Phase::Refused(_)) => Ok(Answer::Hello),
            (Message::Welcome(welcome), Phase::Greeting) => {
                let key = session(&welcome.nonce)?;
                if welcome.version != VERSION {
                    return Err(Refusal::Version);
                }
                self.link = Some(Link::new(key));
                self.phase = Phase::Ready;
                self.repetitions = 0;
                Ok(Answer::Ready)
            }
            (Message::Refused(refused), Phase::Greeting) => {
                session(&refused.nonce)?;
                self.phase = Phase::Refused(refused.reason);
                Ok(Answer::Nothing)
            }
            _ => Err(Refusal::Unexpected),
        }
    }

    #[inline(never)]
    fn message(&mut self, number: u32, message: Message<'_>) -> Result<Answer, Refusal> {
        if self.phase == Phase::Ready {
            self.phase = Phase::Idle;
        }
        match message {
            Message::Invitation(invitation) => return self.invited(number, invitation),
            Message::Wait => return Ok(Answer::Nothing),
            _ => {}
        }
        let round = self.round.as_mut().ok_or(Refusal::Unexpected)?;
        if round.number != number {
            return Err(Refusal::Round);
        }
        match (message, self.phase) {
            (Message::ModelChunk { index, values }, Phase::Receiving) => {
                if index != round.chunk {
                    return Err(Refusal::Unexpected);
                }
                store(self.memory.global, index, &values).ok_or(Refusal::Body)?;
                self.repetitions = 0;
                round.chunk += 1;
                if usize::from(round.chunk) < model_chunks(self.memory.global.len()) {
                    return Ok(Answer::Go);
                }
                self.phase = Phase::Training;
                Ok(Answer::Nothing)
            }
            (Message::WantUpdate(index), Phase::Sending) => {
                let chunks = update_chunks(self.memory.global.len(), round.invitation.width());
                if index == round.chunk + 1 && usize::from(index) < chunks {
                    round.chunk = index;
                    self.repetitions = 0;
                    self.pack();
                } else if index != round.chunk {
                    return Err(Refusal::Unexpected);
                }
                Ok(Answer::Go)
            }
            (Message::Done, Phase::Sending) | (Message::Abort(_), _) => {
                self.leave_round();
                Ok(Answer::Nothing)
            }
            _ => Err(Refusal::Unexpected),
        }
    }

    #[inline(never)]
    fn invited(&mut self, number: u32, invitation: Invitation) -> Result<Answer, Refusal> {
        match &self.round {
            // The coordinator has not heard the answer.
            Some(round) if round.number == number => {
                return Ok(if self.phase == Phase::Training {
                    Answer::Nothing
                } else {
                    Answer::Go
                });
            }
            // A new round gives up one that is not finished: whatever was recorded stays.
            _ => self.leave_round(),
        }
        let policy = &self.policy;
        let bits = invitation.grid.bits();
        let checked = if invitation.shape != self.shape {
            Err(Decline::Shape)
        } else if !policy.accepts_noise(invitation.noise.as_ref(), bits) {
            Err(Decline::Noise)
        } else if invitation.epochs > policy.most_epochs {
            Err(Decline::Work)
        } else {
            self.ledger.check(number, policy.budget).map_err(declined)
        };
        if let Err(reason) = checked {
            return Ok(Answer::Decline(number, reason));
        }
        self.round = Some(Round {
            number,
            invitation,
            chunk: 0,
        });
        self.phase = Phase::Receiving;
        self.repetitions = 0;
        Ok(Answer::Go)
    }

    /// Begins a new session: whatever the last one was about is over.
    #[inline(never)]
    pub(super) fn begin(&mut self) {
        self.nonces.fill_bytes(&mut self.nonce);
        self.link = None;
        self.leave_round();
        self.phase = Phase::Greeting;
        self.repetitions = 0;
        self.greet();
    }

    fn greet(&mut self) {
        let hello = Hello {
            device: self.identity.device,
            nonce: self.nonce,
            lowest_version: VERSION,
            highest_version: VERSION,
            shape: self.shape,
            needs_local_noise: self.policy.least_noise_multiplier > 0,
        };
        let message = Message::Hello(hello);
        greet_into::<DeviceEnd>(&message, &self.identity.key, &mut self.outgoing);
    }

    fn say(&mut self, answer: Answer) {
        let number = self.round.as_ref().map_or(0, |round| round.number);
        let (number, message) = match answer {
            Answer::Nothing => return,
            Answer::Hello => return self.begin(),
            Answer::Ready => (0, Message::Ready),
            Answer::Decline(number, reason) => (number, Message::Decline(reason)),
            Answer::Go => match (&self.round, &self.update) {
                (None, _) => return,
                (Some(round), None) => (number, Message::WantModel(round.chunk)),
                (Some(round), Some(outgoing)) => {
                    let chunk = UpdateChunk {
                        index: round.chunk,
                        negated: outgoing.negated,
                        packed: self.packed.as_slice(),
                    };
                    (number, Message::UpdateChunk(chunk))
                }
            },
        };
        if let Some(link) = &mut self.link {
            link.seal_into(number, &message, &mut self.outgoing);
        }
    }
}

pub(super) fn declined(error: LedgerError) -> Decline {
    match error {
        LedgerError::Spent => Decline::Budget,
        LedgerError::RoundUsed => Decline::RoundUsed,
        _ => Decline::Storage,
    }
}

/// Puts a chunk of the model where it belongs; `None` if it has another length.
fn store(global: &mut [f32], index: u16, values: &Values<'_>) -> Option<()> {
    let rest = global.get_mut(usize::from(index) * MODEL_CHUNK..)?;
    let length = rest.len().min(MODEL_CHUNK);
    values.copy_to(rest.get_mut(..length)?)
}
