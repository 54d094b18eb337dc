//! Laplacian smoothing: A_σ⁻¹ on each tensor (Liang et al. 2020, arXiv:2005.00218, Algorithm 1).

use smolfed_core::smooth::LaplacianSmoothing;

use super::tensor::{Denoise, Tensor};
use crate::denoise::flattening::Flattenings;

/// The denoiser.
#[derive(Debug)]
pub(super) struct Laplacian {
    /// A_σ.
    pub smoothing: LaplacianSmoothing,
    /// Axes for smoothing each tensor.
    pub flattenings: Flattenings,
}

impl Denoise for Laplacian {
    fn apply(&self, tensor: Tensor<'_>) {
        let flattening = self.flattenings.of_tensor(tensor.index);
        flattening.smooth(&self.smoothing, tensor.values);
    }
}
