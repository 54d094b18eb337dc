//! Settings for training an encoder without labels: the encoder, the variations and number of
//! views, clipping, and the sharing of matrices.

use smolfed_accounting::Sampling;
use smolfed_simd::Network;

use super::variations::Variations;
use crate::method::contract::SecondMessage;
use crate::tables::contrast::{AlphaName, ExchangeTime};

/// Minimum number of samples for training: the loss compares samples with each other.
pub const MIN_SAMPLES: usize = 2;

/// Settings for training an encoder without labels.
#[derive(Clone, Debug)]
pub struct ContrastSettings {
    /// The encoder.
    pub network: Network,
    /// Differences between views and their sample.
    pub variations: Variations,
    /// V. A sample has 2V views.
    pub pairs: usize,
    /// μ, if training clips representations. This happens when matrices get noise (docs/papers.md,
    /// F7).
    pub norm_bound: Option<f32>,
    /// Sharing of matrices in addition to the encoder, or `None` for federated averaging.
    pub sharing: Option<Sharing>,
    /// Number of neighbours that vote in the evaluation.
    pub neighbours: usize,
    /// Number of a device's labels for training its own head.
    pub labels: usize,
}

/// The devices that send a matrix in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Senders {
    /// The cohort, as in the paper.
    Cohort,
    /// A draw like the cohort's, but independent of it. Everybody may learn who sends a matrix, so
    /// the cohort stays secret only if it is drawn separately.
    Drawn(Sampling),
}

/// Settings for sharing correlation matrices.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// α after the first matrices. Before, it is 1.
    pub alpha: AlphaName,
    /// The senders of matrices after the first such round.
    pub senders: Senders,
    /// Time at which a device sends its matrix.
    pub exchange: ExchangeTime,
    /// The matrices. In the first round of their schedule all devices send one, later some do. They
    /// are released on the grid of μ, with the device's noise on the sum over its samples.
    pub message: SecondMessage,
}
