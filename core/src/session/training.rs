//! Training in a session, at once or in pieces, on blocking or asynchronous flash.

use super::{
    Greeter, Phase, Session, Trainable,
    conversation::{Answer, Conversation},
    device::{Device, declined},
    round::{Asked, Stage},
    trainable::{Course, RoundParts},
};
use crate::{
    personal::store::{PersonalStore, StoreError},
    progress::Progress,
    samples::Samples,
    secrets::Secrets,
    wire::message::{Decline, Invitation},
};

impl<M, F, R, K, V> Conversation<'_, M, F, R, K, V>
where
    M: Trainable,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    /// Returns the kind of the next piece.
    fn next(&self) -> Piece {
        match &self.round {
            Some(round) if matches!(round.stage, Stage::Invited) => Piece::Record,
            Some(round) if K::IS_PRESENT && round.is_asking() => Piece::Store,
            _ => Piece::Work,
        }
    }

    /// Returns the answer that follows from the store's result.
    fn follows(&mut self, answer: Result<bool, StoreError>) -> Answer {
        let Some(round) = &mut self.round else {
            return Answer::Nothing;
        };
        let done = round.answered(answer, &mut self.device, &mut self.last);
        self.after(done)
    }

    /// Notes that the participation is recorded, or declines.
    fn began(&mut self, recorded: Result<(), Decline>) -> Answer {
        if let (Some(round), Ok(())) = (&mut self.round, &recorded) {
            round.stage = Stage::Training(Course::START);
        }
        self.after(recorded)
    }

    /// Runs the next piece of a recorded round.
    fn work<S>(&mut self, samples: &S, most: usize) -> Answer
    where
        S: Samples<Target = M::Target>,
    {
        let Some(round) = &mut self.round else {
            return Answer::Nothing;
        };
        let done = match round.stage {
            Stage::Training(_) => round.train(&mut self.device, &mut self.last, samples, most),
            Stage::Covering(_) => round.cover(&mut self.device, most),
            Stage::Invited | Stage::Keeping(..) | Stage::Covered => Ok(()),
        };
        self.after(done)
    }

    /// Returns the message to send after a piece of a round.
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
                self.declines(number, reason)
            }
            _ => Answer::Nothing,
        }
    }
}

/// The kind of a piece of a round.
enum Piece {
    /// Record the participation.
    Record,
    /// Read or save a personal state.
    Store,
    /// Compute.
    Work,
}

