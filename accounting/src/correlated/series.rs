//! Power series modulo xⁿ by Fourier transforms: inverses, and the weights of prefix sums.

use crate::fourier::{Complex, Transform};

/// Plans for series of one length.
#[derive(Debug)]
pub(super) struct Series {
    /// n, the number of coefficients.
    length: usize,
    /// The lengths of the steps of Newton's iteration, from 2 to n, each with a transform of at
    /// least that length.
    steps: Vec<(usize, Transform)>,
    /// The transform for products of two series: 2n or more.
    product: Transform,
}

impl Series {
    pub(super) fn new(length: usize) -> Self {
        let mut lengths = Vec::new();
        let mut step = length;
        while step > 1 {
            lengths.push(step);
            step = step.div_ceil(2);
        }
        let steps = lengths.into_iter().rev();
        Self {
            length,
            steps: steps.map(|step| (step, transform(step))).collect(),
            product: transform(2 * length),
        }
    }

    /// Returns B, the first n coefficients of 1 / ((1 - x) C(x)) for coefficients c with c₀ ≠ 0:
    /// the weights of past noise in an estimated prefix sum.
    pub(super) fn prefix_weights(&self, c: &[f64]) -> Vec<f64> {
        let mut weights = self.inverse(c);
        let mut sum = 0.0;
        for weight in &mut weights {
            sum += *weight;
            *weight = sum;
        }
        weights
    }

    /// Returns the first n coefficients of 1 / C(x), by Newton's iteration r <- r - r (C r - 1),
    /// which doubles the number of correct coefficients.
    fn inverse(&self, c: &[f64]) -> Vec<f64> {
        let Some(first) = c.first() else {
            return Vec::new();
        };
        let mut inverse = vec![1.0 / first];
        for (length, transform) in &self.steps {
            let known = inverse.len();
            // Cyclic products: wrap-around affects only entries below `known`, which are known.
            let of_inverse = spectrum(transform, &inverse);
            let of_c = spectrum(transform, c.get(..*length).unwrap_or(c));
            let mut error = cyclic(transform, &of_c, &of_inverse);
            error.truncate(*length);
            error.iter_mut().take(known).for_each(|known| *known = 0.0);
            let correction = cyclic(transform, &spectrum(transform, &error), &of_inverse);
            let new = correction.iter().take(*length).skip(known);
            inverse.extend(new.map(|x| -x));
        }
        inverse
    }

    /// Returns the first n coefficients of the square of a series of at most n coefficients.
    pub(super) fn square(&self, a: &[f64]) -> Vec<f64> {
        let of_a = spectrum(&self.product, a);
        let mut product = cyclic(&self.product, &of_a, &of_a);
        product.truncate(self.length);
        product
    }

    /// Returns Σₜ uₜ v₍ₜ₋ⱼ₎ for j from 0 up to `lags` for two vectors of n entries.
    pub(super) fn correlation(&self, u: &[f64], v: &[f64], lags: usize) -> Vec<f64> {
        let of_u = spectrum(&self.product, u);
        let mut of_v = spectrum(&self.product, v);
        of_v.iter_mut().for_each(|x| *x = x.conj());
        let mut correlation = cyclic(&self.product, &of_u, &of_v);
        correlation.truncate(lags);
        correlation
    }
}

/// Returns a transform of the smallest length of the form 2ᵃ·3ᵇ that is at least `length`.
fn transform(length: usize) -> Transform {
    let powers = std::iter::successors(Some(1_usize), |power| power.checked_mul(3));
    let candidates = powers
        .take_while(|power| *power < 2 * length)
        .map(|power| power * length.div_ceil(power).next_power_of_two());
    Transform::new(candidates.min().unwrap_or(1))
}

fn spectrum(transform: &Transform, v: &[f64]) -> Vec<Complex> {
    let mut padded = vec![0.0; transform.len()];
    for (to, from) in padded.iter_mut().zip(v) {
        *to = *from;
    }
    transform.forward(&mut padded)
}

fn cyclic(transform: &Transform, a: &[Complex], b: &[Complex]) -> Vec<f64> {
    let mut product: Vec<Complex> = a.iter().zip(b).map(|(a, b)| a * b).collect();
    transform.inverse(&mut product)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coefficients(length: usize) -> Vec<f64> {
        (0..length).map(|j| 1.0 / (1.0 + j as f64)).collect()
    }

    #[test]
    fn weights_are_those_of_the_recurrence() {
        for (length, bands) in [(1, 1), (2, 2), (3, 1), (7, 3), (100, 100), (1000, 17)] {
            let c = coefficients(bands);
            let found = Series::new(length).prefix_weights(&c);
            assert_eq!(found.len(), length);
            let mut expected: Vec<f64> = Vec::new();
            for t in 0..length {
                let past = (1..bands.min(t + 1)).map(|j| c[j] * expected[t - j]);
                expected.push(1.0 - past.sum::<f64>());
            }
            for (a, b) in found.iter().zip(&expected) {
                assert!((a - b).abs() < 1e-12, "{length} {bands}: {a} {b}");
            }
        }
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for length in [1, 2, 5, 48] {
            let (series, a) = (Series::new(length), coefficients(length));
            let u: Vec<f64> = a.iter().map(|x| 1.0 - x * x).collect();
            let square = series.square(&a);
            let correlation = series.correlation(&u, &a, length);
            for j in 0..length {
                let expected: f64 = (0..=j).map(|i| a[i] * a[j - i]).sum();
                assert!((square[j] - expected).abs() < 1e-12);
                let expected: f64 = (j..length).map(|t| u[t] * a[t - j]).sum();
                assert!((correlation[j] - expected).abs() < 1e-12);
            }
        }
    }
}
