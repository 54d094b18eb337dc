//! The coordinator of real devices: sessions over serial lines and sockets, round by round.
//!
//! What a device says is never trusted further than it was checked: a device that lies, is slow or
//! falls silent costs its own update and at most the time-out, and does not disturb the others. What
//! is left out is counted by name.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`exchange`] | one round with one device: model out, update in, the check of its bound |
//! | [`peer`] | one device: greeting, sessions, its part in the round; frames in, frames out |
//! | [`mod@line`] | one connection: bytes in, bytes out, and which device speaks on it |
//! | [`address`] | serial lines and sockets |
//! | [`links`] | a thread a connection |
//! | [`fleet`] | all devices: a round with those of them that were drawn |
//! | [`status`] | the table of devices |
//! | [`keys`] | the keys of a fleet, and the round numbers that it has used |

pub mod address;
pub mod exchange;
pub mod fleet;
pub mod keys;
pub mod line;
pub mod links;
pub mod peer;
pub mod status;

#[cfg(test)]
mod tests;
