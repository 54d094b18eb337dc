//! Laplacian smoothing: A_σ⁻¹ on each tensor (Liang et al. 2020, arXiv:2005.00218, Algorithm 1).

use smolfed_core::smooth::LaplacianSmoothing;

use super::tensor::{Denoise, Tensor};

/// The denoiser.
#[derive(Debug)]
pub(super) struct Laplacian {
    /// A_σ.
    pub smoothing: LaplacianSmoothing,
    /// Axes of the input along which weights are smoothed; empty for the flat tensor.
    pub axes: Vec<usize>,
}

impl Denoise for Laplacian {
    fn apply(&self, tensor: Tensor<'_>) {
        let is_grid = tensor.has_axes && !self.axes.is_empty();
        // Axes that do not divide the tensor are refused before a run starts.
        if !(is_grid && self.smoothing.apply_grid(tensor.values, &self.axes).is_ok()) {
            self.smoothing.apply(tensor.values);
        }
    }
}
