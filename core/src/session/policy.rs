//! What a device agrees to, whatever a coordinator asks for.

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
/// Nobody trains beyond, and inside no square of a norm comes near the limits of `f32`: only a
/// coordinator that looks for the ends of the arithmetic asks for more.
pub const SETTING_LIMITS: core::ops::RangeInclusive<f32> = MIN_SETTING..=MAX_SETTING;

const MIN_SETTING: f32 = 1.0 / MAX_SETTING;
const MAX_SETTING: f32 = (1 << 30) as f32;

/// Local steps that a device takes at most for each epoch that it agrees to, where an invitation
/// counts steps.
pub const STEPS_PER_EPOCH: u32 = 1024;

/// The largest share of its smallest noise multiplier that a device lets the grid of an invitation
/// cost: 2⁻²¹.
pub const GRID_LOSS: f64 = 1.0 / (1 << 21) as f64;

/// Grid steps of noise from which the grid costs no more than that, as a power of two:
/// 1 − √(1 − 9/4096²) ≤ 2⁻²¹.
const FINE_STEPS_BITS: u32 = 12;

/// Std, in grid steps, of the randomised rounding that makes discrete noise of a real Gaussian:
/// what accountants deduct, as variance, from the noise of a device.
const ROUNDING_STD: u64 = 3;

/// What the device agrees to, whatever a coordinator asks for.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Policy {
    /// How often it takes part, how far apart and how far ahead.
    pub limits: Limits,
    /// Smallest noise multiplier of its own noise: of its update, or of its update and the bit of
    /// adaptive clipping together. On a grid that is coarse for this noise, more is needed: what
    /// accountants count must not be below it by more than a millionth.
    /// [`NoiseMultiplier::NONE`] trusts the coordinator to add the noise.
    pub min_noise_multiplier: NoiseMultiplier,
    /// Smallest noise multiplier of its correlation matrices: the std of the noise over μ, the
    /// largest norm of an example's matrix. [`NoiseMultiplier::NONE`] sends them without noise,
    /// too. A device with a `min_noise_multiplier` sends none: their noise hides an example, not
    /// the device.
    pub min_matrix_noise_multiplier: NoiseMultiplier,
    /// Epochs in a round, at most. Without labels an epoch looks at up to 64 views of each sample.
    pub max_epochs: u32,
    /// Whether the device greets under a pseudonym, which changes with its chain key, and not under
    /// its number.
    pub hides_number: bool,
    /// How many helpers mask its updates, at most [`MAX_HELPERS`](crate::mask::MAX_HELPERS): it
    /// declines rounds of any other number. 0 sends updates without masks, and none with.
    pub helpers: u8,
}

impl Policy {
    /// Whether this build has code for all that the policy insists on: noise of the device's own,
    /// and pseudonyms. Another device could only decline every round, or be silent.
    pub(super) fn suits_build(&self) -> bool {
        let none = NoiseMultiplier::NONE;
        let has_noise =
            self.min_noise_multiplier != none || self.min_matrix_noise_multiplier != none;
        (build::HAS_NOISE || !has_noise) && (build::HAS_PSEUDONYM || !self.hides_number)
    }

    /// Whether the numbers of a round are within [`SETTING_LIMITS`].
    #[inline(always)]
    pub(super) fn accepts_settings(
        invitation: &Invitation,
        personal: Option<&PersonalRequest>,
    ) -> bool {
        // The patterns of positive numbers have the order of the numbers, and take no
        // floating-point comparison.
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

    /// Whether the device does so much work. Where steps are counted, an epoch stands for
    /// [`STEPS_PER_EPOCH`] of them: the answer must not depend on the number of samples.
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
    /// arXiv:1905.03871, Theorem 1). Without a bit that is z_Δ ≥ z. And whether the grid is fine
    /// enough for this noise.
    ///
    /// Why the grid matters: accountants do not count the std s of discrete noise, in grid steps,
    /// but that of a real Gaussian of which it is a randomised rounding of std [`ROUNDING_STD`] = 3
    /// (Peikert 2010, Theorem 3.1): √(s² − 9), where 1/s² is the sum for update and bit. On a
    /// coarse grid that is well below s = z 2^b, which a check of z alone would accept. So the
    /// device asks for z² 4^b + 9 ≤ s². The loss on a fine grid is allowed, as records state z and
    /// not what is left of it: where z 2^b is at least 4096, z² 4^b ≤ s² is enough.
    ///
    /// Exactly, in integers, whatever the invitation carries. With z = m/2³², z_Δ = n/(d 2^b),
    /// z_b = n_b/(d_b 2^b), e = d² n_b² + d_b² n² and r = 3, or 0 on a fine grid, and both sides
    /// times 2⁶⁴ (n n_b)²: `4^b m² e + 2⁶⁴ r² e ≤ 2⁶⁴ n² n_b²`.
    /// m < 2⁶⁴, n ≤ 2⁵², d ≤ 2⁴⁸ and b ≤ 24: each summand of the left side is below 2³⁷⁷.
    pub(super) fn accepts_noise(&self, invitation: &Invitation) -> bool {
        let Some(sigma) = invitation.own_noise() else {
            return self.min_noise_multiplier == NoiseMultiplier::NONE;
        };
        let (m, (n, d)) = (self.min_noise_multiplier.units(), sigma.ratio());
        // No bit costs what one under infinite noise would, and one without noise everything.
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
