//! What a run says about its privacy: the ledger of what was released, and the statement in JSON
//! and in words. Events, accountants and calibration are [`smolfed_accounting`].

pub mod ledger;
pub mod origin;
pub mod plan;
pub mod schedule;
pub mod split;
pub mod statement;

pub use ledger::{Charge, Ledger, LedgerError};
pub use statement::PrivacyStatement;
