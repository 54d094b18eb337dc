//! Fourier transforms of real `f64` vectors of one length.
//!
//! rustfft is generic over its float, so it is compiled where `f64` is named: half a million lines
//! of intermediate code. It is compiled here once for all dependent crates.

use std::fmt;
use std::sync::Arc;

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

/// A complex coefficient.
pub type Complex = realfft::num_complex::Complex<f64>;

/// Plans for both directions and vectors of one length. They are cheap to clone and shared by
/// threads.
#[derive(Clone)]
pub struct Transform {
    forward: Arc<dyn RealToComplex<f64>>,
    inverse: Arc<dyn ComplexToReal<f64>>,
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transform").field(&self.len()).finish()
    }
}

impl Transform {
    /// Plans the transforms of vectors of `length` entries. Products of small primes are fast, and
    /// every length takes O(n log n).
    #[must_use]
    pub fn new(length: usize) -> Self {
        let mut planner = RealFftPlanner::new();
        Self {
            forward: planner.plan_fft_forward(length),
            inverse: planner.plan_fft_inverse(length),
        }
    }

    /// Returns the number of entries of a vector.
    #[must_use]
    pub fn len(&self) -> usize {
        self.forward.len()
    }

    /// Returns whether the vectors are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the first `len / 2 + 1` coefficients Σ vⱼ·exp(−2πi·jk/len). The rest are their
    /// conjugates. `v` is used as working memory. Empty if `v` has another length.
    #[must_use]
    pub fn forward(&self, v: &mut [f64]) -> Vec<Complex> {
        if v.len() != self.len() || v.is_empty() {
            return Vec::new();
        }
        let mut coefficients = self.forward.make_output_vec();
        match self.forward.process(v, &mut coefficients) {
            Ok(()) => coefficients,
            Err(_) => Vec::new(),
        }
    }

    /// Returns the vector of these coefficients: the inverse of [`forward`](Self::forward), divided
    /// by the length. The imaginary parts of the first and, for even lengths, of the last are
    /// ignored. Empty if there are not `len / 2 + 1` of them.
    #[must_use]
    pub fn inverse(&self, coefficients: &mut [Complex]) -> Vec<f64> {
        let mut v = self.inverse.make_output_vec();
        let even = v.len().is_multiple_of(2);
        if coefficients.len() != v.len() / 2 + 1 || v.is_empty() {
            return Vec::new();
        }
        if let Some(first) = coefficients.first_mut() {
            first.im = 0.0;
        }
        if let Some(last) = coefficients.last_mut().filter(|_| even) {
            last.im = 0.0;
        }
        match self.inverse.process(coefficients, &mut v) {
            Ok(()) => {
                let scale = 1.0 / v.len() as f64;
                v.iter_mut().for_each(|x| *x *= scale);
                v
            }
            Err(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_are_those_of_the_definition_and_come_back() {
        for length in [1, 2, 7, 16, 45] {
            let v: Vec<f64> = (0..length).map(|i| ((i * 7) % 5) as f64 - 1.5).collect();
            let transform = Transform::new(length);
            let mut coefficients = transform.forward(&mut v.clone());
            assert_eq!(coefficients.len(), length / 2 + 1);
            for (k, found) in coefficients.iter().enumerate() {
                let step = -2.0 * std::f64::consts::PI * k as f64 / length as f64;
                let expected: Complex = v
                    .iter()
                    .enumerate()
                    .map(|(j, x)| Complex::from_polar(*x, step * j as f64))
                    .sum();
                assert!((expected - found).norm() < 1e-12 * length as f64);
            }
            let back = transform.inverse(&mut coefficients);
            assert!(v.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }

    #[test]
    fn a_wrong_length_gives_nothing() {
        let transform = Transform::new(8);
        assert!(transform.forward(&mut [1.0; 7]).is_empty());
        assert!(transform.inverse(&mut [Complex::default(); 8]).is_empty());
        assert_eq!(Transform::new(8).len(), 8);
        assert!(Transform::new(0).is_empty());
        assert!(Transform::new(0).forward(&mut []).is_empty());
        assert!(
            Transform::new(0)
                .inverse(&mut [Complex::default()])
                .is_empty()
        );
    }
}
