//! Estimates of the question `confusion`: the accuracy of a model, the recall and precision of each
//! class, and the share of samples in each cell.

use smolfed_core::question::Dimensions;

use super::answer::Estimate;
use super::count::answered_by;
use super::ratio::{Ratio, Sums};
use super::shares::of_entries;

/// Returns accuracy, recall and precision of each class, and the share of samples in each cell, one
/// true class after the other.
pub(super) fn estimates(
    of: &Dimensions,
    sums: &Sums<'_>,
    deviates: f64,
) -> (Estimate, Vec<Estimate>) {
    let classes = of.classes;
    let cell = |truth: usize, predicted: usize| truth * classes + predicted;
    let count = classes * classes;
    let right = (0..classes).map(|class| cell(class, class));
    let accuracy = Ratio::share(right, 0..count).of(sums, deviates);
    let of_row = |class: usize| (0..classes).map(move |other| cell(class, other));
    let of_column = |class: usize| (0..classes).map(move |other| cell(other, class));
    let recall = (0..classes).map(|class| {
        let found = Ratio::share([cell(class, class)], of_row(class)).of(sums, deviates);
        Estimate::of(format!("recall of class {class}"), found, |x| x)
    });
    let precision = (0..classes).map(|class| {
        let found = Ratio::share([cell(class, class)], of_column(class)).of(sums, deviates);
        Estimate::of(format!("precision of class {class}"), found, |x| x)
    });
    let cells = of_entries(count, sums, deviates).into_iter().enumerate();
    let cells = cells.map(|(entry, share)| {
        let (truth, predicted) = (entry / classes, entry % classes);
        let name = format!("class {truth} as class {predicted}");
        Estimate::of(name, share, |x| x)
    });
    let accuracy = Estimate::of("accuracy", accuracy, |x| x);
    let all = std::iter::once(accuracy).chain(recall).chain(precision);
    (
        answered_by(count, sums, deviates),
        all.chain(cells).collect(),
    )
}
