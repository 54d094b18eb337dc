//! The request to a device that learns without labels, for one part of a round: to train or to send
//! its matrix, with limits on views and samples.

use super::correlation::packed_length;

/// Maximum V: a sample has up to 64 views.
pub const MAX_PAIRS: u32 = 32;

/// Maximum number of samples of a device that sends a correlation matrix.
pub const MAX_SAMPLES: u32 = 1 << 20;

/// A part of a round. The matrix comes before or after the update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The device sends its correlation matrix and the number of its samples.
    Matrix,
    /// The device trains and sends its update.
    Training {
        /// Whether R̄ of the other devices follows the encoder.
        has_others: bool,
    },
}

impl Part {
    /// Returns whether two parts are the same part of a round.
    #[must_use]
    pub const fn is_same(self, other: Self) -> bool {
        matches!(self, Self::Matrix) == matches!(other, Self::Matrix)
    }
}

/// Request to a device that learns without labels to take part in a round.
///
/// A matrix uses the grid and the noise of the invitation: the grid's clip norm is μ. Training uses
/// all of it except proximal term and smoothing, and only clips the update, after the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContrastRequest {
    /// Requested part.
    pub part: Part,
    /// V: a sample has 2V views.
    pub pairs: u32,
    /// μ, if training clips representations.
    pub norm_bound: Option<f32>,
    /// Number of entries to send: one for each parameter, or the entries of a packed matrix and one
    /// for the number of samples.
    pub entries: u32,
    /// Maximum number of samples of a device with a matrix, which determines the bits of an entry.
    /// 0 in training.
    pub max_samples: u32,
}

impl ContrastRequest {
    /// Returns the number of entries to send for a matrix of width `width`: its entries and the
    /// number of samples.
    #[must_use]
    pub const fn matrix_entries(width: usize) -> usize {
        packed_length(width) + 1
    }

    /// Returns whether the request is for a matrix.
    #[must_use]
    pub const fn is_matrix(&self) -> bool {
        matches!(self.part, Part::Matrix)
    }

    /// Returns whether the request is valid for an encoder of `parameters` parameters and width
    /// `width`.
    pub(crate) fn is_valid(&self, parameters: usize, width: usize) -> bool {
        let (entries, samples) = match self.part {
            Part::Matrix => (Self::matrix_entries(width), 1..=MAX_SAMPLES),
            Part::Training { .. } => (parameters, 0..=0),
        };
        let is_bound = |bound: f32| bound > 0.0 && bound.is_finite();
        (1..=MAX_PAIRS).contains(&self.pairs)
            && self.norm_bound.is_none_or(is_bound)
            && u64::from(self.entries) == entries as u64
            && samples.contains(&self.max_samples)
    }
}
