//! Presence: the number of devices with samples in a bin, and the factors of the parts of an
//! answer.

use super::terms::{Bins, Dimensions, Sample, count_in};
use crate::math::sqrt;

/// Factors of the parts of the vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PresenceScales {
    /// Factor of a bit: √((1 − q) / B) for B bins.
    pub bit: f32,
    /// Factor of the 1 that counts devices: √q.
    pub count: f32,
}

impl PresenceScales {
    /// Computes the factors for B bins. q = 1 / (1 + √B) minimises the error of a unit share.
    #[must_use]
    pub fn new(bins: usize) -> Self {
        let bins = bins as f32;
        let q = 1.0 / (1.0 + sqrt(bins));
        Self {
            bit: sqrt((1.0 - q) / bins),
            count: sqrt(q),
        }
    }
}

pub(super) const fn length(bins: &Bins, of: &Dimensions) -> usize {
    bins.count(of).saturating_add(1)
}

pub(super) fn add<F>(bins: &Bins, sample: &Sample<F>, vector: &mut [f32])
where
    F: Fn(usize) -> f32,
{
    count_in(vector, bins.bin(sample));
}

pub(super) fn finish(bins: &Bins, of: &Dimensions, vector: &mut [f32]) {
    let PresenceScales { bit, count } = PresenceScales::new(bins.count(of));
    for x in vector.iter_mut() {
        *x = if *x > 0.0 { bit } else { 0.0 };
    }
    if let Some(last) = vector.last_mut() {
        *last = count;
    }
}
