//! Exponential tilting, and the limits of a window: what the sketch that lays out a composition and
//! the composition itself agree on.

/// The longest transform.
pub(super) const MAX_POINTS: usize = 1 << 21;
/// ln of the tilted mass on each side of the window.
pub(super) const LN_OUTSIDE: f64 = -20.0;

/// Three parameters of exponential tilting: where the weight is put, and those with which
/// Chernoff's bound is taken above and below.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tilt {
    pub at: f64,
    pub above: f64,
    pub below: f64,
}
