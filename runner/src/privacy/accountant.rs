//! Accountants by name: each turns a list of events into an [`Estimate`] of ε, or refuses.
//!
//! ```
//! use smolfed::privacy::accountant::Accountant;
//! use smolfed::privacy::event::{Mechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel};
//! use smolfed::privacy::params::{Delta, NoiseMultiplier, SamplingRate};
//!
//! let event = PrivacyEvent {
//!     mechanism: Mechanism::Gaussian { noise_multiplier: NoiseMultiplier::new(1.0)? },
//!     sampling: Sampling::poisson(2_000, SamplingRate::new(0.05)?)?,
//!     trust: TrustModel::Central,
//!     unit: PrivacyUnit::Device,
//!     count: 200,
//!     releases: 1,
//! };
//! let estimate = Accountant::Rdp.epsilon(&[event], Delta::new(1e-5)?)?;
//! assert!(estimate.is_upper_bound() && estimate.epsilon < 6.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod estimate;
mod memo;
mod rules;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use estimate::{Estimate, EstimateKind};
use memo::{Memo, Question};

use super::event::{Exposure, PrivacyEvent};
use super::params::Delta;
use super::theorem::Infeasible;

/// Why there is no figure.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountingError {
    /// The accountant does not know this kind of event.
    #[error("`{accountant}` refuses: {reason}")]
    Refused {
        /// Who refuses.
        accountant: Accountant,
        /// Why, in one clause.
        reason: String,
    },
    /// Events that protect against different changes.
    #[error(
        "events under add-remove and under replace-one cannot be added: their epsilons bound \
         different things; account them apart"
    )]
    MixedAdjacency,
    /// Events that protect devices and events that protect examples.
    #[error("events that protect a device and events that protect an example cannot be added")]
    MixedUnit,
    /// Events against different adversaries.
    #[error("events under different trust models cannot be added: account each adversary apart")]
    MixedTrust,
    /// A theorem whose side conditions cannot hold.
    #[error(transparent)]
    Infeasible(#[from] Infeasible),
    /// Not the name of an accountant.
    #[error("`{name}` is no accountant: choose one of {}", names())]
    Unknown {
        /// What was written.
        name: String,
    },
}

/// Everything that can put a figure on a list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
#[non_exhaustive]
pub enum Accountant {
    /// Privacy loss distributions: Poisson sampling and full participation to a fraction of a
    /// percent, with a lower bound beside.
    Pld,
    /// The profile of sampling without replacement, composed: uniform sampling.
    UniformProfile,
    /// Rényi divergences, improved conversion. A sound upper bound for every sampling scheme.
    Rdp,
    /// Rényi divergences, classic conversion, as most papers print it.
    RdpClassic,
    /// Exact for full participation; a limit, not a bound, for sampled rounds.
    Gdp,
    /// One Gaussian release, exactly.
    AnalyticGaussian,
    /// The ε of DP-Fed-LS's Tables 3 and 6.
    DpFedLsAsPrinted,
    /// DP-Fed-LS, Theorem 1.
    Theorem1,
    /// DP-Fed-LS, Theorem 2.
    Theorem2,
    /// PMTL, Theorem 1, full participation.
    PmtlTheorem1,
    /// DPFedMTL, Theorem 4.2 with √T counted once.
    DpfedmtlGdp,
    /// DPFedMTL, Theorem 4.2 as printed.
    DpfedmtlGdpAsPrinted,
    /// FedSC, Proposition 6.6 with the sensitivity that holds under replace-one.
    FedscProp66,
    /// FedSC, Proposition 6.6 as printed.
    FedscProp66AsPrinted,
}

impl Accountant {
    /// All accountants, the soundest and tightest first.
    pub const ALL: [Self; 14] = [
        Self::Pld,
        Self::UniformProfile,
        Self::Rdp,
        Self::RdpClassic,
        Self::Gdp,
        Self::AnalyticGaussian,
        Self::DpFedLsAsPrinted,
        Self::Theorem1,
        Self::Theorem2,
        Self::PmtlTheorem1,
        Self::DpfedmtlGdp,
        Self::DpfedmtlGdpAsPrinted,
        Self::FedscProp66,
        Self::FedscProp66AsPrinted,
    ];

    /// The name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pld => "pld",
            Self::UniformProfile => "uniform-profile",
            Self::Rdp => "rdp",
            Self::RdpClassic => "rdp-classic",
            Self::Gdp => "gdp",
            Self::AnalyticGaussian => "analytic-gaussian",
            Self::DpFedLsAsPrinted => "dp-fed-ls-as-printed",
            Self::Theorem1 => "theorem-1",
            Self::Theorem2 => "theorem-2",
            Self::PmtlTheorem1 => "pmtl-theorem-1",
            Self::DpfedmtlGdp => "dpfedmtl-gdp",
            Self::DpfedmtlGdpAsPrinted => "dpfedmtl-gdp-as-printed",
            Self::FedscProp66 => "fedsc-prop-6.6",
            Self::FedscProp66AsPrinted => "fedsc-prop-6.6-as-printed",
        }
    }

    /// The sound accountant with the least ε for these events: [`Pld`](Self::Pld), or
    /// [`UniformProfile`](Self::UniformProfile) as soon as a cohort of fixed size amplifies.
    #[must_use]
    pub fn tightest_for(events: &[PrivacyEvent]) -> Self {
        let is_uniform =
            |event: &PrivacyEvent| matches!(event.exposure(), Exposure::Uniform { .. });
        if events.iter().any(is_uniform) {
            Self::UniformProfile
        } else {
            Self::Pld
        }
    }

    /// The ε at `delta` that the composition of `events` costs.
    ///
    /// No event, or events of no rounds, cost nothing; a release without noise costs an infinite
    /// ε.
    ///
    /// # Errors
    /// [`AccountingError::Refused`] for events that this accountant does not know, with the
    /// reason; a `Mixed` variant for events that nobody can add.
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

    /// As [`epsilon`](Self::epsilon), without what a search needs not: the figure alone, which may
    /// be a little above the estimate's, never below.
    pub(super) fn quick_epsilon(
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

    /// The quick accountant whose bound is never below that of this one, where there is one.
    pub(super) const fn rough(self) -> Option<Self> {
        match self {
            Self::Pld | Self::UniformProfile => Some(Self::Rdp),
            _ => None,
        }
    }
}

fn released(events: &[PrivacyEvent]) -> Vec<PrivacyEvent> {
    let released = events.iter().filter(|event| event.exposure().count() > 0);
    released.copied().collect()
}

/// Refuses lists whose events do not bound the same thing.
fn same_guarantee(events: &[PrivacyEvent]) -> Result<(), AccountingError> {
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

fn names() -> String {
    Accountant::ALL.map(Accountant::name).join(", ")
}

impl fmt::Display for Accountant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Accountant {
    type Err = AccountingError;
    fn from_str(name: &str) -> Result<Self, AccountingError> {
        let known = Self::ALL
            .into_iter()
            .find(|accountant| accountant.name() == name);
        known.ok_or_else(|| AccountingError::Unknown {
            name: name.to_owned(),
        })
    }
}

impl TryFrom<String> for Accountant {
    type Error = AccountingError;
    fn try_from(name: String) -> Result<Self, AccountingError> {
        name.parse()
    }
}

impl From<Accountant> for &'static str {
    fn from(accountant: Accountant) -> Self {
        accountant.name()
    }
}

#[cfg(test)]
mod tests;
