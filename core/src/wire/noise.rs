//! Noise's two messages on the line: after a Hello, and as a Welcome.

use crate::bytes::{Reader, Writer};
use crate::crypto::{aead::TAG_BYTES, noise::DH_BYTES};

/// The first message, without a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct First {
    pub(super) public: [u8; DH_BYTES],
    pub(super) tag: [u8; TAG_BYTES],
}

impl First {
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&self.public).put(&self.tag);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            public: reader.array()?,
            tag: reader.array()?,
        })
    }
}

/// The second message: the coordinator's answer to a Hello with a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second {
    pub(super) public: [u8; DH_BYTES],
    /// The version of all later frames, encrypted twice.
    pub(super) payload: [u8; 2],
    pub(super) tag: [u8; TAG_BYTES],
}

impl Second {
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&self.public).put(&self.payload).put(&self.tag);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            public: reader.array()?,
            payload: reader.array()?,
            tag: reader.array()?,
        })
    }
}
