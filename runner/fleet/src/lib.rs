//! Real devices for smolfed: the coordinator with its sessions over serial lines and sockets, round
//! by round, the helpers of masked sums, and a device as a process.
//!
//! Messages from a device are trusted only as far as they are checked. A late, dead or dishonest
//! device costs only its own update and at most the time-out, and does not affect the others.
//! Refused frames are counted by reason.
//!
//! The coordinator:
//!
//! | module | contents |
//! | --- | --- |
//! | [`source`] | real devices among simulated ones, as a source of the round loop |
//! | [`exchange`] | one round with one device: model out, update in, the check of its bound |
//! | [`peer`] | one device: greeting, sessions, its part in the round (frames in, frames out) |
//! | [`registry`] | all devices |
//! | [`connection`] | one connection: bytes in, bytes out, and the device that it belongs to |
//! | [`handshakes`] | handshakes with X25519, and their limit |
//! | [`admission`] | which connections stay open |
//! | [`link`] | the speed of links: bounds of pauses and time-outs |
//! | [`short_model`] | models in 16 bits, and as differences from earlier models |
//! | [`service`] | the event loop: a task for each connection |
//! | `turns` | one round in progress: the awaited devices, and their turns |
//! | [`presence`] | waiting for enough devices before a round |
//! | [`quorum`] | rounds that end when a share of the cohort has answered |
//! | [`quarantine`] | devices excluded from invitations |
//! | [`coordinator`] | rounds with the devices of a cohort |
//! | [`helpers`] | the helpers that take masks off sums, in other processes |
//! | [`ledgers`] | the first known ledger of each device |
//! | [`chains`] | the chain key of each device, and its position in the chain |
//! | [`fleet_file`] | `fleet.toml` of a run directory |
//! | [`monitor`], [`status`] | live figures of a run, and the table of devices |
//! | [`stopping`] | the end of a run before its last round |
//! | [`traffic`] | the frames of a device's round, predicted |
//! | [`watch`] | tools for operators: events, the live page |
//! | [`windows`] | windows of time: which devices get a model, and which updates count |
//!
//! The processes around it, and the parts that several of them use:
//!
//! | module | contents |
//! | --- | --- |
//! | [`delivery`] | finished models for devices that only infer: versions, signatures, service |
//! | [`device`] | a device as a process: flash in a file, memory, connection |
//! | [`helper`] | a helper as a process: its files, one answer per round |
//! | [`helper_link`] | the encrypted connection between coordinator and helper |
//! | [`gateway`] | carrying bytes between boards and a coordinator out of their reach |
//! | [`transport`] | addresses: serial lines, TCP, TLS, MQTT brokers, UDP, Unix sockets |
//! | [`backoff`] | growing pauses between attempts to connect |
//! | [`keys`] | the keys of a fleet, and the round numbers that it has used |
//! | [`lock`] | taking a lock |
//! | [`audit`] | a fleet in one process, for audits |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

pub mod admission;
pub mod audit;
pub mod backoff;
pub mod chains;
pub mod connection;
pub mod coordinator;
pub mod delivery;
pub mod device;
pub mod exchange;
pub mod fleet_file;
pub mod gateway;
pub mod handshakes;
pub mod helper;
pub mod helper_link;
pub mod helpers;
pub mod keys;
pub mod ledgers;
pub mod link;
pub mod lock;
pub mod monitor;
pub mod peer;
pub mod presence;
pub mod quarantine;
pub mod quorum;
pub mod registry;
pub mod service;
pub mod short_model;
pub mod source;
pub mod status;
pub mod stopping;
pub mod traffic;
pub mod transport;
mod turns;
pub mod watch;
pub mod windows;

#[cfg(test)]
mod tests;
