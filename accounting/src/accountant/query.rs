//! A question to one accountant, its events and δ, and the helpers with which accountants return an
//! estimate or refuse an event.

use super::estimate::{Estimate, EstimateKind};
use super::name::{Accountant, AccountingError};
use crate::event::{Exposure, PrivacyEvent};
use crate::params::Delta;

/// A question to one accountant, with helpers for the answer.
pub(super) struct Query<'a> {
    pub accountant: Accountant,
    pub events: &'a [PrivacyEvent],
    pub delta: Delta,
}

impl Query<'_> {
    /// The reason for refusing users with several devices.
    pub const ONE_DEVICE: &'static str = "it has no rule for users with several sampled devices; \
                                          use `pld`, `uniform-profile` or `rdp`";

    pub fn exposures(&self) -> Vec<Exposure> {
        self.events.iter().map(PrivacyEvent::exposure).collect()
    }

    /// Returns the estimate with this ε.
    pub fn figure(&self, epsilon: f64, kind: EstimateKind, notes: Vec<String>) -> Estimate {
        Estimate {
            epsilon,
            delta: self.delta,
            kind,
            epsilon_low: None,
            accountant: self.accountant,
            notes,
        }
    }

    /// Returns an upper bound.
    pub fn bound(&self, epsilon: f64, notes: Vec<String>) -> Estimate {
        self.figure(epsilon, EstimateKind::UpperBound, notes)
    }

    pub fn refuse<T>(&self, reason: &str) -> Result<T, AccountingError> {
        Err(AccountingError::Refused {
            accountant: self.accountant,
            reason: reason.to_owned(),
        })
    }

    /// Returns the only event.
    pub fn single(&self) -> Result<&PrivacyEvent, AccountingError> {
        match self.events {
            [event] => Ok(event),
            _ => self.refuse("it accounts for repeated rounds of one kind, not for a mixture"),
        }
    }

    /// Returns the only event, if it is about users with one device.
    pub fn single_device(&self) -> Result<&PrivacyEvent, AccountingError> {
        let event = self.single()?;
        match event.devices_per_user.get() {
            1 => Ok(event),
            _ => self.refuse("its formula is for users with one device"),
        }
    }
}
