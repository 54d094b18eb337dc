//! What a helper insists on, whatever a coordinator asks: provisioned with its keys, and no part of
//! any request.

use serde::{Deserialize, Serialize};
use smolfed_core::mask::Terms;
use smolfed_core::noise::DiscreteGaussian;

use super::combination::Combination;
use super::refusal::HelperRefusal;
use crate::masking::ring::Ring;
use crate::mechanism::sampler_of_std;

/// The smallest std of a party's noise, in steps of the grid: the sum of several is then a discrete
/// Gaussian but for a factor of 1 ± e^-40,000 in every probability
/// ([`smolfed_accounting::distributed`]).
pub const MIN_NOISE_STEPS: u32 = smolfed_accounting::distributed::MIN_NOISE_STEPS;

/// The largest update, in entries: so that no request makes a helper run out of memory.
pub const MAX_ENTRIES: u32 = 1 << 24;

/// What a helper insists on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelperPolicy {
    /// Helpers of the federation.
    pub helpers: u8,
    /// Std of this helper's noise over the clip norm; with correlated noise over that of a device's
    /// sensitivity times the clip norm, already multiplied by it. 0 for none, which protects
    /// nobody.
    pub noise_multiplier: f64,
    /// Devices on a list, at least.
    pub min_cohort: u32,
    /// Rounds that are answered, at most: the budget.
    pub max_rounds: u32,
    /// k: rounds in which one device may be on the list.
    pub participations: u32,
    /// b: rounds from one of them to the next, at least.
    pub separation: u32,
    /// m_j, by which correlated noise combines the sums of rounds, the latest first, in units of
    /// 1/256; none if noise is independent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coefficients: Vec<i64>,
}

impl HelperPolicy {
    /// How the sums of rounds are combined.
    #[must_use]
    pub fn combination(&self) -> Combination {
        Combination::of_coefficients(&self.coefficients)
    }

    /// The ring and the noise of a round with these terms.
    ///
    /// # Errors
    /// [`HelperRefusal::Helpers`], [`HelperRefusal::Width`], [`HelperRefusal::Grid`],
    /// [`HelperRefusal::Noise`].
    pub fn accepts(&self, terms: Terms) -> Result<(Ring, Option<DiscreteGaussian>), HelperRefusal> {
        let Terms {
            grid_bits,
            width,
            helpers,
        } = terms;
        if helpers != self.helpers {
            return Err(HelperRefusal::Helpers {
                found: helpers,
                expected: self.helpers,
            });
        }
        let ring = Ring::new(width).ok_or(HelperRefusal::Width { width })?;
        let steps = self.noise_multiplier * f64::from(grid_bits).exp2();
        if self.noise_multiplier <= 0.0 {
            return Ok((ring, None));
        }
        if steps < f64::from(MIN_NOISE_STEPS) {
            let least = MIN_NOISE_STEPS;
            return Err(HelperRefusal::Grid { grid_bits, least });
        }
        let fine = steps * self.combination().fineness() as f64;
        let noise = sampler_of_std(fine).map_err(|_| HelperRefusal::Noise { grid_bits })?;
        Ok((ring, Some(noise.0)))
    }
}
