//! The release path: the only path from local training to a public value.
//!
//! ```text
//! device   train -> clip -> weigh -> quantize -> check -> (own noise)      uploads, contribution
//! server   check -> exact sum -> (server noise)                            sum, noise
//! public   Released: averaging, denoising, the server's step, reports      post-processing, free
//! ```
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`settings`] | what a run releases and how, fixed before it starts |
//! | [`contribution`] | what one device sends, while its training writes it |
//! | [`uploads`] | many devices, one after the other, and the exact sum of what they send |
//! | [`received`] | what a real device sent, checked |
//! | [`sum`] | the sum before and after its release: [`PrivateSum`], [`Released`] |
//! | [`mod@publish`] | the way from one to the other |
//! | [`mechanism`] | how noise is added to a release |
//! | [`admission`] | who may take part in a round with correlated noise |
//! | [`masked`] | masked sums, and the helpers that take the masks off |
//! | [`message`] | what a device sends in addition to its update, with its own noise |
//! | [`encoding`] | how updates become integers |
//! | [`weight`] | the weight of an update |
//! | [`bit`] | whether an update was clipped, for an adaptive clip norm |
//! | [`digest`] | what tells whether two releases are the same |
//! | [`fault`] | faults injected to test whether the audit detects them |
//!
//! The types enforce this order. A [`Contribution`] exists only while a device trains, a
//! [`PrivateSum`] has no getter and its `Debug` prints only its length, and a [`Released`] is
//! created in one place, [`PrivateSum::release`], after the noise is added. Any function of a
//! [`Released`] is post-processing and costs no privacy.

pub mod admission;
pub mod bit;
pub mod contribution;
pub mod digest;
pub mod encoding;
pub mod fault;
pub mod masked;
pub mod mechanism;
pub mod message;
pub mod publish;
pub mod received;
pub mod settings;
pub mod sum;
pub mod uploads;
pub mod weight;

pub use admission::Admitted;
pub use bit::ClipBit;
pub use contribution::Contribution;
pub use digest::ReleaseDigest;
pub use encoding::Encoding;
pub use fault::Fault;
pub use mechanism::Mechanism;
pub use mechanism::correlated::History;
pub use message::{Message, Messages};
pub use publish::publish;
pub use received::{InvalidUpdate, ReceivedUpdate};
pub use settings::{Channel, Release, Timing};
pub use sum::{PrivateSum, Released, SimulatedSum};
pub use uploads::{Outcome, Uploads};

#[cfg(test)]
mod tests;
