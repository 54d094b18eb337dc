//! Quality and appearance of an encoder's representations: figures of a simulation, which read
//! labels and private samples without noise.
//!
//! | module | contents |
//! | --- | --- |
//! | [`neighbours`] | classes by nearest neighbours |
//! | [`probe`] | classes by a linear model on top |
//! | [`picture`] | principal components and spectrum |
//! | [`eigen`] | eigenvalues of small symmetric matrices, and the nearest correlation matrix |

pub mod eigen;
mod moments;
pub mod neighbours;
pub mod picture;
pub mod probe;

pub use neighbours::knn_accuracy;
pub use picture::{Dot, Picture};
pub use probe::probe_accuracy;

/// Representations of some samples with their classes: row-major, `width` numbers per sample.
///
/// An incomplete sample at the end is ignored. Figures are never NaN: each function documents its
/// treatment of non-finite numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labelled {
    /// Length of one representation.
    pub width: usize,
    /// The representations in sequence.
    pub values: Vec<f32>,
    /// The class of each sample.
    pub classes: Vec<u16>,
}

impl Labelled {
    /// Returns the number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        let rows = self.values.len().checked_div(self.width);
        rows.unwrap_or(0).min(self.classes.len())
    }

    /// Returns whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the representation of each sample.
    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.width.max(1)).take(self.len())
    }
}

#[cfg(test)]
mod tests;
