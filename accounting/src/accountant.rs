//! Accountants: each turns a list of events into an [`Estimate`] of ε, or refuses.
//!
//! ```
//! use smolfed_accounting::{
//!     Accountant, Delta, Mechanism, NoiseMultiplier, PrivacyEvent, Sampling, SamplingRate,
//! };
//!
//! let mechanism = Mechanism::Gaussian { noise_multiplier: NoiseMultiplier::new(1.0)? };
//! let sampling = Sampling::poisson(2_000, SamplingRate::new(0.05)?)?;
//! let event = PrivacyEvent::new(mechanism, sampling, 200);
//! let estimate = Accountant::Rdp.epsilon(&[event], Delta::new(1e-5)?)?;
//! assert!(estimate.is_upper_bound() && estimate.epsilon < 6.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod estimate;
mod memo;
mod name;
mod query;
mod rules;

pub use estimate::{Estimate, EstimateKind};
pub use name::{Accountant, AccountingError};

use crate::event::PrivacyEvent;
use crate::params::Delta;
use memo::{Memo, Question};

impl Accountant {
    /// Returns the sound accountant with the smallest ε for these events: [`Pld`](Self::Pld), or
    /// [`UniformProfile`](Self::UniformProfile) if any cohort of fixed size amplifies.
    #[must_use]
    pub fn tightest_for(events: &[PrivacyEvent]) -> Self {
        if events.iter().any(|event| event.exposure().is_uniform()) {
            Self::UniformProfile
        } else {
            Self::Pld
        }
    }

    /// Returns this accountant, or the tightest sound one if it does not cover `events` together:
    /// [`AnalyticGaussian`](Self::AnalyticGaussian) is for a single release.
    #[must_use]
    pub fn composing(self, events: &[PrivacyEvent]) -> Self {
        let exposures = released(events);
        let releases: u64 = exposures.iter().map(|event| event.exposure().count()).sum();
        match self {
            Self::AnalyticGaussian if releases > 1 => Self::tightest_for(events),
            _ => self,
        }
    }

    /// Returns ε at `delta` of the composition of `events`.
    ///
    /// An empty list, or events without rounds, cost nothing. A release without noise has an
    /// infinite ε. [`Pld`](Self::Pld) and [`UniformProfile`](Self::UniformProfile) take
    /// milliseconds, and their answers are cached for the process. Most others take less.
    ///
    /// # Errors
    /// [`AccountingError::Refused`] for events that this accountant does not cover, with the
    /// reason. A `Mixed` variant for events whose guarantees cannot be added.
    pub fn epsilon(
        self,
        events: &[PrivacyEvent],
        delta: Delta,
    ) -> Result<Estimate, AccountingError> {
        static KNOWN: Memo<Result<Estimate, AccountingError>> = Memo::new();
        same_guarantee(events)?;
        let events = released(events);
        let compute = || rules::estimate(self, &events, delta);
        match self.rough() {
            Some(_) => KNOWN.answer(Question::new(self, &events, delta), compute),
            None => compute(),
        }
    }

    /// Returns only ε, for searches. It may be slightly above the ε of [`epsilon`](Self::epsilon),
    /// but is never below it.
    pub(crate) fn quick_epsilon(
        self,
        events: &[PrivacyEvent],
        delta: Delta,
    ) -> Result<f64, AccountingError> {
        static KNOWN: Memo<Result<f64, AccountingError>> = Memo::new();
        same_guarantee(events)?;
        let events = released(events);
        let compute = || rules::quick_epsilon(self, &events, delta);
        match self.rough() {
            Some(_) => KNOWN.answer(Question::new(self, &events, delta), compute),
            None => compute(),
        }
    }
}

/// Returns the events with at least one release, about the same users.
fn released(events: &[PrivacyEvent]) -> Vec<PrivacyEvent> {
    let mut events = PrivacyEvent::about_same_users(events);
    events.retain(|event| event.exposure().count() > 0);
    events
}

/// Refuses events with different guarantees.
pub(crate) fn same_guarantee(events: &[PrivacyEvent]) -> Result<(), AccountingError> {
    let Some(first) = events.first() else {
        return Ok(());
    };
    for event in events {
        if event.adjacency() != first.adjacency() {
            return Err(AccountingError::MixedAdjacency);
        }
        if event.unit != first.unit {
            return Err(AccountingError::MixedUnit);
        }
        if event.trust != first.trust {
            return Err(AccountingError::MixedTrust);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tails;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod users;
