//! The privacy path of smolfed: the only path from local training to a public value, and the
//! statement of its privacy guarantee. This is the crate to audit. It is independent of methods,
//! data formats and configuration files, and no code outside it sees a value before it is private.
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
//! | [`admission`] | which devices may take part in a round with correlated noise |
//! | [`masking`], [`masked`] | masked sums, and the helpers that remove the masks |
//! | [`message`] | a second message of a device, with its own noise |
//! | [`encoding`], [`weight`] | the encoding of updates as integers, and their weights |
//! | [`bit`] | the indicator of a clipped update, for an adaptive clip norm |
//! | [`digest`] | a digest by which two releases are compared |
//! | [`communicator`] | exact sums over several processes |
//! | [`saved`] | state between rounds, as stored in a checkpoint |
//! | [`fault`] | faults injected to test whether the audit detects them |
//!
//! The cost of a release, by [`smolfed_accounting`]:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`plan`], [`split`] | noise and accounting of a run, configured before it starts |
//! | [`schedule`] | the rounds that also release something else |
//! | [`ledger`] | the record of all releases, on disk before a result is used |
//! | [`statement`] | the promise in JSON and in words |
//! | [`condition`] | the conditions of the promise besides its numbers |
//! | [`provenance`] | the source of a figure: public, released, or available only in a simulation |
//! | [`origin`] | where devices and randomness come from |
//! | [`durable`], [`entropy`] | files that survive a crash, and secret random bytes |
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
