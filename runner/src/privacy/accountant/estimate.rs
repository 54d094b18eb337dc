//! A figure for ε that says what it is worth.

use serde::{Deserialize, Serialize};

use super::Accountant;
use crate::privacy::params::Delta;

/// What an estimate is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimateKind {
    /// Proved: the true ε is at most this.
    UpperBound,
    /// Close in the limit, but the true ε may be larger. Not a guarantee.
    Approximation,
    /// What a paper's formula says; its proof has gaps or its assumptions do not hold here.
    AsPublished,
}

impl EstimateKind {
    /// One or two words for a table.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::UpperBound => "upper bound",
            Self::Approximation => "approximation",
            Self::AsPublished => "as published",
        }
    }
}

/// ε at one δ, with its worth and its maker.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The figure; infinite if nothing can be promised.
    pub epsilon: f64,
    /// The δ it belongs to.
    pub delta: Delta,
    /// What the figure is worth.
    pub kind: EstimateKind,
    /// A proved lower bound on the true ε, where the accountant has one.
    pub epsilon_low: Option<f64>,
    /// Who says so.
    pub accountant: Accountant,
    /// What the reader must know beside the figure; each a sentence.
    pub notes: Vec<String>,
}

impl Estimate {
    /// Whether the figure is a guarantee.
    #[must_use]
    pub fn is_upper_bound(&self) -> bool {
        self.kind == EstimateKind::UpperBound
    }
}
