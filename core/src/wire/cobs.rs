//! Consistent overhead byte stuffing: frames without zeros, ended by a zero, so that a receiver that
//! lost its place finds the next frame (Cheshire, Baker 1999, doi:10.1109/90.769765, section 3).
//!
//! A frame is cut after each zero, and every piece is written as its length plus one followed by
//! its bytes without the zero. Frames here are shorter than the longest piece of COBS, so encoding
//! adds exactly one byte.

use super::{FRAME_BYTES, RAW_BYTES, refusal::Refusal};

/// Puts a frame of `length` bytes in COBS where it lies, behind the first byte of `bytes`, with the zero
/// at its end; returns the number of bytes.
///
/// `None` if it has more than [`RAW_BYTES`] bytes; `bytes` are then unchanged.
pub fn encode(bytes: &mut [u8; FRAME_BYTES], length: usize) -> Option<usize> {
    if length > RAW_BYTES {
        return None;
    }
    // From the last byte to the first: every zero becomes the length of the piece behind it.
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

/// Finds frames in a byte stream. After anything that is not a frame it goes on at the next zero.
#[derive(Clone, Debug)]
pub struct Decoder {
    frame: [u8; RAW_BYTES],
    length: usize,
    /// Bytes that are left of the current piece.
    piece: u8,
    /// Whether a zero belongs between the current piece and the next.
    zero: bool,
    /// What is wrong with the current frame; its rest is skipped.
    refused: Option<Refusal>,
}

impl Decoder {
    /// A decoder between two frames.
    pub const fn new() -> Self {
        Self {
            frame: [0; RAW_BYTES],
            length: 0,
            piece: 0,
            zero: false,
            refused: None,
        }
    }

    /// Takes one byte from the line; says when it ends a frame, and what the frame was.
    ///
    /// Zeros in a row end no frames: a sender may clear the line with them.
    #[inline]
    pub fn push(&mut self, byte: u8) -> Option<Result<&[u8], Refusal>> {
        if byte == 0 {
            return self.end();
        }
        if self.refused.is_some() {
            return None;
        }
        if self.piece > 0 {
            self.piece -= 1;
            self.put(byte);
            return None;
        }
        if self.zero {
            self.put(0);
        }
        self.piece = byte - 1;
        // A piece of the longest kind is followed by no zero.
        self.zero = byte != u8::MAX;
        None
    }

    fn put(&mut self, byte: u8) {
        match self.frame.get_mut(self.length) {
            Some(place) => {
                *place = byte;
                self.length += 1;
            }
            None => self.refused = Some(Refusal::TooLong),
        }
    }

    fn end(&mut self) -> Option<Result<&[u8], Refusal>> {
        let length = core::mem::take(&mut self.length);
        let cut = core::mem::take(&mut self.piece) > 0;
        let begun = core::mem::take(&mut self.zero) || length > 0 || cut;
        if let Some(refusal) = self.refused.take() {
            return Some(Err(refusal));
        }
        if cut {
            return Some(Err(Refusal::Stuffing));
        }
        if !begun {
            return None;
        }
        Some(self.frame.get(..length).ok_or(Refusal::TooLong))
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}
