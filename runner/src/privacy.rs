//! The exact price of privacy.
//!
//! What happened is a list of [`PrivacyEvent`]s; an [`Accountant`] turns them into an
//! [`Estimate`] of ε at a δ, or refuses; a [`Plan`] runs that backwards (noise, rounds or cohort
//! for an ε); a [`PrivacyStatement`] says all of it in JSON and in words.
//!
//! | question | module |
//! | --- | --- |
//! | what is a noise multiplier, a δ, a sampling rate? | [`params`] |
//! | what happened, against whom, under which relation? | [`event`] |
//! | what does it cost? | [`accountant`], over [`pld`], [`uniform_profile`], [`rdp`], [`gdp`], [`analytic_gaussian`] |
//! | what do the papers say it costs? | [`theorem`], [`published`] |
//! | how much noise, how many rounds, how large a cohort? | [`calibrate`] |
//! | what do several accountants say? | [`comparison`] |
//! | what was paid so far, by all runs? | [`ledger`] |
//! | what does that mean? | [`statement`], [`trade_off`] |

mod log_space;
mod normal;

pub mod accountant;
pub mod analytic_gaussian;
pub mod calibrate;
pub mod comparison;
pub mod event;
pub mod gdp;
pub mod ledger;
pub mod params;
pub mod pld;
pub mod published;
pub mod rdp;
pub mod statement;
pub mod theorem;
pub mod trade_off;
pub mod uniform_profile;

pub use accountant::{Accountant, AccountingError, Estimate, EstimateKind};
pub use calibrate::{Calibrated, CalibrationError, Plan};
pub use event::{Adjacency, Mechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel};
pub use ledger::{Charge, Ledger, LedgerError};
pub use params::{
    ClipNorm, Delta, DeltaSpec, Epsilon, HonestFraction, NoiseMultiplier, ParamError, SamplingRate,
};
pub use pld::PrivacyLoss;
pub use statement::PrivacyStatement;
pub use trade_off::TradeOff;

#[cfg(test)]
mod golden;
