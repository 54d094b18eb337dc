//! Estimates of the question `presence`: the share of devices that have samples in each bin.

use smolfed_core::question::{Bins, Dimensions, PresenceScales};

use super::answer::Estimate;
use super::count::answered;
use super::ratio::{Ratio, Sums};
use super::shares::names;

/// Returns the share of devices with samples in each bin.
pub(super) fn estimates(
    bins: &Bins,
    of: &Dimensions,
    sums: &Sums<'_>,
    deviates: f64,
) -> (Estimate, Vec<Estimate>) {
    let count = bins.count(of);
    let scales = PresenceScales::new(count);
    let [bit, one] = [scales.bit, scales.count].map(|scale| 1.0 / f64::from(scale));
    let of_devices = (count, one);
    let share = |(bin, name): (usize, String)| {
        let ratio = Ratio {
            numerator: vec![(bin, bit)],
            denominator: vec![of_devices],
            lowest: 0.0,
            highest: 1.0,
        };
        Estimate::of(name, ratio.of(sums, deviates), |x| x)
    };
    let names = names(bins, of).into_iter().enumerate();
    (
        answered(&[of_devices], sums, deviates),
        names.map(share).collect(),
    )
}
