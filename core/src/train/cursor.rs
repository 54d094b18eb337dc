//! Position of a training in its samples, in either arithmetic.

use core::num::NonZeroU32;

use super::{LocalTraining, TrainError};

/// Position in epochs, and in the batches of an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    /// Number of samples. Each call checks that it has not changed.
    count: NonZeroU32,
    /// Number of complete epochs.
    epoch: u32,
    /// First sample of the batch, in the order of the epoch.
    batch: u32,
    /// Processed part of the batch: samples or, with split steps, pieces.
    pub(crate) done: u32,
}

impl Cursor {
    /// Starts before the first epoch, with the samples in order.
    ///
    /// # Errors
    /// [`TrainError::NoSamples`], and [`TrainError::Workspace`] if `order` is too short for them.
    #[inline(always)]
    pub(crate) fn begin(samples: usize, order: &mut [u32]) -> Result<Self, TrainError> {
        // At most the length of the order, whose entries have 32 bits.
        let count = NonZeroU32::new(samples as u32).ok_or(TrainError::NoSamples)?;
        let found = order.len();
        let Some(order) = order.get_mut(..samples) else {
            let expected = samples;
            return Err(TrainError::Workspace { expected, found });
        };
        for (slot, index) in order.iter_mut().zip(0..) {
            *slot = index;
        }
        Ok(Self {
            count,
            epoch: 0,
            batch: 0,
            done: 0,
        })
    }

    /// Returns the number of samples.
    pub(crate) const fn count(&self) -> NonZeroU32 {
        self.count
    }

    /// Returns the number of complete epochs.
    pub(crate) const fn epochs(&self) -> u32 {
        self.epoch
    }

    /// Returns the number of complete steps, with batches of `size` samples.
    pub(crate) fn steps(&self, size: NonZeroU32) -> u32 {
        let batches = self.count.get().div_ceil(size.get());
        (self.epoch.saturating_mul(batches)).saturating_add(self.batch / size)
    }

    /// Returns whether all epochs are complete.
    #[inline(always)]
    pub(crate) const fn is_complete(&self, settings: &LocalTraining) -> bool {
        self.epoch >= settings.epochs
    }

    /// Returns the current batch. `samples` must be the same number as at the start. `shuffle` puts
    /// the samples into the order of an epoch at its start.
    ///
    /// # Errors
    /// [`TrainError::NoSamples`] if the number of samples has changed.
    #[inline(always)]
    pub(crate) fn batch<'a>(
        &self,
        samples: usize,
        size: NonZeroU32,
        order: &'a mut [u32],
        shuffle: impl FnOnce(&mut [u32]),
    ) -> Result<&'a [u32], TrainError> {
        let count = self.count.get() as usize;
        let order = order.get_mut(..count).filter(|_| samples == count);
        let order = order.ok_or(TrainError::NoSamples)?;
        if self.batch == 0 && self.done == 0 {
            shuffle(order);
        }
        let rest = order.get(self.batch as usize..).unwrap_or_default();
        Ok(rest.get(..size.get() as usize).unwrap_or(rest))
    }

    /// Records the step of a batch of `length` samples. Returns the number of the epoch if the step
    /// ends it.
    #[inline(always)]
    pub(crate) const fn step(&mut self, length: usize) -> Option<u32> {
        self.done = 0;
        // At most the number of samples.
        self.batch += length as u32;
        if self.batch < self.count.get() {
            return None;
        }
        let ended = self.epoch;
        (self.epoch, self.batch) = (ended + 1, 0);
        Some(ended)
    }
}
