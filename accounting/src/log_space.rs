//! Arithmetic on logarithms: sums of huge and tiny positive numbers that never overflow.

/// Returns ln(e^y - 1) for y ≥ 0, without overflow for large y or cancellation for small y.
pub(crate) fn ln_expm1(y: f64) -> f64 {
    if y > 37.0 {
        // e^-y is below half an ulp of 1.
        y
    } else {
        y.exp_m1().ln()
    }
}

/// Returns ln(1 + e^y).
pub(crate) fn ln_1p_exp(y: f64) -> f64 {
    if y > 37.0 { y } else { y.exp().ln_1p() }
}

/// Returns ln of the sum of the exponentials of `terms`. -infinity for none.
pub(crate) fn ln_sum_exp(terms: &[f64]) -> f64 {
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        return largest;
    }
    let sum: f64 = terms.iter().map(|term| (term - largest).exp()).sum();
    largest + sum.ln()
}

/// Returns ln n! for n = 0, 1, ..., `last`, by one running sum.
pub(crate) fn ln_factorials(last: usize) -> Vec<f64> {
    let mut sum = 0.0_f64;
    let mut lost = 0.0_f64;
    let mut table = Vec::with_capacity(last + 1);
    table.push(0.0);
    for n in 1..=last {
        // Kahan's correction keeps 170 000 additions as exact as one.
        let term = (n as f64).ln() - lost;
        let next = sum + term;
        lost = (next - sum) - term;
        sum = next;
        table.push(sum);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_logarithms_neither_overflow_nor_vanish() {
        assert!((ln_sum_exp(&[1e6, 1e6]) - (1e6 + 2f64.ln())).abs() < 1e-9);
        assert!((ln_sum_exp(&[-1e6, -1e6]) - (-1e6 + 2f64.ln())).abs() < 1e-9);
        assert!(ln_sum_exp(&[]).is_infinite());
        assert!((ln_expm1(1e-12) - (1e-12f64).ln()).abs() < 1e-9);
        assert!((ln_expm1(800.0) - 800.0).abs() < 1e-12);
        assert!((ln_1p_exp(800.0) - 800.0).abs() < 1e-12);
    }

    #[test]
    fn factorials_agree_with_the_gamma_function() {
        let table = ln_factorials(600);
        for n in [0usize, 1, 2, 10, 170, 600] {
            let exact = libm::lgamma(n as f64 + 1.0);
            assert!((table[n] - exact).abs() <= 1e-13 * exact.max(1.0), "{n}");
        }
    }
}
