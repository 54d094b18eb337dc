//! Long curves, thinned for a screen.

/// Points of a curve that are sent at most: more than a screen has columns.
pub(super) const MAX_POINTS: usize = 1000;

/// As many points as a screen can show. The last one is always there.
pub(super) fn thinned<T: Clone>(points: &[T]) -> Vec<T> {
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let reversed = points.iter().rev().step_by(step).cloned();
    let mut points: Vec<T> = reversed.collect();
    points.reverse();
    points
}
