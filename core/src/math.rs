//! Elementary functions, always in software and mostly from `libm`, so that every target returns
//! the same bits.
//!
//! `std`'s float functions call the platform's C library, whose last bits differ between systems,
//! so they are never used. With the feature `micromath`, [`exp`] is a small approximation. Only
//! models use it. The noise needs no floating point.

/// Returns eˣ.
#[inline]
pub fn exp(x: f32) -> f32 {
    #[cfg(not(feature = "micromath"))]
    return libm::expf(x);
    // micromath returns a number for NaN, but NaN must stay visible.
    #[cfg(feature = "micromath")]
    return if x.is_nan() {
        x
    } else {
        micromath::F32Ext::exp(x)
    };
}

/// Computes [`exp`] of each entry, with the same bits, for machines with vectors.
#[inline(always)]
pub fn exp_each(v: &mut [f32]) {
    /// Number of exponents side by side: one register of 512 bits, or two of 256.
    const WIDTH: usize = 16;
    if cfg!(feature = "micromath") {
        for x in v {
            *x = exp(*x);
        }
        return;
    }
    let (blocks, rest) = v.as_chunks_mut::<WIDTH>();
    for block in blocks {
        // NaN is in no range.
        if block
            .iter()
            .fold(true, |all, x| all & (-87.0 <= *x) & (*x <= 87.0))
        {
            *block = block.map(exp_without_branches);
        } else {
            *block = block.map(exp);
        }
    }
    for x in rest {
        *x = exp(*x);
    }
}

/// Returns [`exp`] of a number of at most 0, with the same bits, without the code for large
/// numbers, which is half of `libm`'s.
#[inline]
pub fn exp_below_one(x: f32) -> f32 {
    if cfg!(feature = "micromath") {
        return exp(x);
    }
    // Below half of the smallest number above 0.
    if x <= f32::from_bits(0xc2cf_f1b5) {
        return 0.0;
    }
    let magnitude = x.to_bits() & 0x7fff_ffff;
    let mut whole = match magnitude {
        0x3f85_1593.. => (INVERSE_LN2 * x - 0.5) as i32,
        0x3eb1_7219.. => -1,
        0x3900_0001.. => return exp_of_rest(x, 0.0),
        _ => return 1.0 + x,
    };
    let k = whole as f32;
    let mut y = exp_of_rest(x - k * LN2_HIGH, k * LN2_LOW);
    // A result without a hidden bit is rounded once, by the last product. This product is exact.
    if whole < -126 {
        y *= power_of_two(-102);
        whole += 102;
    }
    y * power_of_two(whole)
}

/// Computes `libm`'s [`exp`] for |x| ≤ 87, with selections instead of branches, so that the
/// compiler can compute many side by side.
///
/// x = k·ln 2 + r, |r| ≤ ln 2 / 2, and eʳ is a rational function. The steps, their order and the
/// constants are from FreeBSD's `e_expf.c`, the source of `libm`.
#[inline(always)]
fn exp_without_branches(x: f32) -> f32 {
    let magnitude = x.to_bits() & 0x7fff_ffff;
    let (half, one) = if x < 0.0 { (-0.5, -1) } else { (0.5, 1) };
    // Rounds toward zero, and fits.
    let rounded = (INVERSE_LN2 * x + half) as i32;
    let whole = match magnitude {
        0x3f85_1593.. => rounded,
        0x3eb1_7219.. => one,
        _ => 0,
    };
    let k = whole as f32;
    let y = exp_of_rest(x - k * LN2_HIGH, k * LN2_LOW) * power_of_two(whole);
    if magnitude > 0x3900_0000 { y } else { 1.0 + x }
}

const LN2_HIGH: f32 = f32::from_bits(0x3f31_7200);
const LN2_LOW: f32 = f32::from_bits(0x35bf_be8e);
const INVERSE_LN2: f32 = f32::from_bits(0x3fb8_aa3b);

/// Returns 2ᵏ for −126 ≤ k ≤ 127.
#[inline(always)]
const fn power_of_two(k: i32) -> f32 {
    f32::from_bits(((k + 127) << 23) as u32)
}

/// Returns eʳ for r = high − low, |r| ≤ ln 2 / 2.
#[inline(always)]
fn exp_of_rest(high: f32, low: f32) -> f32 {
    const P1: f32 = 1.666_662_5e-1;
    const P2: f32 = -2.766_733_3e-3;
    let r = high - low;
    let square = r * r;
    let c = r - square * (P1 + square * P2);
    1.0 + (r * c / (2.0 - c) - low + high)
}

