//! Several accountants on one question, with their times, and the choice of the smallest proved ε.

use std::time::{Duration, Instant};

use crate::accountant::{Accountant, AccountingError, Estimate};
use crate::event::PrivacyEvent;
use crate::params::Delta;

/// The answer of one accountant.
#[derive(Debug, Clone)]
pub struct Answer<T, E> {
    /// The accountant.
    pub accountant: Accountant,
    /// Its result, or the reason for a refusal.
    pub result: Result<T, E>,
    /// The time that it took.
    pub elapsed: Duration,
}

/// The answers of several accountants, in the order of the questions.
#[derive(Debug, Clone)]
pub struct Comparison<T, E> {
    /// One answer for each accountant.
    pub answers: Vec<Answer<T, E>>,
}

impl<T, E> Comparison<T, E> {
    /// Asks each of `accountants`.
    pub fn of(accountants: &[Accountant], ask: impl Fn(Accountant) -> Result<T, E>) -> Self {
        let answer = |accountant: &Accountant| {
            let started = Instant::now();
            let result = ask(*accountant);
            Answer {
                accountant: *accountant,
                result,
                elapsed: started.elapsed(),
            }
        };
        Self {
            answers: accountants.iter().map(answer).collect(),
        }
    }

    /// Iterates over the answers with a result.
    pub fn found(&self) -> impl Iterator<Item = (&Answer<T, E>, &T)> {
        self.answers
            .iter()
            .filter_map(|answer| Some((answer, answer.result.as_ref().ok()?)))
    }

    /// Iterates over the accountants without a result, with the reasons.
    pub fn refused(&self) -> impl Iterator<Item = (Accountant, &E)> {
        self.answers
            .iter()
            .filter_map(|answer| Some((answer.accountant, answer.result.as_ref().err()?)))
    }
}

impl Comparison<Estimate, AccountingError> {
    /// Returns the ε of `events` at `delta`, by each of `accountants`.
    #[must_use]
    pub fn of_events(accountants: &[Accountant], events: &[PrivacyEvent], delta: Delta) -> Self {
        Self::of(accountants, |accountant| accountant.epsilon(events, delta))
    }

    /// Returns the smallest proved ε or, if there is none, the first estimate.
    #[must_use]
    pub fn best(&self) -> Option<&Estimate> {
        let all = || self.found().map(|(_, estimate)| estimate);
        let proved = all().filter(|estimate| estimate.is_upper_bound());
        let least = proved.min_by(|a, b| a.epsilon.total_cmp(&b.epsilon));
        least.or_else(|| all().next())
    }
}
