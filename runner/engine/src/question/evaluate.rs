//! Estimates of the question `evaluate` about a model on devices: accuracy and loss for classes,
//! root mean squared error for values.

use smolfed_core::question::Dimensions;

use super::answer::Estimate;
use super::count::answered;
use super::ratio::{Ratio, Sums};

/// Returns accuracy and loss for classes. For values, returns the root of the mean squared error in
/// the unit of the targets, and the mean squared error of scaled targets.
pub(super) fn estimates(
    bound: f32,
    of: &Dimensions,
    target_unit: f64,
    sums: &Sums<'_>,
    deviates: f64,
) -> (Estimate, Vec<Estimate>) {
    let bound = f64::from(bound);
    let share = |first: usize| Ratio::share([first], [first, first + 1]).of(sums, deviates);
    if of.classes == 0 {
        let root = |x: f64| (bound * x).sqrt() * target_unit;
        return (
            answered(&[(0, 1.0), (1, 1.0)], sums, deviates),
            vec![
                Estimate::of("rmse", share(0), root),
                Estimate::of("squared error", share(0), |x| bound * x),
            ],
        );
    }
    // Two parts of weight one half. Each adds up to √½ per device.
    let each = std::f64::consts::SQRT_2 / 2.0;
    let all: Vec<(usize, f64)> = (0..4).map(|entry| (entry, each)).collect();
    // In units in which the denominator counts devices.
    let scaled = |first: usize| {
        let unit = std::f64::consts::SQRT_2;
        Ratio {
            numerator: vec![(first, unit)],
            denominator: vec![(first, unit), (first + 1, unit)],
            lowest: 0.0,
            highest: 1.0,
        }
        .of(sums, deviates)
    };
    (
        answered(&all, sums, deviates),
        vec![
            Estimate::of("accuracy", scaled(0), |x| x),
            Estimate::of("loss", scaled(2), |x| bound * x),
        ],
    )
}
