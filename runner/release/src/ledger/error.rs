//! Errors of a privacy ledger (an unreadable or damaged file, a contradictory or missing charge, a
//! repeated seed, an ε above the limit), and the limit on ε of all its charges.

use smolfed_accounting::accountant::{Accountant, AccountingError};
use smolfed_accounting::params::{Delta, Epsilon};

use crate::number::upper;

/// A limit on ε for all charges in a ledger.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The accountant.
    pub accountant: Accountant,
    /// δ.
    pub delta: Delta,
    /// The largest allowed ε.
    pub epsilon: Epsilon,
}

/// Errors of a ledger.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// Reading or writing failed.
    #[error(
        "cannot {action} the privacy ledger {path}: {source} (a run's ledger is RUN/ledger.jsonl)"
    )]
    Io {
        /// open, read, write or lock.
        action: &'static str,
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A line that is not the last is damaged.
    #[error(
        "the privacy ledger {path} is damaged in line {line}: {reason}; a charge may be lost, so \
         nothing more can be charged to it"
    )]
    Damaged {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The kind of damage.
        reason: String,
    },
    /// The same round of the same run has another release.
    #[error("the privacy ledger {path} records round {round} of this run with a different event")]
    Conflict {
        /// The file.
        path: String,
        /// The round.
        round: u32,
    },
    /// Another run has the same random streams.
    #[error(
        "the privacy ledger {path} has another run with seed {seed}: both would draw the same \
         noise, which no epsilon covers; choose another seed"
    )]
    SameSeed {
        /// The file.
        path: String,
        /// The seed.
        seed: u64,
    },
    /// The round of a checkpoint was never charged.
    #[error("the privacy ledger {path} has no charge for round {round}, which is already complete")]
    Missing {
        /// The file.
        path: String,
        /// The round.
        round: u32,
    },
    /// The round would exceed the limit.
    #[error(
        "round {round} would raise epsilon of all runs in {path} to {}, above the limit of {} \
         (at delta = {}, by `{}`)",
        upper(*epsilon, 5),
        limit.epsilon,
        upper(limit.delta.get(), 4),
        limit.accountant
    )]
    OverLimit {
        /// The file.
        path: String,
        /// The round.
        round: u32,
        /// ε after the round.
        epsilon: f64,
        /// The limit.
        limit: Limit,
    },
    /// A repetition with another release would exceed the limit.
    #[error(
        "round {round} did not repeat the release that {path} records, and charging it again would \
         raise epsilon to {}, above the limit of {} (at delta = {}, by `{}`): the new release is \
         discarded; repeat it with the smolfed that ran it first",
        upper(*epsilon, 5),
        limit.epsilon,
        upper(limit.delta.get(), 4),
        limit.accountant
    )]
    RepetitionOverLimit {
        /// The file.
        path: String,
        /// The round.
        round: u32,
        /// ε after the round.
        epsilon: f64,
        /// The limit.
        limit: Limit,
    },
    /// The accountant has no figure for the charges in the ledger.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
}
