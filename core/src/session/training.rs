//! Training in a session, at once or in pieces, on flash that blocks or is awaited.

use embedded_storage::nor_flash::NorFlash;

use super::{
    Greeter, Phase, Session, Trainable,
    conversation::{Answer, Conversation},
    round::{Asked, Stage},
    trainable::Course,
};
#[cfg(feature = "async")]
use crate::personal::store::AsyncStore;
use crate::{
    personal::store::{BlockingStore, PersonalStore, StoreError},
    progress::Progress,
    samples::Samples,
    secrets::Secrets,
    wire::message::Decline,
};

impl<M, F, R, K, V> Session<'_, M, F, R, K, V>
where
    M: Trainable,
    F: NorFlash,
    R: Greeter,
    K: BlockingStore,
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
    /// step behind the last one of a batch; rounds the update; reads or saves the state of a
    /// personal model, which is flash again; draws the noise of some entries, as many as take about
    /// as long as the samples; draws that of the bit, if there is one; or adds the masks of a
    /// helper. Where additions are calls, for want of a floating-point unit, training in `f32` also
    /// returns within a sample and within a step. At once comes what has no pieces: the training of
    /// an encoder without labels.
    ///
    /// What is sent is what [`Self::train`] sends, bit for bit.
    pub fn train_some<S>(&mut self, samples: &S, most: usize) -> Progress
    where
        S: Samples<Target = M::Target>,
    {
        if self.phase() == Phase::Training {
            let conversation = &mut self.conversation;
            let answer = match conversation.next() {
                Piece::Record => conversation.record(samples),
                Piece::Store => conversation.ask(),
                Piece::Work => conversation.work(samples, most.max(1)),
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
    K: AsyncStore,
    V: Secrets,
{
    /// [`Self::train_some`] of a device whose ledger, and personal model, are on asynchronous
    /// flash, which the first piece awaits, and those that read or save a state. The others
    /// compute, and await nothing: between two of them, yield to the executor.
    ///
    /// If the future is dropped in the first piece, the next call finds the round used, or records
    /// it; either way nothing was drawn from its streams before. If it is dropped in a piece that
    /// reads or saves a state, the next call does so.
    pub async fn train_some_async<S>(&mut self, samples: &S, most: usize) -> Progress
    where
        S: Samples<Target = M::Target>,
    {
        if self.phase() == Phase::Training {
            let conversation = &mut self.conversation;
            let answer = match conversation.next() {
                Piece::Record => conversation.record_async(samples).await,
                Piece::Store => conversation.ask_async().await,
                Piece::Work => conversation.work(samples, most.max(1)),
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
    /// What the next piece of the round does.
    fn next(&self) -> Piece {
        match &self.round {
            Some(round) if matches!(round.stage, Stage::Invited) => Piece::Record,
            Some(round) if K::IS_PRESENT && round.is_asking() => Piece::Store,
            _ => Piece::Work,
        }
    }

    /// What follows what the store has answered.
    fn follows(&mut self, answer: Result<bool, StoreError>) -> Answer {
        let Some(round) = &mut self.round else {
            return Answer::Nothing;
        };
        let done = round.answered(answer, &mut self.device);
        self.after(done)
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
            Stage::Invited | Stage::Keeping(..) | Stage::Covered => Ok(()),
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

/// What a piece of a round does.
enum Piece {
    /// It records the participation.
    Record,
    /// It reads or saves a personal state.
    Store,
    /// It computes.
    Work,
}

impl<M, F, R, K, V> Conversation<'_, M, F, R, K, V>
where
    M: Trainable,
    F: NorFlash,
    R: Greeter,
    K: BlockingStore,
    V: Secrets,
{
    /// The store does what the round waits for.
    fn ask(&mut self) -> Answer {
        let asked = (self.round.as_ref()).and_then(|round| round.asks(&mut self.device));
        let answer = match asked {
            Some((store, Asked::Load(id, to))) => store.load(&id, to),
            Some((store, Asked::Save(id, state, before))) => {
                store.save(&id, state, before.as_ref()).map(|()| true)
            }
            None => Err(StoreError),
        };
        self.follows(answer)
    }

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
    K: AsyncStore,
    V: Secrets,
{
    /// If it is dropped, the next call asks again.
    async fn ask_async(&mut self) -> Answer {
        let asked = (self.round.as_ref()).and_then(|round| round.asks(&mut self.device));
        let answer = match asked {
            Some((store, Asked::Load(id, to))) => store.load_async(&id, to).await,
            Some((store, Asked::Save(id, state, before))) => {
                let saved = store.save_async(&id, state, before.as_ref()).await;
                saved.map(|()| true)
            }
            None => Err(StoreError),
        };
        self.follows(answer)
    }

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
