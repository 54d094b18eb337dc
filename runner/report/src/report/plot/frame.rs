//! Layout: the rectangle of a plot, between its two axes.

use super::axis::Axis;

/// Size in drawing units. The drawing scales to the available width.
pub(super) const WIDTH: f64 = 480.0;
pub(super) const HEIGHT: f64 = 268.0;
/// Room for the name of the vertical axis, and for ticks and name of the horizontal one.
pub(super) const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;

/// The axes and the rectangle between them.
pub(super) struct Frame {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) left: f64,
    pub(super) right: f64,
}

impl Frame {
    pub(super) const BASE: f64 = HEIGHT - BOTTOM;

    pub(super) fn x(&self, part: f64) -> f64 {
        self.left + part * (self.right - self.left)
    }

    pub(super) fn y(part: f64) -> f64 {
        Self::BASE - part * (Self::BASE - TOP)
    }

    /// Returns the position of a point, if it has one.
    pub(super) fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.x(self.x.place(x)?), Self::y(self.y.place(y)?)))
    }
}
