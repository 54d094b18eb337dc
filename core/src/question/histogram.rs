//! Histogram: shares of samples by bin.

use super::terms::{Bins, Sample, count_in};

pub(super) fn add<F>(bins: &Bins, sample: &Sample<F>, vector: &mut [f32])
where
    F: Fn(usize) -> f32,
{
    count_in(vector, bins.bin(sample));
}
