//! Privacy loss distributions: ε and δ of composed rounds to a fraction of a percent, proved.
//!
//! The privacy loss of one output x is L = ln(P(x)/Q(x)), where P and Q are its distributions on
//! two neighbouring federations, and δ(ε) = E_P[(1 - e^(ε - L))₊]. The losses of rounds add, so the
//! distribution of their sum gives δ(ε) of a whole run without the slack of Rényi orders.
//!
//! **Why the figures are bounds.**
//! 1. *Dominating pairs.* Against an adaptive adversary the composition of pairs, each of which
//!    dominates its round for all neighbours and all histories, dominates the run (Zhu, Dong, Wang
//!    2022, arXiv:2106.08567, Theorem 10). For a Poisson-sampled Gaussian, the pairs are those of
//!    removing and of adding a device (their Theorem 11). A run removes, or adds, the same device
//!    in all rounds, so each direction is composed with itself and the larger ε holds. Gaussians
//!    without sampling compose to one Gaussian (Dong, Roth, Su 2022, Corollary 2).
//! 2. *Lattices* above and below each pair: `pld/lattice.rs`, connecting the dots.
//! 3. *Fourier transforms*, with aliasing and rounding errors bounded and added: `pld/compose.rs`.
//!    If this needs too many points or digits (few rounds and a tiny δ), the lattice is graded, and
//!    convolved term by term: `pld/graded.rs`.
//! 4. If too many points or rounds are required, there is no figure, rather than a wrong one.
//!
//! The lower bound is that of the direction "removed", which some device attains (an update of norm
//! L against zeros), so it is a lower bound on the true ε of the mechanism.
//!
//! For a user with k devices that are drawn separately the pair is a mixture of N(c, z²) with
//! Binomial(k, τ) weights against N(0, z²), and the reverse: `pld/mixture.rs` (Ganesh 2024,
//! arXiv:2401.10294, for updates of any direction and adaptive rounds). k times the sensitivity at
//! rate τ is not a bound.
//!
//! Under replace-one (a device's data replaced by other data) a Poisson-sampled round has a
//! separate pair: `pld/pair.rs`.
//!
//! A single sampled round has a closed form: `δ(ε) = τ·δ_Gauss(ε')` with `e^ε = 1 + τ(e^ε' - 1)`
//! (Balle, Barthe, Gaboardi 2018, arXiv:1807.01647, Theorem 8). Removing a device attains it.
//!
//! Uniform sampling is refused. Its worst pair is not known to be worst when composed with itself,
//! and for some mechanisms it is not (Lebeda, Regehr, Kamath, Steinke 2024, arXiv:2405.20769).
//! [`uniform_profile`](crate::uniform_profile) has a bound that does compose.

mod bracket;
mod compose;
mod composed;
mod epsilon;
mod graded;
mod kinds;
mod lattice;
mod mixture;
mod pair;
mod privacy_loss;
mod sketch;
mod tail;
mod tilt;

pub use epsilon::PldEpsilon;
pub use kinds::PldError;
pub use privacy_loss::PrivacyLoss;

use crate::event::Exposure;
use crate::params::Delta;
use bracket::PRECISION;
use kinds::{Kinds, Relation};

/// Returns a bracket of ε at `delta` for Gaussian and Poisson-sampled exposures.
///
/// The cost is milliseconds, and grows with about the square root of the number of rounds.
///
/// # Errors
/// [`PldError`] for uniform exposures, for releases without noise, and outside the range in which
/// errors are bounded.
pub fn pld_epsilon(exposures: &[Exposure], delta: Delta) -> Result<PldEpsilon, PldError> {
    Kinds::new(exposures, Relation::AddRemove)?.bracket(delta)
}

/// Returns ε of the same exposures if the two federations differ in the data of one device instead
/// of its presence: for a comparison of Poisson sampling with uniform sampling, which has only this
/// relation.
///
/// # Errors
/// The errors of [`pld_epsilon`].
pub fn replace_one_epsilon(exposures: &[Exposure], delta: Delta) -> Result<PldEpsilon, PldError> {
    Kinds::new(exposures, Relation::ReplaceOne)?.bracket(delta)
}

/// Returns a bracket for Gaussian and uniformly sampled exposures, by the symmetric pair of the
/// profile. One pair of federations attains the lower bound.
pub(crate) fn profile_epsilon(
    exposures: &[Exposure],
    delta: Delta,
) -> Result<PldEpsilon, PldError> {
    Kinds::new(exposures, Relation::Uniform)?.bracket(delta)
}

/// Returns the first upper bound that [`pld_epsilon`] or [`profile_epsilon`] finds, in half of the
/// time. It is for searches, since the reported bound is never above it.
pub(crate) fn upper_epsilon(
    exposures: &[Exposure],
    delta: Delta,
    with_uniform: bool,
) -> Result<f64, PldError> {
    let relation = if with_uniform {
        Relation::Uniform
    } else {
        Relation::AddRemove
    };
    let kinds = Kinds::new(exposures, relation)?;
    if let Some(exact) = kinds.exact(delta) {
        return Ok(exact.epsilon);
    }
    kinds.upper(delta, PRECISION)
}

#[cfg(test)]
mod tests;
