//! Audits: lower bounds on the privacy loss, measured on the code that runs.
//!
//! Accountants prove an upper bound ε on the loss of a mechanism. An audit attacks the mechanism
//! itself and proves a lower bound ε_low, which is wrong with a small probability. If ε_low exceeds
//! the claimed ε, the claim is wrong: there is a bug in the clipping, the noise, the sampling, the
//! streams or the accounting.
//!
//! | question | module |
//! | --- | --- |
//! | what is attacked? | [`target`], with the devices of [`canaries`] |
//! | how is a lower bound proved from guesses? | [`bounds`] |
//! | one run with many canaries | [`one_run`] |
//! | many runs with one canary | [`many_runs`] |
//! | which examples were trained on? | [`membership`] |

pub mod bounds;
pub mod canaries;
pub mod many_runs;
pub mod membership;
pub mod one_run;
pub mod target;

use smolfed_accounting::Delta;

/// How certain the lower bounds of an audit are.
#[derive(Debug, Clone, Copy)]
pub struct Confidence {
    /// δ of the claim.
    pub delta: Delta,
    /// The probability with which any of the bounds is wrong.
    pub error: f64,
}

impl Confidence {
    /// That of each of so many bounds, which are wrong together with the same probability at most.
    const fn of_each(self, bounds: usize) -> Self {
        Self {
            error: self.error / bounds as f64,
            ..self
        }
    }
}

/// A lower bound on ε that holds with the requested confidence.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Finding {
    /// The attack.
    pub test: &'static str,
    /// What the attacker looked at.
    pub statistic: &'static str,
    /// The proved lower bound; 0 if nothing was learned.
    pub epsilon_low: f64,
    /// What the bound follows from, for example "812 of 1000 guesses right".
    pub evidence: String,
}

#[cfg(test)]
mod tests;
