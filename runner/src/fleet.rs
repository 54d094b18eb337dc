//! The coordinator of real devices: sessions over serial lines and sockets, round by round.
//!
//! Nothing that a device sends is trusted beyond what was checked. A late, dead or dishonest device
//! costs only its own update and at most the time-out, and does not affect the others. Refused
//! frames are counted by reason.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`exchange`] | one round with one device: model out, update in, the check of its bound |
//! | [`peer`] | one device: greeting, sessions, its part in the round; frames in, frames out |
//! | [`registry`] | all devices |
//! | [`connection`] | one connection: bytes in, bytes out, and which device it belongs to |
//! | [`transport`] | addresses; serial lines, TCP, TLS, MQTT brokers, Unix sockets |
//! | [`gateway`] | carrying bytes between boards and a coordinator that they cannot reach |
//! | [`handshakes`] | handshakes with X25519, and how many |
//! | [`backoff`] | growing pauses between attempts to connect |
//! | [`admission`] | which connections stay open |
//! | [`service`] | the event loop: a task for each connection |
//! | `turns` | one round in progress: who is awaited, and whose turn it is |
//! | [`quorum`] | rounds that end when a share of the cohort has answered |
//! | [`quarantine`] | devices that are no longer invited |
//! | [`coordinator`] | rounds with the devices of a cohort |
//! | [`helpers`] | the helpers that take masks off sums, elsewhere |
//! | [`status`] | the table of devices |
//! | [`watch`] | what an operator needs: stopping, events, the live page |
//! | [`keys`] | the keys of a fleet, and the round numbers that it has used |
//! | [`lock`] | taking a lock |
//! | [`ledgers`] | the ledger of each device, as it was first seen |
//! | [`chains`] | the chain key of each device, and where in the chain it greets |

pub mod admission;
pub mod backoff;
pub mod chains;
pub mod connection;
pub mod coordinator;
pub mod exchange;
pub mod gateway;
pub mod handshakes;
pub mod helpers;
pub mod keys;
pub mod ledgers;
pub mod lock;
pub mod peer;
pub mod quarantine;
pub mod quorum;
pub mod registry;
pub mod service;
pub mod status;
pub mod transport;
mod turns;
pub mod watch;

#[cfg(test)]
mod tests;