/// Returns the natural logarithm.
#[inline]
pub fn ln(x: f32) -> f32 {
    libm::logf(x)
}

/// Returns the sine of an angle in radians.
#[inline]
pub fn sin(x: f32) -> f32 {
    libm::sinf(x)
}

/// Returns the cosine of an angle in radians.
#[inline]
pub fn cos(x: f32) -> f32 {
    libm::cosf(x)
}

/// Returns the hyperbolic tangent.
#[inline]
pub fn tanh(x: f32) -> f32 {
    libm::tanhf(x)
}

/// Returns ln(1 + x), accurate near 0.
#[inline]
pub fn ln_1p(x: f32) -> f32 {
    libm::log1pf(x)
}

/// Returns the square root, correctly rounded.
#[inline]
pub fn sqrt(x: f32) -> f32 {
    // Both give the same number, because a correctly rounded root is unique. libm's is faster, but
    // takes half a kilobyte with its table, and a device computes one root per step.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    return libm::sqrtf(x);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return sqrt_by_heron(x);
}

/// Computes [`sqrt`] by three steps of Heron's method, and a correction in integers.
///
/// A first guess from the bit pattern is within 7 %. Each step turns an error e into about e²/2, so
/// after three steps only the rounding of the last one remains, less than a unit. For x = s · 2^(2
/// half), with s from 1 to 4, the guess is R units of 2⁻²³. With m = s · 2⁴⁶ the correct R is the
/// integer next to √m: R² − R < m ≤ R² + R. There are no ties, as (R + ½)² is not an integer.
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn sqrt_by_heron(x: f32) -> f32 {
    if x < 0.0 {
        return f32::NAN;
    }
    let pattern = x.to_bits();
    // Zeros, infinity and NaN are their own roots.
    if pattern << 1 == 0 || pattern >= f32::INFINITY.to_bits() {
        return x;
    }
    let (significand, exponent) = match pattern >> 23 {
        // A subnormal number has the exponent of the smallest normal one, and no hidden bit.
        0 => {
            let spare = pattern.leading_zeros() - 8;
            (pattern << spare, 1 - spare as i32)
        }
        exponent => ((pattern & 0x007f_ffff) | 0x0080_0000, exponent as i32),
    };
    let (half, odd) = ((exponent - 127) >> 1, (exponent - 127) & 1);
    let one_to_four = (significand & 0x007f_ffff) | ((127 + odd as u32) << 23);
    let square = f32::from_bits(one_to_four);
    let mut root = f32::from_bits((one_to_four >> 1) + (127 << 22));
    for _ in 0..3 {
        root = 0.5 * (root + square / root);
    }
    // Exact: 2²³ to 2²⁴.
    let guess = (root * 8_388_608.0) as u32;
    // m − R², at most a few times R, from the lowest 32 bits of both.
    let rest = (significand << (23 + odd)).wrapping_sub(guess.wrapping_mul(guess)) as i32;
    let units = guess as i32;
    let nearest = units + i32::from(rest > units) - i32::from(rest <= -units);
    // The hidden bit adds one to the exponent.
    f32::from_bits((((half + 126) as u32) << 23) + nearest as u32)
}

/// Returns the absolute value.
#[inline]
pub fn abs(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & 0x7fff_ffff)
}

/// Returns ln(1 + eˣ) without overflow: max(x, 0) + ln(1 + e^−|x|).
#[inline]
pub fn softplus(x: f32) -> f32 {
    let positive = if x > 0.0 { x } else { 0.0 };
    positive + ln_1p(exp_below_one(-abs(x)))
}

