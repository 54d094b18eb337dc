//! A frame: header, body, tag, checksum.
//!
//! ```text
//! version u8 | kind u8 | round u32 | sequence u32 | body | tag (16 bytes) | CRC-32 u32
//! ```
//!
//! Little-endian. The tag covers the direction and everything before the tag, the checksum
//! everything before the checksum.

use super::{
    Direction, FRAME_BYTES, RAW_BYTES,
    bytes::{Reader, Writer},
    cobs,
    crc32::crc32,
    mac::{Key, TAG_BYTES},
    refusal::Refusal,
};

/// Bytes of version, kind, round and sequence number.
pub const HEADER_BYTES: usize = 10;

/// Bytes of the checksum.
pub const CRC_BYTES: usize = 4;

/// Bytes of a frame around its body, before COBS.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + TAG_BYTES + CRC_BYTES;

/// Bytes of a message at most.
pub const BODY_BYTES: usize = RAW_BYTES - OVERHEAD_BYTES;

/// The first bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the protocol.
    pub version: u8,
    /// What the body is; see [`super::message`].
    pub kind: u8,
    /// The communication round, or 0 where there is none.
    pub round: u32,
    /// Number of the frame in its session and direction, strictly increasing.
    pub sequence: u32,
}

/// A received frame whose checksum fits. Its tag is not checked yet.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The header.
    pub header: Header,
    /// The body: not to be used before [`Frame::is_authentic`].
    pub body: &'a [u8],
    tagged: &'a [u8],
    tag: &'a [u8; TAG_BYTES],
}

impl<'a> Frame<'a> {
    /// Takes apart a frame that came out of COBS.
    ///
    /// # Errors
    /// [`Refusal::TooShort`], [`Refusal::TooLong`], [`Refusal::Checksum`].
    pub fn parse(raw: &'a [u8]) -> Result<Self, Refusal> {
        if raw.len() > RAW_BYTES {
            return Err(Refusal::TooLong);
        }
        let (checked, crc) = raw
            .split_last_chunk::<CRC_BYTES>()
            .ok_or(Refusal::TooShort)?;
        let (tagged, tag) = checked
            .split_last_chunk::<TAG_BYTES>()
            .ok_or(Refusal::TooShort)?;
        if tagged.len() < HEADER_BYTES {
            return Err(Refusal::TooShort);
        }
        if crc32(checked) != u32::from_le_bytes(*crc) {
            return Err(Refusal::Checksum);
        }
        let mut reader = Reader(tagged);
        let header = |reader: &mut Reader<'_>| {
            Some(Header {
                version: reader.u8()?,
                kind: reader.u8()?,
                round: reader.u32()?,
                sequence: reader.u32()?,
            })
        };
        Ok(Self {
            header: header(&mut reader).ok_or(Refusal::TooShort)?,
            body: reader.rest(),
            tagged,
            tag,
        })
    }

    /// Whether the frame was made by a holder of `key`, for this direction.
    pub fn is_authentic(&self, key: &Key, direction: Direction) -> bool {
        key.verify(direction, self.tagged, self.tag)
    }
}

/// An outgoing frame: the bytes for the line.
#[derive(Clone, Debug)]
pub struct Encoded {
    bytes: [u8; FRAME_BYTES],
    length: usize,
}

impl Encoded {
    /// No bytes.
    pub const fn empty() -> Self {
        Self {
            bytes: [0; FRAME_BYTES],
            length: 0,
        }
    }

    /// The frame of this header and body, tagged with `key`.
    ///
    /// A body longer than [`BODY_BYTES`] gives no bytes; no message of this crate is that long.
    pub fn seal(header: Header, body: &[u8], key: &Key, direction: Direction) -> Self {
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
            .u8(header.kind)
            .u32(header.round)
            .u32(header.sequence);
        self.length = body(&mut writer)
            .and_then(|()| writer.finish())
            .unwrap_or(0);
    }

    /// Adds tag, checksum and COBS to what [`Self::compose`] has put here, if anything.
    pub(super) fn finish(&mut self, key: &Key, direction: Direction) {
        self.length = self.finished(key, direction).unwrap_or(0);
    }

    fn finished(&mut self, key: &Key, direction: Direction) -> Option<usize> {
        let tagged = self.length;
        if tagged == 0 {
            return None;
        }
        let raw = self.place();
        let tag = key.tag(direction, raw.get(..tagged)?);
        Writer::new(raw.get_mut(tagged..)?).put(&tag).finish()?;
        let checked = tagged + TAG_BYTES;
        let crc = crc32(raw.get(..checked)?);
        Writer::new(raw.get_mut(checked..)?).u32(crc).finish()?;
        cobs::encode(&mut self.bytes, checked + CRC_BYTES)
    }

    /// The place of a frame before COBS: behind its first byte, before the zero at its end.
    pub(crate) const fn place(&mut self) -> &mut [u8; RAW_BYTES] {
        let [_, place @ .., _] = &mut self.bytes;
        place
    }

    /// The bytes for the line.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Forgets the bytes, once they are on the line.
    pub const fn clear(&mut self) {
        self.length = 0;
    }
}
