//! The parts of a model's parameters.

/// Lengths of the parameter tensors of a model, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensors {
    lengths: [usize; Self::MAX],
    count: usize,
}

impl Tensors {
    /// Tensors of a model, at most.
    const MAX: usize = 4;

    /// The two tensors of an affine layer: weights and biases.
    pub const fn affine(features: usize, outputs: usize) -> Self {
        // A product that does not fit names a model that no slice can match: refused at its use.
        Self {
            lengths: [features.saturating_mul(outputs), outputs, 0, 0],
            count: 2,
        }
    }

    /// The four tensors of two affine layers, one above the other.
    pub const fn two_layers(features: usize, hidden: usize, outputs: usize) -> Self {
        Self {
            lengths: [
                features.saturating_mul(hidden),
                hidden,
                hidden.saturating_mul(outputs),
                outputs,
            ],
            count: 4,
        }
    }

    /// The lengths.
    pub fn as_slice(&self) -> &[usize] {
        self.lengths.get(..self.count).unwrap_or_default()
    }

    /// Sum of the lengths.
    pub const fn total(&self) -> usize {
        let [a, b, c, d] = self.lengths;
        a.saturating_add(b).saturating_add(c).saturating_add(d)
    }
}
