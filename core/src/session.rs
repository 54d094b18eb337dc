//! A device's side of the protocol: bytes in, bytes out, no clock and no transport.
//!
//! The firmware owns the loop:
//!
//! 1. give received bytes to [`Session::receive`], and write [`Session::outgoing`] to the line;
//! 2. when [`Session::phase`] is [`Phase::Training`], call [`Session::train`] with the local data;
//! 3. when the line was silent for a while, call [`Session::timeout`]: it repeats what is waiting
//!    for an answer, at most [`REPETITIONS`] times in a row, and then begins a new session;
//! 4. otherwise sleep.
//!
//! [`Session::exchange`] does the first step on any byte stream with the traits of `embedded-io`.
//! Nothing here waits or loops beyond the bytes that it was given, and nothing panics. What comes
//! in and makes no sense is left out and counted ([`Session::refusals`]).
//!
//! The way of an update: train, clip, quantise, add the device's noise, pack. The values with noise
//! are drawn once, chunk by chunk, when the chunk before has arrived; a chunk that is repeated is the
//! packed one, so no position of the noise stream is used twice. The update needs no third vector.

use rand_core::Rng;

use crate::{
    ledger::{Budget, Ledger, LedgerError},
    model::Model,
    noise::DiscreteGaussian,
    quantize::Quantizer,
    samples::Samples,
    stream::{Purpose, Root, Stream, StreamId},
    train::{Workspace, local_update},
    wire::{
        Direction, VERSION,
        cobs::Decoder,
        frame::{Encoded, Frame},
        link::{DeviceEnd, Link, greet, open_greeting},
        mac::{Key, Nonce},
        message::{
            Decline, Hello, Invitation, MODEL_CHUNK, Message, Shape, UPDATE_CHUNK_BYTES,
            UpdateChunk, Values, WhyRefused, is_greeting, model_chunks, update_chunks,
        },
        pack,
        refusal::{Refusal, Refusals},
    },
};
use embedded_storage::nor_flash::NorFlash;

mod exchange;
#[cfg(test)]
mod tests;

/// How often a message is repeated in a row before the session is given up.
pub const REPETITIONS: u32 = 8;

/// Who the device is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its number, which also names its random streams.
    pub device: u32,
    /// The key that it shares with the coordinator.
    pub key: Key,
    /// The root of its random streams, which nobody else knows.
    pub root: Root,
}

/// What the device agrees to, whatever a coordinator asks for.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Most participations in its life.
    pub budget: Budget,
    /// Least noise multiplier of its own noise, in units of 2⁻³²; 0 trusts the coordinator to add
    /// the noise.
    pub least_noise_multiplier: u64,
    /// Most epochs in a round.
    pub most_epochs: u32,
}

impl Policy {
    /// Whether σ ≥ z · 2^b, exactly: numerator · 2^32 ≥ multiplier · 2^b · denominator.
    fn accepts_noise(&self, noise: Option<&DiscreteGaussian>, grid_bits: u32) -> bool {
        let (numerator, denominator) = match noise {
            None => return self.least_noise_multiplier == 0,
            Some(noise) => noise.sigma(),
        };
        // multiplier · denominator ≤ ⌊numerator · 2^32 / 2^b⌋: 112 bits, and 84.
        let least = u128::from(self.least_noise_multiplier) * u128::from(denominator);
        least <= (u128::from(numerator) << 32) >> grid_bits
    }
}

/// Memory of a session: three vectors as long as the model, the order of the samples, and scores.
pub struct Memory<'a> {
    /// The coordinator's model; as long as the model.
    pub global: &'a mut [f32],
    /// What training needs.
    pub work: Workspace<'a>,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing was said yet: [`Session::timeout`] says hello.
    Silent,
    /// Hello was said.
    Greeting,
    /// The session was opened, and the coordinator has not shown that it knows.
    Ready,
    /// Between two rounds: nothing to do until an invitation comes.
    Idle,
    /// The model is coming in.
    Receiving,
    /// The model is there: the firmware calls [`Session::train`].
    Training,
    /// The update is going out.
    Sending,
    /// The coordinator will not work with this device: the session stays silent until it is called.
    Refused(WhyRefused),
}

/// A round that the device takes part in.
#[derive(Clone, Copy)]
struct Round {
    number: u32,
    invitation: Invitation,
    /// The chunk of the model that is awaited, or of the update that is on its way.
    chunk: u16,
}

