//! What a device that learns without labels is asked to do in one part of a round.

use super::correlation::packed_length;

/// V, at most: a sample has up to 64 views.
pub const MAX_PAIRS: u32 = 32;

/// Samples of a device, at most, where it sends a correlation matrix.
pub const MAX_SAMPLES: u32 = 1 << 20;

/// A part of a round. The matrix comes before the update, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The device sends its correlation matrix, and how many samples it has.
    Matrix,
    /// The device trains, and sends its update.
    Training {
        /// Whether R̄ of the other devices comes behind the encoder.
        has_others: bool,
    },
}

impl Part {
    /// Whether two parts are the same one of a round.
    #[must_use]
    pub const fn is_same(self, other: Self) -> bool {
        matches!(self, Self::Matrix) == matches!(other, Self::Matrix)
    }
}

/// How a device that learns without labels takes part in a round.
///
/// Of its invitation, a matrix has the grid and the noise: the grid's clip norm is μ. Training has
/// all of it but proximal term and smoothing, and only its update is clipped, after the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContrastRequest {
    /// What is asked for.
    pub part: Part,
    /// V: a sample has 2V views.
    pub pairs: u32,
    /// μ, where representations are clipped in training.
    pub norm_bound: Option<f32>,
    /// Numbers that are sent: one for each parameter; or those of a packed matrix, and one for the
    /// number of samples.
    pub entries: u32,
    /// The most samples that a device with a matrix may have: it determines how many bits an entry
    /// has. 0 in training.
    pub max_samples: u32,
}

impl ContrastRequest {
    /// Numbers that a matrix of width `width` takes on the line: its entries, and the number of
    /// samples.
    #[must_use]
    pub const fn matrix_entries(width: usize) -> usize {
        packed_length(width) + 1
    }

    /// Whether it is a matrix that is asked for.
    #[must_use]
    pub const fn is_matrix(&self) -> bool {
        matches!(self.part, Part::Matrix)
    }

    /// Whether the request makes sense for an encoder of `parameters` parameters and width `width`.
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
