//! Verdicts of direct tests.

use serde::Serialize;

/// The probability with which a family of tests fails although all is as claimed. An audit has
/// fewer than 45 families, those at two lengths counted twice and those of each source by
/// themselves: together they fail by chance with a probability below 10⁻⁶.
pub const ERROR: f64 = 2.2e-8;

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
