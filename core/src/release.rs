//! A device's release: the one path from a round's update to integers that may leave the device.
//!
//! 1. [`Ledger::begin`] records the round and gives a [`Participation`].
//! 2. [`Client::train`] uses it up and gives a [`Trained`], which holds the clipped update and
//!    shows nothing of it.
//! 3. [`Trained::noise`] quantises the update, draws the device's own noise, once, and gives a
//!    [`Noised`]. A device that trusts its coordinator to add the noise has to say so
//!    ([`TrustCoordinator`]) for [`Trained::central`], which gives a [`Central`].
//! 4. What may be sent is a [`Release`], and only these two are.
//!
//! [`Session`](crate::session::Session) does the same in the protocol of this crate, with masks and
//! the bit of adaptive clipping, by the same functions.
//!
//! An update of zeros is released where the device has no usable samples or its training diverged:
//! whether that happened says something about its data, which the noise covers as well.
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

/// A trained, clipped update, which is private: it has no getter. What becomes of it is decided by
/// [`Self::noise`] or [`Self::central`].
#[must_use = "the round is spent, and nothing of it was released"]
pub struct Trained<'a> {
    update: &'a mut [f32],
    /// As long as the update, which training no longer needs.
    spare: &'a mut [f32],
    /// How training went; none without an update.
    report: Option<Kept<TrainReport>>,
    participation: Participation,
}

/// The trust in the coordinator that releasing an update without noise takes: it sees the update
/// as it is, and is trusted to add the noise to the sum.
#[derive(Clone, Copy, Debug)]
pub struct TrustCoordinator;

/// An update under the device's own noise: whoever sees it learns no more than the noise
/// multiplier permits.
#[derive(Debug)]
pub struct Noised<'a>(Integers<'a>);

/// A clipped update without noise, for a coordinator that adds it to the sum.
#[derive(Debug)]
pub struct Central<'a>(Integers<'a>);

/// Why there is nothing to be released to a coordinator that is trusted: no usable samples, or
/// training diverged.
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
    /// The clipped update in `update`, or none, and memory that is as long.
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

    /// How training went. None without an update: the samples cannot be used, or training diverged.
    ///
    /// It describes private data: it is for the firmware, and must not leave the device.
    #[cfg(feature = "reports")]
    pub fn report(&self) -> Option<&TrainReport> {
        self.report.as_ref().map(Kept::report)
    }

    /// The update on `grid` under the device's own noise of std `multiplier` times its clip norm
    /// (local trust).
    ///
    /// The bound on the update's norm is that of the grid and holds exactly: an update that is
    /// outside is shrunk onto it, and one beyond twice the bound is released as zeros.
    ///
    /// # Errors
    /// [`NoiseError`] if the multiplier is 0 or too large for the grid; it does not depend on the
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

    /// The update on `grid` without noise, for a coordinator that is trusted to add it.
    ///
    /// # Errors
    /// [`NoUpdate`]: there is none. The round is spent.
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

    /// Rounds the update where it is, if there is one.
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

/// What a device may send of a round: [`Noised`], or [`Central`] to a coordinator that it trusts.
pub trait Release: sealed::Sealed {
    /// Number of integers: the model's parameters.
    fn len(&self) -> usize {
        self.integers().len()
    }

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The integers, in steps of the grid.
    fn values(&self) -> impl Iterator<Item = i64> {
        self.integers().values()
    }

    /// The chunks that carry them on the line, for
    /// [`Message::UpdateChunk`](crate::wire::message::Message::UpdateChunk).
    fn chunks(&self) -> impl Iterator<Item = UpdateChunk<'_>> {
        self.integers().chunks()
    }
}

impl Release for Noised<'_> {}
impl Release for Central<'_> {}

mod sealed {
    use super::{Central, Noised, integers::Integers};

    /// Nothing else is released.
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
