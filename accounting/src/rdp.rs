//! Rényi differential privacy of the Gaussian mechanism, and its conversion to (ε, δ).
//!
//! Every figure of this module is an upper bound: any order gives a valid ε, and the smallest over
//! a fixed grid of orders is used. Composition adds the Rényi divergences order by order.
//!
//! Sources: Mironov 2017 (arXiv:1702.07476); Mironov, Talwar, Zhang 2019 (arXiv:1908.10530) for
//! Poisson sampling; Wang, Balle, Kasiviswanathan 2019 (arXiv:1808.00087), Theorem 9, for uniform
//! sampling; Canonne, Kamath, Steinke 2020 (arXiv:2004.00010), Proposition 12, for the conversion.

mod conversion;
mod gaussian;
mod orders;
mod poisson;
mod uniform;
mod users;

pub use conversion::Conversion;
pub use gaussian::gaussian_rdp;
pub use poisson::{PoissonRdp, poisson_rdp};
pub use uniform::{uniform_rdp, uniform_rdp_theorem_9};

use crate::event::Exposure;
use crate::params::Delta;
use orders::{MAX_FRACTIONAL_ORDER, min_over_orders, poisson_orders, uniform_orders};
use users::UsersRdp;

/// Effect of rounding errors of the sums below, relative to ε: the quadrature and the sums are
/// accurate to a few 1e-13, so raising the result by this keeps it an upper bound.
const ROUNDING: f64 = 1e-12;

/// ε and its order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RdpEpsilon {
    /// The bound. Infinite without noise.
    pub epsilon: f64,
    /// The Rényi order α of the bound.
    pub order: f64,
}

/// The Rényi divergence of one round of an exposure, prepared once for many orders.
enum Curve {
    Gaussian {
        noise_to_sensitivity: f64,
    },
    Poisson(Box<PoissonRdp>),
    Users(Box<UsersRdp>),
    Uniform {
        sampling_rate: f64,
        noise_to_sensitivity: f64,
    },
}

impl Curve {
    fn new(exposure: &Exposure) -> Self {
        match *exposure {
            Exposure::Gaussian {
                noise_to_sensitivity,
                ..
            } => Self::Gaussian {
                noise_to_sensitivity,
            },
            Exposure::Poisson {
                sampling_rate,
                noise_to_sensitivity,
                ..
            } => Self::Poisson(Box::new(PoissonRdp::new(
                sampling_rate,
                noise_to_sensitivity,
                MAX_FRACTIONAL_ORDER,
            ))),
            Exposure::Uniform {
                sampling_rate,
                noise_to_sensitivity,
                ..
            } => Self::Uniform {
                sampling_rate,
                noise_to_sensitivity,
            },
            Exposure::PoissonUsers {
                users,
                noise_to_sensitivity,
                ..
            } => Self::Users(Box::new(UsersRdp::new(&users, noise_to_sensitivity))),
            // Like the bound without sampling of `uniform_rdp`, for all devices of a cohort.
            Exposure::UniformUsers {
                users,
                noise_to_sensitivity,
                ..
            } => Self::Gaussian {
                noise_to_sensitivity: noise_to_sensitivity / f64::from(users.numbers().1),
            },
        }
    }

    fn at(&self, order: f64) -> f64 {
        match self {
            Self::Gaussian {
                noise_to_sensitivity,
            } => gaussian_rdp(*noise_to_sensitivity, order),
            Self::Poisson(curve) => curve.at(order),
            Self::Users(curve) => curve.at(order),
            Self::Uniform {
                sampling_rate,
                noise_to_sensitivity,
            } => uniform_rdp(*sampling_rate, *noise_to_sensitivity, order as u32),
        }
    }
}

/// Returns the smallest ε over the documented grid of orders for the composition of `exposures`.
///
/// * Grid: 1.1, 1.2, ..., 10.9, 12, ..., 63, 64, 72, 80, 96, 128, 160, 192, 256, 512. The integers
///   from 2 to 256 if any exposure is sampled uniformly, since its theorem is stated for integers.
/// * Cost: with Poisson sampling about a dozen orders are evaluated (the objective is quasi-convex
///   in the order, as (α - 1)·ρ(α) is convex). With uniform sampling all are.
#[must_use]
pub fn rdp_epsilon(exposures: &[Exposure], delta: Delta, conversion: Conversion) -> RdpEpsilon {
    if exposures.iter().any(Exposure::is_unprotected) {
        return RdpEpsilon {
            epsilon: f64::INFINITY,
            order: f64::INFINITY,
        };
    }
    let curves: Vec<(Curve, f64)> = exposures
        .iter()
        .filter(|exposure| exposure.count() > 0)
        .map(|exposure| (Curve::new(exposure), exposure.count() as f64))
        .collect();
    if curves.is_empty() {
        // There are no releases.
        return RdpEpsilon {
            epsilon: 0.0,
            order: f64::INFINITY,
        };
    }
    let total = |order: f64| {
        curves
            .iter()
            .map(|(curve, count)| count * curve.at(order))
            .sum()
    };
    let objective = |order: f64| conversion.epsilon(total(order), order, delta);
    let integers_only = curves
        .iter()
        .any(|(curve, _)| matches!(curve, Curve::Uniform { .. }));
    let best = if integers_only {
        // It is a bound and not the divergence, so its curve need not be convex.
        uniform_orders()
            .map(|order| (objective(order), order))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((f64::INFINITY, f64::INFINITY))
    } else {
        min_over_orders(&poisson_orders(), objective)
    };
    RdpEpsilon {
        epsilon: best.0.max(0.0) * (1.0 + ROUNDING),
        order: best.1,
    }
}

/// Returns the Rényi divergence of order `order` of the composition of `exposures`, an upper bound.
///
/// Infinite (no claim) without noise and at orders outside a theorem: fractional ones for uniform
/// sampling, those outside of [`rdp_epsilon`]'s grid for Poisson sampling.
#[must_use]
pub fn composed_rdp(exposures: &[Exposure], order: f64) -> f64 {
    let of = |exposure: &Exposure| {
        let is_theorem_9 = matches!(exposure, Exposure::Uniform { .. });
        let is_covered = !is_theorem_9 || order.fract() <= 0.0;
        match exposure.count() {
            0 => 0.0,
            _ if exposure.is_unprotected() || !is_covered => f64::INFINITY,
            count => count as f64 * Curve::new(exposure).at(order),
        }
    };
    exposures.iter().map(of).sum::<f64>() * (1.0 + ROUNDING)
}

#[cfg(test)]
mod tests;
