//! Soft thresholding at the universal threshold (Balle, Wang 2018, arXiv:1805.06530, Section 4):
//! `sign(y) · max(0, |y| − ν √(2 ln d))`.

use super::tensor::{Denoise, Tensor};

/// The denoiser.
#[derive(Debug)]
pub(super) struct SoftThreshold;

impl Denoise for SoftThreshold {
    fn apply(&self, tensor: Tensor<'_>) {
        let Tensor {
            values, noise_std, ..
        } = tensor;
        let threshold = noise_std * libm::sqrt(2.0 * libm::log(values.len() as f64));
        for y in values {
            let magnitude = (f64::from(y.abs()) - threshold).max(0.0) as f32;
            *y = magnitude.copysign(*y);
        }
    }
}
