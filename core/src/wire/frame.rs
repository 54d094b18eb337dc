//! A frame: of the greeting, or of a session and then encrypted. A checksum is behind both.
//!
//! ```text
//! 0 u8 | kind u8 | body | CRC-32 u32
//! version u8 | sequence u32 | encrypted: kind u8, round u32, body | tag (16 bytes) | CRC-32 u32
//! ```
//!
//! Little-endian. ChaCha20-Poly1305 (RFC 8439) under the key of the session. The nonce is the
//! direction `u32` and the sequence number `u64`; the associated data are direction and version,
//! a byte each, and the sequence number `u32`. The checksum covers everything before it.

use super::{
    Direction, FRAME_BYTES, GREETING_VERSION, RAW_BYTES, cobs, keys::SessionKey, refusal::Refusal,
};
use crate::bytes::{Reader, Writer};
use crate::crc32::crc32;
use crate::crypto::aead::{self, TAG_BYTES};

/// Bytes before what is encrypted: version and sequence number.
const CLEAR_BYTES: usize = 5;

/// Bytes of version, sequence number, kind and round.
pub const HEADER_BYTES: usize = CLEAR_BYTES + 5;

/// Bytes of the checksum.
pub const CRC_BYTES: usize = 4;

/// Bytes of a frame of a session around its body, before COBS.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + TAG_BYTES + CRC_BYTES;

/// Bytes of a message at most.
pub const BODY_BYTES: usize = RAW_BYTES - OVERHEAD_BYTES;

/// The first bytes of a frame of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the protocol, in clear.
    pub version: u8,
    /// Number of the frame in its session and direction, strictly increasing; in clear.
    pub sequence: u32,
    /// What the body is; see [`super::message`].
    pub kind: u8,
    /// The communication round, or 0 where there is none.
    pub round: u32,
}

/// A received frame whose checksum fits.
#[derive(Debug)]
pub enum Frame<'a> {
    /// Of the greeting: see [`super::greeting`].
    Greeting {
        /// What the body is.
        kind: u8,
        /// The body, which anybody can have written.
        body: &'a [u8],
    },
    /// Of a session.
    Sealed(Sealed<'a>),
}

impl<'a> Frame<'a> {
    /// Takes apart a frame that came out of COBS.
    ///
    /// # Errors
    /// [`Refusal::TooShort`], [`Refusal::TooLong`], [`Refusal::Checksum`].
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

/// A frame of a session, encrypted until [`Self::open`] has found the session's key.
#[derive(Debug)]
pub struct Sealed<'a> {
    version: u8,
    sequence: u32,
    text: &'a mut [u8],
    tag: &'a [u8; TAG_BYTES],
}

/// What was encrypted in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// What the body is; see [`super::message`].
    pub kind: u8,
    /// The communication round, or 0 where there is none.
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

    /// The version that it says to be of.
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// Its number; not to be used before [`Self::open`].
    pub const fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Whether it was made by a holder of `key`, for this direction. It is then decrypted, once;
    /// else it stays as it is, for another key.
    pub fn open(&mut self, key: &SessionKey, direction: Direction) -> bool {
        let (nonce, associated) = framing(self.version, self.sequence, direction);
        aead::open(&key.0, &nonce, &associated, self.text, self.tag)
    }

    /// What is in it. Noise, unless [`Self::open`] has decrypted it.
    pub fn opened(&self) -> Opened<'_> {
        let mut reader = Reader(self.text);
        Opened {
            // It has both: `split`.
            kind: reader.u8().unwrap_or_default(),
            round: reader.u32().unwrap_or_default(),
            body: reader.rest(),
        }
    }
}

/// Nonce and associated data of a frame.
fn framing(version: u8, sequence: u32, direction: Direction) -> (aead::Nonce, [u8; 6]) {
    let [a, b, c, d] = sequence.to_le_bytes();
    let associated = [direction as u8, version, a, b, c, d];
    ([direction as u32, sequence, 0], associated)
}

/// An outgoing frame: the bytes for the line.
#[derive(Clone, Debug)]
pub struct Encoded {
    bytes: [u8; FRAME_BYTES],
    /// At most [`FRAME_BYTES`]: in 16 bits, as devices have one in their RAM.
    length: u16,
}

impl Encoded {
    /// No bytes.
    pub const fn empty() -> Self {
        Self {
            bytes: [0; FRAME_BYTES],
            length: 0,
        }
    }

    /// The frame of this header and body, sealed with `key`.
    ///
    /// A body longer than [`BODY_BYTES`] gives no bytes; no message of this crate is that long.
    pub fn seal(header: Header, body: &[u8], key: &SessionKey, direction: Direction) -> Self {
        let mut encoded = Self::empty();
        encoded.compose(header, |writer| {
            writer.put(body);
            Some(())
        });
        encoded.finish(key, direction);
        encoded
    }

    /// Puts header and body in the place of what was there, where the frame is sent from: it is
    /// made without a second buffer. [`Self::finish`] makes it a frame.
    ///
    /// No bytes if `body` writes none or too many.
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

    /// Encrypts what [`Self::compose`] has put here, if anything; adds tag, checksum and COBS.
    pub(super) fn finish(&mut self, key: &SessionKey, direction: Direction) {
        let sealed = self.sealed(key, direction);
        self.has(sealed);
    }

    fn sealed(&mut self, key: &SessionKey, direction: Direction) -> Option<usize> {
        let length = self.length.into();
        let (composed, rest) = self.place().split_at_mut_checked(length)?;
        let ([version, sequence @ ..], text) = composed.split_first_chunk_mut::<CLEAR_BYTES>()?;
        let (nonce, associated) = framing(*version, u32::from_le_bytes(*sequence), direction);
        // There is room for the tag before it is encrypted: nothing is sent half.
        let place = rest.first_chunk_mut()?;
        *place = aead::seal(&key.0, &nonce, &associated, text);
        self.checked(length + TAG_BYTES)
    }

    /// A frame of the greeting, in the place of what was there.
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

    /// The place of a frame before COBS: behind its first byte, before the zero at its end.
    pub(crate) const fn place(&mut self) -> &mut [u8; RAW_BYTES] {
        let [_, place @ .., _] = &mut self.bytes;
        place
    }

    /// The bytes for the line.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or_default()
    }

    /// So many bytes are there, or none.
    fn has(&mut self, length: Option<usize>) {
        self.length = length.unwrap_or(0) as u16;
    }

    /// Forgets the bytes, once they are on the line.
    pub const fn clear(&mut self) {
        self.length = 0;
    }
}
