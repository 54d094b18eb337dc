//! Thinning of long curves for a screen, to a maximum number of points.

/// Maximum points of a curve: more than a screen has columns.
pub(super) const MAX_POINTS: usize = 1000;

/// Thins points to as many as a screen can show. Always keeps the last one.
pub(super) fn thinned<T: Clone>(points: &[T]) -> Vec<T> {
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let reversed = points.iter().rev().step_by(step).cloned();
    let mut points: Vec<T> = reversed.collect();
    points.reverse();
    points
}
