//! A tensor of a model: what it is called in files, and its shape.

/// A tensor of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorLayout {
    /// Its name in `model.safetensors`.
    pub name: String,
    /// Lengths of its axes: outputs first, as in PyTorch. That of a bias has one axis.
    pub shape: Vec<usize>,
    /// Rows and columns of what the weights of each output lie on, if that is an image.
    pub image: Option<[usize; 2]>,
}

impl TensorLayout {
    /// Whether it has an entry for each output, and no weights.
    #[must_use]
    pub const fn is_bias(&self) -> bool {
        self.shape.len() == 1
    }

    /// Number of entries.
    #[must_use]
    pub fn length(&self) -> usize {
        self.shape.iter().product()
    }

    /// Outputs of the layer that it belongs to.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }
}
