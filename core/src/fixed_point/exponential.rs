//! e^−x and ln x by tables, with products of 16 bits, as the smallest processors can multiply.
//!
//! With x = k + i/32 + r, k < 16, i < 32 and 0 ≤ r < 1/32:
//! `e^−x = e^−k · e^−(i/32) · (1 − (r − r²/2))`, up to r³/6 < 5.1 · 10⁻⁶. The tables are exact to
//! half a unit of 2⁻¹⁷ and 2⁻¹⁶, and each product is rounded once. The error of the result is at
//! most [`EXP_ERROR`], which a test measures on every argument.

/// The largest error of [`exp_of_minus`], in units of 2⁻¹⁶.
#[cfg(test)]
pub(super) const EXP_ERROR: f64 = 1.3;

/// e^−k in units of 2⁻¹⁷, from k = 1.
const WHOLE: [u16; 15] = [
    48_219, 17_739, 6_526, 2_401, 883, 325, 120, 44, 16, 6, 2, 1, 0, 0, 0,
];

/// e^−(i/32) in units of 2⁻¹⁶. The first is 1.
const PART: [u32; 32] = [
    65_536, 63_520, 61_565, 59_671, 57_835, 56_056, 54_331, 52_660, 51_039, 49_469, 47_947, 46_472,
    45_042, 43_656, 42_313, 41_011, 39_750, 38_527, 37_341, 36_192, 35_079, 34_000, 32_954, 31_940,
    30_957, 30_005, 29_081, 28_187, 27_319, 26_479, 25_664, 24_875,
];

/// Returns e^−x in units of 2⁻¹⁶, for x in units of 2⁻¹⁶: 65,536 for 0, and 0 from 16 on.
#[inline(always)]
pub(super) fn exp_of_minus(x: u32) -> u32 {
    let Some(part) = PART.get((x >> 11 & 31) as usize) else {
        return 0;
    };
    let r = x & 0x7ff;
    // r − r²/2 in units of 2⁻²⁰: below 2¹⁵, as r is below 2¹¹ units of 2⁻¹⁶.
    let missing = (r << 4) - ((r * r) >> 13);
    // The product is below 2¹⁶ · 2¹⁵.
    let fine = part - ((part * missing + 0x8_0000) >> 20);
    match (x >> 16) as usize {
        0 => fine,
        // At most 2¹⁶ · 48,219 and half a unit: below 2³².
        k => WHOLE
            .get(k - 1)
            .map_or(0, |whole| (fine * u32::from(*whole) + 0x1_0000) >> 17),
    }
}

/// ln(1 + i/32) in units of 2⁻¹⁶.
const LOGARITHM: [u32; 33] = [
    0, 2_017, 3_973, 5_873, 7_719, 9_515, 11_262, 12_965, 14_624, 16_242, 17_821, 19_364, 20_870,
    22_343, 23_783, 25_193, 26_573, 27_924, 29_248, 30_546, 31_818, 33_067, 34_292, 35_494, 36_675,
    37_835, 38_975, 40_095, 41_196, 42_280, 43_345, 44_394, 45_426,
];

/// ln 2 in units of 2⁻¹⁶.
const LN_2: u32 = 45_426;

/// Returns ln x in units of 2⁻¹⁶, for x ≥ 1 in units of 2⁻¹⁶, with an error below 2⁻¹². For reports
/// and answers.
#[inline(always)]
pub(super) fn ln(x: u32) -> u32 {
    let zeros = x.leading_zeros().min(15);
    // The digits after the first, as 31 bits: five select an interval, and 16 a place in it.
    let digits = x << zeros << 1;
    let index = (digits >> 27) as usize;
    let place = digits >> 11 & 0xffff;
    let at = |index: usize| LOGARITHM.get(index).copied().unwrap_or(LN_2);
    let (low, high) = (at(index), at(index + 1));
    // A step of the table is at most 2,017.
    low + (((high - low) * place) >> 16) + (15 - zeros) * LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_rounded_to_the_nearest() {
        for (k, entry) in (1..).zip(&WHOLE) {
            let exact = 131_072.0 * (-f64::from(k)).exp();
            assert_eq!(f64::from(*entry), exact.round(), "e^-{k}");
        }
        for (i, entry) in PART.iter().enumerate() {
            let exact = 65_536.0 * (-(i as f64) / 32.0).exp();
            assert_eq!(f64::from(*entry), exact.round(), "e^-{i}/32");
        }
        for (i, entry) in LOGARITHM.iter().enumerate() {
            let exact = 65_536.0 * (i as f64 / 32.0).ln_1p();
            assert_eq!(f64::from(*entry), exact.round(), "ln(1 + {i}/32)");
        }
    }

    /// Every argument up to 16, and some beyond.
    #[test]
    fn the_exponential_is_within_its_error() {
        let mut worst: f64 = 0.0;
        for x in (0..=1 << 20).chain([1 << 24, u32::MAX]) {
            let exact = 65_536.0 * (-f64::from(x) / 65_536.0).exp();
            worst = worst.max((f64::from(exp_of_minus(x)) - exact).abs());
        }
        assert!(worst <= EXP_ERROR, "{worst}");
        assert_eq!(exp_of_minus(0), 65_536);
    }

    #[test]
    fn the_logarithm_is_within_its_error() {
        let ends = [1 << 16, (1 << 16) + 1, (1 << 17) - 1, 1 << 17, u32::MAX];
        for x in (0..1 << 20).map(|i| 65_536 + i * 4_095).chain(ends) {
            let exact = (f64::from(x) / 65_536.0).ln();
            let error = f64::from(ln(x)) / 65_536.0 - exact;
            assert!(error.abs() < 1.0 / 4_096.0, "{x}: {error}");
        }
    }
}
