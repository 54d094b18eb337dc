//! The privacy path of smolfed: the only path from local training to a public value, and what is
//! said about it. This is the crate to audit. It knows no method, no data format and no
//! configuration file, and nothing outside it sees a value that is not yet private.
//!
//! ```text
//! device   train -> clip -> weigh -> quantize -> check -> (own noise)      uploads, contribution
//! server   check -> exact sum -> (server noise)                            sum, mechanism
//! public   Released: averaging, denoising, the server's step, reports      post-processing, free
//! ```
//!
//! The release:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`settings`] | what a run releases and how, fixed before it starts |
//! | [`sampling`], [`scheme`] | which devices take part in a round |
//! | [`contribution`] | the message of one device, while its training writes it |
//! | [`uploads`] | many devices, one after the other, and the exact sum of their updates |
//! | [`received`] | the checked update of a real device |
//! | [`sum`] | the sum before and after its release: [`PrivateSum`], [`Released`] |
//! | [`mod@publish`] | the way from one to the other |
//! | [`mechanism`] | how noise is added to a release |
//! | [`history`] | combinations of the sums of several rounds, for correlated noise |
//! | [`admission`] | who may take part in a round with correlated noise |
//! | [`masking`], [`masked`] | masked sums, and the helpers that take the masks off |
//! | [`message`] | a second message of a device, with its own noise |
//! | [`encoding`], [`weight`] | how updates become integers; the weight of an update |
//! | [`bit`] | whether an update was clipped, for an adaptive clip norm |
//! | [`digest`] | whether two releases are the same |
//! | [`communicator`] | exact sums over several processes |
//! | [`saved`] | state between rounds, as a checkpoint holds it |
//! | [`fault`] | faults injected to test whether the audit detects them |
//!
//! Its price, by [`smolfed_accounting`]:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`plan`], [`split`] | noise and accounting of a run, configured before it starts |
//! | [`schedule`] | the rounds in which something else is released as well |
//! | [`ledger`] | what was released, on disk before it is used |
//! | [`statement`] | the promise in JSON and in words |
//! | [`condition`] | what the promise depends on beside its numbers |
//! | [`provenance`] | where a figure comes from: public, released, or of a simulation alone |
//! | [`origin`] | where devices and randomness come from |
//! | [`durable`], [`entropy`] | files that survive a crash; secret random bytes |
//! | [`number`] | numbers for readers |
//!
//! The types enforce the order. A [`Contribution`] exists only while a device trains, a
//! [`PrivateSum`] has no getter and its `Debug` prints only its length, and a [`Released`] is
//! created in one place, [`PrivateSum::release`], after the noise is added. Any function of a
//! [`Released`] is post-processing and costs no privacy.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

pub mod admission;
pub mod bit;
pub mod communicator;
pub mod condition;
pub mod contribution;
pub mod digest;
pub mod durable;
pub mod encoding;
pub mod entropy;
pub mod fault;
pub mod history;
pub mod ledger;
pub mod masked;
pub mod masking;
pub mod mechanism;
pub mod message;
pub mod number;
pub mod origin;
pub mod plan;
pub mod provenance;
pub mod publish;
pub mod received;
pub mod sampling;
pub mod saved;
pub mod schedule;
pub mod scheme;
pub mod settings;
pub mod split;
pub mod statement;
pub mod sum;
pub mod uploads;
pub mod weight;

pub use admission::Admitted;
pub use bit::ClipBit;
pub use contribution::Contribution;
pub use digest::ReleaseDigest;
pub use encoding::Encoding;
pub use fault::Fault;
pub use history::History;
pub use ledger::{Charge, Ledger, LedgerError};
pub use mechanism::Mechanism;
pub use message::{Message, Messages};
pub use plan::{PlanError, PrivacyPlan};
pub use publish::publish;
pub use received::{InvalidUpdate, ReceivedUpdate};
pub use scheme::SamplingScheme;
pub use settings::{Channel, ReleaseSettings, Timing};
pub use statement::PrivacyStatement;
pub use sum::{PrivateSum, Released, SimulatedSum};
pub use uploads::{Outcome, Uploads};

#[cfg(test)]
mod tests;
