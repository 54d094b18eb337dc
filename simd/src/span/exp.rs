//! The exponential eˣ of whole vectors, for x of at most 0, with its bound on the error.

use pulp::Simd;

/// Returns eˣ for x ≤ 0, within 2 units in the last place. Below −87 it is e⁻⁸⁷, or 1.6e-38.
///
/// x = n ln 2 + r with |r| ≤ ln 2 / 2. eʳ is a polynomial (S. Moshier, Cephes, `expf`), and n is
/// added to its exponent.
#[inline(always)]
pub(super) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    /// 1.5 · 2²³: adding it rounds to an integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts. Multiples of the first part are exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    /// Coefficients of r⁷ down to r², over (eʳ − 1 − r) / r².
    const COEFFICIENTS: [f32; 6] = [
        1.987_569_1e-4,
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        5e-1,
    ];
    let splat = |x| simd.splat_f32s(x);
    let x = simd.max_f32s(x, splat(-87.0));
    let shifted = simd.mul_add_e_f32s(x, splat(std::f32::consts::LOG2_E), splat(ROUND));
    let n = simd.sub_f32s(shifted, splat(ROUND));
    let r = simd.mul_add_e_f32s(n, splat(-LN_2[0]), x);
    let r = simd.mul_add_e_f32s(n, splat(-LN_2[1]), r);
    let mut p = splat(COEFFICIENTS[0]);
    for c in &COEFFICIENTS[1..] {
        p = simd.mul_add_e_f32s(p, r, splat(*c));
    }
    let p = simd.mul_add_e_f32s(simd.mul_f32s(r, r), p, simd.add_f32s(r, splat(1.0)));
    // 2ⁿ by its exponent: p is about 1, and n is at least −126.
    let n = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(23));
    simd.transmute_f32s_u32s(simd.add_u32s(simd.transmute_u32s_f32s(p), n))
}
