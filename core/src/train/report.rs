//! What happened in local training, summed up while it goes on.

use super::TrainReport;
use crate::params::ClipNorm;

/// A [`TrainReport`], and the sums of losses for it. Where nobody reads it, the compiler leaves out
/// all that it takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
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

impl TrainReport {
    /// The update had this norm, and was clipped once, at its end.
    pub(crate) fn clipped(&mut self, norm: f32, bound: ClipNorm) {
        self.norm = norm;
        self.clipped_steps = u32::from(norm > bound.get());
        self.clipping_chances = 1;
    }
}

/// A report between two pieces of a training. Without the feature `reports` nothing of it is kept,
/// and the compiler leaves out all that it takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept<R> {
    #[cfg(feature = "reports")]
    report: R,
    #[cfg(not(feature = "reports"))]
    report: core::marker::PhantomData<R>,
}

impl Kept<TrainReport> {
    /// Of no training.
    pub(crate) const NONE: Self = Self {
        #[cfg(feature = "reports")]
        report: TrainReport {
            steps: 0,
            clipped_steps: 0,
            clipping_chances: 0,
            first_loss: 0.0,
            last_loss: 0.0,
            norm: 0.0,
            saturated: 0,
        },
        #[cfg(not(feature = "reports"))]
        report: core::marker::PhantomData,
    };
}

impl<R: Copy + Default> Kept<R> {
    /// What is kept of a report.
    pub(crate) fn of(report: R) -> Self {
        let mut kept = Self::default();
        kept.write(|kept| *kept = report);
        kept
    }

    /// Goes on with the report.
    #[cfg(feature = "reports")]
    #[inline(always)]
    pub(crate) fn write<T>(&mut self, write: impl FnOnce(&mut R) -> T) -> T {
        write(&mut self.report)
    }

    /// Goes on with an empty report, which is then lost.
    #[cfg(not(feature = "reports"))]
    #[inline(always)]
    pub(crate) fn write<T>(&mut self, write: impl FnOnce(&mut R) -> T) -> T {
        write(&mut R::default())
    }

    /// The report.
    #[cfg(feature = "reports")]
    pub(crate) const fn report(&self) -> &R {
        &self.report
    }
}

/// How far a training is, with its report.
#[derive(Clone, Copy, Debug)]
pub struct Reported<D, R> {
    pub(crate) descent: D,
    pub(crate) report: Kept<R>,
}

impl<D, R: Copy + Default> Reported<D, R> {
    /// A training that begins.
    pub(crate) fn new(descent: D) -> Self {
        Self {
            descent,
            report: Kept::default(),
        }
    }
}
