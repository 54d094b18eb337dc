//! Estimates of the question `moments`: means and standard deviations of features over samples.

use smolfed_core::question::{Features, MomentScales};

use super::answer::Estimate;
use super::count::answered;
use super::ratio::{Interval, Ratio, Sums};

/// Returns the mean and the deviation of each feature over samples, with equal weights of devices.
///
/// The interval of a deviation spans the smallest and the largest one for any mean and any mean
/// square in their own intervals. These are `deviates[1]` standard deviations wide to either side,
/// so both together hold with the confidence of one.
pub(super) fn estimates(
    features: &Features,
    sums: &Sums<'_>,
    deviates: [f64; 2],
) -> (Estimate, Vec<Estimate>) {
    let scales = MomentScales::new(features.count());
    let [moment, count] = [scales.moment, scales.count].map(|scale| 1.0 / f64::from(scale));
    let last = 2 * usize::from(features.count());
    let of_devices = (last, count);
    let (lower, upper) = features.bounds();
    let half = (f64::from(upper) - f64::from(lower)) / 2.0;
    let middle = f64::from(lower) + half;
    let ratio = |entry: usize| Ratio {
        numerator: vec![(entry, moment)],
        denominator: vec![of_devices],
        lowest: -1.0,
        highest: 1.0,
    };
    let each = (0..usize::from(features.count())).flat_map(|index| {
        let feature = usize::from(features.first()) + index;
        let [of_mean, of_square] = [2 * index, 2 * index + 1].map(ratio);
        let mean = of_mean.of(sums, deviates[0]);
        let deviation = deviation(
            of_mean.of(sums, deviates[1]),
            of_square.of(sums, deviates[1]),
        );
        [
            Estimate::of(format!("mean of feature {feature}"), mean, |x| {
                middle + half * x
            }),
            Estimate::of(format!("deviation of feature {feature}"), deviation, |x| {
                half * x
            }),
        ]
    });
    (answered(&[of_devices], sums, deviates[0]), each.collect())
}

/// Computes √(E[x²] − E[x]²) from E[x] and E[2x² − 1].
fn deviation(mean: Interval, square: Interval) -> Interval {
    let of = |mean: f64, square: f64| ((square + 1.0) / 2.0 - mean * mean).max(0.0).sqrt();
    let nearest = 0f64.clamp(mean.low, mean.high);
    let furthest = mean.low.abs().max(mean.high.abs());
    Interval {
        value: of(mean.value, square.value),
        low: of(furthest, square.low),
        high: of(nearest, square.high),
    }
}
