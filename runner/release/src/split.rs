//! The split of noise between an update and the bit of adaptive clipping. Together they have the
//! cost of an update with the total noise multiplier (Andrew, Thakkar, McMahan, Ramaswamy 2021,
//! arXiv:1905.03871, Theorem 1). [`crate::bit`] has the argument on the integer grid.

use smolfed_accounting::NoiseMultiplier;

/// The noise multipliers of both parts, each relative to the clip norm of its part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// z_Δ: noise multiplier of the update.
    pub update: NoiseMultiplier,
    /// z_b = 2 σ_b: noise multiplier of the bit, whose clip norm is ½.
    pub bit: NoiseMultiplier,
}

impl Split {
    /// Returns the split of `total` in which the bit has noise of std `bit_std`:
    /// `z_Δ = (z⁻² − (2 σ_b)⁻²)^(−1/2)`. `None` unless 2 σ_b is above z: the bit alone would
    /// otherwise cost more than the total.
    #[must_use]
    pub fn new(total: NoiseMultiplier, bit_std: f64) -> Option<Self> {
        /// Larger than the rounding errors of the line below, so that neither part has too little
        /// noise.
        const MARGIN: f64 = 1.0 + 8.0 * f64::EPSILON;
        let (z, bit) = (total.get(), 2.0 * bit_std);
        // The difference of squares is computed as a product to avoid cancellation.
        let update = z * bit / ((bit - z) * (bit + z)).sqrt() * MARGIN;
        let split = Self {
            update: NoiseMultiplier::new(update).ok()?,
            bit: NoiseMultiplier::new(bit).ok()?,
        };
        (bit > z).then_some(split)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use smolfed_core::params::ClipNorm;
    use smolfed_core::quantize::Grid;

    use super::*;
    use crate::plan::sampler;

    fn split(z: f64, bit_std: f64) -> Split {
        Split::new(NoiseMultiplier::new(z).unwrap(), bit_std).unwrap()
    }

    /// Returns the std of the noise of a part as the integers of its sampler: n / d steps.
    fn noise(multiplier: NoiseMultiplier, bits: u32) -> (u128, u128) {
        let steps = multiplier.get() * f64::from(bits).exp2();
        let (sampler, _) = sampler("", 0.0, steps).unwrap();
        let (numerator, denominator) = sampler.sigma().ratio();
        (numerator.into(), denominator.into())
    }

    proptest! {
        /// The noise of the samplers, in integers: for z = k/64, `4^b (1/s_Δ² + 1/s_b²) ≤ 1/z²`.
        /// Nothing is rounded here.
        #[test]
        fn both_parts_together_never_cost_more_than_the_total(
            k in 8_u128..640, more in 1.001_f64..30.0, bits in 4_u32..8,
        ) {
            let z = k as f64 / 64.0;
            let split = split(z, 0.5 * z * more);
            let ((n, d), (bit_n, bit_d)) = (noise(split.update, bits), noise(split.bit, bits));
            let left = ((d * bit_n).pow(2) + (bit_d * n).pow(2)) << (2 * bits);
            prop_assert!(left * k * k <= (n * bit_n * 64).pow(2), "{:?}", split);
        }

        /// The same bound holds for the messages of two devices. Any two clipped updates on the
        /// grid, each with its bit, differ by at most twice 1/z after division by the noise of each
        /// part, and one of them differs from zeros by at most 1/z.
        #[test]
        fn the_joint_sensitivity_is_that_of_an_update_of_the_total(
            first in vec(-1f32..1.0, 1..6), second in vec(-1f32..1.0, 1..6),
            signs in any::<[bool; 2]>(), k in 8_u128..640, more in 1.001_f64..30.0,
            bits in 4_u32..8,
        ) {
            let grid = Grid::new(ClipNorm::new(0.75).unwrap(), bits).unwrap();
            let z = k as f64 / 64.0;
            let split = split(z, 0.5 * z * more);
            let ((n, d), (bit_n, bit_d)) = (noise(split.update, bits), noise(split.bit, bits));
            let length = first.len().max(second.len());
            let sent = |entries: &[f32], is_inside: bool| {
                let mut entries = entries.to_vec();
                entries.resize(length, 0.0);
                smolfed_core::clip::clip_l2(&mut entries, 0.75).unwrap();
                let mut q = vec![0; length];
                grid.quantize_into(&entries, &mut q).unwrap();
                q.push(if is_inside { 1 } else { -1 } << bits);
                q
            };
            let (first, second) = (sent(&first, signs[0]), sent(&second, signs[1]));
            // Σ Δq² / s_Δ² + Δbit² / s_b² ≤ limit / z², times all denominators.
            let bound = |difference: &[i32], limit: u128| {
                let square = |q: &i32| u128::from(q.unsigned_abs()).pow(2);
                let (of_bit, of_update) = difference.split_last().unwrap();
                let squares: u128 = of_update.iter().map(square).sum();
                let left = squares * (d * bit_n).pow(2) + square(of_bit) * (bit_d * n).pow(2);
                left * k * k <= limit * (n * bit_n * 64).pow(2)
            };
            let difference: Vec<i32> = first.iter().zip(&second).map(|(a, b)| a - b).collect();
            prop_assert!(bound(&difference, 4));
            prop_assert!(bound(&first, 1) && bound(&second, 1));
        }
    }

    #[test]
    fn a_bit_that_costs_more_than_everything_is_refused() {
        let z = NoiseMultiplier::new(1.0).unwrap();
        assert_eq!(Split::new(z, 0.5), None);
        assert_eq!(Split::new(z, f64::NAN), None);
        // A fifth of a large cohort costs almost nothing.
        let split = Split::new(z, 50.0).unwrap();
        assert!((split.update.get() - 1.00005).abs() < 1e-6);
        assert!((Split::new(z, 1.0).unwrap().update.get() - (4.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }
}
