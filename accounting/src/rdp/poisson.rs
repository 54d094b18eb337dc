//! Rényi divergence of rounds with Poisson sampling, add-remove, at integer and fractional orders.
//!
//! With q = sampling_rate, z = noise std over L and the likelihood ratio
//! `f(x) = 1 - q + q·exp((2x - 1) / (2z²))` of (1-q)·N(0,z²) + q·N(1,z²) against N(0,z²):
//! `ρ(α) = 1/(α-1) · ln E[f(x)^α]`, x ~ N(0, z²). The opposite direction of add-remove is never
//! larger. Source: Mironov, Talwar, Zhang 2019 (arXiv:1908.10530), Theorems 4 and 5, Section 3.3.
//!
//! Integer orders are a finite sum of positive terms. For fractional orders the known alternating
//! series loses digits (and its absolute version overstates ρ up to 11-fold), so the expectation is
//! integrated instead. Since E[f] = 1, `E[f^α] - 1 = E[f^α - 1 - α(f - 1)]`, whose integrand is
//! never negative: nothing cancels, for any small ρ. The integrand is analytic in a strip around
//! the real line (its nearest branch point is at imaginary part πz²), so the plain trapezoidal rule
//! converges geometrically: the step below leaves an error of about e^-39.

use std::cell::OnceCell;
use std::f64::consts::PI;
use std::sync::LazyLock;

use super::gaussian::gaussian_rdp;
use crate::log_space::{ln_1p_exp, ln_expm1, ln_factorials, ln_sum_exp};

/// Integer orders are summed up to here.
const MAX_ORDER: usize = 512;
/// The integral is cut at this many noise stds, where the Gaussian weight is below e^-50.
const CUT: f64 = 10.0;
/// Trapezoidal step in units of z and of z², whichever is smaller.
const STEP: f64 = 0.5;
/// Maximum number of points of the integral: if too little noise needs more, no claim is made at
/// fractional orders.
const MAX_NODES: f64 = (1 << 22) as f64;
/// Above this the exponentials of the integrand are kept as logarithms.
const LARGE_EXPONENT: f64 = 500.0;

static LN_FACTORIALS: LazyLock<Vec<f64>> = LazyLock::new(|| ln_factorials(MAX_ORDER));

/// One point of the integral.
#[derive(Debug, Clone, Copy)]
struct Node {
    x: f64,
    /// ln of step · N(x; 0, z²).
    ln_weight: f64,
    /// u = f(x) - 1, which may overflow to infinity.
    excess: f64,
    /// ln f(x).
    ln_ratio: f64,
}

/// The Rényi divergence of one Poisson-sampled Gaussian round, for many orders.
#[derive(Debug, Clone)]
pub struct PoissonRdp {
    sampling_rate: f64,
    noise_multiplier: f64,
    max_fractional_order: f64,
    /// Initialised at the first fractional order.
    nodes: OnceCell<Vec<Node>>,
}

/// Returns the exact Rényi divergence of one round, in nats, relative error below 1e-12.
///
/// * `sampling_rate`: q in (0, 1].
/// * `noise_multiplier`: z, noise std over L.
/// * `order`: above 1. Infinite (no claim) for integers above 512, and for fractional orders with a
///   noise multiplier of about a hundredth and less.
#[must_use]
pub fn poisson_rdp(sampling_rate: f64, noise_multiplier: f64, order: f64) -> f64 {
    PoissonRdp::new(sampling_rate, noise_multiplier, order).at(order)
}

impl PoissonRdp {
    /// Prepares the curve for integer orders up to 512 and fractional ones up to
    /// `max_fractional_order`. See [`poisson_rdp`] for the other arguments.
    #[must_use]
    pub fn new(sampling_rate: f64, noise_multiplier: f64, max_fractional_order: f64) -> Self {
        let curve = Self {
            sampling_rate,
            noise_multiplier,
            max_fractional_order,
            nodes: OnceCell::new(),
        };
        let (first, last) = curve.range();
        let is_possible = (last - first) / curve.step() <= MAX_NODES;
        Self {
            max_fractional_order: if is_possible {
                max_fractional_order
            } else {
                1.0
            },
            ..curve
        }
    }

    /// Returns the part of the real line that the integral covers.
    fn range(&self) -> (f64, f64) {
        let cut = CUT * self.noise_multiplier;
        (-cut, cut + self.max_fractional_order)
    }

    /// Returns the distance of two points of the integral.
    fn step(&self) -> f64 {
        let z = self.noise_multiplier;
        STEP * z.min(z * z)
    }

