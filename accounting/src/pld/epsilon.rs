//! A bracket of ε: the lower and the upper bound of the true ε, its width, and the intersection of
//! two brackets.

/// A bracket of the true ε.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PldEpsilon {
    /// An upper bound on the true ε.
    pub epsilon: f64,
    /// A lower bound on the true ε.
    pub epsilon_low: f64,
}

impl PldEpsilon {
    pub(super) fn width(&self) -> f64 {
        self.epsilon - self.epsilon_low
    }

    /// Returns the intersection of both brackets.
    pub(super) fn and(self, other: &Self) -> Self {
        let epsilon = self.epsilon.min(other.epsilon);
        Self {
            epsilon,
            epsilon_low: self.epsilon_low.max(other.epsilon_low).min(epsilon),
        }
    }
}
