//! The activation functions (sigmoid, tanh) of the gates of a recurrent layer, with the same bits
//! with and without vectors.

use core::array;

use crate::{
    lanes::WIDE,
    math::{abs, exp_below_one, exp_each},
};

/// Number of exponentials that [`sigmoid_each`] and [`tanh_each`] compute at a time.
const AT_A_TIME: usize = 16;

/// Computes the [`sigmoid`](crate::math::sigmoid) of each entry, with the same bits, for machines
/// with vectors.
#[inline(always)]
pub(super) fn sigmoid_each(v: &mut [f32]) {
    from_exponentials(v, -1.0, |x, e| {
        let numerator = if x >= 0.0 { 1.0 } else { e };
        numerator / (1.0 + e)
    });
}

/// Computes the hyperbolic tangent of each entry: (1 − e) / (1 + e) with e = e^−2|x|, and the sign
/// of x.
///
/// The bits differ from [`math::tanh`](crate::math::tanh): near 0 it is accurate to 2⁻²⁴
/// absolutely, not relatively. It only uses operations that machines with vectors compute side by
/// side.
#[inline(always)]
pub(super) fn tanh_each(v: &mut [f32]) {
    from_exponentials(v, -2.0, |x, e| {
        let magnitude = (1.0 - e) / (1.0 + e);
        if x >= 0.0 { magnitude } else { -magnitude }
    });
}

/// Computes `x ← f(x, e^(factor·|x|))` for each entry.
#[inline(always)]
fn from_exponentials(v: &mut [f32], factor: f32, f: impl Fn(f32, f32) -> f32) {
    if !WIDE {
        for x in v {
            *x = f(*x, exp_below_one(factor * abs(*x)));
        }
        return;
    }
    let mut exponentials = [0.0; AT_A_TIME];
    let (blocks, rest) = v.as_chunks_mut::<AT_A_TIME>();
    for block in blocks {
        exponentials = block.map(|x| factor * abs(x));
        exp_each(&mut exponentials);
        *block = array::from_fn(|l| f(block[l], exponentials[l]));
    }
    if rest.is_empty() {
        return;
    }
    for (e, x) in exponentials.iter_mut().zip(&*rest) {
        *e = factor * abs(*x);
    }
    exp_each(&mut exponentials);
    for (x, e) in rest.iter_mut().zip(&exponentials) {
        *x = f(*x, *e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math;

    /// Covers every length, large and small values, and NaN.
    #[test]
    fn sigmoids_side_by_side_have_the_bits_of_single_ones() {
        for count in 0..40_usize {
            let ends = [f32::NAN, f32::INFINITY, -1e30, 0.0, -0.0, 88.0];
            let middle = (0..count).map(|i| i as f32 * 0.37 - 5.0);
            let v: std::vec::Vec<f32> = middle.chain(ends).skip(count % 7).collect();
            let (mut sigmoids, mut tangents) = (v.clone(), v.clone());
            sigmoid_each(&mut sigmoids);
            tanh_each(&mut tangents);
            for ((x, s), t) in v.iter().zip(sigmoids).zip(tangents) {
                assert!(s.to_bits() == math::sigmoid(*x).to_bits() || s.is_nan() && x.is_nan());
                let error = if cfg!(feature = "micromath") {
                    1e-2
                } else {
                    2e-7
                };
                assert!(
                    (t - math::tanh(*x)).abs() < error || t.is_nan() && x.is_nan(),
                    "{x}: {t}"
                );
                let mut one = [*x];
                tanh_each(&mut one);
                assert!(one[0].to_bits() == t.to_bits() || t.is_nan());
            }
        }
    }
}
