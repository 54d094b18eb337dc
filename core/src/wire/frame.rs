//! A frame: unencrypted in the greeting, encrypted in a session. Both end with a checksum.
//!
//! ```text
//! 0 u8 | kind u8 | body | CRC-32 u32
//! version u8 | sequence u32 | encrypted: kind u8, round u32, body | tag (16 bytes) | CRC-32 u32
//! ```
//!
//! Little-endian. ChaCha20-Poly1305 (RFC 8439) under the key of the session. The nonce is the
//! direction `u32` and the sequence number `u64`. The associated data are direction and version, a
//! byte each, and the sequence number `u32`. The checksum covers everything before it.

use super::{
    Direction, FRAME_BYTES, GREETING_VERSION, RAW_BYTES, cobs, keys::SessionKey, refusal::Refusal,
};
use crate::bytes::{Reader, Writer};
use crate::crc32::crc32;
use crate::crypto::aead::{self, TAG_BYTES};

/// Bytes before the encrypted part: version and sequence number.
const CLEAR_BYTES: usize = 5;

/// Bytes of version, sequence number, kind and round.
pub const HEADER_BYTES: usize = CLEAR_BYTES + 5;

/// Bytes of the checksum.
pub const CRC_BYTES: usize = 4;

/// Bytes of a session frame around its body, before COBS.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + TAG_BYTES + CRC_BYTES;

/// Maximum bytes of a message.
pub const BODY_BYTES: usize = RAW_BYTES - OVERHEAD_BYTES;

/// The first bytes of a session frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Protocol version, unencrypted.
    pub version: u8,
    /// Number of the frame in its session and direction, strictly increasing and unencrypted.
    pub sequence: u32,
    /// Kind of the body: see [`super::message`].
    pub kind: u8,
    /// The communication round, or 0 without one.
    pub round: u32,
}

/// A received frame with a valid checksum.
#[derive(Debug)]
pub enum Frame<'a> {
    /// A frame of the greeting: see [`super::greeting`].
    Greeting {
        /// Kind of the body.
        kind: u8,
        /// The body, which anyone may have written.
        body: &'a [u8],
    },
    /// A frame of a session.
    Sealed(Sealed<'a>),
}

impl<'a> Frame<'a> {
    /// Splits a frame decoded from COBS.
    ///
    /// # Errors
    /// Returns [`Refusal::TooShort`], [`Refusal::TooLong`] or [`Refusal::Checksum`].
    pub fn parse(raw: &'a mut [u8]) -> Result<Self, Refusal> {
        if raw.len() > RAW_BYTES {
            return Err(Refusal::TooLong);
        }
        let (checked, crc) = raw
            .split_last_chunk_mut::<CRC_BYTES>()
            .ok_or(Refusal::TooShort)?;
        if crc32(checked) != u32::from_le_bytes(*crc) {
            return Err(Refusal::Checksum);
        }
        match checked {
            [GREETING_VERSION, kind, body @ ..] => Ok(Self::Greeting { kind: *kind, body }),
            _ => Sealed::split(checked)
                .map(Self::Sealed)
                .ok_or(Refusal::TooShort),
        }
    }
}

/// A session frame, encrypted until [`Self::open`] has found the session's key.
#[derive(Debug)]
pub struct Sealed<'a> {
    version: u8,
    sequence: u32,
    text: &'a mut [u8],
    tag: &'a [u8; TAG_BYTES],
}

/// The decrypted part of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// Kind of the body: see [`super::message`].
    pub kind: u8,
    /// The communication round, or 0 without one.
    pub round: u32,
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Sealed<'a> {
    fn split(bytes: &'a mut [u8]) -> Option<Self> {
        let (bytes, tag) = bytes.split_last_chunk_mut::<TAG_BYTES>()?;
        let ([version, sequence @ ..], text) = bytes.split_first_chunk_mut::<CLEAR_BYTES>()?;
        (text.len() >= HEADER_BYTES - CLEAR_BYTES).then_some(Self {
            version: *version,
            sequence: u32::from_le_bytes(*sequence),
            text,
            tag,
        })
    }

    /// Returns the protocol version that the frame claims.
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// Returns the frame's number. Do not use it before [`Self::open`].
    pub const fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Checks that a holder of `key` made the frame for this direction. If so, decrypts it, once.
    /// Otherwise it stays unchanged, for another key.
    pub fn open(&mut self, key: &SessionKey, direction: Direction) -> bool {
        let (nonce, associated) = framing(self.version, self.sequence, direction);
        aead::open(&key.0, &nonce, &associated, self.text, self.tag)
    }

    /// Returns the content. It is meaningless unless [`Self::open`] has decrypted it.
    pub fn opened(&self) -> Opened<'_> {
        let mut reader = Reader(self.text);
        Opened {
            // `split` has checked the length.
            kind: reader.u8().unwrap_or_default(),
            round: reader.u32().unwrap_or_default(),
            body: reader.rest(),
        }
    }
}

