//! The policy of a device: its limits on noise, epochs, clip norm, learning rate and
//! participations, whatever a coordinator asks for.

use super::build;
use crate::{
    integer::Wide,
    ledger::Limits,
    params::{NoiseMultiplier, Penalty},
    personal::PersonalRequest,
    wire::message::Invitation,
};

/// Clip norms and learning rates that a device accepts: 2⁻³⁰ to 2³⁰. Weight decay and proximal term
/// are at most the upper limit.
///
/// No training needs values outside, and within the limits no square of a norm comes near the
/// limits of `f32`. Only a coordinator that probes the limits of the arithmetic asks for more.
pub const SETTING_LIMITS: core::ops::RangeInclusive<f32> = MIN_SETTING..=MAX_SETTING;

const MIN_SETTING: f32 = 1.0 / MAX_SETTING;
const MAX_SETTING: f32 = (1 << 30) as f32;

/// Maximum number of local steps per accepted epoch, where an invitation counts steps.
pub const STEPS_PER_EPOCH: u32 = 1024;

/// Maximum share of its smallest noise multiplier that a device loses to the grid of an invitation:
/// 2⁻²¹.
pub const GRID_LOSS: f64 = 1.0 / (1 << 21) as f64;

/// Grid steps of noise from which the grid costs at most [`GRID_LOSS`], as a power of two: 1 − √(1
/// − 9/4096²) ≤ 2⁻²¹.
const FINE_STEPS_BITS: u32 = 12;

/// Std, in grid steps, of the randomised rounding that turns a real Gaussian into discrete noise.
/// Accountants deduct its variance from the noise of a device.
const ROUNDING_STD: u64 = 3;

/// The limits of a device, whatever a coordinator asks for.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Policy {
    /// How often it takes part, how far apart and how far ahead.
    pub limits: Limits,
    /// Smallest noise multiplier of its own noise: for its update, or for its update and the bit of
    /// adaptive clipping together. A grid that is coarse for this noise needs more: the noise that
    /// accountants count must not be lower by more than a millionth. [`NoiseMultiplier::NONE`]
    /// trusts the coordinator to add the noise.
    pub min_noise_multiplier: NoiseMultiplier,
    /// Smallest noise multiplier of its correlation matrices: the std of the noise over μ, the
    /// largest norm of an example's matrix. [`NoiseMultiplier::NONE`] also sends them without
    /// noise. A device with a `min_noise_multiplier` sends none: their noise hides an example, not
    /// the device.
    pub min_matrix_noise_multiplier: NoiseMultiplier,
    /// Maximum number of epochs in a round. Without labels an epoch uses up to 64 views of each
    /// sample.
    pub max_epochs: u32,
    /// Whether the device greets with a pseudonym, which changes with its chain key, instead of its
    /// number.
    pub hides_number: bool,
    /// Number of helpers that mask its updates, at most [`MAX_HELPERS`](crate::mask::MAX_HELPERS).
    /// It declines rounds of any other number. With 0 it sends only updates without masks.
    pub helpers: u8,
}

impl Policy {
    /// Returns whether this build has code for everything the policy requires: the device's own
    /// noise, and pseudonyms. Otherwise the device could only decline every round, or stay silent.
    pub(super) fn suits_build(&self) -> bool {
        let none = NoiseMultiplier::NONE;
        let has_noise =
            self.min_noise_multiplier != none || self.min_matrix_noise_multiplier != none;
        (build::HAS_NOISE || !has_noise) && (build::HAS_PSEUDONYM || !self.hides_number)
    }

