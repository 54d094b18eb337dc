//! Powers of numbers just below 1, without cancellation.

use core::ops::{Add, Mul, Sub};

/// Returns `1 - (1 - gap)^d` for d > 0 by repeated squaring. Exact to a few ulps, because it
/// squares differences from 1: `1 - (1 - a)(1 - b) = a + b - ab` does not cancel.
pub(super) fn one_minus_power<T>(gap: T, d: usize) -> T
where
    T: Copy + Add<Output = T> + Sub<Output = T> + Mul<Output = T>,
{
    let join = |a: T, b: T| a + b - a * b;
    let mut result = gap;
    for bit in (0..d.checked_ilog2().unwrap_or(0)).rev() {
        result = join(result, result);
        if (d >> bit) & 1 == 1 {
            result = join(result, gap);
        }
    }
    result
}
