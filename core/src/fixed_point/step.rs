//! A step of SGD in integers: its displacement from the global model, the norm, the projection.
//!
//! `w ← w⁰ + project(w − η g(w) − w⁰, L)`, with `g` the mean gradient plus weight decay and
//! proximal term, and weights saturated at ±[`MAX_WEIGHT`]. The displacement of a saturated weight
//! ends at the saturated value, so displacements stay below 2²², and a weight with a shortened
//! displacement stays between two valid ones.

use super::multiplier::Multiplier;
use crate::format::MAX_WEIGHT;
use crate::format::parts;
use crate::{integer::square_root, params::ClipNorm};

/// The step sizes of a batch, each scaled so that its product is in the units of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rates {
    /// η over the length of the batch, for the summed gradient.
    pub(super) gradient: Multiplier,
    /// η · weight decay, for the weight.
    pub(super) decay: Multiplier,
    /// η · proximal, for the previous displacement.
    pub(super) proximal: Multiplier,
}

impl Rates {
    /// Turns the summed gradient in `displacement` into w − η g(w) − w⁰, and returns the sum of
    /// squares and the number of saturated weights. `largest` is the largest magnitude of w⁰.
    #[inline(always)]
    pub(super) fn descend(
        &self,
        global: &[i32],
        largest: i32,
        local: &[i32],
        displacement: &mut [i32],
    ) -> (u64, u32) {
        let Self {
            gradient,
            decay,
            proximal,
        } = *self;
        // Targets are below 2²¹ + 2¹⁹ + 2²⁰ + 2³⁰ in magnitude, displacements by 2²¹ more.
        gradient.apply_to_each(displacement);
        let bits = if decay.is_zero() && proximal.is_zero() {
            rewrite(global, local, displacement, |step, w, _| w - step)
        } else {
            rewrite(global, local, displacement, |step, w, start| {
                w - step - (decay.apply(w) + proximal.apply(w - start))
            })
        };
        // A magnitude is at most one more than its bits.
        let is_inside = bits < MAX_WEIGHT - largest;
        let saturated = if is_inside {
            0
        } else {
            saturate(global, displacement)
        };
        let squares = if is_inside && bits < 0xffff {
            short_squares(displacement)
        } else {
            squares(displacement)
        };
        (squares, saturated)
    }
}

/// Computes the displacements to `target(step, w, w⁰)`, and returns the union of their bits,
/// complemented for negative ones.
// A separate function on boards, where it needs all registers.
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(always))]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    inline(never)
)]
fn rewrite(
    global: &[i32],
    local: &[i32],
    displacement: &mut [i32],
    target: impl Fn(i32, i32, i32) -> i32,
) -> i32 {
    let mut bits = 0;
    for ((d, start), w) in displacement.iter_mut().zip(global).zip(local) {
        *d = target(*d, *w, *start) - start;
        bits |= *d ^ (*d >> 31);
    }
    bits
}

/// Shortens displacements to the range of weights, and returns the number of longer ones. Rare.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    inline(never)
)]
fn saturate(global: &[i32], displacement: &mut [i32]) -> u32 {
    let mut saturated = 0;
    for (d, start) in displacement.iter_mut().zip(global) {
        let kept = (start + *d).clamp(-MAX_WEIGHT, MAX_WEIGHT) - start;
        saturated += u32::from(kept != *d);
        *d = kept;
    }
    saturated
}

/// Returns Σd² for magnitudes of at most 2¹⁶ − 1, whose squares fit 32 bits.
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(always))]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    inline(never)
)]
fn short_squares(displacement: &[i32]) -> u64 {
    displacement.iter().fold(0, |sum, d| {
        let magnitude = d.unsigned_abs();
        sum + u64::from(magnitude.wrapping_mul(magnitude))
    })
}

/// Returns Σd² for magnitudes below 2²²: at most 2⁶⁴ − 1 for 2²⁰ of them.
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(always))]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    inline(never)
)]
fn squares(displacement: &[i32]) -> u64 {
    displacement.iter().fold(0, |sum, d| {
        let d = i64::from(*d);
        sum + (d * d) as u64
    })
}

/// The ball of a clip norm, in units of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ball {
    /// ⌊L · 2¹⁸⌋, at most 2³¹.
    radius: u64,
}

