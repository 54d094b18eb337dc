//! The accountants with their names in files and on the command line, and the errors if one gives
//! no estimate for events. `rules.rs` implements them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::theorem::Infeasible;

/// The reason why an accountant gives no estimate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountingError {
    /// The accountant does not cover this kind of event.
    #[error("`{accountant}` refuses: {reason}")]
    Refused {
        /// The accountant that refuses.
        accountant: Accountant,
        /// The reason, in one clause.
        reason: String,
    },
    /// Some events protect against different changes than others.
    #[error(
        "events under add-remove and under replace-one cannot be added, as their epsilons bound \
         different things: account for them separately"
    )]
    MixedAdjacency,
    /// Some events protect devices and others protect examples.
    #[error("events that protect a device and events that protect an example cannot be added")]
    MixedUnit,
    /// Some events have different adversaries than others.
    #[error(
        "events under different trust models cannot be added: account for each adversary separately"
    )]
    MixedTrust,
    /// The side conditions of a theorem cannot hold.
    #[error(transparent)]
    Infeasible(#[from] Infeasible),
    /// There is no accountant with this name.
    #[error("`{name}` is not an accountant: choose one of {}", names())]
    Unknown {
        /// The given name.
        name: String,
    },
}

/// The table of accountants, each with its name in files and on the command line.
macro_rules! accountants {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// The methods to account for a list of events: accountants, and the formulas of some
        /// papers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "&'static str")]
        #[non_exhaustive]
        pub enum Accountant {
            $($(#[$doc])* $variant,)*
        }

        impl Accountant {
            /// All accountants: the tightest sound ones first, the formulas of papers last.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Returns the name in files and on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

accountants! {
    /// Privacy loss distributions: Poisson sampling and full participation to a fraction of a
    /// percent, with a lower bound. See [`pld`](crate::pld).
    Pld = "pld";
    /// Uniform sampling: the composed profile of sampling without replacement. See
    /// [`uniform_profile`](crate::uniform_profile).
    UniformProfile = "uniform-profile";
    /// Rényi divergences, improved conversion. An upper bound for every sampling scheme. See
    /// [`rdp`](crate::rdp).
    Rdp = "rdp";
    /// Rényi divergences, classic conversion, as most papers print it.
    RdpClassic = "rdp-classic";
    /// Gaussian differential privacy: exact for full participation. A limit, not a bound, for
    /// sampled rounds. See [`gdp`](crate::gdp).
    Gdp = "gdp";
    /// One Gaussian release, exactly. See [`analytic_gaussian`](crate::analytic_gaussian).
    AnalyticGaussian = "analytic-gaussian";
    /// The ε of DP-Fed-LS's Tables 3 and 6.
    DpFedLsAsPrinted = "dp-fed-ls-as-printed";
    /// DP-Fed-LS, Theorem 1. See [`theorem`](crate::theorem).
    Theorem1 = "theorem-1";
    /// DP-Fed-LS, Theorem 2. See [`theorem`](crate::theorem).
    Theorem2 = "theorem-2";
    /// PMTL, Theorem 1, full participation. See [`published`](crate::published), also for the
    /// others.
    PmtlTheorem1 = "pmtl-theorem-1";
    /// DPFedMTL, Theorem 4.2 with √T counted once.
    DpfedmtlGdp = "dpfedmtl-gdp";
    /// DPFedMTL, Theorem 4.2 as printed.
    DpfedmtlGdpAsPrinted = "dpfedmtl-gdp-as-printed";
    /// FedSC, Proposition 6.6 with the sensitivity that holds under replace-one.
    FedscProp66 = "fedsc-prop-6.6";
    /// FedSC, Proposition 6.6 as printed.
    FedscProp66AsPrinted = "fedsc-prop-6.6-as-printed";
}

impl Accountant {
    /// Returns the fast accountant whose bound is never below this one, if there is one.
    pub(crate) const fn rough(self) -> Option<Self> {
        match self {
            Self::Pld | Self::UniformProfile => Some(Self::Rdp),
            _ => None,
        }
    }
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
