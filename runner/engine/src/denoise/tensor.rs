//! The interface (trait) of a denoiser that works tensor by tensor, and its argument.

/// One parameter tensor of the noisy average.
pub struct Tensor<'a> {
    /// Its values, flattened class by class.
    pub values: &'a mut [f32],
    /// Standard deviation of the noise on each value.
    pub noise_std: f64,
    /// Index of the tensor.
    pub index: usize,
}

/// A denoiser that processes tensors one by one.
pub trait Denoise: std::fmt::Debug + Send + Sync {
    /// Denoises a tensor in place.
    fn apply(&self, tensor: Tensor<'_>);
}