    /// Returns ρ(α). Infinite (no claim) for unprepared orders, and without noise.
    #[must_use]
    pub fn at(&self, order: f64) -> f64 {
        let is_covered = self.noise_multiplier > 0.0 && order > 1.0;
        if !is_covered {
            return f64::INFINITY;
        }
        if self.sampling_rate >= 1.0 {
            return gaussian_rdp(self.noise_multiplier, order);
        }
        let is_integer = order.fract() < f64::EPSILON;
        let ln_excess = if is_integer && order <= MAX_ORDER as f64 {
            self.ln_excess_moment_integer(order as usize)
        } else if !is_integer && order <= self.max_fractional_order {
            self.ln_excess_moment(order)
        } else {
            return f64::INFINITY;
        };
        ln_1p_exp(ln_excess) / (order - 1.0)
    }

    /// Returns ln(E[f^α] - 1) = ln Σ_{k=2..α} C(α,k) (1-q)^(α-k) q^k (exp(k(k-1)/(2z²)) - 1): the
    /// terms k = 0 and 1 of the binomial sum add up to the subtracted 1.
    fn ln_excess_moment_integer(&self, order: usize) -> f64 {
        let half_inverse_variance = 0.5 / (self.noise_multiplier * self.noise_multiplier);
        let ln_in = self.sampling_rate.ln();
        let ln_out = (-self.sampling_rate).ln_1p();
        let terms: Vec<f64> = (2..=order)
            .map(|k| {
                let ln_choose = LN_FACTORIALS[order] - LN_FACTORIALS[k] - LN_FACTORIALS[order - k];
                let taken = k as f64;
                ln_choose
                    + (order - k) as f64 * ln_out
                    + taken * ln_in
                    + ln_expm1(taken * (taken - 1.0) * half_inverse_variance)
            })
            .collect();
        ln_sum_exp(&terms)
    }

    /// Returns ln E[f^α - 1 - α(f - 1)], by the trapezoidal rule.
    fn ln_excess_moment(&self, order: f64) -> f64 {
        // f^α tilts the Gaussian weight by at most α, so the rest is negligible.
        let end = order + CUT * self.noise_multiplier;
        let terms: Vec<f64> = self
            .nodes
            .get_or_init(|| self.nodes())
            .iter()
            .take_while(|node| node.x <= end)
            .map(|node| node.ln_weight + ln_convex_gap(order, node))
            .filter(|term| !term.is_nan())
            .collect();
        ln_sum_exp(&terms)
    }

    fn nodes(&self) -> Vec<Node> {
        let z = self.noise_multiplier;
        let step = self.step();
        let (first, last) = self.range();
        let count = ((last - first) / step).ceil() as usize;
        let ln_norm = (step / (z * (2.0 * PI).sqrt())).ln();
        let ln_in = self.sampling_rate.ln();
        (0..=count)
            .map(|index| {
                let x = first + step * index as f64;
                let scaled = x / z;
                let tilt = (2.0 * x - 1.0) / (2.0 * z * z);
                let excess = self.sampling_rate * tilt.exp_m1();
                let ln_ratio = if tilt < LARGE_EXPONENT {
                    excess.ln_1p()
                } else {
                    ln_in + tilt
                };
                Node {
                    x,
                    ln_weight: ln_norm - 0.5 * scaled * scaled,
                    excess,
                    ln_ratio,
                }
            })
            .collect()
    }
}

/// Returns ln(f^α - 1 - α(f - 1)) for f = 1 + u ≥ 0: the gap between the convex f^α and its tangent
/// at 1.
fn ln_convex_gap(order: f64, node: &Node) -> f64 {
    let u = node.excess;
    if (order * u).abs() < 0.05 {
        // Σ_{k≥2} C(α,k) u^k: after u², each term is below a twentieth of the previous one.
        let mut coefficient = order * (order - 1.0) / 2.0;
        let mut sum = coefficient;
        let mut power = 1.0;
        for k in 3..14 {
            coefficient *= (order - f64::from(k) + 1.0) / f64::from(k);
            power *= u;
            sum += coefficient * power;
        }
        return 2.0 * u.abs().ln() + sum.ln();
    }
    let exponent = order * node.ln_ratio;
    if exponent > LARGE_EXPONENT {
        // The tangent is at most α·f, and equals it in every digit, as f is huge.
        let ln_gap_ratio = (order - 1.0) * node.ln_ratio - order.ln();
        return exponent + (-(-ln_gap_ratio).exp()).ln_1p();
    }
    (exponent.exp_m1() - order * u).ln()
}
