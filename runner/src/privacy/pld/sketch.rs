//! A quick picture of a composition: where the loss that δ is about lies, and how fine a lattice
//! must be. Nothing here is a bound; it only chooses numbers with which the bounds are sharp.

use super::compose::{LN_OUTSIDE, MOST_POINTS};
use super::pair::Pair;

/// Tilts are searched between e^-SPAN and e^SPAN.
const SPAN: f64 = 22.0;
/// Steps of a golden section of that range, to a millionth of it.
const SECTIONS: u32 = 28;
/// Chernoff's tilts differ by at most this over the spacing.
const STEEPEST: f64 = 30.0;

/// Three parameters of exponential tilting: where the weight is put, and those with which
/// Chernoff's bound is taken above and below.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tilt {
    pub at: f64,
    pub above: f64,
    pub below: f64,
}

/// Losses and masses of the rounds, each kind with its number.
pub(super) struct Sketch {
    kinds: Vec<(Vec<(f64, f64)>, f64)>,
}

/// What the sketch says about the composition at one δ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub tilt: Tilt,
    pub spacing: f64,
}

impl Sketch {
    pub fn new(pairs: &[(Pair, u64)], below: f64, above: f64) -> Self {
        let kinds = pairs
            .iter()
            .map(|(pair, count)| {
                let mut points = pair.sketch(below, above);
                points.retain(|(_, mass)| *mass > 0.0);
                (points, *count as f64)
            })
            .collect();
        Self { kinds }
    }

    /// ΣK(λ).
    fn cumulant(&self, tilt: f64) -> f64 {
        self.sum(|points| {
            let largest = largest(points, tilt);
            let sum: f64 = points
                .iter()
                .map(|(loss, mass)| mass * (tilt * loss - largest).exp())
                .sum();
            largest + sum.ln()
        })
    }

    fn sum(&self, of: impl Fn(&[(f64, f64)]) -> f64) -> f64 {
        self.kinds
            .iter()
            .map(|(points, count)| count * of(points))
            .sum()
    }

    /// ε at `delta` by the improved conversion at order λ + 1.
    fn epsilon(&self, tilt: f64, ln_delta: f64) -> f64 {
        self.cumulant(tilt) / tilt + (-1.0 / (1.0 + tilt)).ln_1p()
            - (ln_delta + tilt.ln_1p()) / tilt
    }

    /// The tilt that puts the weight where δ(ε) = `delta`.
    pub fn tail_tilt(&self, delta: f64) -> f64 {
        let ln_delta = delta.ln();
        least(|tilt| self.epsilon(tilt, ln_delta)).0
    }

    /// The window about the losses that tilt `at` puts the weight on, with a spacing for a bracket
    /// of ε of about `precision`, relative, but not above `widest`.
    pub fn layout(&self, at: f64, delta: f64, precision: f64, widest: f64) -> Layout {
        let (_, high, _, low) = self.ends(at);
        let epsilon = if at > 0.0 {
            self.epsilon(at, delta.ln())
        } else {
            high
        };
        // An ε of nearly nothing is known well enough to a share of the window.
        let error = precision * epsilon.max(0.02 * (high - low));
        let least = 1.2 * (high - low) / MOST_POINTS as f64;
        let spacing = self.spacing(at, error).min(widest).max(least);
        // The lattice is wider than what it stands for.
        let (above, _, below, _) = self.on_lattice(spacing).ends(at);
        // Where a side has no mass worth the name, the search runs off to infinity.
        let most = STEEPEST / spacing;
        let tilt = Tilt {
            at,
            above: above.min(at + most),
            below: below.max(at - most),
        };
        Layout { tilt, spacing }
    }

    /// Chernoff's tilt and bound above, and below.
    fn ends(&self, at: f64) -> (f64, f64, f64, f64) {
        let cumulant = self.cumulant(at);
        let (extra, high) =
            least(|extra| (self.cumulant(at + extra) - cumulant - LN_OUTSIDE) / extra);
        let (less, minus_low) =
            least(|less| (self.cumulant(at - less) - cumulant - LN_OUTSIDE) / less);
        (at + extra, high, at - less, -minus_low)
    }

    /// Each loss split on the lattice points around it.
    fn on_lattice(&self, spacing: f64) -> Self {
        let split = |&(loss, mass): &(f64, f64)| {
            let low = (loss / spacing).floor() * spacing;
            let raised = ((low - loss).exp_m1() / (-spacing).exp_m1()).clamp(0.0, 1.0);
            [(low, mass * (1.0 - raised)), (low + spacing, mass * raised)]
        };
        let kinds = self
            .kinds
            .iter()
            .map(|(points, count)| {
                let mut points: Vec<(f64, f64)> = points.iter().flat_map(split).collect();
                points.retain(|(_, mass)| *mass > 0.0);
                (points, *count)
            })
            .collect();
        Self { kinds }
    }

    /// The spacing h at which rounding up and down puts ε about `error` apart.
    ///
    /// Splitting a loss at a share θ between two lattice points adds a variance of h²θ(1 - θ) to
    /// it, on average h²/6, and less for losses closer to 0 than h. It raises K(λ) by λ(λ + 1)/2
    /// times that, so ε by (λ + 1)/2; merging lowers it by half as much.
    fn spacing(&self, tilt: f64, error: f64) -> f64 {
        let weighted: Vec<(f64, f64)> = self
            .kinds
            .iter()
            .flat_map(|(points, count)| tilted(points, tilt, *count))
            .collect();
        let spread = |spacing: f64| {
            let variance: f64 = weighted
                .iter()
                .map(|(loss, weight)| weight * spacing * (spacing / 6.0).min(loss.abs()))
                .sum();
            0.75 * (tilt + 1.0) * variance
        };
        let mut spacing = 1.0;
        for _ in 0..64 {
            // The spread grows with h, and at most with its square.
            let ratio = (error / spread(spacing)).sqrt();
            spacing *= ratio.clamp(1e-6, 1e6);
            if (ratio - 1.0).abs() < 1e-9 {
                break;
            }
        }
        spacing
    }
}

/// Sizes of the losses, and `count` times their tilted masses, which sum to `count`.
fn tilted(points: &[(f64, f64)], tilt: f64, count: f64) -> Vec<(f64, f64)> {
    let largest = largest(points, tilt);
    let weight = |(loss, mass): &(f64, f64)| mass * (tilt * loss - largest).exp();
    let sum: f64 = points.iter().map(weight).sum();
    points
        .iter()
        .map(|point| (point.0, count * weight(point) / sum))
        .collect()
}

fn largest(points: &[(f64, f64)], tilt: f64) -> f64 {
    points
        .iter()
        .map(|(loss, _)| tilt * loss)
        .fold(f64::NEG_INFINITY, f64::max)
}

/// Where on (0, ∞) a quasi-convex function is least, and its value.
fn least(of: impl Fn(f64) -> f64) -> (f64, f64) {
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let value = |ln: f64| {
        let found = of(ln.exp());
        if found.is_nan() { f64::INFINITY } else { found }
    };
    let (mut low, mut high) = (-SPAN, SPAN);
    let mut left = high - golden * (high - low);
    let mut right = low + golden * (high - low);
    let (mut at_left, mut at_right) = (value(left), value(right));
    for _ in 0..SECTIONS {
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - golden * (high - low);
            at_left = value(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + golden * (high - low);
            at_right = value(right);
        }
    }
    let best = 0.5 * (low + high);
    (best.exp(), value(best))
}
