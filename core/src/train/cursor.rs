//! How far a training is in its samples, in either arithmetic.

use core::num::NonZeroU32;

use super::{LocalTraining, TrainError};

/// Epochs, and batches in the order of an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    /// Samples of the training: that they stay as many is checked.
    count: NonZeroU32,
    /// Epochs that are complete.
    epoch: u32,
    /// The first sample of the batch, in the order of the epoch.
    batch: u32,
    /// What is done of the batch: samples that are summed up, or, where steps are split, pieces.
    pub(crate) done: u32,
}

impl Cursor {
    /// Before the first epoch, with the samples in order.
    ///
    /// # Errors
    /// [`TrainError::NoSamples`], and [`TrainError::Workspace`] if `order` is too short for them.
    #[inline(always)]
    pub(crate) fn begin(samples: usize, order: &mut [u32]) -> Result<Self, TrainError> {
        // No more than places in the order, which are numbered by 32 bits.
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

    /// Samples of the training.
    pub(crate) const fn count(&self) -> NonZeroU32 {
        self.count
    }

    /// Epochs that are complete.
    pub(crate) const fn epochs(&self) -> u32 {
        self.epoch
    }

    /// Steps that are complete, of batches of so many samples.
    pub(crate) fn steps(&self, size: NonZeroU32) -> u32 {
        let batches = self.count.get().div_ceil(size.get());
        (self.epoch.saturating_mul(batches)).saturating_add(self.batch / size)
    }

    /// Whether all epochs are complete.
    #[inline(always)]
    pub(crate) const fn is_complete(&self, settings: &LocalTraining) -> bool {
        self.epoch >= settings.epochs
    }

    /// The batch, of samples that are as many as at the beginning. `shuffle` brings them into the
    /// order of an epoch, where one begins.
    ///
    /// # Errors
    /// [`TrainError::NoSamples`]: they have become more or fewer.
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

    /// The step of a batch of so many samples is taken: the number of the epoch that it ends, if it
    /// ends one.
    #[inline(always)]
    pub(crate) const fn step(&mut self, length: usize) -> Option<u32> {
        self.done = 0;
        // No more than samples.
        self.batch += length as u32;
        if self.batch < self.count.get() {
            return None;
        }
        let ended = self.epoch;
        (self.epoch, self.batch) = (ended + 1, 0);
        Some(ended)
    }
}
