//! The device's noise on its update, drawn in pieces, between which the firmware can do other
//! things.

use super::{Integers, Noised, Trained, draw_noise, patterns_mut, quantise};
use crate::{
    noise::{DiscreteGaussian, NoiseError},
    params::NoiseMultiplier,
    participation::Participation,
    progress::Progress,
    quantize::{Grid, Repair},
    stream::Purpose,
    wire::pack,
};

/// An update that becomes a [`Noised`] entry by entry. It reveals nothing until all entries have
/// noise.
#[must_use = "the round is spent, and nothing of it was released"]
pub struct Noising<'a> {
    integers: Integers<'a>,
    repair: Option<Repair>,
    grid: Grid,
    noise: DiscreteGaussian,
    participation: Participation,
    /// Words drawn from the noise stream.
    words: u64,
    done: usize,
}

impl<'a> Trained<'a> {
    /// Like [`Self::noise`], in pieces.
    ///
    /// # Errors
    /// As [`Self::noise`].
    pub fn noise_in_pieces(
        mut self,
        grid: &Grid,
        multiplier: NoiseMultiplier,
    ) -> Result<Noising<'a>, NoiseError> {
        let noise = DiscreteGaussian::from_multiplier(multiplier, grid.bits())?;
        Ok(Noising {
            repair: self.round(grid),
            grid: *grid,
            participation: self.participation,
            words: 0,
            integers: Integers {
                low: patterns_mut(self.update),
                high: patterns_mut(self.spare),
                negated: false,
                width: pack::width(grid.bits(), Some(noise.sigma())),
            },
            noise,
            done: 0,
        })
    }
}

impl<'a> Noising<'a> {
    /// Repairs up to `most` entries, at least one, and draws their noise.
    pub fn advance(&mut self, most: usize) -> Progress {
        let Self {
            integers,
            repair,
            grid,
            noise,
            participation,
            words,
            done,
        } = self;
        let end = done.saturating_add(most.max(1)).min(integers.len());
        let low = integers.low.get_mut(*done..end).unwrap_or_default();
        let high = integers.high.get_mut(*done..end).unwrap_or_default();
        quantise(*repair, grid, false, low, high);
        let streams = &participation.streams();
        draw_noise(streams, Purpose::DeviceNoise, words, noise, low, high);
        *done = end;
        match end < integers.len() {
            true => Progress::More,
            false => Progress::Done,
        }
    }

    /// Processes the remaining entries, and returns the update with its noise.
    pub fn finish(mut self) -> Noised<'a> {
        while self.advance(usize::MAX) == Progress::More {}
        Noised(self.integers)
    }
}

impl core::fmt::Debug for Noising<'_> {
    /// Shape only.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Noising({} of {:?})", self.done, self.integers)
    }
}
