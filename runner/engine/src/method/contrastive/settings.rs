//! How an encoder is learned without labels in an experiment.

use smolfed_accounting::Sampling;
use smolfed_simd::Network;

use super::variations::Variations;
use crate::method::contract::SecondMessage;
use crate::tables::contrast::{AlphaName, ExchangeTime};

/// Samples that a device needs to learn: the loss compares samples with each other.
pub const MIN_SAMPLES: usize = 2;

/// How an encoder is learned without labels.
#[derive(Clone, Debug)]
pub struct ContrastSettings {
    /// The encoder.
    pub network: Network,
    /// How views differ from their sample.
    pub variations: Variations,
    /// V: a sample has 2V views.
    pub pairs: usize,
    /// μ, where representations are clipped in training: where matrices get noise (docs/papers.md,
    /// F7).
    pub norm_bound: Option<f32>,
    /// Whether one device holds all samples.
    pub is_central: bool,
    /// What devices share beside the encoder; `None` for federated averaging.
    pub sharing: Option<Sharing>,
    /// Neighbours that vote in the evaluation.
    pub neighbours: usize,
    /// Samples of a device whose labels its own head learns from.
    pub labels: usize,
}

/// Who sends a matrix in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Senders {
    /// The cohort, as in the paper.
    Cohort,
    /// Devices that are drawn like the cohort and independently of it: everybody may learn who
    /// sends a matrix, so the cohort stays secret only if its draw is another one.
    Drawn(Sampling),
}

/// How devices share correlation matrices.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// α from then on; before, it is 1.
    pub alpha: AlphaName,
    /// Who sends matrices after the first such round.
    pub senders: Senders,
    /// When a device sends its matrix.
    pub exchange: ExchangeTime,
    /// The matrices: sent in the first round of their schedule by all devices, later by some, and
    /// released on the grid of μ, with the device's noise on the sum over its samples.
    pub message: SecondMessage,
}