/// Returns 1 / (1 + e⁻ˣ) without overflow.
#[inline]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp_below_one(-abs(x));
    if x >= 0.0 {
        1.0 / (1.0 + e)
    } else {
        e / (1.0 + e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softplus_and_sigmoid_are_finite_at_the_ends_of_the_range() {
        for x in [-f32::MAX, -1e4, -100.0, 0.0, 100.0, 1e4, f32::MAX] {
            assert!(softplus(x).is_finite(), "softplus({x})");
            let p = sigmoid(x);
            assert!((0.0..=1.0).contains(&p), "sigmoid({x}) = {p}");
        }
        assert_eq!(softplus(1e4).to_bits(), 1e4f32.to_bits());
        assert_eq!(sigmoid(0.0).to_bits(), 0.5f32.to_bits());
    }

    /// All significands with an even and an odd exponent. Other exponents only shift the result.
    #[test]
    fn both_square_roots_have_the_same_bits() {
        for pattern in 0x3f80_0000..0x4080_0000 {
            let x = f32::from_bits(pattern);
            assert_eq!(sqrt_by_heron(x).to_bits(), libm::sqrtf(x).to_bits(), "{x}");
        }
    }

    #[test]
    fn square_roots_at_the_ends_of_the_range_have_the_same_bits() {
        let ends = [
            0,
            1,
            2,
            3,
            0x007f_ffff,
            0x0080_0000,
            0x0080_0001,
            0x7f7f_ffff,
            0x7f80_0000,
        ];
        let others = (0..0x7f80_0000).step_by(999_983);
        for pattern in ends.into_iter().chain(others) {
            let x = f32::from_bits(pattern);
            assert_eq!(sqrt_by_heron(x).to_bits(), libm::sqrtf(x).to_bits(), "{x}");
        }
        assert_eq!(sqrt_by_heron(-0.0).to_bits(), (-0.0_f32).to_bits());
        assert!(sqrt_by_heron(-1.0).is_nan() && sqrt_by_heron(f32::NAN).is_nan());
    }

    #[test]
    fn nan_stays_nan() {
        assert!(softplus(f32::NAN).is_nan());
        assert!(sigmoid(f32::NAN).is_nan());
    }

    /// The figures of `docs/targets.md`: the range used by softmax, and the effect on the losses of
    /// models.
    #[cfg(feature = "micromath")]
    #[test]
    fn the_approximation_is_as_good_as_written() {
        let mut worst = [0.0_f64; 2];
        for i in 0..=200_000 {
            let x = -(i as f32) * 1e-4;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs();
            worst[0] = worst[0].max(error / exact);
            worst[1] = worst[1].max(error);
        }
        std::println!(
            "exp on -20..=0: relative error {}, absolute {}",
            worst[0],
            worst[1]
        );
        assert!(worst[0] < 2.5e-3 && worst[1] < 1.2e-3, "{worst:?}");
    }

    /// Every 1,009th bit pattern, and all near those with a branch.
    // micromath asserts in test builds that no result overflows, and computes them one after the
    // other.
    #[cfg(not(feature = "micromath"))]
    #[test]
    fn exponentials_side_by_side_have_the_bits_of_single_ones() {
        let near = [
            0x3900_0000,
            0x3eb1_7218,
            0x3f85_1592,
            0x42ae_0000,
            0x42b0_0000,
        ];
        let near = near.into_iter().flat_map(|at: u32| at - 999..at + 999);
        let patterns = near.flat_map(|at| [at, at | 0x8000_0000]);
        let mut patterns = patterns.chain((0..=u32::MAX).step_by(1_009));
        let mut block = [0.0f32; 21];
        while let Some(first) = patterns.next() {
            block.fill(f32::from_bits(first));
            for x in &mut block[1..] {
                *x = patterns.next().map_or(0.0, f32::from_bits);
            }
            // A large entry in a block affects the path of the whole block.
            let small = block.map(|x| if x.abs() < 88.0 { x } else { 1.0 });
            for block in [block, small] {
                let mut found = block;
                exp_each(&mut found);
                assert_eq!(
                    found.map(f32::to_bits),
                    block.map(|x| exp(x).to_bits()),
                    "{block:?}"
                );
            }
        }
    }

    /// Every 211th bit pattern, and all near those with a branch.
    #[cfg(not(feature = "micromath"))]
    #[test]
    fn an_exponential_below_one_has_the_bits_of_libm() {
        let near = [
            0x3900_0000,
            0x3eb1_7218,
            0x3f85_1592,
            0x42ae_ac4f,
            0x42cf_f1b5,
            0x7f80_0000_u32,
        ];
        let near = near.into_iter().flat_map(|at| at - 9_999..at + 9_999);
        for pattern in near.chain((0..0x7f80_0000).step_by(211)) {
            let x = f32::from_bits(pattern | 0x8000_0000);
            let (found, expected) = (exp_below_one(x), libm::expf(x));
            assert!(
                found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                "exp({x}) is {found}, not {expected}"
            );
        }
        assert_eq!(exp_below_one(0.0).to_bits(), 1.0_f32.to_bits());
    }

    #[cfg(not(feature = "micromath"))]
    #[test]
    fn exp_and_ln_keep_their_bits() {
        // Pinned on x86-64. Every other target must give the same bits.
        let pins = [
            (1.0f32, 0x402d_f854u32),
            (-0.5, 0x3f1b_4598),
            (-20.0, 0x310d_a433),
        ];
        for (x, bits) in pins {
            assert_eq!(exp(x).to_bits(), bits, "exp({x}) = {:#x}", exp(x).to_bits());
        }
        assert_eq!(ln(10.0).to_bits(), 0x4013_5d8e);
    }
}
