//! The features of a window in `f32` (mean, deviation, extremes, energy, zero crossings, bands of
//! frequencies), from samples of any suitable type.

use super::error::WindowError;
use super::recipe::{Feature, Measure, Recipe};
use super::spectrum;
use crate::lanes;
use crate::math;

impl Recipe {
    /// Writes the features of a window. `sample(channel, step)` returns its samples, from an array
    /// in any order or from a ring buffer. Samples of `i16` are exact in `f32`.
    ///
    /// * Shape: `features` has [`feature_count`](Self::feature_count) values for each channel, so
    ///   its length defines the number of channels. `work` has at least
    ///   [`work_count`](Self::work_count) values, and is overwritten.
    /// * Units: mean, deviation, minimum, maximum and amplitudes have the samples' unit, energies
    ///   its square. Zero crossings are a share of the samples.
    /// * Cost: O(n log n) for each channel. Sums have the order of [`lanes`], and [`window`](super)
    ///   defines the transform. The bits are the same on every target.
    ///
    /// # Errors
    /// [`WindowError`]. `features` must then not be used.
    pub fn features_into(
        &self,
        sample: impl Fn(usize, usize) -> f32,
        work: &mut [f32],
        features: &mut [f32],
    ) -> Result<(), WindowError> {
        let work = self.checked_work(work, features.len())?;
        let channels = features.chunks_mut(self.feature_count().max(1));
        for (channel, features) in channels.enumerate() {
            let samples = work.iter_mut().take(self.length()).enumerate();
            samples.for_each(|(step, x)| *x = sample(channel, step));
            self.of_channel(work, features)?;
        }
        Ok(())
    }

    /// Returns the needed part of the working memory, if all sizes fit.
    pub(super) fn checked_work<'a, T>(
        &self,
        work: &'a mut [T],
        features: usize,
    ) -> Result<&'a mut [T], WindowError> {
        let each = self.feature_count().max(1);
        if !features.is_multiple_of(each) {
            let found = features;
            return Err(WindowError::Features { each, found });
        }
        let (expected, found) = (self.work_count(), work.len());
        let work = work.get_mut(..expected);
        work.ok_or(WindowError::Work { expected, found })
    }

    /// Computes the features of the samples at the start of `work`.
    fn of_channel(&self, work: &mut [f32], features: &mut [f32]) -> Result<(), WindowError> {
        let samples = work.get_mut(..self.length()).unwrap_or_default();
        // At most 2¹⁰, and exact.
        let length = self.length() as f32;
        let mean = lanes::sum(samples) / length;
        let [minimum, maximum] = extremes(samples);
        let energy = match self.has(Feature::Energy) {
            true => lanes::squared_norm(samples) / length,
            false => 0.0,
        };
        samples.iter_mut().for_each(|x| *x -= mean);
        let deviation = match self.has(Feature::Deviation) {
            true => math::sqrt(lanes::squared_norm(samples) / length),
            false => 0.0,
        };
        let crossings = crossings(samples) as f32 / length;
        let values = [mean, deviation, minimum, maximum, energy, crossings];
        let chosen = Feature::ALL.into_iter().zip(values);
        let chosen = chosen.filter(|(feature, _)| self.has(*feature));
        let (first, bands) = features
            .split_at_mut_checked(self.features().count())
            .unwrap_or_default();
        first
            .iter_mut()
            .zip(chosen)
            .for_each(|(x, (_, value))| *x = value);
        self.bands_of_channel(work, bands);
        let is_finite = mean.is_finite() && features.iter().all(|x| x.is_finite());
        is_finite.then_some(()).ok_or(WindowError::NotFinite)
    }

    /// Computes the bands of the deviations at the start of `work`.
    fn bands_of_channel(&self, work: &mut [f32], bands: &mut [f32]) {
        if bands.is_empty() {
            return;
        }
        work.iter_mut().skip(self.length()).for_each(|x| *x = 0.0);
        let (pairs, _) = work.as_chunks_mut();
        spectrum::transform(pairs);
        // 4n · length, at most 2²², and exact.
        let divisor = (8 * pairs.len() * self.length()) as f32;
        for (band, (start, end)) in bands.iter_mut().zip(self.bands()) {
            let mut energy = 0.0;
            for at in start..end {
                energy += spectrum::energy(pairs, usize::from(at));
            }
            energy /= divisor;
            *band = match self.measure() {
                Measure::Energy => energy,
                Measure::Amplitude => math::sqrt(energy),
            };
        }
    }
}

/// Returns the smallest and the largest sample.
fn extremes(samples: &[f32]) -> [f32; 2] {
    let first = samples.first().copied().unwrap_or_default();
    let mut extremes = [first, first];
    for x in samples {
        if *x < extremes[0] {
            extremes[0] = *x;
        }
        if *x > extremes[1] {
            extremes[1] = *x;
        }
    }
    extremes
}

/// Returns the number of sign changes of the deviations. 0 counts as positive.
fn crossings(deviations: &[f32]) -> u32 {
    let next = deviations.iter().skip(1);
    let pairs = deviations.iter().zip(next);
    pairs
        .map(|(a, b)| u32::from((*a >= 0.0) != (*b >= 0.0)))
        .sum()
}
