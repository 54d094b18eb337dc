//! Laplacian smoothing of a noisy vector, in place: `v <- A^-1 v`, O(d) time, O(1) memory.
//!
//! `A = I + sigma * L`, L the Laplacian of a cycle of d nodes: a circulant matrix with first row
//! `(1 + 2 sigma, -sigma, 0, .., 0, -sigma)` and eigenvalues `1 + 2 sigma (1 - cos(2 pi i / d))`.
//! It pulls neighbours together: the mean stays, and the roughest vector (+1, -1, +1, ..) is
//! divided by `1 + 4 sigma`. On a sum with noise it is post-processing and costs no privacy.
//! Source: DP-Fed-LS, Liang et al. 2020, arXiv:2005.00218, section 3, where A is inverted by a
//! Fourier transform. Here it is factored instead, with P the cyclic shift:
//!
//! ```text
//! A = (sigma / r) (I - r P)(I - r P^T)      r = (q - 1) / (q + 1),   q = sqrt(1 + 4 sigma)
//! forward    y[i] = s v[i] + r y[i-1]       s = r / sigma = (1 - r)^2
//! backward   u[i] =   y[i] + r u[i+1]       indices modulo d
//! ```
//!
//! Both recursions forget their start as `r^k`, which lets `segments` run long vectors at the speed
//! of a copy. The path of a vector, and every rounding on it, depends on sigma and d alone, so all
//! targets compute the same bits:
//!
//! | sigma | d | path |
//! | --- | --- | --- |
//! | 0 | any | none: the input keeps its bits |
//! | up to [`NARROW_SIGMA`] | short | `recursion`: two plain passes |
//! | up to [`NARROW_SIGMA`] | long | `segments`: twelve interleaved chains, one pass over memory |
//! | above | any | `wide`: two plain passes with a running value in `f64` |
//!
//! This module does not refuse NaN and infinity, which spread through the vector. The caller
//! refuses updates that contain them.

mod columns;
mod dimension;
mod error;
mod factor;
mod grid;
mod narrow;
mod positive;
mod power;
mod recursion;
mod segments;
mod tensors;
mod wide;

use core::num::NonZeroUsize;

pub use dimension::bias_squared;
pub use error::SmoothingError;
pub use factor::SmoothingFactor;
pub use narrow::NarrowSmoothing;
pub use recursion::NARROW_SIGMA;

use tensors::each_tensor;
use wide::WideRecursion;

/// Laplacian smoothing with one factor sigma. See the [module](self) for the formula.
///
/// ```
/// use smolfed_core::smooth::{LaplacianSmoothing, SmoothingError};
///
/// // Firmware may keep it in a `static`: `new` runs at compile time.
/// static SMOOTHING: Result<LaplacianSmoothing, SmoothingError> = LaplacianSmoothing::new(2.0);
///
/// let mut v = [1.0, -1.0, 1.0, -1.0];
/// SMOOTHING?.apply(&mut v);
/// assert!((v[0] - 1.0 / 9.0).abs() < 1e-6);
/// # Ok::<(), SmoothingError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaplacianSmoothing {
    sigma: f32,
    /// Present unless sigma is too large for it.
    narrow: Option<NarrowSmoothing>,
    wide: WideRecursion,
}

impl LaplacianSmoothing {
    /// Creates smoothing by `sigma`, without unit. 0 is no smoothing, 1 to 3 is usual.
    ///
    /// Cost: a dozen `f64` divisions, best paid at compile time or once a run.
    ///
    /// # Errors
    /// [`SmoothingError::NotFinite`] and [`SmoothingError::Negative`].
    pub const fn new(sigma: f32) -> Result<Self, SmoothingError> {
        let narrow = match NarrowSmoothing::new(sigma) {
            Ok(narrow) => Some(narrow),
            Err(SmoothingError::TooLarge) => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            sigma,
            narrow,
            wide: WideRecursion::new(sigma),
        })
    }

    /// Returns the smoothing factor.
    pub const fn sigma(&self) -> f32 {
        self.sigma
    }

    /// Smooths one tensor in place. Its first element is the neighbour of its last.
    ///
    /// * Shape: any length. Lengths 0 and 1 stay unchanged. For 2 both neighbours are the same
    ///   element and count twice (eigenvalues 1 and `1 + 4 sigma`).
    /// * Units: those of `v`. No intermediate value exceeds the largest entry, so none overflows.
    ///   The result is within `4e-6 max|v|` of the exact one. NaN and infinity spread.
    /// * Cost: five flops an element, no extra memory.
    /// * Source: Liang et al. 2020, arXiv:2005.00218, Algorithm 1, the server's `A_sigma^-1`.
    pub fn apply(&self, v: &mut [f32]) {
        match &self.narrow {
            Some(narrow) => narrow.apply(v, usize::MAX),
            None if v.len() < 2 => {}
            None => self.wide.apply(v, NonZeroUsize::MIN),
        }
    }

    /// Smooths each of several consecutive tensors in `v`, such as the parameters of a model.
    ///
    /// * Shape: `lengths` as from a model's `tensors()`. They add up to the length of `v`.
    /// * Units, cost: as [`apply`](Self::apply).
    ///
    /// # Errors
    /// [`SmoothingError::Length`]. `v` is then unchanged.
    pub fn apply_tensors(&self, v: &mut [f32], lengths: &[usize]) -> Result<(), SmoothingError> {
        each_tensor(v, lengths, |tensor| self.apply(tensor))
    }

    /// Smooths along each axis of a grid in turn: the inverse of the Kronecker product of one A per
    /// axis. This goes beyond the paper, which only covers flattened tensors.
    ///
    /// * Shape: `axes` outermost first, the last one contiguous. `v` holds any number of such grids
    ///   in a row, e.g. 10 classes of `[28, 28]`.
    /// * Units: as [`apply`](Self::apply).
    /// * Cost: as `apply` for each axis, somewhat more if an axis is short.
    ///
    /// # Errors
    /// [`SmoothingError::Grid`] unless the length of `v` is a multiple of the product of `axes`.
    /// `v` is then unchanged.
    pub fn apply_grid(&self, v: &mut [f32], axes: &[usize]) -> Result<(), SmoothingError> {
        let found = v.len();
        let cells = axes
            .iter()
            .fold(1, |product: usize, &axis| product.saturating_mul(axis));
        if !found.is_multiple_of(cells) {
            return Err(SmoothingError::Grid { cells, found });
        }
        // Elements of one step along the previous axis, then along this one.
        let mut slab = cells;
        for axis in axes.iter().filter_map(|axis| NonZeroUsize::new(*axis)) {
            let Some(stride) = NonZeroUsize::new(slab / axis) else {
                break;
            };
            if !self.is_identity(axis.get()) {
                for grid in v.chunks_exact_mut(slab.max(1)) {
                    self.apply_axis(grid, stride);
                }
            }
            slab = stride.get();
        }
        Ok(())
    }

    /// Smooths `slab` along its outermost axis, whose elements are `stride` apart.
    fn apply_axis(&self, slab: &mut [f32], stride: NonZeroUsize) {
        match &self.narrow {
            _ if stride == NonZeroUsize::MIN => self.apply(slab),
            Some(narrow) => grid::apply_outermost(&narrow.recursion(), slab, stride),
            None => self.wide.apply(slab, stride),
        }
    }

    /// Returns whether the operator on `d` elements is the identity, which keeps the bits.
    fn is_identity(&self, d: usize) -> bool {
        d < 2 || self.sigma <= 0.0
    }
}

#[cfg(test)]
mod tests;
