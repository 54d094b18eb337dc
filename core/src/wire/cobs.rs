//! Consistent overhead byte stuffing: frames without zeros, ended by a zero, so that a receiver
//! that lost its place finds the next frame (Cheshire, Baker 1999, doi:10.1109/90.769765, section
//! 3).
//!
//! A frame is cut after each zero. Each piece is written as its length plus one, followed by its
//! bytes without the zero. Frames here are shorter than the longest piece of COBS, so encoding adds
//! exactly one byte.

use super::{FRAME_BYTES, RAW_BYTES, refusal::Refusal};

/// Encodes a frame of `length` bytes in place, after the first byte of `bytes`, and appends the
/// zero. Returns the number of bytes.
///
/// `None` if it has more than [`RAW_BYTES`] bytes. `bytes` are then unchanged.
pub fn encode(bytes: &mut [u8; FRAME_BYTES], length: usize) -> Option<usize> {
    if length > RAW_BYTES {
        return None;
    }
    // From the last byte to the first: every zero becomes the length of the piece after it.
    let mut piece = 1;
    for byte in bytes.get_mut(1..=length)?.iter_mut().rev() {
        if *byte == 0 {
            *byte = piece;
            piece = 1;
        } else {
            // At most 255, as a piece has at most as many bytes as the frame.
            piece = piece.wrapping_add(1);
        }
    }
    let [first, ..] = bytes;
    *first = piece;
    *bytes.get_mut(length + 1)? = 0;
    Some(length + 2)
}

/// Finds frames in a byte stream. After invalid bytes it continues at the next zero.
#[derive(Clone, Debug)]
pub struct Decoder {
    frame: [u8; RAW_BYTES],
    place: Place,
}

impl Decoder {
    /// Creates a decoder between two frames.
    pub const fn new() -> Self {
        Self {
            frame: [0; RAW_BYTES],
            place: Place::new(),
        }
    }

    /// Takes one byte from the line, and returns the frame that it ends, if any.
    ///
    /// Consecutive zeros end no frames: a sender may clear the line with them.
    #[inline]
    pub fn push(&mut self, byte: u8) -> Option<Result<&mut [u8], Refusal>> {
        let length = self.place.push(byte, &mut self.frame)?;
        Some(length.and_then(|length| self.frame.get_mut(..length).ok_or(Refusal::TooLong)))
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// The position of a receiver within a frame: a [`Decoder`] without a buffer, for callers that have
/// one.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Length so far, at most [`RAW_BYTES`].
    length: u8,
    /// Remaining bytes of the current piece.
    piece: u8,
    /// Whether a zero belongs between the current piece and the next.
    zero: bool,
    /// The error in the current frame, if any. Its rest is skipped.
    refused: Option<Refusal>,
}

impl Place {
    /// A position between two frames.
    pub(crate) const fn new() -> Self {
        Self {
            length: 0,
            piece: 0,
            zero: false,
            refused: None,
        }
    }

    /// Takes one byte from the line and writes the decoded byte to `frame`. Returns the frame's
    /// length when it ends one.
    #[inline]
    pub(crate) fn push(
        &mut self,
        byte: u8,
        frame: &mut [u8; RAW_BYTES],
    ) -> Option<Result<usize, Refusal>> {
        if byte == 0 {
            return self.end();
        }
        if self.refused.is_some() {
            return None;
        }
        if self.piece > 0 {
            self.piece -= 1;
            self.put(byte, frame);
            return None;
        }
        if self.zero {
            self.put(0, frame);
        }
        self.piece = byte - 1;
        // No zero follows a piece of the longest kind.
        self.zero = byte != u8::MAX;
        None
    }

    fn put(&mut self, byte: u8, frame: &mut [u8; RAW_BYTES]) {
        match frame.get_mut(usize::from(self.length)) {
            Some(place) => {
                *place = byte;
                self.length += 1;
            }
            None => self.refuse(Refusal::TooLong),
        }
    }

    fn end(&mut self) -> Option<Result<usize, Refusal>> {
        let begun = self.is_within();
        let Self {
            length,
            piece,
            refused,
            ..
        } = core::mem::replace(self, Self::new());
        if let Some(refusal) = refused {
            return Some(Err(refusal));
        }
        if piece > 0 {
            return Some(Err(Refusal::Stuffing));
        }
        begun.then_some(Ok(length.into()))
    }

    /// Whether a frame has begun that may still be complete.
    pub(crate) const fn is_within(&self) -> bool {
        self.refused.is_none() && (self.length > 0 || self.piece > 0 || self.zero)
    }

    /// Skips the rest of the current frame, up to the next zero.
    pub(crate) const fn refuse(&mut self, why: Refusal) {
        if self.refused.is_none() {
            self.refused = Some(why);
        }
    }
}
