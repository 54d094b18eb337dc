//! An estimate of ε at one δ, and the status of the claim: a proved upper bound, an approximation,
//! or the figure of a paper as published.

use serde::{Deserialize, Serialize};

use super::name::Accountant;
use crate::params::Delta;

/// The status of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimateKind {
    /// Proved: the true ε is at most this value.
    UpperBound,
    /// Close in the limit, but the true ε may be larger. It is not a guarantee.
    Approximation,
    /// The value of a paper's formula whose proof has gaps or whose assumptions do not hold here.
    AsPublished,
}

impl EstimateKind {
    /// Returns one or two words for a table.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::UpperBound => "upper bound",
            Self::Approximation => "approximation",
            Self::AsPublished => "as published",
        }
    }
}

/// ε at one δ, the status of the claim, and the accountant.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// ε. Infinite if there is no guarantee.
    pub epsilon: f64,
    /// The δ of the claim.
    pub delta: Delta,
    /// The status of ε.
    pub kind: EstimateKind,
    /// A proved lower bound on the true ε, if the accountant has one.
    pub epsilon_low: Option<f64>,
    /// The accountant.
    pub accountant: Accountant,
    /// Caveats and details, one sentence each.
    pub notes: Vec<String>,
}

impl Estimate {
    /// Returns whether ε is a guarantee.
    #[must_use]
    pub fn is_upper_bound(&self) -> bool {
        self.kind == EstimateKind::UpperBound
    }
}
