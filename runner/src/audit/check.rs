//! Verdicts of direct tests.

use serde::Serialize;

/// The probability with which a family of tests fails although all is as claimed.
pub const ERROR: f64 = 1e-7;

/// The verdict of a family of tests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What was tested.
    pub test: &'static str,
    /// Whether the mechanism is what is claimed, as far as was seen.
    pub is_as_claimed: bool,
    /// What was seen.
    pub evidence: String,
}
