//! How good an encoder's representations are, and what they look like: figures of a simulation,
//! which read labels and private samples without noise.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`neighbours`] | classes by nearest neighbours |
//! | [`probe`] | classes by a linear model on top |
//! | [`picture`] | principal components and spectrum |
//! | [`eigen`] | eigenvalues of small symmetric matrices; the nearest correlation matrix |

pub mod eigen;
mod moments;
pub mod neighbours;
pub mod picture;
pub mod probe;

pub use neighbours::knn_accuracy;
pub use picture::{Dot, Picture};
pub use probe::probe_accuracy;

/// Representations of some samples with their classes: row-major, `width` numbers a sample.
///
/// An incomplete sample at the end is ignored. No figure is ever NaN: each function documents how
/// it treats numbers that are not finite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labelled {
    /// Numbers of one representation.
    pub width: usize,
    /// The representations, one after the other.
    pub values: Vec<f32>,
    /// The class of each sample.
    pub classes: Vec<u16>,
}

impl Labelled {
    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        let rows = self.values.len().checked_div(self.width);
        rows.unwrap_or(0).min(self.classes.len())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The representation of each sample.
    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.width.max(1)).take(self.len())
    }
}

#[cfg(test)]
mod tests;