    /// Whether the settings of a round are within [`SETTING_LIMITS`].
    #[inline(always)]
    pub(super) fn accepts_settings(
        invitation: &Invitation,
        personal: Option<&PersonalRequest>,
    ) -> bool {
        // Bit patterns of positive numbers are ordered like the numbers, and need no floating-point
        // comparison.
        let (min, max) = (MIN_SETTING.to_bits(), MAX_SETTING.to_bits());
        let clip_norm = invitation.grid.clip_norm().get();
        let positive = [clip_norm, invitation.learning_rate.get()];
        let pull = personal.and_then(PersonalRequest::pull);
        let pull = pull.unwrap_or(Penalty::NONE);
        let penalties = [invitation.weight_decay, invitation.proximal, pull].map(Penalty::get);
        // A penalty of −0 is 0.
        positive.iter().all(|x| (min..=max).contains(&x.to_bits()))
            && penalties.iter().all(|x| x.to_bits() << 1 <= max << 1)
    }

    /// Whether the device accepts this amount of work. Where steps are counted, an epoch stands for
    /// [`STEPS_PER_EPOCH`] steps: the answer must not depend on the number of samples.
    #[inline(always)]
    pub(super) const fn accepts_work(
        &self,
        epochs: u32,
        personal: Option<&PersonalRequest>,
    ) -> bool {
        match personal {
            Some(PersonalRequest {
                steps: Some(steps), ..
            }) => steps.get() <= self.max_epochs.saturating_mul(STEPS_PER_EPOCH),
            _ => epochs <= self.max_epochs,
        }
    }

    /// Whether update and bit together cost no more than an update under the smallest noise
    /// multiplier z: 1/z_Δ² + 1/z_b² ≤ 1/z² (Andrew, Thakkar, McMahan, Ramaswamy 2021,
    /// arXiv:1905.03871, Theorem 1), or z_Δ ≥ z without a bit. Also checks that the grid is fine
    /// enough for this noise.
    ///
    /// Why the grid matters: accountants do not count the std s of discrete noise, in grid steps.
    /// They count the std of the real Gaussian whose randomised rounding of std [`ROUNDING_STD`] =
    /// 3 it is (Peikert 2010, Theorem 3.1): √(s² − 9), where 1/s² is the sum for update and bit. On
    /// a coarse grid it is well below s = z 2^b, which a check of z alone would accept. The device
    /// therefore requires z² 4^b + 9 ≤ s². The loss on a fine grid is allowed, as records state z
    /// and not the rest after the loss: where z 2^b is at least 4096, z² 4^b ≤ s² is enough.
    ///
    /// The check is exact, in integers, for any invitation. With z = m/2³², z_Δ = n/(d 2^b), z_b =
    /// n_b/(d_b 2^b), e = d² n_b² + d_b² n² and r = 3, or 0 on a fine grid, and both sides times
    /// 2⁶⁴ (n n_b)²: `4^b m² e + 2⁶⁴ r² e ≤ 2⁶⁴ n² n_b²`. m < 2⁶⁴, n ≤ 2⁵², d ≤ 2⁴⁸ and b ≤ 24:
    /// each summand of the left side is below 2³⁷⁷.
    pub(super) fn accepts_noise(&self, invitation: &Invitation) -> bool {
        let Some(sigma) = invitation.own_noise() else {
            return self.min_noise_multiplier == NoiseMultiplier::NONE;
        };
        let (m, (n, d)) = (self.min_noise_multiplier.units(), sigma.ratio());
        // A missing bit costs as much as one under infinite noise. A bit without noise costs
        // everything.
        let (bit_n, bit_d) = match invitation.bit.map(|bit| bit.noise) {
            None => (1, 0),
            Some(None) => (0, 1),
            Some(Some(sigma)) => sigma.ratio(),
        };
        let bits = invitation.grid.bits();
        let is_coarse = m > 0 && m >> (32 + FINE_STEPS_BITS - bits) == 0;
        let rounding = if is_coarse { ROUNDING_STD << 32 } else { 0 };
        let mut left = Wide::ONE;
        left.multiply_by_squares(&[n, bit_n, 1 << 32]);
        [(m, 1 << bits), (rounding, 1)].iter().all(|(of, scale)| {
            left.subtract_squares(&[*of, *scale, d, bit_n])
                && left.subtract_squares(&[*of, *scale, bit_d, n])
        })
    }
}
