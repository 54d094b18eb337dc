//! The tails of a privacy loss: probabilities on one side of it, with their rounding errors.

/// The side of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Above,
    Below,
}

/// The probabilities on one side of a loss ε.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tail {
    /// The probability under P.
    pub p: f64,
    /// e^ε times the probability under Q.
    pub scaled_q: f64,
    /// A bound on the rounding errors of `p` and of `scaled_q`, together.
    pub error: f64,
}

impl Tail {
    /// Creates a tail. `a` and `b` are the arguments of the normal tails, in noise stds. A tail at
    /// u changes by at most a factor 1 + (u² + |u|)·r if u changes by a factor 1 + r, and e^ε by
    /// 1 + |ε|·r. The functions themselves are accurate to about an ulp.
    pub fn new(p: f64, scaled_q: f64, loss: f64, a: f64, b: f64) -> Self {
        let square = |u: f64| if u.is_finite() { u * u } else { 0.0 };
        let ulps = 6.0 + square(a) + square(b) + loss.abs();
        Self {
            p,
            scaled_q,
            error: 3.0 * f64::EPSILON * ulps * (p + scaled_q),
        }
    }
}

/// Returns a u with P(N(0,1) > u) ≤ mass: the tail is at most half of e^(-u²/2).
pub(super) fn quantile(mass: f64) -> f64 {
    (-2.0 * (2.0 * mass).ln()).max(0.0).sqrt()
}