/// Returns the nonce and associated data of a frame.
fn framing(version: u8, sequence: u32, direction: Direction) -> (aead::Nonce, [u8; 6]) {
    let [a, b, c, d] = sequence.to_le_bytes();
    let associated = [direction as u8, version, a, b, c, d];
    ([direction as u32, sequence, 0], associated)
}

/// An outgoing frame: the bytes for the line.
#[derive(Clone, Debug)]
pub struct Encoded {
    bytes: [u8; FRAME_BYTES],
    /// At most [`FRAME_BYTES`]. It has 16 bits, because devices hold one in RAM.
    length: u16,
}

impl Encoded {
    /// Creates an empty frame.
    pub const fn empty() -> Self {
        Self {
            bytes: [0; FRAME_BYTES],
            length: 0,
        }
    }

    /// Creates the frame of this header and body, sealed with `key`.
    ///
    /// It has no bytes if the body is longer than [`BODY_BYTES`]. No message of this crate is that
    /// long.
    pub fn seal(header: Header, body: &[u8], key: &SessionKey, direction: Direction) -> Self {
        let mut encoded = Self::empty();
        encoded.compose(header, |writer| {
            writer.put(body);
            Some(())
        });
        encoded.finish(key, direction);
        encoded
    }

    /// Overwrites the contents with header and body where the frame is sent from, so that no second
    /// buffer is needed. [`Self::finish`] makes it a frame.
    ///
    /// It has no bytes if `body` writes none or too many.
    #[inline(always)]
    pub(super) fn compose(
        &mut self,
        header: Header,
        body: impl FnOnce(&mut Writer<'_>) -> Option<()>,
    ) {
        let mut writer = Writer::new(self.place());
        writer
            .u8(header.version)
            .u32(header.sequence)
            .u8(header.kind)
            .u32(header.round);
        let written = body(&mut writer).and_then(|()| writer.finish());
        self.has(written);
    }

    /// Encrypts the output of [`Self::compose`], if any, and adds tag, checksum and COBS.
    pub(super) fn finish(&mut self, key: &SessionKey, direction: Direction) {
        let sealed = self.sealed(key, direction);
        self.has(sealed);
    }

    fn sealed(&mut self, key: &SessionKey, direction: Direction) -> Option<usize> {
        let length = self.length.into();
        let (composed, rest) = self.place().split_at_mut_checked(length)?;
        let ([version, sequence @ ..], text) = composed.split_first_chunk_mut::<CLEAR_BYTES>()?;
        let (nonce, associated) = framing(*version, u32::from_le_bytes(*sequence), direction);
        // There must be room for the tag before encryption: no partial frame is sent.
        let place = rest.first_chunk_mut()?;
        *place = aead::seal(&key.0, &nonce, &associated, text);
        self.checked(length + TAG_BYTES)
    }

    /// Overwrites the contents with a greeting frame.
    #[inline(always)]
    pub(super) fn greet(&mut self, kind: u8, body: impl FnOnce(&mut Writer<'_>)) {
        let mut writer = Writer::new(self.place());
        writer.u8(GREETING_VERSION).u8(kind);
        body(&mut writer);
        let written = writer.finish();
        let checked = written.and_then(|length| self.checked(length));
        self.has(checked);
    }

    /// Adds checksum and COBS.
    #[inline(never)]
    fn checked(&mut self, length: usize) -> Option<usize> {
        let raw = self.place();
        let crc = crc32(raw.get(..length)?);
        *raw.get_mut(length..)?.first_chunk_mut()? = crc.to_le_bytes();
        cobs::encode(&mut self.bytes, length + CRC_BYTES)
    }

    /// Returns the place of a frame before COBS: after the first byte, before the final zero.
    pub(crate) const fn place(&mut self) -> &mut [u8; RAW_BYTES] {
        let [_, place @ .., _] = &mut self.bytes;
        place
    }

    /// Returns the bytes for the line.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or_default()
    }

    /// Sets the number of bytes, or 0 for `None`.
    fn has(&mut self, length: Option<usize>) {
        self.length = length.unwrap_or(0) as u16;
    }

    /// Clears the bytes, once they are on the line.
    pub const fn clear(&mut self) {
        self.length = 0;
    }
}
