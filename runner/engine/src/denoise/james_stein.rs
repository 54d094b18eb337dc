//! Positive-part James-Stein shrinkage towards zero (Balle, Wang 2018, arXiv:1805.06530,
//! Section 4): `max(0, 1 − (d − 2) ν² / ‖y‖²) · y`.

use super::tensor::{Denoise, Tensor};

/// The denoiser.
#[derive(Debug)]
pub(super) struct JamesStein;

impl Denoise for JamesStein {
    fn apply(&self, tensor: Tensor<'_>) {
        let Tensor {
            values, noise_std, ..
        } = tensor;
        let squares: f64 = values.iter().map(|y| f64::from(*y) * f64::from(*y)).sum();
        let surplus = (values.len() as f64 - 2.0) * noise_std * noise_std;
        // A tensor of zeros stays zero, where the plain factor would be 0/0.
        let factor = if squares > 0.0 {
            (1.0 - surplus / squares).max(0.0)
        } else {
            0.0
        };
        for y in values {
            *y = (f64::from(*y) * factor) as f32;
        }
    }
}