/// An update on its way.
struct Outgoing {
    quantizer: Quantizer,
    negated: bool,
    noise: Option<Stream>,
    packed: [u8; UPDATE_CHUNK_BYTES],
    length: usize,
}

/// A device's side of the protocol around a model of any size.
pub struct Session<'a, M, F, R> {
    identity: Identity,
    policy: Policy,
    shape: Shape,
    model: M,
    memory: Memory<'a>,
    ledger: Ledger<F>,
    nonces: R,
    nonce: Nonce,
    decoder: Decoder,
    link: Option<Link<DeviceEnd>>,
    phase: Phase,
    round: Option<Round>,
    /// The round's update, from the end of training on.
    update: Option<Outgoing>,
    repetitions: u32,
    outgoing: Encoded,
    refusals: Refusals,
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

impl<'a, M, F, R> Session<'a, M, F, R>
where
    M: Model,
    F: NorFlash,
    R: Rng,
{
    /// A device that has said nothing yet; `None` if the model has more than 65,535 features or
    /// scores, or more chunks than can be numbered, or if `memory` does not fit it.
    ///
    /// `nonces` gives 16 bytes a session that never come again: of hardware entropy, or of a counter
    /// that survives restarts. Repeating them lets old sessions be replayed to the device; its
    /// ledger still refuses their rounds.
    #[inline(never)]
    pub fn new(
        identity: Identity,
        policy: Policy,
        model: M,
        memory: Memory<'a>,
        ledger: Ledger<F>,
        nonces: R,
    ) -> Option<Self> {
        let shape = Shape::of(&model)?;
        let parameters = model.parameter_count();
        // As many chunks as an update can have: one value in each at least.
        u16::try_from(update_chunks(parameters, 57)).ok()?;
        let Workspace {
            local,
            update,
            scratch,
            ..
        } = &memory.work;
        let fits = [&*memory.global, local, update]
            .iter()
            .all(|vector| vector.len() == parameters);
        if !fits || scratch.len() < model.scratch_count(1) {
            return None;
        }
        Some(Self {
            identity,
            policy,
            shape,
            model,
            memory,
            ledger,
            nonces,
            nonce: [0; 16],
            decoder: Decoder::new(),
            link: None,
            phase: Phase::Silent,
            round: None,
            update: None,
            repetitions: 0,
            outgoing: Encoded::empty(),
            refusals: Refusals::new(),
        })
    }

    /// Where the session stands.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The frames that were left out, by reason.
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// The device's ledger.
    pub const fn ledger(&self) -> &Ledger<F> {
        &self.ledger
    }

    /// Gives the ledger back, as at a restart.
    pub fn into_ledger(self) -> Ledger<F> {
        self.ledger
    }

    /// Bytes for the line: a whole frame, or none.
    pub fn outgoing(&self) -> &[u8] {
        self.outgoing.as_slice()
    }

    /// The bytes of [`Self::outgoing`] are on the line.
    pub const fn sent(&mut self) {
        self.outgoing.clear();
    }

    /// Takes bytes from the line, up to the end of a frame; returns how many it took.
    ///
    /// If it took fewer than there are, the rest is for the next call, after the outgoing bytes.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        for (index, byte) in bytes.iter().enumerate() {
            if *byte != 0 {
                // Only a zero ends a frame.
                self.decoder.push(*byte);
                continue;
            }
            // The frame lives in the decoder, which is put aside while the others change.
            let mut decoder = core::mem::take(&mut self.decoder);
            let result = decoder.push(*byte).map(|raw| self.frame(raw?));
            self.decoder = decoder;
            match result {
                None => continue,
                Some(Ok(answer)) => self.say(answer),
                Some(Err(refusal)) => self.refusals.count(refusal),
            }
            return index + 1;
        }
        bytes.len()
    }

    /// The line was silent: repeats what waits for an answer, or begins anew.
    pub fn timeout(&mut self) {
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

    /// Trains on `samples` and begins to send the update, or declines. Does nothing in other phases.
    ///
    /// The participation is recorded before any random stream of the round is used.
    pub fn train<S: Samples<Target = M::Target>>(&mut self, samples: &S) {
        let Some(round) = self.round else { return };
        if self.phase != Phase::Training {
            return;
        }
        match self.prepare(samples, &round) {
            Ok(()) => {
                self.phase = Phase::Sending;
                self.pack();
                self.say(Answer::Go);
            }
            Err(reason) => {
                self.leave_round();
                self.say(Answer::Decline(round.number, reason));
            }
        }
    }

    /// The round is over for this device.
    fn leave_round(&mut self) {
        self.round = None;
        self.update = None;
        self.phase = Phase::Idle;
    }

    /// Trains, and puts the update where it is sent from.
    #[inline(never)]
    fn prepare<S: Samples<Target = M::Target>>(
        &mut self,
        samples: &S,
        round: &Round,
    ) -> Result<(), Decline> {
        let Memory { global, work } = &mut self.memory;
        // A device without data that it can use loses no participation. With noise of its own it does
        // not tell that it has none.
        let is_usable = !samples.is_empty() && samples.len() <= work.order.len();
        if !is_usable && round.invitation.noise.is_none() {
            return Err(Decline::NoSamples);
        }
        self.ledger
            .begin(round.number, self.policy.budget)
            .map_err(declined)?;
        let Identity { device, root, .. } = &self.identity;
        let stream = |purpose| {
            root.stream(StreamId {
                purpose,
                round: round.number,
                device: *device,
            })
        };
        let Invitation { grid, noise, .. } = &round.invitation;
        let Workspace {
            local,
            update,
            order,
            scratch,
        } = work;
        let trained = local_update(
            &self.model,
            samples,
            global,
            &round.invitation.training(),
            &mut stream(Purpose::BatchShuffle),
            Workspace {
                local,
                update,
                order,
                scratch,
            },
        );
        let quantizer = trained.ok().and_then(|_| grid.quantizer(update).ok());
        let quantizer = match (quantizer, noise) {
            (Some(quantizer), _) => quantizer,
            // Whether there are samples and whether training diverges depends on the data, and a
            // coordinator could choose a model for which it tells something about them. Noise of the
            // device's own hides that as well.
            (None, Some(_)) => {
                update.fill(0.0);
                grid.quantizer(update).map_err(|_| Decline::Diverged)?
            }
            (None, None) => return Err(Decline::Diverged),
        };
        // +2^b is the one value that has no place in b + 1 bits; the others are then 0.
        let largest = 1 << grid.bits();
        let negated = noise.is_none() && update.iter().any(|x| quantizer.get(*x) == largest);
        let noise = noise.map(|_| stream(Purpose::DeviceNoise));
        self.update = Some(Outgoing {
            quantizer,
            negated,
            noise,
            packed: [0; UPDATE_CHUNK_BYTES],
            length: 0,
        });
        self.round = Some(Round { chunk: 0, ..*round });
        Ok(())
    }

    /// Packs the current chunk, with noise of its own that is drawn here and nowhere else.
    fn pack(&mut self) {
        let (Some(round), Some(outgoing)) = (&self.round, &mut self.update) else {
            return;
        };
        let width = round.invitation.width();
        let count = pack::capacity(width, UPDATE_CHUNK_BYTES);
        let start = usize::from(round.chunk) * count;
        let values = self
            .memory
            .work
            .update
            .iter()
            .skip(start)
            .take(count)
            .map(|x| {
                let value = i64::from(outgoing.quantizer.get(*x));
                match (&round.invitation.noise, &mut outgoing.noise) {
                    (Some(noise), Some(stream)) => value.wrapping_add(noise.sample(stream)),
                    _ if outgoing.negated => -value,
                    _ => value,
                }
            });
        outgoing.length = pack::pack(values, width, &mut outgoing.packed).unwrap_or(0);
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
    fn begin(&mut self) {
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
        self.outgoing = greet::<DeviceEnd>(&Message::Hello(hello), &self.identity.key);
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
                        packed: outgoing.packed.get(..outgoing.length).unwrap_or_default(),
                    };
                    (number, Message::UpdateChunk(chunk))
                }
            },
        };
        if let Some(link) = &mut self.link {
            self.outgoing = link.seal(number, &message);
        }
    }
}

fn declined(error: LedgerError) -> Decline {
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

impl<M, F, R> core::fmt::Debug for Session<'_, M, F, R> {
    /// Where it stands, and nothing of the data.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let parameters = self.memory.global.len();
        let Self { phase, ledger, .. } = self;
        write!(f, "Session({phase:?}, {parameters} parameters, {ledger:?})")
    }
}
