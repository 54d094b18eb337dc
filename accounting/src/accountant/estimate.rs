//! ε, and what kind of claim it is.

use serde::{Deserialize, Serialize};

use super::name::Accountant;
use crate::params::Delta;

/// What kind of claim an estimate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimateKind {
    /// Proved: the true ε is at most this.
    UpperBound,
    /// Close in the limit, but the true ε may be larger. Not a guarantee.
    Approximation,
    /// The value of a paper's formula whose proof has gaps or whose assumptions do not hold here.
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

/// ε at one δ, what kind of claim it is, and the accountant that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// ε; infinite if nothing can be promised.
    pub epsilon: f64,
    /// The δ it belongs to.
    pub delta: Delta,
    /// What kind of claim ε is.
    pub kind: EstimateKind,
    /// A proved lower bound on the true ε, where the accountant has one.
    pub epsilon_low: Option<f64>,
    /// The accountant.
    pub accountant: Accountant,
    /// Caveats and details, a sentence each.
    pub notes: Vec<String>,
}

impl Estimate {
    /// Whether ε is a guarantee.
    #[must_use]
    pub fn is_upper_bound(&self) -> bool {
        self.kind == EstimateKind::UpperBound
    }
}
