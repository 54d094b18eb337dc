//! A device's side of the protocol: bytes in, bytes out, no clock and no transport.
//!
//! The firmware owns the loop:
//!
//! 1. write [`Session::outgoing`] to the line, and give received bytes to [`Session::receive`], in this order;
//! 2. when [`Session::phase`] is [`Phase::Training`], call [`Session::train`] with the local data;
//! 3. when the line was silent for a while, call [`Session::timeout`]: it repeats what is waiting
//!    for an answer, at most [`REPETITIONS`] times in a row, and then begins a new session;
//! 4. otherwise sleep.
//!
//! [`Session::exchange`] does the first step on any byte stream with the traits of `embedded-io`.
//! Nothing here waits or loops beyond the bytes that it was given, and nothing panics. What comes
//! in and makes no sense is left out and counted ([`Session::refusals`]).
//!
//! The way of an update: train, clip, quantise, add the device's noise, pack. The noise is drawn once, when
//! training ends, and what is sent takes the place of the update: a chunk that is repeated has the same
//! values, and nothing without noise is left. The update needs no third vector.

use embedded_storage::nor_flash::NorFlash;
use rand_core::Rng;

use crate::{
    ledger::Ledger,
    model::Model,
    samples::Samples,
    train::Workspace,
    wire::{
        message::{Shape, WhyRefused, update_chunks},
        refusal::Refusals,
    },
};

mod conversation;
mod exchange;
mod line;
mod policy;
mod round;
#[cfg(test)]
mod tests;

use conversation::{Answer, Conversation};
use line::Line;
pub use policy::{Identity, Policy};

/// How often a message is repeated in a row before the session is given up.
pub const REPETITIONS: u8 = 8;

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

/// A device's side of the protocol around a model of any size.
pub struct Session<'a, M, F, R> {
    line: Line,
    conversation: Conversation<'a, M, F, R>,
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
        Shape::of(&model)?;
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
        let conversation = Conversation {
            identity,
            policy,
            model,
            memory,
            ledger,
            nonces,
            nonce: [0; 16],
            link: None,
            phase: Phase::Silent,
            round: None,
            repetitions: 0,
            refusals: Refusals::new(),
        };
        Some(Self {
            line: Line::new(),
            conversation,
        })
    }

    /// Where the session stands.
    pub const fn phase(&self) -> Phase {
        self.conversation.phase
    }

    /// The frames that were left out, by reason.
    pub const fn refusals(&self) -> &Refusals {
        &self.conversation.refusals
    }

    /// The device's ledger.
    pub const fn ledger(&self) -> &Ledger<F> {
        &self.conversation.ledger
    }

    /// Gives the ledger back, as at a restart.
    pub fn into_ledger(self) -> Ledger<F> {
        self.conversation.ledger
    }

    /// Bytes for the line: a whole frame, or none.
    pub fn outgoing(&self) -> &[u8] {
        self.line.outgoing()
    }

    /// The bytes of [`Self::outgoing`] are on the line.
    pub const fn sent(&mut self) {
        self.line.sent();
    }

    /// Takes bytes from the line, up to the end of a frame; returns how many it took.
    ///
    /// If it took fewer than there are, the rest is for the next call, after the outgoing bytes: a frame
    /// that comes while one waits to go out is left out and counted: [`Crossed`].
    ///
    /// [`Crossed`]: crate::wire::refusal::Refusal::Crossed
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        for (index, byte) in bytes.iter().enumerate() {
            // Only a zero ends a frame.
            if let Some(raw) = self.line.hear(*byte) {
                let answer = self.conversation.hear(raw);
                self.say(answer);
                return index + 1;
            }
        }
        bytes.len()
    }

    /// The line was silent: repeats what waits for an answer, or begins anew.
    ///
    /// While a frame is coming in it waits for the next time-out, at most four times a message.
    pub fn timeout(&mut self) {
        if !self.line.waits() {
            let answer = self.conversation.timeout();
            self.say(answer);
        }
    }

    /// Trains on `samples` and begins to send the update, or declines. Does nothing in other phases.
    ///
    /// The participation is recorded before any random stream of the round is used.
    pub fn train<S: Samples<Target = M::Target>>(&mut self, samples: &S) {
        if self.phase() == Phase::Training {
            let answer = self.conversation.train(samples);
            self.say(answer);
        }
    }

    fn say(&mut self, answer: Answer) {
        if !matches!(answer, Answer::Nothing) {
            self.conversation.say(answer, self.line.speak());
        }
    }
}

impl<M, F, R> core::fmt::Debug for Session<'_, M, F, R> {
    /// Where it stands, and nothing of the data.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Conversation {
            phase,
            ledger,
            memory,
            ..
        } = &self.conversation;
        let parameters = memory.global.len();
        write!(f, "Session({phase:?}, {parameters} parameters, {ledger:?})")
    }
}
