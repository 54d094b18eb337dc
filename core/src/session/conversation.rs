//! The states of the protocol on a device, the answer to each frame, and the repetitions of a
//! message before a session is given up.

#[cfg(feature = "reports")]
use super::experiment::Experiment;
#[cfg(feature = "sleep")]
use super::wake::{Wake, Work};
use super::{
    device::Device,
    greeter::Greeter,
    last_round::{LastRound, Outcome},
    masks, naming,
    phase::Phase,
    round::{Round, Stage},
    trainable::{RoundParts, Trainable},
};
#[cfg(feature = "short")]
use crate::wire::message::SHORT_CHUNK;
use crate::{
    params::NoiseMultiplier,
    personal::store::PersonalStore,
    secrets::Secrets,
    train::Kept,
    wire::{
        Direction, VERSION,
        frame::{Encoded, Frame, Sealed},
        greeting::{Greeting, Hello, Welcome},
        keys::{Chain, Nonce, SessionKey, ledger_fingerprint},
        link::{DeviceEnd, Link, read},
        message::{
            Decline, Invitation, InvitationBytes, MODEL_CHUNK, Message, Ready, Refused, Values,
            WhyRefused, model_chunks,
        },
        refusal::{Refusal, Refusals},
    },
};

/// Repetitions of a message in a row before the session is given up.
pub const REPETITIONS: u8 = 8;

/// A session without its line.
pub(super) struct Conversation<'a, M: Trainable, F, R, K, V> {
    pub(super) device: Device<'a, M, F, K, V>,
    pub(super) nonces: R,
    pub(super) nonce: Nonce,
    pub(super) link: Option<Link<DeviceEnd>>,
    pub(super) phase: Phase,
    pub(super) round: Option<Round<M::Descent>>,
    pub(super) repetitions: u8,
    /// Chunks that are requested, or sent, before an answer.
    pub(super) window: u8,
    /// How long the device stays awake, if it sleeps.
    #[cfg(feature = "sleep")]
    pub(super) wake: Option<Wake>,
    pub(super) refusals: Refusals,
    /// The round of the model in memory, valid only if `has_model`.
    pub(super) model_round: u32,
    pub(super) has_model: bool,
    /// Whether that model came in 16 bits. Only such a model is named to the coordinator, so that
    /// where models have all bits, the lengths of requests do not show which devices hold one.
    #[cfg(feature = "short")]
    pub(super) is_short: bool,
    /// How the last round went.
    pub(super) last: Option<LastRound>,
    /// The model or the recipe of the experiment that refused this device.
    #[cfg(feature = "reports")]
    pub(super) experiment: Option<Experiment>,
}

/// The next message to send, once the frame that led to it is no longer needed: both use the same
/// memory.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    Nothing,
    Ready,
    /// Begins a new session.
    Hello,
    HelloAgain,
    Decline(u32, Decline),
    /// Look at the round's invitation: [`Conversation::consider`]. Not at once, as the calls that
    /// unpacked it occupy part of a board's stack.
    Consider,
    /// The message of this phase, from the first chunk that may be missing.
    Go,
    /// The next chunk of the update.
    More,
}

