//! The Gram matrix of a device's samples: the products of all pairs, and its bytes of memory.

use pulp::{Arch, Simd, WithSimd};
use smolfed_core::samples::Samples;

use super::products;
use crate::aligned::Aligned;
use crate::rows::Rows;

/// A matrix row, with one entry per sample, fills whole vectors of any machine.
pub(super) const PADDING: usize = 16;

/// The products of all pairs of a device's samples, each with a 1 for the bias. It depends only on
/// the samples, so it can be cached between rounds.
pub struct Gram {
    values: Aligned,
    stride: usize,
}

impl Gram {
    /// Computes the matrix of these samples. The same samples give the same bits on one machine.
    #[must_use]
    pub fn new<T: Copy + Default>(samples: &Rows<'_, T>) -> Self {
        let samples: Vec<_> = (0..samples.len()).map(|s| samples.features(s)).collect();
        let stride = samples.len().next_multiple_of(PADDING);
        let mut values = Aligned::default();
        values.resize(samples.len() * stride);
        values.fill(0.0);
        Arch::new().dispatch(Fill {
            samples: &samples,
            stride,
            values: &mut values,
        });
        Self { values, stride }
    }

    /// Returns the bytes of memory for this many samples.
    #[must_use]
    pub const fn bytes(samples: usize) -> usize {
        let row = samples.next_multiple_of(PADDING) * size_of::<f32>();
        samples.saturating_mul(row)
    }

    /// Returns the number of samples.
    pub(super) fn len(&self) -> usize {
        self.values.len().checked_div(self.stride).unwrap_or(0)
    }

    /// Returns the products of one sample with all samples, padded with zeros to whole vectors.
    #[inline(always)]
    pub(super) fn row(&self, sample: u32) -> &[f32] {
        &self.values[sample as usize * self.stride..][..self.stride]
    }
}

/// Shape only: device data never reach a log.
impl std::fmt::Debug for Gram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gram({} samples)", self.len())
    }
}

/// The arguments of [`products::gram`].
struct Fill<'a> {
    samples: &'a [&'a [f32]],
    stride: usize,
    values: &'a mut [f32],
}

impl WithSimd for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        products::gram(simd, self.samples, self.stride, self.values);
    }
}
