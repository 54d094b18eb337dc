//! Audits: how much privacy is lost at least, measured on the code that runs.
//!
//! Accountants prove that a mechanism loses no more than ε. An audit attacks the mechanism itself
//! and proves, up to a small probability of a false alarm, that it loses no less than some
//! ε_low. If ε_low exceeds the claim, the claim is wrong: there is a bug in the clipping, the
//! noise, the sampling, the streams or the accounting.
//!
//! | question | module |
//! | --- | --- |
//! | what is attacked, and which bugs can be planted? | [`target`] |
//! | how is a lower bound proved from guesses? | [`bounds`] |
//! | one run with many canaries | [`one_run`] |
//! | many runs with one canary | [`many_runs`] |
//! | which examples were trained on? | [`membership`] |

pub mod bounds;
pub mod many_runs;
pub mod membership;
pub mod one_run;
pub mod target;

#[cfg(test)]
mod tests;

/// A lower bound on ε that holds with the confidence that was asked for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Finding {
    /// What was done.
    pub test: &'static str,
    /// What the attacker looked at.
    pub statistic: &'static str,
    /// The proved lower bound; 0 if nothing was learned.
    pub epsilon_low: f64,
    /// What the bound rests on, for example "812 of 1000 guesses right".
    pub evidence: String,
}
