//! Verdicts of the direct tests of an audit, and the probability that a family of tests fails by
//! chance.

use serde::Serialize;

/// Probability that a family of tests fails although everything matches the claim. An audit has
/// fewer than 45 families, counting both lengths and each source separately. Together they fail by
/// chance with a probability below 10⁻⁶.
pub const ERROR: f64 = 2.2e-8;

/// Verdict of a family of tests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// Name of the test.
    pub test: &'static str,
    /// Whether the mechanism matches the claim, as far as the test shows.
    pub is_as_claimed: bool,
    /// Evidence of the test.
    pub evidence: String,
}
