//! Training in a session, at once or in pieces, on flash that blocks or is awaited.

use embedded_storage::nor_flash::NorFlash;

use super::{
    Greeter, Phase, Session, Trainable,
    conversation::{Answer, Conversation},
    round::Stage,
    trainable::Course,
};
use crate::{
    personal::store::PersonalStore, progress::Progress, samples::Samples, secrets::Secrets,
    wire::message::Decline,
};

impl<M, F, R, K, V> Session<'_, M, F, R, K, V>
where
    M: Trainable,
    F: NorFlash,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    /// Trains on `samples` and begins to send the update, or declines. Does nothing in other
    /// phases.
    ///
    /// The participation is recorded before any random stream of the round is used.
    pub fn train<S: Samples<Target = M::Target>>(&mut self, samples: &S) {
        while self.train_some(samples, usize::MAX) == Progress::More {}
    }

    /// A piece of [`Self::train`], after which the firmware has time for other things: feed the
    /// watchdog, serve the radio. Until the last piece, `samples` must not change; frames may come
    /// and go.
    ///
    /// The first piece records the participation, which takes as long as the flash. Each of the
    /// others does one of these: it trains on up to `most` samples (0 counts as 1), with the local
    /// step behind the last one of a batch; rounds the update; draws the noise of some entries, as
    /// many as take about as long as the samples; draws that of the bit; or adds the masks of a
    /// helper. Where additions are calls, for want of a floating-point unit, training in `f32` also
    /// returns within a sample and within a step. At once comes what has no pieces: the training of
    /// a personal model and of an encoder without labels.
    ///
    /// What is sent is what [`Self::train`] sends, bit for bit.
    pub fn train_some<S>(&mut self, samples: &S, most: usize) -> Progress
    where
        S: Samples<Target = M::Target>,
    {
        if self.phase() == Phase::Training {
            let conversation = &mut self.conversation;
            let answer = match conversation.is_to_begin() {
                true => conversation.record(samples),
                false => conversation.work(samples, most.max(1)),
            };
            self.send(answer);
        }
        self.progress()
    }
}

#[cfg(feature = "async")]
impl<M, F, R, K, V> Session<'_, M, F, R, K, V>
where
    M: Trainable,
    F: embedded_storage_async::nor_flash::NorFlash,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    /// [`Self::train_some`] of a device whose ledger is on asynchronous flash, which the first
    /// piece awaits. The others compute, and await nothing: between two of them, yield to the
    /// executor.
    ///
    /// If the future is dropped in the first piece, the next call finds the round used, or records
    /// it; either way nothing was drawn from its streams before.
    pub async fn train_some_async<S>(&mut self, samples: &S, most: usize) -> Progress
    where
        S: Samples<Target = M::Target>,
    {
        if self.phase() == Phase::Training {
            let conversation = &mut self.conversation;
            let answer = match conversation.is_to_begin() {
                true => conversation.record_async(samples).await,
                false => conversation.work(samples, most.max(1)),
            };
            self.send(answer);
        }
        self.progress()
    }
}

impl<M, F, R, K, V> Conversation<'_, M, F, R, K, V>
where
    M: Trainable,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    /// Whether the next piece of the round is its record.
    fn is_to_begin(&self) -> bool {
        let round = self.round.as_ref();
        round.is_some_and(|round| matches!(round.stage, Stage::Invited))
    }

    /// The participation is recorded, or why not.
    fn began(&mut self, recorded: Result<(), Decline>) -> Answer {
        if let (Some(round), Ok(())) = (&mut self.round, &recorded) {
            round.stage = Stage::Training(Course::START);
        }
        self.after(recorded)
    }

    /// The next piece of a round that is recorded.
    fn work<S>(&mut self, samples: &S, most: usize) -> Answer
    where
        S: Samples<Target = M::Target>,
    {
        let Some(round) = &mut self.round else {
            return Answer::Nothing;
        };
        let done = match round.stage {
            Stage::Training(_) => round.train(&mut self.device, samples, most),
            Stage::Covering(_) => {
                round.cover(&mut self.device, most);
                Ok(())
            }
            Stage::Invited | Stage::Covered => Ok(()),
        };
        self.after(done)
    }

    /// What to send after a piece of a round.
    fn after(&mut self, done: Result<(), Decline>) -> Answer {
        match (done, &self.round) {
            (Ok(()), Some(round)) if round.is_covered() => {
                self.device.identity.root.end();
                self.phase = Phase::Sending;
                Answer::Go
            }
            (Err(reason), Some(round)) => {
                let number = round.number;
                self.leave_round();
                Answer::Decline(number, reason)
            }
            _ => Answer::Nothing,
        }
    }
}

impl<M, F, R, K, V> Conversation<'_, M, F, R, K, V>
where
    M: Trainable,
    F: NorFlash,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    /// The round begins: it is recorded, or the device declines. A function, so that keys and the
    /// bytes of a record are not on the stack in the other pieces.
    #[inline(never)]
    fn record<S: Samples<Target = M::Target>>(&mut self, samples: &S) -> Answer {
        let Some(round) = &self.round else {
            return Answer::Nothing;
        };
        let recorded = match round.check(&self.device, samples) {
            Ok(()) => self.device.record(round.number, &round.invitation),
            Err(reason) => Err(reason),
        };
        self.began(recorded)
    }
}

/// The same on flash that is awaited.
#[cfg(feature = "async")]
impl<M, F, R, K, V> Conversation<'_, M, F, R, K, V>
where
    M: Trainable,
    F: embedded_storage_async::nor_flash::NorFlash,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    async fn record_async<S>(&mut self, samples: &S) -> Answer
    where
        S: Samples<Target = M::Target>,
    {
        let Some(round) = &self.round else {
            return Answer::Nothing;
        };
        let recorded = match round.check(&self.device, samples) {
            Ok(()) => {
                let record = self.device.record_async(round.number, &round.invitation);
                record.await
            }
            Err(reason) => Err(reason),
        };
        self.began(recorded)
    }
}
