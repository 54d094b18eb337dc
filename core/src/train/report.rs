//! Statistics of local training, collected while it runs: steps, clipped steps, losses, and the
//! norm of the update.

use super::TrainReport;
use crate::params::ClipNorm;

/// A [`TrainReport`] with its sums of losses. The compiler removes unused reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    pub(crate) train: TrainReport,
    /// Sum of losses of the batch so far.
    pub(crate) batch: f32,
    /// Sum of the mean losses of the epoch's batches.
    epoch: f32,
    batches: f32,
}

impl Report {
    /// Records a step. The losses of the batch are multiplied by `mean`.
    #[inline(always)]
    pub(crate) fn step(&mut self, mean: f32) {
        self.epoch += core::mem::take(&mut self.batch) * mean;
        self.batches += 1.0;
        self.train.steps += 1;
    }

    /// Records the end of an epoch.
    #[inline(always)]
    pub(crate) fn epoch(&mut self, is_first: bool) {
        let mean = self.epoch / self.batches;
        if is_first {
            self.train.first_loss = mean;
        }
        self.train.last_loss = mean;
        (self.epoch, self.batches) = (0.0, 0.0);
    }

    /// Ends the training, possibly in the middle of an epoch.
    pub(crate) fn end(mut self, is_first: bool) -> TrainReport {
        if self.batches > 0.0 {
            self.epoch(is_first);
        }
        self.train
    }
}

impl TrainReport {
    /// Records the norm of an update that is clipped only once, at the end.
    pub(crate) fn clipped(&mut self, norm: f32, bound: ClipNorm) {
        self.norm = norm;
        self.clipped_steps = u32::from(norm > bound.get());
        self.clipping_chances = 1;
    }
}

/// A report between two pieces of a training. Without the feature `reports` it is empty, and the
/// compiler removes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept<R> {
    #[cfg(feature = "reports")]
    report: R,
    #[cfg(not(feature = "reports"))]
    report: core::marker::PhantomData<R>,
}

impl Kept<TrainReport> {
    /// No training.
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
    /// Keeps a report.
    pub(crate) fn of(report: R) -> Self {
        let mut kept = Self::default();
        kept.write(|kept| *kept = report);
        kept
    }

    /// Continues the report.
    #[cfg(feature = "reports")]
    #[inline(always)]
    pub(crate) fn write<T>(&mut self, write: impl FnOnce(&mut R) -> T) -> T {
        write(&mut self.report)
    }

    /// Continues an empty report, which is then dropped.
    #[cfg(not(feature = "reports"))]
    #[inline(always)]
    pub(crate) fn write<T>(&mut self, write: impl FnOnce(&mut R) -> T) -> T {
        write(&mut R::default())
    }

    /// Returns the report.
    #[cfg(feature = "reports")]
    pub(crate) const fn report(&self) -> &R {
        &self.report
    }
}

/// Progress of a training, with its report.
#[derive(Clone, Copy, Debug)]
pub struct Reported<D, R> {
    pub(crate) descent: D,
    pub(crate) report: Kept<R>,
}

impl<D, R: Copy + Default> Reported<D, R> {
    /// Starts a training.
    pub(crate) fn new(descent: D) -> Self {
        Self {
            descent,
            report: Kept::default(),
        }
    }
}
