//! The messages between a device and its coordinator, byte by byte: `docs/protocol.md`.
//!
//! A message is the body of a frame; a frame is encrypted and authenticated, has a CRC-32, and
//! travels in COBS, ended by a zero. Every frame fits in [`FRAME_BYTES`] bytes, so models and
//! updates travel in chunks, and a device needs no more memory for the link than one frame.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`cobs`] | frames in a byte stream, and back, one byte at a time |
//! | [`keys`] | keys of devices and sessions |
//! | [`fragment`] | frames in packets of 18 bytes and more, and back |
//! | [`frame`] | what is in clear, what is encrypted, tag and checksum |
//! | [`greeting`] | how a session begins |
//! | `handshake` | with the feature `x25519`: the same, with a Diffie-Hellman |
//! | [`message`] | the bodies |
//! | [`link`] | one end of the link: keys, sequence numbers, refusals |

pub mod cobs;
pub mod fragment;
pub mod frame;
pub mod greeting;
#[cfg(feature = "x25519")]
pub mod handshake;
pub mod keys;
pub mod link;
pub mod message;
#[cfg(feature = "x25519")]
mod noise;
pub mod refusal;
pub mod round_trip;

#[cfg(test)]
pub(crate) mod tests;

pub use crate::{crc32, pack};
pub use frame::BODY_BYTES;

/// The version of the protocol.
pub const VERSION: u8 = 5;

/// The first byte of greeting frames, in which the version is agreed: it never changes.
pub const GREETING_VERSION: u8 = 0;

/// Bytes of a frame on the line at most, with the zero that ends it.
pub const FRAME_BYTES: usize = 256;

/// Bytes of a frame before COBS at most: COBS adds one byte and the zero.
pub const RAW_BYTES: usize = FRAME_BYTES - 2;

/// Which way a frame travels. Part of its nonce and of what its tag covers, so that no frame can be
/// sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// From the coordinator to a device.
    ToDevice = 1,
    /// From a device to the coordinator.
    ToCoordinator = 2,
}

impl Direction {
    /// The other way.
    pub const fn opposite(self) -> Self {
        match self {
            Self::ToDevice => Self::ToCoordinator,
            Self::ToCoordinator => Self::ToDevice,
        }
    }
}