impl Ball {
    /// Returns `None` if the radius is below a unit, because no update would be left.
    pub(super) fn new(clip_norm: ClipNorm) -> Option<Self> {
        let (significand, exponent) = parts(clip_norm.get());
        let places = exponent + super::WEIGHT_FRACTION as i32;
        let radius = match places {
            8.. => 1 << 31,
            0.. => u64::from(significand) << places,
            _ => u64::from(significand.checked_shr(places.unsigned_abs()).unwrap_or(0)),
        };
        (radius > 0).then_some(Self { radius })
    }

    /// Returns the factor that shortens displacements with this sum of squares to the ball, in
    /// units of 2⁻¹⁶, rounded down and below 2¹⁶. `None` for displacements inside.
    ///
    /// Computes L 2¹⁶ / √Σd² in a division of 32 bits, from the leading 16 digits of L, rounded
    /// down, and the root shifted by the same number of places, rounded up.
    pub(super) fn factor(self, squares: u64) -> Option<i32> {
        // At most 2⁶².
        if squares <= self.radius * self.radius {
            return None;
        }
        let places = (u64::BITS - self.radius.leading_zeros()).saturating_sub(16);
        // The root is above the radius, and at most 2³². If it does not fit 32 bits, places are 16.
        let root = (((norm(squares) - 1) >> places) + 1).min(u32::MAX.into()) as u32;
        let radius = (self.radius >> places << 16) as u32;
        Some(radius.checked_div(root).unwrap_or(0) as i32)
    }
}

/// Returns √Σd², rounded up.
pub(super) const fn norm(squares: u64) -> u64 {
    match squares {
        0 => 0,
        _ => square_root(squares - 1) + 1,
    }
}

/// Computes `w ← w⁰ + d`, or `w⁰ + f d` with f in units of 2⁻¹⁶, and sets d to 0.
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(always))]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    inline(never)
)]
pub(super) fn advance(factor: Option<i32>, global: &[i32], d: &mut [i32], local: &mut [i32]) {
    if let Some(factor) = factor {
        shorten(factor, d);
    }
    for ((w, start), d) in local.iter_mut().zip(global).zip(d) {
        *w = start + *d;
        *d = 0;
    }
}

/// Computes `d ← f d`.
#[inline(always)]
pub(super) fn shorten(factor: i32, d: &mut [i32]) {
    if factor == 0 {
        // The loop below would turn a negative displacement into 1.
        d.fill(0);
    }
    for d in d {
        *d = shortened(*d, factor);
    }
}

