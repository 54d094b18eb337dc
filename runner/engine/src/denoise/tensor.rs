//! What a denoiser is, and what it works on.

/// One parameter tensor of the noisy average.
pub struct Tensor<'a> {
    /// Its values, flattened class by class.
    pub values: &'a mut [f32],
    /// Standard deviation of the noise on each value.
    pub noise_std: f64,
    /// Which of the tensors it is.
    pub index: usize,
}

/// A denoiser of one tensor after the other.
pub trait Denoise: std::fmt::Debug + Send + Sync {
    /// Denoises a tensor in place.
    fn apply(&self, tensor: Tensor<'_>);
}