impl<M, F, R, K, V> Conversation<'_, M, F, R, K, V>
where
    M: Trainable,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    /// Handles a frame decoded from COBS.
    pub(super) fn receive(&mut self, raw: Result<&mut [u8], Refusal>) -> Answer {
        raw.and_then(|raw| self.frame(raw))
            .unwrap_or_else(|refusal| {
                self.refusals.count(refusal);
                Answer::Nothing
            })
    }

    /// [`super::Session::timeout`].
    pub(super) fn timeout(&mut self) -> Answer {
        match self.phase {
            Phase::Idle | Phase::Training | Phase::Refused(_) => return Answer::Nothing,
            Phase::Silent => return Answer::Hello,
            // Hello is sent as long as nobody answers. The firmware decides how often.
            Phase::Greeting => return Answer::HelloAgain,
            Phase::Ready | Phase::Receiving | Phase::Sending => {}
        }
        if self.repetitions >= REPETITIONS {
            return Answer::Hello;
        }
        self.repetitions += 1;
        if self.phase == Phase::Ready {
            Answer::Ready
        } else {
            Answer::Go
        }
    }

    /// Returns the answer after a frame is on the line: the next chunk of the update, if the frame
    /// held a chunk that announced one.
    pub(super) fn follow(&mut self) -> Answer {
        match &mut self.round {
            Some(round)
                if self.phase == Phase::Sending && round.chunk.saturating_add(1) < round.end =>
            {
                round.chunk += 1;
                Answer::More
            }
            _ => Answer::Nothing,
        }
    }

    /// Declines a round, and remembers why.
    pub(super) fn declines(&mut self, round: u32, reason: Decline) -> Answer {
        self.last = Some(LastRound::of(round, Outcome::Declined(reason), Kept::NONE));
        Answer::Decline(round, reason)
    }

    /// Ends the round for this device. Erases an update that is not covered yet.
    pub(super) fn leave_round(&mut self) {
        let round = self.round.take();
        let has_update = |round: &Round<M::Descent>| match round.stage {
            Stage::Training(_) | Stage::Keeping(..) | Stage::Covering(_) => true,
            Stage::Invited | Stage::Covered => false,
        };
        if round.as_ref().is_some_and(has_update) {
            let work = &mut self.device.memory.work;
            work.local.fill(0.0);
            work.update.fill(0.0);
        }
        self.device.identity.root.end();
        self.phase = Phase::Idle;
    }

    /// Handles a frame. The functions that it calls are not inlined: messages are large, and none
    /// is on the stack when a frame is opened.
    fn frame(&mut self, raw: &mut [u8]) -> Result<Answer, Refusal> {
        match Frame::parse(raw)? {
            Frame::Greeting { kind, body } => self.greeting(kind, body),
            Frame::Sealed(mut frame) => self.session_frame(&mut frame),
        }
    }

    #[inline(never)]
    fn session_frame(&mut self, frame: &mut Sealed<'_>) -> Result<Answer, Refusal> {
        // Frames of a session that this device does not know are not authentic to it.
        self.link
            .as_mut()
            .ok_or(Refusal::Unexpected)?
            .admit(frame)?;
        self.message(frame)
    }

    #[inline(never)]
    fn greeting(&mut self, kind: u8, body: &[u8]) -> Result<Answer, Refusal> {
        match (
            Greeting::parse(kind, body, Direction::ToDevice)?,
            self.phase,
        ) {
            // Anybody may call, but a call does not disturb a round.
            (Greeting::Call, Phase::Silent | Phase::Idle | Phase::Refused(_)) => Ok(Answer::Hello),
            (Greeting::Welcome(welcome), Phase::Greeting) => self.welcome(&welcome),
            #[cfg(feature = "x25519")]
            (Greeting::Second(second), Phase::Greeting) => self.conclude(&second),
            _ => Err(Refusal::Unexpected),
        }
    }

    #[inline(never)]
    fn welcome(&mut self, welcome: &Welcome) -> Result<Answer, Refusal> {
        // The sender has the chain key, but offers less than the device asked for.
        if R::HAS_HANDSHAKE && welcome.offer.is_ok() {
            return Err(Refusal::Unexpected);
        }
        let device = self.device.identity.device;
        let mut chain = self.device.chain();
        let session = chain.session(device, &self.nonce, &welcome.nonce);
        let session = session.map_err(|_| Refusal::Unexpected)?;
        if !welcome.is_authentic(&session) {
            return Err(Refusal::Tag);
        }
        match welcome.offer {
            Ok(VERSION) => Ok(self.open(session.cipher())),
            Ok(_) => Err(Refusal::Version),
            Err(_) => Ok(self.refused(&Refused {
                reason: WhyRefused::Version,
                experiment: &[],
            })),
        }
    }

    /// Handles the answer to a handshake.
    #[cfg(feature = "x25519")]
    #[inline(never)]
    fn conclude(&mut self, second: &crate::wire::handshake::Second) -> Result<Answer, Refusal> {
        self.nonces.answered()?;
        let hello = self.hello().ok_or(Refusal::Unexpected)?;
        let device = self.device.identity.device;
        let chain = &mut self.device.chain();
        let key = self.nonces.conclude(chain, device, &hello, second)?;
        Ok(self.open(key))
    }

    /// Opens the session.
    #[inline(always)]
    fn open(&mut self, key: SessionKey) -> Answer {
        self.link = Some(Link::new(key));
        self.phase = Phase::Ready;
        self.repetitions = 0;
        Answer::Ready
    }

    /// Handles a refusal by the coordinator.
    fn refused(&mut self, refused: &Refused<'_>) -> Answer {
        self.link = None;
        self.phase = Phase::Refused(refused.reason);
        #[cfg(feature = "reports")]
        {
            self.experiment = Experiment::of(refused);
        }
        Answer::Nothing
    }

    #[inline(never)]
    fn message(&mut self, frame: &Sealed<'_>) -> Result<Answer, Refusal> {
        // Any authentic frame shows that the coordinator knows of the session.
        let was_ready = self.phase == Phase::Ready;
        if was_ready {
            self.phase = Phase::Idle;
        }
        // Borrowed in place: moved out of the result, it would be on the stack twice.
        let read = read::<DeviceEnd>(frame);
        let (number, message) = match &read {
            Ok((number, message)) => (*number, message),
            Err(refusal) => return Err(*refusal),
        };
        match message {
            // Only as the answer to Ready.
            Message::Refused(refused) if was_ready => return Ok(self.refused(refused)),
            Message::Invitation(invitation) => return self.invited(number, *invitation),
            Message::Wait => return Ok(Answer::Nothing),
            _ => {}
        }
        let round = self.round.as_mut().ok_or(Refusal::Unexpected)?;
        if round.number != number {
            return Err(Refusal::Round);
        }
        match (message, self.phase) {
            (Message::ModelChunk { index, values }, Phase::Receiving) => {
                if *index != round.chunk {
                    return Err(Refusal::Unexpected);
                }
                let count = self.device.model.received_count(&round.invitation);
                let global = self.device.memory.global.get_mut(..count);
                let global = global.unwrap_or_default();
                self.has_model = false;
                #[cfg(not(feature = "short"))]
                let chunks = store(global, *index, values).map(|()| 1);
                #[cfg(feature = "short")]
                let chunks = store_any::<M>(global, *index, values, &mut round.base);
                let chunks = chunks.ok_or(Refusal::Body)?;
                #[cfg(feature = "short")]
                {
                    self.is_short = matches!(values, Values::Short(_));
                }
                self.repetitions = 0;
                round.chunk += chunks;
                round.end = round.end.saturating_add(chunks - 1);
                if usize::from(round.chunk) >= model_chunks(count) {
                    self.phase = Phase::Training;
                    (self.model_round, self.has_model) = (number, true);
                } else if round.chunk >= round.end {
                    return Ok(Answer::Go);
                }
                Ok(Answer::Nothing)
            }
            (Message::WantUpdate(index), Phase::Sending) => {
                let chunks = round.invitation.chunks_of::<true>();
                let was_sent = *index <= round.chunk.saturating_add(1);
                if *index > round.first && was_sent && usize::from(*index) < chunks {
                    round.first = *index;
                    self.repetitions = 0;
                } else if *index != round.first {
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
    fn invited(&mut self, number: u32, packed: InvitationBytes<'_>) -> Result<Answer, Refusal> {
        let (has_unknown, invitation, tagged) = match K::IS_PRESENT || M::HAS_REQUESTS {
            #[cfg(feature = "questions")]
            _ if packed.has_question() => {
                (false, packed.unpack_question(), masks::tagged_whole(packed))
            }
            true => (false, packed.unpack(), masks::tagged(packed)),
            false => (
                packed.has_request(),
                packed.unpack_shared(),
                masks::tagged_whole(packed),
            ),
        };
        let Some(invitation) = &invitation else {
            return Err(Refusal::Body);
        };
        let checksum = packed.checksum();
        match &self.round {
            // A covered update from the previous session: it is sent again, unchanged.
            Some(round) if self.phase == Phase::Idle && round.resumes(number, checksum) => {
                return Ok(self.send_again());
            }
            // The coordinator has not received the answer.
            Some(round)
                if self.phase != Phase::Idle
                    && round.number == number
                    && !is_other_part::<M>(round, invitation) =>
            {
                return Ok(if self.phase == Phase::Training {
                    Answer::Nothing
                } else {
                    Answer::Go
                });
            }
            // A device does not give up an update that waits for the next wake for a round that it
            // declines.
            #[cfg(feature = "sleep")]
            Some(round)
                if self.phase == Phase::Idle
                    && round.is_covered()
                    && round.number != number
                    && let Err(reason) = self.accepts(number, invitation, has_unknown) =>
            {
                return Ok(self.declines(number, reason));
            }
            // A new round replaces an unfinished one. Recorded participations stay.
            _ => self.leave_round(),
        }
        if has_unknown {
            return Ok(self.declines(number, Decline::Personal));
        }
        self.round = Some(Round::new(number, *invitation, tagged, checksum));
        Ok(Answer::Consider)
    }

    /// Accepts the invitation of the round, or declines.
    #[inline(never)]
    pub(super) fn consider(&mut self) -> Answer {
        let Some(round) = &mut self.round else {
            return Answer::Nothing;
        };
        let (number, invitation) = (round.number, &round.invitation);
        if let Err(reason) = self.device.accept(number, invitation) {
            self.round = None;
            if reason == Decline::TooFar {
                self.refusals.count(Refusal::Round);
            }
            return self.declines(number, reason);
        }
        if self.device.parts.has(number, invitation) {
            // The encoder came with the previous part.
            let chunk = self.device.model.parameter_count() / MODEL_CHUNK;
            round.chunk = u16::try_from(chunk).unwrap_or(u16::MAX);
        }
        #[cfg(feature = "short")]
        {
            round.base = (self.has_model && self.is_short).then_some(self.model_round);
        }
        #[cfg(feature = "sleep")]
        if let Some(round) = &self.round
            && !self.is_awake_for(&round.invitation, round.chunk)
        {
            self.round = None;
            return self.declines(number, Decline::AWAKE);
        }
        self.phase = Phase::Receiving;
        self.repetitions = 0;
        Answer::Go
    }

    /// Checks that the device takes part in a round and is awake long enough.
    #[cfg(feature = "sleep")]
    #[inline(never)]
    fn accepts(
        &self,
        number: u32,
        invitation: &Invitation,
        has_unknown: bool,
    ) -> Result<(), Decline> {
        if has_unknown {
            return Err(Decline::Personal);
        }
        self.device.accept(number, invitation)?;
        match self.is_awake_for(invitation, 0) {
            true => Ok(()),
            false => Err(Decline::AWAKE),
        }
    }

    /// Whether the device is awake for the duration of a round, given that it already has `chunks`
    /// chunks of the model.
    #[cfg(feature = "sleep")]
    fn is_awake_for(&self, invitation: &Invitation, chunks: u16) -> bool {
        let (device, window) = (&self.device, self.window);
        let all = model_chunks(device.model.received_count(invitation));
        let work = Work {
            invitation,
            chunks: all.saturating_sub(chunks.into()),
            samples: device.memory.work.order.len(),
            window,
        };
        self.wake.is_none_or(|wake| wake.suffices(&work))
    }

    /// Sends the covered update from its first chunk.
    fn send_again(&mut self) -> Answer {
        if let Some(round) = &mut self.round {
            round.first = 0;
        }
        self.phase = Phase::Sending;
        self.repetitions = 0;
        Answer::Go
    }

    /// Begins a new session and drops the state of the last one, except for a covered update that
    /// has not arrived.
    fn begin(&mut self) {
        self.device.ledger.session_begins();
        self.nonces.begin(&mut self.nonce);
        self.link = None;
        if !self.round.as_ref().is_some_and(Round::is_covered) {
            self.leave_round();
        }
        self.phase = Phase::Greeting;
        self.repetitions = 0;
    }

    /// Writes a frame with the answer to `to`, or nothing if there is nothing to send.
    pub(super) fn send(&mut self, answer: Answer, to: &mut Encoded) {
        match answer {
            Answer::Nothing | Answer::Consider => return,
            Answer::Hello => {
                self.begin();
                return self.greet(to);
            }
            Answer::HelloAgain => return self.greet(to),
            Answer::Ready | Answer::Decline(..) | Answer::Go | Answer::More => {}
        }
        if self.compose(answer, to).is_some()
            && let Some(link) = &self.link
        {
            link.finish(to);
        }
    }

    #[inline(never)]
    fn greet(&mut self, to: &mut Encoded) {
        #[cfg(feature = "x25519")]
        self.nonces.greets();
        // Without its secrets the device is silent until the next time-out.
        if let Some(hello) = self.hello() {
            hello.encode(to);
        }
    }

    /// Returns the Hello of this session, the same one until an answer comes.
    #[inline(always)]
    fn hello(&mut self) -> Option<Hello> {
        let device = self.device.identity.device;
        let hides_number = self.device.policy.hides_number;
        let mut chain = self.device.chain();
        let name = naming::name(hides_number, &mut chain, device)?;
        let hello = self.nonces.hello(&mut chain, device, name, self.nonce);
        hello.ok()
    }

    /// Composes a frame of the session.
    #[inline(never)]
    fn compose(&mut self, answer: Answer, to: &mut Encoded) -> Option<()> {
        let number = self.round.as_ref().map_or(0, |round| round.number);
        let (number, message) = match answer {
            Answer::Nothing | Answer::Hello | Answer::HelloAgain | Answer::Consider => return None,
            Answer::Ready => {
                let ready = Ready {
                    ledger: ledger_fingerprint(self.device.ledger.nonce()),
                    shape: self.device.model.shape()?,
                    needs_local_noise: self.device.policy.min_noise_multiplier
                        > NoiseMultiplier::NONE,
                    #[cfg(feature = "questions")]
                    answers_questions: M::ANSWERS && self.device.questions.allows_any(),
                    recipe: self.device.recipe,
                };
                (0, Message::Ready(ready))
            }
            Answer::Decline(number, reason) => (number, Message::Decline(reason)),
            Answer::Go | Answer::More => {
                let round = self.round.as_mut()?;
                let count = self.device.model.received_count(&round.invitation);
                if self.phase == Phase::Sending {
                    if matches!(answer, Answer::Go) {
                        let chunks = round.invitation.chunks_of::<true>();
                        round.goes_on_at(round.first, self.window, chunks);
                    }
                    let chunk = round.update_chunk(&self.device);
                    (number, Message::UpdateChunk(chunk))
                } else {
                    let chunk = round.chunk;
                    round.goes_on_at(chunk, self.window, model_chunks(count));
                    let count = u8::try_from(round.end - chunk).unwrap_or(1);
                    #[cfg(not(feature = "short"))]
                    let wanted = Message::WantModel { chunk, count };
                    #[cfg(feature = "short")]
                    let wanted = want_short::<M>(round, chunk, count);
                    (number, wanted)
                }
            }
        };
        let link = self.link.as_mut()?;
        link.compose(number, &message, to);
        Some(())
    }
}

/// Asks for chunks of the model. They may be short or differences if no other values follow the
/// model.
#[cfg(feature = "short")]
fn want_short<'m, M: Trainable>(round: &Round<M::Descent>, chunk: u16, count: u8) -> Message<'m> {
    match M::HAS_REQUESTS {
        true => Message::WantModel { chunk, count },
        false => Message::WantShort {
            chunk,
            count,
            base: round.base,
        },
    }
}

/// Whether an invitation is to the other part of the current round.
fn is_other_part<M: Trainable>(round: &Round<M::Descent>, invitation: &Invitation) -> bool {
    M::HAS_REQUESTS && round.invitation.is_matrix() != invitation.is_matrix()
}

/// Stores a chunk of the model. `None` if it has the wrong length.
fn store(global: &mut [f32], index: u16, values: &Values<'_>) -> Option<()> {
    let rest = global.get_mut(usize::from(index) * MODEL_CHUNK..)?;
    let length = rest.len().min(MODEL_CHUNK);
    values.copy_to(rest.get_mut(..length)?)
}

/// Stores a chunk that may be short, and returns how many chunks it covers. Differences are
/// relative to the values in memory, as long as these belong to the model `base`.
#[cfg(feature = "short")]
fn store_any<M: Trainable>(
    global: &mut [f32],
    index: u16,
    values: &Values<'_>,
    base: &mut Option<u32>,
) -> Option<u16> {
    let Values::Short(short) = values else {
        return store(global, index, values).map(|()| 1);
    };
    // If storing fails, the values in memory may be spoilt, so the device asks without a base.
    let before = base.take();
    if short.is_difference() && before.is_none() {
        return None;
    }
    let rest = global.get_mut(usize::from(index) * MODEL_CHUNK..)?;
    let length = rest.len().min(SHORT_CHUNK);
    let (to_value, to_steps) = (
        |steps| M::of_steps(short.grid, steps),
        |value| M::to_steps(short.grid, value),
    );
    short.receive(rest.get_mut(..length)?, to_value, to_steps)?;
    *base = before;
    Some(1 + u16::from(length > MODEL_CHUNK))
}