/// Returns `f d` rounded towards zero, f below 1 in units of 2⁻¹⁶. The result is never longer than
/// the exact product, so `Σ(f d)² ≤ f² Σd² ≤ L²` holds in integers. A negative product without a
/// remainder loses a unit, so f must not be 0 if d is negative.
///
/// With d = 2¹⁶ H + L, 0 ≤ L < 2¹⁶: `H f + ⌊L f / 2¹⁶⌋` is ⌊f d / 2¹⁶⌋.
#[inline(always)]
const fn shortened(d: i32, factor: i32) -> i32 {
    let low = ((d as u32 & 0xffff) * factor as u32) >> 16;
    (d >> 16) * factor + low as i32 - (d >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use std::vec;

    const MAX: i32 = 2 * MAX_WEIGHT;

    proptest! {
        #[test]
        fn short_squares_are_those_of_64_bits(d in vec(-0xffff..=0xffff, 0..600)) {
            prop_assert_eq!(short_squares(&d), squares(&d));
        }

        /// For any vector, in integers: rounding never leaves the ball, and never flips a sign.
        #[test]
        fn projection_keeps_the_bound(
            d in vec(prop_oneof![-MAX..=MAX, -500..500], 1..600), exponent in -17.0_f32..4.3,
        ) {
            let clip_norm = exponent.exp2();
            let ball = Ball::new(ClipNorm::new(clip_norm).unwrap()).unwrap();
            let mut local = vec![0; d.len()];
            let factor = ball.factor(squares(&d));
            advance(factor, &vec![0; d.len()], &mut d.clone(), &mut local);
            prop_assert!(squares(&local) <= ball.radius * ball.radius);
            let exact = f64::from(clip_norm) * f64::from(1 << 18);
            prop_assert!((squares(&local) as f64).sqrt() <= exact);
            prop_assert_eq!(factor.is_none(), local == d);
            for (w, d) in local.iter().zip(&d) {
                prop_assert!(w.abs() <= d.abs() && i64::from(*w) * i64::from(*d) >= 0);
            }
            // Not shorter than rounding requires: radius and root have 16 digits, the factor 16
            // places, and an entry loses up to two units.
            if let Some(factor) = factor {
                let wanted = ball.radius as f64 / (squares(&d) as f64).sqrt();
                let found = f64::from(factor) / 65_536.0;
                let lost = wanted * 2f64.powi(-14) + 2f64.powi(-16);
                prop_assert!(wanted - lost <= found && found <= wanted, "{found} {wanted}");
                for (w, d) in local.iter().zip(&d) {
                    prop_assert!((f64::from(*w) - found * f64::from(*d)).abs() < 2.0);
                }
            }
        }

        /// Weights saturate: no displacement leads outside.
        #[test]
        fn weights_saturate_and_do_not_wrap(
            w in -MAX_WEIGHT..=MAX_WEIGHT, start in -MAX_WEIGHT..=MAX_WEIGHT, g in any::<i32>(),
            rate in 0.01_f32..0.24, decay in 0.0_f32..0.24, proximal in 0.0_f32..0.24,
        ) {
            let of = |a| Multiplier::new(a, 1.0, 0, 1).unwrap();
            let rates = Rates { gradient: of(rate), decay: of(decay), proximal: of(proximal) };
            let mut d = [g];
            let (found, saturated) = rates.descend(&[start], start.abs(), &[w], &mut d);
            let decayed = f64::from(w) * (1.0 - f64::from(decay));
            let pulled = f64::from(w - start) * f64::from(proximal);
            let exact = decayed - pulled - f64::from(g) * f64::from(rate);
            let max = f64::from(MAX_WEIGHT);
            let end = f64::from(start + d[0]);
            // The rates have 15 bits.
            prop_assert!((end - exact.clamp(-max, max)).abs() <= 2.0 + exact.abs() * 2e-4 + 300.0);
            prop_assert!(end.abs() <= max);
            prop_assert!(saturated == 1 || exact.abs() <= max + 40_000.0);
            prop_assert_eq!(found, squares(&d));
        }
    }

    /// A ball more than 2¹⁶ times smaller has a factor of 0, and nothing is left.
    #[test]
    fn what_is_far_too_long_becomes_nothing() {
        let ball = Ball::new(ClipNorm::new(1e-5).unwrap()).unwrap();
        let mut d = [-2_097_153, 5, -1, 0];
        let factor = ball.factor(squares(&d));
        assert_eq!(factor, Some(0));
        let mut local = [7; 4];
        let mut last = d;
        shorten(0, &mut last);
        assert_eq!(last, [0; 4]);
        advance(factor, &[0; 4], &mut d, &mut local);
        assert_eq!((d, local), ([0; 4], [0; 4]));
    }

    #[test]
    fn the_longest_displacements_fit() {
        assert_eq!(short_squares(&[-0xffff; 3]), 3 * 0xffff * 0xffff);
        let squares = squares(&vec![-MAX; 1 << 20]);
        assert_eq!(
            u128::from(squares),
            u128::from(MAX.unsigned_abs()).pow(2) << 20
        );
    }

    #[test]
    fn the_ball_is_that_of_the_clip_norm_rounded_down() {
        let radius = |norm| Ball::new(ClipNorm::new(norm).unwrap()).map(|ball| ball.radius);
        assert_eq!(radius(0.3), Some(78_643));
        assert_eq!(radius(1.0), Some(1 << 18));
        assert_eq!(radius(1e30), Some(1 << 31));
        assert_eq!(radius(3.8e-6), None, "less than a unit");
        assert_eq!(radius(f32::MIN_POSITIVE), None);
    }

    #[test]
    fn what_is_on_the_sphere_is_inside() {
        let ball = Ball { radius: 5 };
        assert_eq!(ball.factor(25), None);
        assert_eq!(ball.factor(26), Some((5 << 16) / 6));
        assert_eq!((norm(0), norm(25), norm(26)), (0, 5, 6));
    }
}
