//! Rényi divergence of rounds with Poisson sampling of devices and several devices per user,
//! add-remove.
//!
//! With X ~ Binomial(k, τ) devices of the user in a round, f(u) = E[e^(Xu/z - X²/(2z²))] is the
//! ratio of the mixture of N(X, z²) to N(0, z²), u in noise stds. Removing the user costs
//! `1/(α-1) ln E[f^α]`, adding it `1/(α-1) ln E[f^(1-α)]`, u ~ N(0, 1). The larger counts. Ganesh
//! 2024 (arXiv:2401.10294) proves that aligned updates of largest norm are the worst.
//!
//! The expectations are integrated as in `rdp/poisson.rs`. The rule converges in the same way: f is
//! a polynomial in e^(u/z) with only real, negative zeros (the polynomial of the binomial weights,
//! to which e^(-c²/(2z²)) is a multiplier sequence), so its logarithm is analytic up to an
//! imaginary part of πz.

use std::cell::OnceCell;

use crate::event::Users;
use crate::log_space::{ln_1p_exp, ln_sum_exp};

/// The integral is cut at this many noise stds.
const CUT: f64 = 10.0;
/// Step in noise stds, or in units of z if that is smaller.
const STEP: f64 = 0.5;
/// Maximum number of points. There is no claim at larger orders.
const MAX_POINTS: f64 = 20_000.0;
/// Above this the exponentials of the integrand are kept as logarithms.
const LARGE_EXPONENT: f64 = 500.0;
/// Relative error of ρ due to the weights.
const WEIGHT_ERROR: f64 = 1e-12;

/// One point of the integral.
#[derive(Debug, Clone, Copy)]
struct Node {
    u: f64,
    ln_weight: f64,
    /// f - 1.
    excess: f64,
    ln_ratio: f64,
}

/// The Rényi divergence of one round, for many orders.
#[derive(Debug, Clone)]
pub(super) struct UsersRdp {
    /// Shift in noise stds and ln of the weight of each number of devices.
    parts: Vec<(f64, f64)>,
    noise: f64,
    farthest: f64,
    nodes: OnceCell<Vec<Node>>,
}

impl UsersRdp {
    pub fn new(users: &Users, noise: f64) -> Self {
        let (first, ln_weights) = users.ln_weights();
        let total = ln_sum_exp(&ln_weights);
        let numbers = (first..).map(|number| f64::from(number) / noise);
        let parts: Vec<(f64, f64)> = numbers
            .zip(ln_weights.iter().map(|ln| ln - total))
            .collect();
        let farthest = parts.last().map_or(0.0, |part| part.0);
        Self {
            parts,
            noise,
            farthest,
            nodes: OnceCell::new(),
        }
    }

    const fn step(&self) -> f64 {
        STEP * self.noise.min(1.0)
    }

    /// Returns ρ(α). Infinite (no claim) if the integral would need too many points.
    pub fn at(&self, order: f64) -> f64 {
        // f^α tilts the Gaussian weight by at most α times the farthest shift.
        let end = CUT + order * self.farthest;
        if (end + CUT) / self.step() > MAX_POINTS {
            return f64::INFINITY;
        }
        let nodes = self.nodes.get_or_init(|| self.nodes());
        let moment = |power: f64| {
            let nodes = nodes.iter().take_while(|node| node.u <= end);
            let terms = nodes.map(|node| node.ln_weight + ln_convex_gap(power, node));
            let terms: Vec<f64> = terms.filter(|term| !term.is_nan()).collect();
            ln_sum_exp(&terms)
        };
        let ln_excess = moment(order).max(moment(1.0 - order));
        (ln_1p_exp(ln_excess) + WEIGHT_ERROR * order) / (order - 1.0)
    }

    /// Returns the points up to the largest covered order, at most 512.
    fn nodes(&self) -> Vec<Node> {
        let step = self.step();
        let end = (CUT + 512.0 * self.farthest).min(MAX_POINTS * step - CUT);
        let count = ((end + CUT) / step).ceil().max(0.0) as u32;
        let ln_norm = (step / (2.0 * std::f64::consts::PI).sqrt()).ln();
        (0..=count)
            .map(|index| {
                let u = step * f64::from(index) - CUT;
                let (excess, ln_ratio) = self.ratio(u);
                Node {
                    u,
                    ln_weight: ln_norm - 0.5 * u * u,
                    excess,
                    ln_ratio,
                }
            })
            .collect()
    }

    /// Returns f - 1 and ln f.
    fn ratio(&self, u: f64) -> (f64, f64) {
        let exponents = self.parts.iter().map(|(mu, ln)| (mu * (u - 0.5 * mu), *ln));
        let largest = exponents.clone().map(|(e, _)| e).fold(0.0, f64::max);
        if largest < 1.0 {
            let excess: f64 = exponents.map(|(e, ln)| ln.exp() * e.exp_m1()).sum();
            return (excess, excess.ln_1p());
        }
        let terms: Vec<f64> = exponents.map(|(e, ln)| e + ln).collect();
        let ln_ratio = ln_sum_exp(&terms);
        (ln_ratio.exp_m1(), ln_ratio)
    }
}

/// Returns ln(f^p - 1 - p(f - 1)), p above 1 or below 0.
fn ln_convex_gap(power: f64, node: &Node) -> f64 {
    let u = node.excess;
    if (power * u).abs() < 0.05 && u.abs() < 0.05 {
        let mut coefficient = power * (power - 1.0) / 2.0;
        let mut sum = coefficient;
        let mut factor = 1.0;
        for k in 3..14 {
            coefficient *= (power - f64::from(k) + 1.0) / f64::from(k);
            factor *= u;
            sum += coefficient * factor;
        }
        return 2.0 * u.abs().ln() + sum.ln();
    }
    let exponent = power * node.ln_ratio;
    if exponent > LARGE_EXPONENT {
        // The omitted term lowers it.
        return exponent;
    }
    (exponent.exp_m1() - power * u).ln()
}
