//! A tensor of a model: its name in files, and its shape.

/// A tensor of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorLayout {
    /// Its name in `model.safetensors`.
    pub name: String,
    /// Lengths of its axes: outputs first, as in PyTorch. A bias has one axis.
    pub shape: Vec<usize>,
    /// Rows and columns of the image that the weights of each output cover, if there is one.
    pub image: Option<[usize; 2]>,
}

impl TensorLayout {
    /// Returns whether it is a bias, with an entry per output and no weights.
    #[must_use]
    pub const fn is_bias(&self) -> bool {
        self.shape.len() == 1
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn length(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the number of outputs of its layer.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }
}
