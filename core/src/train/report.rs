//! What happened in local training, summed up while it goes on.

use super::TrainReport;

/// A [`TrainReport`], and the sums of losses for it. Where nobody reads it, the compiler leaves out
/// all that it takes.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) train: TrainReport,
    /// Of the batch, as far as it is summed up.
    pub(crate) batch: f32,
    /// Of the epoch's batches, of each its mean.
    epoch: f32,
    batches: f32,
}

impl Report {
    /// A step was taken: the batch's losses are multiplied by `mean`.
    #[inline(always)]
    pub(crate) fn step(&mut self, mean: f32) {
        self.epoch += core::mem::take(&mut self.batch) * mean;
        self.batches += 1.0;
        self.train.steps += 1;
    }

    /// An epoch is over.
    #[inline(always)]
    pub(crate) fn epoch(&mut self, is_first: bool) {
        let mean = self.epoch / self.batches;
        if is_first {
            self.train.first_loss = mean;
        }
        self.train.last_loss = mean;
        (self.epoch, self.batches) = (0.0, 0.0);
    }

    /// Training is over, in the middle of an epoch perhaps.
    pub(crate) fn end(mut self, is_first: bool) -> TrainReport {
        if self.batches > 0.0 {
            self.epoch(is_first);
        }
        self.train
    }
}