/// Training on the `NorFlash` and the store of the module.
macro_rules! on_flash {
    (
        [$($async:tt $await:tt)?] $Store:ident: $load:ident $save:ident,
        $(#[$documentation:meta])* $train_some:ident
    ) => {
        impl<M, F, R, K, V> Session<'_, M, F, R, K, V>
        where
            M: Trainable,
            F: NorFlash,
            R: Greeter,
            K: $Store,
            V: Secrets,
        {
            $(#[$documentation])*
            pub $($async)? fn $train_some<S>(&mut self, samples: &S, most: usize) -> Progress
            where
                S: Samples<Target = M::Target>,
            {
                if self.phase() == Phase::Training {
                    let conversation = &mut self.conversation;
                    let answer = match conversation.next() {
                        Piece::Record => begin(conversation, samples)$(.$await)?,
                        Piece::Store => ask(conversation)$(.$await)?,
                        Piece::Work => conversation.work(samples, most.max(1)),
                    };
                    self.send(answer);
                }
                self.progress()
            }
        }

        /// Runs the store's operation that the round waits for, again if a future was dropped.
        $($async)? fn ask<M, F, R, K, V>(
            conversation: &mut Conversation<'_, M, F, R, K, V>,
        ) -> Answer
        where
            M: Trainable,
            F: NorFlash,
            R: Greeter,
            K: $Store,
            V: Secrets,
        {
            let round = conversation.round.as_ref();
            let asked = round.and_then(|round| round.asks(&mut conversation.device));
            let answer = match asked {
                Some((store, Asked::Load(id, to))) => store.$load(&id, to)$(.$await)?,
                Some((store, Asked::Save(id, state, before))) => {
                    let saved = store.$save(&id, state, before.as_ref())$(.$await)?;
                    saved.map(|()| true)
                }
                None => Err(StoreError),
            };
            conversation.follows(answer)
        }

        /// Begins the round: records it, or declines. A separate function, so that keys and the
        /// bytes of a record are not on the stack in the other pieces.
        #[inline(never)]
        $($async)? fn begin<M, F, R, K, V, S>(
            conversation: &mut Conversation<'_, M, F, R, K, V>,
            samples: &S,
        ) -> Answer
        where
            M: Trainable,
            F: NorFlash,
            R: Greeter,
            K: $Store,
            V: Secrets,
            S: Samples<Target = M::Target>,
        {
            let Some(round) = &mut conversation.round else {
                return Answer::Nothing;
            };
            let device = &mut conversation.device;
            let recorded = match round.check(device, samples) {
                Ok(()) => record(device, round.number, &round.invitation)$(.$await)?,
                Err(reason) => Err(reason),
            };
            conversation.began(recorded)
        }

        /// Records the participation, before anything is drawn from the round's streams. One record
        /// covers all parts of a round.
        #[inline(always)]
        $($async)? fn record<M, F, K, V>(
            device: &mut Device<'_, M, F, K, V>,
            round: u32,
            invitation: &Invitation,
        ) -> Result<(), Decline>
        where
            M: Trainable,
            F: NorFlash,
            V: Secrets,
        {
            device.draw_from(round)?;
            if !device.parts.has(round, invitation) {
                let step = device.ledger.step(&mut device.identity.root);
                let step = step.map_err(declined)?;
                #[cfg(feature = "questions")]
                device.ledger.set_answer(invitation.question().is_some());
                let (ledger, limits) = (&mut device.ledger, &device.policy.limits);
                let recorded = record_step(ledger, round, limits, step.as_ref())$(.$await)?;
                recorded.map_err(declined)?;
            }
            device.parts.take(round, invitation);
            Ok(())
        }
    };
}

/// Blocking flash.
mod blocking {
    use super::*;
    use crate::{ledger::flash::blocking::record_step, personal::store::BlockingStore};
    use embedded_storage::nor_flash::NorFlash;

    on_flash! {
        [] BlockingStore: load save,
        /// Runs a piece of [`Self::train`], after which the firmware has time for other work: feed
        /// the watchdog, serve the radio. Until the last piece, `samples` must not change, but
        /// frames may come and go.
        ///
        /// The first piece records the participation, which takes as long as the flash. Each later
        /// piece does one of these:
        ///
        /// * It trains on up to `most` samples (0 counts as 1), with the local step after the last
        ///   sample of a batch.
        /// * It rounds the update.
        /// * It reads or saves the state of a personal model, again on flash.
        /// * It draws the noise of as many entries as take about as long as the samples.
        /// * It draws the noise of the bit, if there is one.
        /// * It adds the masks of a helper.
        ///
        /// On processors without a floating-point unit, where additions are calls, training in
        /// `f32` also returns within a sample and within a step. Training of an encoder without
        /// labels has no pieces and runs at once.
        ///
        /// The result is bit for bit what [`Self::train`] sends.
        train_some
    }

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
    }
}

/// Asynchronous flash.
#[cfg(feature = "async")]
mod awaited {
    use super::*;
    use crate::{ledger::flash::awaited::record_step, personal::store::AsyncStore};
    use embedded_storage_async::nor_flash::NorFlash;

    on_flash! {
        [async await] AsyncStore: load_async save_async,
        /// [`Self::train_some`] for a device with its ledger and personal model on asynchronous
        /// flash. Only the first piece, and the pieces that read or save a state, await the flash.
        /// The others compute and await nothing: yield to the executor between two of them.
        ///
        /// If the future is dropped in the first piece, the next call finds the round used, or
        /// records it. Either way nothing was drawn from its streams before. If the future is
        /// dropped in a piece that reads or saves a state, the next call repeats it.
        train_some_async
    }
}
