//! Exponential tilting, and the limits of a window, shared by the sketch that designs a composition
//! and the composition itself.

/// The longest transform.
pub(super) const MAX_POINTS: usize = 1 << 21;
/// ln of the tilted mass on each side of the window.
pub(super) const LN_OUTSIDE: f64 = -20.0;

/// Three parameters of exponential tilting: the location of the bulk, and the tilts for Chernoff's
/// bound above and below.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tilt {
    pub at: f64,
    pub above: f64,
    pub below: f64,
}
