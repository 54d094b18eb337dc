//! The policy of a helper: its noise, the minimum cohort, and the maximum numbers of rounds and of
//! participations of a device. It is provisioned with the keys of the helper, and no request can
//! change it.

use serde::{Deserialize, Serialize};
use smolfed_core::mask::Terms;
use smolfed_core::noise::DiscreteGaussian;

use super::combination::Combination;
use super::refusal::HelperRefusal;
use crate::masking::ring::Ring;
use crate::mechanism::sampler_of_std;

/// The smallest std of a party's noise, in steps of the grid. The sum of several is then a discrete
/// Gaussian up to a factor of 1 ± e^-40,000 in every probability
/// ([`smolfed_accounting::distributed`]).
pub const MIN_NOISE_STEPS: u32 = smolfed_accounting::distributed::MIN_NOISE_STEPS;

/// The largest update, in entries, so that no request exhausts the memory of a helper.
pub const MAX_ENTRIES: u32 = 1 << 24;

/// The requirements of a helper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelperPolicy {
    /// Number of helpers of the federation.
    pub helpers: u8,
    /// Std of this helper's noise over the clip norm. With correlated noise it is already
    /// multiplied by the sensitivity of a device. 0 means no noise, which protects nobody.
    pub noise_multiplier: f64,
    /// Minimum number of devices on a list.
    pub min_cohort: u32,
    /// Maximum number of answered rounds: the budget.
    pub max_rounds: u32,
    /// k: maximum number of rounds with one device on the list.
    pub participations: u32,
    /// b: minimum number of rounds from one of them to the next.
    pub separation: u32,
    /// m_j, the coefficients of correlated noise, the latest round first, in units of 1/256. Empty
    /// if noise is independent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coefficients: Vec<i64>,
}

impl HelperPolicy {
    /// Returns the combination of the sums of rounds.
    #[must_use]
    pub fn combination(&self) -> Combination {
        Combination::of_coefficients(&self.coefficients)
    }

    /// Returns the ring and the noise of a round with these terms.
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
