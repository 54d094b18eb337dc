//! The messages between a device and its coordinator, byte by byte, the version of the protocol,
//! and the longest frame: `docs/protocol.md`.
//!
//! A message is the body of a frame. A frame is encrypted and authenticated, has a CRC-32, and is
//! encoded in COBS with a final zero. Every frame fits in [`FRAME_BYTES`] bytes, so models and
//! updates travel in chunks, and the link needs memory for only one frame.
//!
//! | module | contents |
//! | --- | --- |
//! | [`cobs`] | encodes and decodes frames in a byte stream, one byte at a time |
//! | [`keys`] | keys of devices and sessions |
//! | [`fragment`] | splits frames into packets of 18 bytes or more, and reassembles them |
//! | [`frame`] | clear and encrypted fields, tag and checksum |
//! | [`greeting`] | start of a session |
//! | `handshake` | with the feature `x25519`: the same with a Diffie-Hellman handshake |
//! | [`message`] | message bodies |
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

/// The first byte of greeting frames, in which the version is negotiated. It never changes.
pub const GREETING_VERSION: u8 = 0;

/// Maximum bytes of a frame on the line, including the final zero.
pub const FRAME_BYTES: usize = 256;

/// Maximum bytes of a frame before COBS, which adds one byte and the zero.
pub const RAW_BYTES: usize = FRAME_BYTES - 2;

/// Direction of a frame. It is part of the nonce and covered by the tag, so no frame can be
/// reflected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// From the coordinator to a device.
    ToDevice = 1,
    /// From a device to the coordinator.
    ToCoordinator = 2,
}

impl Direction {
    /// Returns the opposite direction.
    pub const fn opposite(self) -> Self {
        match self {
            Self::ToDevice => Self::ToCoordinator,
            Self::ToCoordinator => Self::ToDevice,
        }
    }
}
