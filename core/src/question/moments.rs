//! Moments: means of features and of their squares, for deviations, and the factors of both parts
//! of an answer.

use super::terms::{Features, Sample, divide};
use crate::math::sqrt;

/// Factors of the parts of the vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MomentScales {
    /// Factor of the means of x and of 2x² − 1: √((1 − q) / 2d) for d features.
    pub moment: f32,
    /// Factor of the 1 that counts devices: √q.
    pub count: f32,
}

impl MomentScales {
    /// Computes the factors for d features. q = 1 / (1 + √(2d)) minimises the error of a unit
    /// ratio.
    #[must_use]
    pub fn new(features: u16) -> Self {
        let entries = 2.0 * f32::from(features);
        let q = 1.0 / (1.0 + sqrt(entries));
        Self {
            moment: sqrt((1.0 - q) / entries),
            count: sqrt(q),
        }
    }
}

pub(super) const fn length(features: &Features) -> usize {
    2 * features.count() as usize + 1
}

pub(super) fn add<F>(features: &Features, sample: &Sample<F>, vector: &mut [f32])
where
    F: Fn(usize) -> f32,
{
    let (lower, upper) = features.bounds();
    let first = usize::from(features.first());
    let places = vector.chunks_exact_mut(2).zip(first..);
    for (pair, feature) in places.take(features.count().into()) {
        let value = (sample.features)(feature);
        // NaN counts as the lower bound.
        let value = if value > lower {
            value.min(upper)
        } else {
            lower
        };
        let x = (2.0 * ((value - lower) / (upper - lower)) - 1.0).clamp(-1.0, 1.0);
        if let [mean, square] = pair {
            *mean += x;
            *square += 2.0 * x * x - 1.0;
        }
    }
}

pub(super) fn finish(features: &Features, samples: f32, vector: &mut [f32]) {
    let MomentScales { moment, count } = MomentScales::new(features.count());
    divide(vector, samples);
    for x in vector.iter_mut() {
        *x = x.clamp(-1.0, 1.0) * moment;
    }
    if let Some(last) = vector.last_mut() {
        *last = count;
    }
}
