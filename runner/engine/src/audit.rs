//! Audits: lower bounds on the privacy loss, measured on the code that runs.
//!
//! Accountants prove an upper bound ε on the loss of a mechanism. An audit attacks the mechanism
//! itself and proves a lower bound ε_low, which is wrong with a small probability. If ε_low exceeds
//! the claimed ε, the claim is wrong: there is a bug in the clipping, the noise, the sampling, the
//! streams or the accounting.
//!
//! | question | module |
//! | --- | --- |
//! | what is attacked? | [`target`], with [`canaries`] in one of the [`sources`] of runs |
//! | what does an attacker know and compute? | [`attacker`], [`statistics`] |
//! | which canaries does the attacker find? | [`selection`] |
//! | what does that prove? | [`attack`], [`bounds`] |
//! | does each part of the mechanism match the claim? | [`direct`], [`sensitivity`], [`check`] |
//! | how often does each device count? | [`counts`] |
//! | how likely are its statistics by chance? | [`tails`] |
//! | what is released besides the updates? | [`channels`], [`matrices`] |
//! | what if the noise is correlated over rounds? | [`correlated`] |
//! | whose view is attacked, where parties see different things? | [`view`] |
//! | which examples were trained on? | [`crate::membership`] |

pub mod attack;
pub mod attacker;
pub mod bounds;
pub mod canaries;
pub mod channel;
pub mod channels;
pub mod check;
pub mod correlated;
pub mod counts;
pub mod direct;
pub mod error;
mod injection;
pub mod matrices;
pub mod selection;
pub mod sensitivity;
pub mod source;
pub mod sources;
pub mod statistics;
pub mod tails;
pub mod target;
pub mod view;

use smolfed_accounting::Delta;

/// Confidence in the lower bounds of an audit.
#[derive(Debug, Clone, Copy)]
pub struct Confidence {
    /// δ of the claim.
    pub delta: Delta,
    /// The probability that any of the bounds is wrong.
    pub error: f64,
}

/// A lower bound on ε that holds with the requested confidence.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Finding {
    /// The attack.
    pub test: &'static str,
    /// The attacker's statistic.
    pub statistic: &'static str,
    /// The proved lower bound, or 0 if the attacker learned nothing.
    pub epsilon_low: f64,
    /// Evidence for the bound, for example "812 of 1000 guesses right".
    pub evidence: String,
}

#[cfg(test)]
mod tests;
