//! A composition as a bound on its profile: δ of an ε, and ε of a δ.

/// The side of the truth on which a composition lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Upper,
    Lower,
}

/// δ at the losses first + k·spacing: a bound on the true profile of a composition.
#[derive(Debug, Clone)]
pub(super) struct Composed {
    pub bound: Bound,
    pub first: f64,
    pub spacing: f64,
    pub deltas: Vec<f64>,
    /// δ beyond the last point.
    pub rest: f64,
}

impl Composed {
    /// Returns the bound on δ(ε).
    pub fn delta(&self, epsilon: f64) -> f64 {
        let place = (epsilon - self.first) / self.spacing;
        if place < 0.0 {
            return match self.bound {
                Bound::Upper => 1.0,
                Bound::Lower => self.deltas.first().copied().unwrap_or(0.0),
            };
        }
        let index = place as usize;
        let (Some(&here), Some(&next)) = (self.deltas.get(index), self.deltas.get(index + 1))
        else {
            return self.rest;
        };
        // Between lattice points δ is linear in e^ε.
        let share = ((place - index as f64) * self.spacing).exp_m1() / self.spacing.exp_m1();
        (here + (next - here) * share.clamp(0.0, 1.0)).max(0.0)
    }

    /// Returns the ε with δ(ε) = `delta`, on the side of the bound. A lower bound is -∞ if the
    /// profile is below `delta` everywhere.
    pub fn epsilon(&self, delta: f64) -> f64 {
        if self.rest >= delta {
            return f64::INFINITY;
        }
        let Some(index) = self.deltas.iter().rposition(|&found| found > delta) else {
            return match self.bound {
                Bound::Upper => self.first,
                Bound::Lower => f64::NEG_INFINITY,
            };
        };
        let here = self.first + index as f64 * self.spacing;
        let Some(&next) = self.deltas.get(index + 1) else {
            return match self.bound {
                Bound::Upper => here + self.spacing,
                Bound::Lower => here,
            };
        };
        let share = (self.deltas[index] - delta) / (self.deltas[index] - next);
        let share = share.clamp(0.0, 1.0);
        here + (share * self.spacing.exp_m1()).ln_1p()
    }
}
