//! The lengths of the parameter tensors of a model (weights, biases), in their order, and the
//! largest number of tensors.

/// Lengths of the parameter tensors of a model, in order. `MAX` is the maximum number of tensors,
/// so that a model of two tensors takes the memory of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensors<const MAX: usize = MAX_TENSORS> {
    lengths: [usize; MAX],
    count: usize,
}

/// Maximum number of tensors of any model: three for each layer of a network.
pub const MAX_TENSORS: usize = 36;

impl Tensors<2> {
    /// Returns the two tensors of an affine layer: weights and biases.
    pub const fn affine(features: usize, outputs: usize) -> Self {
        // A saturated product describes a model that no slice can match, and use of it fails.
        Self {
            lengths: [features.saturating_mul(outputs), outputs],
            count: 2,
        }
    }

    /// Returns the sum of the lengths of [`Self::affine`], without a loop, so that it is constant
    /// for constant sizes.
    #[inline(always)]
    pub const fn affine_total(features: usize, outputs: usize) -> usize {
        features.saturating_mul(outputs).saturating_add(outputs)
    }
}

impl Tensors<4> {
    /// Returns the four tensors of two stacked affine layers.
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
}

impl<const MAX: usize> Tensors<MAX> {
    /// Returns the tensors with these lengths, at most the first `MAX`.
    pub fn of(lengths: impl IntoIterator<Item = usize>) -> Self {
        let mut tensors = Self {
            lengths: [0; MAX],
            count: 0,
        };
        for (slot, length) in tensors.lengths.iter_mut().zip(lengths) {
            *slot = length;
            tensors.count += 1;
        }
        tensors
    }

    /// Returns the lengths.
    #[inline]
    pub fn as_slice(&self) -> &[usize] {
        self.lengths.get(..self.count).unwrap_or_default()
    }

    /// Returns the sum of the lengths.
    #[inline]
    pub const fn total(&self) -> usize {
        let mut total = 0_usize;
        let mut i = 0;
        while i < MAX {
            total = total.saturating_add(self.lengths[i]);
            i += 1;
        }
        total
    }
}

impl<const MAX: usize> AsRef<[usize]> for Tensors<MAX> {
    #[inline]
    fn as_ref(&self) -> &[usize] {
        self.as_slice()
    }
}
