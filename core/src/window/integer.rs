//! The features of a window in integers, from samples of 16 bits: for processors without a
//! floating-point unit, and for raw sensor counts.
//!
//! Features are whole numbers: mean, deviation, minimum, maximum and amplitudes in counts, energies
//! in squares of counts, zero crossings as their number. Each is the rounded result of the formula,
//! except for the bands, which the transform makes inexact: the amplitude of a band differs from
//! the formula by at most half a count and 2⁻¹¹ of the window's largest deviation from its mean.
//! This bound is tested (`the_error_of_amplitudes_is_bounded`) but not proved: among 62,000 bands
//! of noise, waves and steps, none exceeded 2⁻¹². The roots of energies have the same error.

use super::block;
use super::error::WindowError;
use super::recipe::{Feature, Measure, Recipe};

/// Fraction bits of an energy before its root is taken.
const FRACTION: i32 = 16;

impl Recipe {
    /// Writes the features of a window of counts. `sample(channel, step)` returns its samples.
    ///
    /// * Shape: as [`features_into`](Self::features_into).
    /// * Units: counts, squares of counts, and a number of crossings.
    /// * Cost: O(n log n) for each channel in 16 and 32 bits, and 64 bits for sums of squares and
    ///   one division for each energy. No floating point.
    ///
    /// # Errors
    /// [`WindowError::Work`] and [`WindowError::Features`]. Nothing is then written.
    pub fn counts_into(
        &self,
        sample: impl Fn(usize, usize) -> i16,
        work: &mut [i16],
        features: &mut [i32],
    ) -> Result<(), WindowError> {
        let work = self.checked_work(work, features.len())?;
        let channels = features.chunks_mut(self.feature_count().max(1));
        for (channel, features) in channels.enumerate() {
            let samples = work.iter_mut().take(self.length()).enumerate();
            samples.for_each(|(step, x)| *x = sample(channel, step));
            self.counts_of_channel(work, features);
        }
        Ok(())
    }

    /// Computes the features of the counts at the start of `work`.
    fn counts_of_channel(&self, work: &mut [i16], features: &mut [i32]) {
        let samples = work.get_mut(..self.length()).unwrap_or_default();
        // At most 2¹⁰ counts of 16 bits: their sum has 26 bits, the sum of their squares 40.
        let length = self.length() as i32;
        let sum: i32 = samples.iter().map(|x| i32::from(*x)).sum();
        let squares: u64 = samples.iter().map(|x| square(i32::from(*x))).sum();
        let count = self.length() as u64;
        let deviation = match self.has(Feature::Deviation) {
            // length · Σx² − (Σx)², which is not negative (Cauchy and Schwarz), in 50 bits.
            true => root(
                (count * squares).saturating_sub(square(sum)),
                count * count,
                0,
            ),
            false => 0,
        };
        let energy = match self.has(Feature::Energy) {
            true => whole(ratio(squares, count, FRACTION)),
            false => 0,
        };
        let values = [
            (2 * sum + length).div_euclid((2 * length).max(1)),
            deviation,
            samples.iter().min().map_or(0, |x| i32::from(*x)),
            samples.iter().max().map_or(0, |x| i32::from(*x)),
            energy,
            crossings(samples, length, sum),
        ];
        let chosen = Feature::ALL.into_iter().zip(values);
        let chosen = chosen.filter(|(feature, _)| self.has(*feature));
        let (first, bands) = features
            .split_at_mut_checked(self.features().count())
            .unwrap_or_default();
        first
            .iter_mut()
            .zip(chosen)
            .for_each(|(x, (_, value))| *x = value);
        if !bands.is_empty() {
            self.bands_of_counts(work, sum, bands);
        }
    }

    /// Computes the bands of the counts at the start of `work`.
    fn bands_of_counts(&self, work: &mut [i16], sum: i32, bands: &mut [i32]) {
        let (samples, rest) = work.split_at_mut_checked(self.length()).unwrap_or_default();
        let loaded = block::load(samples, sum);
        rest.fill(0);
        let (pairs, _) = work.as_chunks_mut();
        let exponent = 2 * (loaded + block::transform(pairs));
        // n · length for the energy, and length² as deviations are multiplied by it: 40 bits.
        let length = self.length() as u64;
        let divisor = 2 * pairs.len() as u64 * length * length * length;
        for (band, (start, end)) in bands.iter_mut().zip(self.bands()) {
            // At most 2⁹ frequencies of 38 bits.
            let of_frequency = |at| block::energy(pairs, usize::from(at));
            let energy: u64 = (start..end).map(of_frequency).sum();
            // The computed energies are four times the energies of the frequencies.
            *band = match self.measure() {
                Measure::Energy => whole(ratio(energy, divisor, exponent - 2 + FRACTION)),
                Measure::Amplitude => root(energy, divisor, exponent - 2),
            };
        }
    }
}

/// Returns x² for a number of up to 26 bits.
fn square(x: i32) -> u64 {
    let x = u64::from(x.unsigned_abs());
    x * x
}

/// Returns the number of sign changes of x − sum / length. 0 counts as positive.
fn crossings(samples: &[i16], length: i32, sum: i32) -> i32 {
    let is_positive = |x: &i16| i32::from(*x) * length >= sum;
    let pairs = samples.iter().zip(samples.iter().skip(1));
    pairs
        .map(|(a, b)| i32::from(is_positive(a) != is_positive(b)))
        .sum()
}

/// Returns numerator · 2^exponent / divisor, rounded and saturated. `divisor` has at most 40 bits,
/// so the quotient has at least 23 bits before it is shifted.
fn ratio(numerator: u64, divisor: u64, exponent: i32) -> u64 {
    if numerator == 0 {
        return 0;
    }
    let spare = numerator.leading_zeros();
    let quotient = (numerator << spare) / divisor.max(1);
    let shift = exponent - spare as i32;
    let bits = shift.unsigned_abs();
    if shift >= 0 {
        match quotient.leading_zeros() >= bits {
            true => quotient.checked_shl(bits).unwrap_or(u64::MAX),
            false => u64::MAX,
        }
    } else {
        // Shifts one bit less, and then halves with rounding.
        quotient.checked_shr(bits - 1).unwrap_or(0).div_ceil(2)
    }
}

/// Returns the root of numerator · 2^exponent / divisor, rounded.
fn root(numerator: u64, divisor: u64, exponent: i32) -> i32 {
    let root = ratio(numerator, divisor, exponent + FRACTION).isqrt();
    // Half of the fraction bits remain.
    let half = FRACTION / 2;
    saturated((root + (1 << (half - 1))) >> half)
}

/// Rounds a number with a fraction.
fn whole(x: u64) -> i32 {
    saturated(x.saturating_add(1 << (FRACTION - 1)) >> FRACTION)
}

fn saturated(x: u64) -> i32 {
    i32::try_from(x).unwrap_or(i32::MAX)
}
