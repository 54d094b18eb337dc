//! Estimate of the question `count`: the number of devices that answer.

use super::answer::Estimate;
use super::ratio::Sums;

pub(super) fn estimates(sums: &Sums<'_>, deviates: f64) -> (Estimate, Vec<Estimate>) {
    let answered = answered(&[(0, 1.0)], sums, deviates);
    let estimate = Estimate {
        name: "devices".to_owned(),
        ..answered.clone()
    };
    (answered, vec![estimate])
}

/// Returns the number of devices that answered, from entries that count them.
pub(super) fn answered(entries: &[(usize, f64)], sums: &Sums<'_>, deviates: f64) -> Estimate {
    Estimate::of("answered", sums.sum(entries, deviates), |x| x)
}

/// Returns it from `entries` entries, each of which counts a share of the devices.
pub(super) fn answered_by(entries: usize, sums: &Sums<'_>, deviates: f64) -> Estimate {
    let entries: Vec<(usize, f64)> = (0..entries).map(|entry| (entry, 1.0)).collect();
    answered(&entries, sums, deviates)
}
