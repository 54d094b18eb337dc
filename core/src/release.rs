//! The release of a device: the only path from the update of a round to integers that may leave the
//! device.
//!
//! 1. [`Ledger::begin`] records the round and returns a [`Participation`].
//! 2. [`Client::train`] consumes it and returns a [`Trained`], which holds the clipped update and
//!    reveals nothing about it.
//! 3. [`Trained::noise`] quantises the update, draws the device's noise, once, and returns a
//!    [`Noised`]. A device that trusts its coordinator to add the noise passes a
//!    [`TrustCoordinator`] to [`Trained::central`], which returns a [`Central`].
//! 4. Only a [`Release`] may be sent, and only these two types implement it.
//!
//! [`Session`](crate::session::Session) does the same in the protocol of this crate, with the same
//! functions, and adds masks and the bit of adaptive clipping.
//!
//! If the device has no usable samples or its training diverged, it releases an update of zeros.
//! Whether this happened depends on its data, so the noise must cover it as well.
//!
//! [`Ledger::begin`]: crate::ledger::Ledger::begin
//! [`Client::train`]: crate::client::Client::train

use crate::{
    noise::{DiscreteGaussian, NoiseError},
    params::NoiseMultiplier,
    participation::Participation,
    quantize::{Grid, Repair},
    stream::Purpose,
    train::{Kept, TrainReport},
    wire::{message::UpdateChunk, pack},
};

mod halves;
mod integers;
mod noising;
#[cfg(test)]
mod tests;
mod training;

pub(crate) use halves::{draw_noise, halves, patterns, patterns_mut, quantise, whole};

pub use noising::Noising;
pub use training::Training;

use integers::Integers;

/// A trained, clipped update. It is private and has no getter. [`Self::noise`] or [`Self::central`]
/// turns it into a release.
#[must_use = "the round is spent, and nothing of it was released"]
pub struct Trained<'a> {
    update: &'a mut [f32],
    /// Memory as long as the update, no longer needed by training.
    spare: &'a mut [f32],
    /// Report of training, `None` without an update.
    report: Option<Kept<TrainReport>>,
    participation: Participation,
}

/// Consent to release an update without noise: the coordinator sees the bare update, and is trusted
/// to add the noise to the sum.
#[derive(Clone, Copy, Debug)]
pub struct TrustCoordinator;

/// An update with the device's noise: an observer learns no more than the noise multiplier permits.
#[derive(Debug)]
pub struct Noised<'a>(Integers<'a>);

/// A clipped update without noise, for a coordinator that adds the noise to the sum.
#[derive(Debug)]
pub struct Central<'a>(Integers<'a>);

/// Error when there is nothing to release to a trusted coordinator: no usable samples, or diverged
/// training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoUpdate;

impl core::fmt::Display for NoUpdate {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the device has no usable samples, or its training diverged")
    }
}

impl core::error::Error for NoUpdate {}

impl<'a> Trained<'a> {
    /// Creates the result of training, with the clipped update in `update`, if any, and memory of
    /// the same length.
    pub(crate) fn new(
        update: &'a mut [f32],
        spare: &'a mut [f32],
        report: Option<TrainReport>,
        participation: Participation,
    ) -> Self {
        Self {
            update,
            spare,
            report: report.map(Kept::of),
            participation,
        }
    }

    /// Returns the report of training. `None` without an update: the samples are unusable, or
    /// training diverged.
    ///
    /// It describes private data for use in firmware, and must not leave the device.
    #[cfg(feature = "reports")]
    pub fn report(&self) -> Option<&TrainReport> {
        self.report.as_ref().map(Kept::report)
    }

    /// Returns the update on `grid` with the device's noise, of std `multiplier` times its clip
    /// norm (local trust).
    ///
    /// The grid's bound on the norm of the update holds exactly: an update outside is shrunk onto
    /// it, and an update beyond twice the bound is released as zeros.
    ///
    /// # Errors
    /// [`NoiseError`] if the multiplier is 0 or too large for the grid. It does not depend on the
    /// update. The round is spent.
    pub fn noise(
        mut self,
        grid: &Grid,
        multiplier: NoiseMultiplier,
    ) -> Result<Noised<'a>, NoiseError> {
        let noise = DiscreteGaussian::from_multiplier(multiplier, grid.bits())?;
        let repair = self.round(grid);
        let (low, high) = (patterns_mut(self.update), patterns_mut(self.spare));
        quantise(repair, grid, false, low, high);
        let streams = &self.participation.streams();
        draw_noise(streams, Purpose::DeviceNoise, &mut 0, &noise, low, high);
        Ok(Noised(Integers {
            low,
            high,
            negated: false,
            width: pack::width(grid.bits(), Some(noise.sigma())),
        }))
    }

    /// Returns the update on `grid` without noise, for a coordinator trusted to add the noise.
    ///
    /// # Errors
    /// [`NoUpdate`] if there is no update. The round is spent.
    pub fn central(mut self, grid: &Grid, _: TrustCoordinator) -> Result<Central<'a>, NoUpdate> {
        let repair = self.round(grid).ok_or(NoUpdate)?;
        let (low, high) = (patterns_mut(self.update), patterns_mut(self.spare));
        let negated = quantise(Some(repair), grid, true, low, high);
        Ok(Central(Integers {
            low,
            high,
            negated,
            width: pack::width(grid.bits(), None),
        }))
    }

    /// Rounds the update in place, if there is one.
    fn round(&mut self, grid: &Grid) -> Option<Repair> {
        self.report?;
        grid.round_in_place(self.update).ok()
    }
}

impl core::fmt::Debug for Trained<'_> {
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Trained({} parameters)", self.update.len())
    }
}

/// The sendable result of a round: [`Noised`], or [`Central`] for a trusted coordinator.
pub trait Release: sealed::Sealed {
    /// Returns the number of integers: the parameters of the model.
    fn len(&self) -> usize {
        self.integers().len()
    }

    /// Returns whether there are no integers.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the integers, in steps of the grid.
    fn values(&self) -> impl Iterator<Item = i64> {
        self.integers().values()
    }

    /// Returns the chunks that carry the integers in messages, for
    /// [`Message::UpdateChunk`](crate::wire::message::Message::UpdateChunk).
    fn chunks(&self) -> impl Iterator<Item = UpdateChunk<'_>> {
        self.integers().chunks()
    }
}

impl Release for Noised<'_> {}
impl Release for Central<'_> {}

mod sealed {
    use super::{Central, Noised, integers::Integers};

    /// Prevents other implementations of `Release`.
    pub trait Sealed {
        fn integers(&self) -> &Integers<'_>;
    }

    impl Sealed for Noised<'_> {
        fn integers(&self) -> &Integers<'_> {
            &self.0
        }
    }

    impl Sealed for Central<'_> {
        fn integers(&self) -> &Integers<'_> {
            &self.0
        }
    }
}
