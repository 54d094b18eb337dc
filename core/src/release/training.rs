//! The training of a round in pieces of some samples, between which the firmware can do other
//! things.

use super::Trained;
use crate::{
    model::Model,
    participation::Participation,
    progress::Progress,
    samples::Samples,
    train::{Descent, Local, Report, Reported, Workspace},
};

/// A client in training, from [`Client::begin`](crate::client::Client::begin).
#[must_use = "the round is spent, and nothing of it was released"]
pub struct Training<'a, 's, M, S> {
    local: Local<'s, M, S>,
    work: Workspace<'a>,
    /// `None` without usable samples, or once training has diverged.
    descent: Option<Reported<Descent, Report>>,
    participation: Participation,
    /// Words drawn from the stream of orders.
    words: u64,
}

impl<'a, M: Model, S: Samples<Target = M::Target>> Training<'a, '_, M, S> {
    pub(crate) fn new<'s>(
        local: Local<'s, M, S>,
        mut work: Workspace<'a>,
        participation: Participation,
        is_usable: bool,
    ) -> Training<'a, 's, M, S> {
        let begun = is_usable.then(|| local.begin(&mut work).ok());
        let descent = begun.flatten().map(Reported::new);
        Training {
            local,
            work,
            descent,
            participation,
            words: 0,
        }
    }

    /// Trains on up to `most` samples, at least one, and takes the local step after the last one of
    /// a batch. Without a floating-point unit, where additions are function calls, runs the next
    /// piece of a sample or of a step.
    ///
    /// The number of [`Progress::More`] results depends on the number of samples, and on whether
    /// training diverged. It is for the watchdog, and must not be sent.
    pub fn advance(&mut self, most: usize) -> Progress {
        let Self {
            local,
            work,
            descent,
            participation,
            words,
        } = self;
        let settings = local.settings;
        let Some(Reported {
            descent: current,
            report,
        }) = descent
        else {
            return Progress::Done;
        };
        if !current.is_complete(settings) {
            let shuffle = |order: &mut [u32]| participation.streams().shuffle(order, words);
            let advanced =
                report.write(|report| local.advance(current, shuffle, work, most.max(1), report));
            if advanced.is_err() {
                *descent = None;
                return Progress::Done;
            }
        }
        match current.is_complete(settings) {
            true => Progress::Done,
            false => Progress::More,
        }
    }

    /// Completes the training, and returns the update.
    pub fn finish(mut self) -> Trained<'a> {
        while self.advance(usize::MAX) == Progress::More {}
        let Workspace { local, update, .. } = self.work;
        let report = self.descent.map(
            |Reported {
                 descent,
                 mut report,
             }| {
                report.write(|report| {
                    self.local.finish(&descent, update, report);
                    report.train
                })
            },
        );
        Trained::new(update, local, report, self.participation)
    }
}

impl<M, S> core::fmt::Debug for Training<'_, '_, M, S> {
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Training({} parameters)", self.local.global.len())
    }
}
