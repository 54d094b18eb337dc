//! The buffer of one frame, incoming or outgoing: a half-duplex line.
//!
//! A device answers each frame it receives, and receives nothing while it sends, so memory for one
//! frame is enough. On a collision the outgoing frame wins. The incoming one is refused and
//! counted, and comes again because the device asks again.

use crate::wire::{cobs::Place, frame::Encoded, refusal::Refusal};

/// Maximum number of time-outs that an incoming frame holds a message back: a slow line gets a
/// frame through, and nobody can silence a device with two bytes now and then.
const MAX_WAITS: u8 = 4;

/// One frame, in one direction at a time.
pub(crate) struct Line {
    frame: Encoded,
    incoming: Place,
    /// Whether a byte has come since the last time-out.
    is_stirring: bool,
    /// Deferred time-outs since the last send.
    waits: u8,
}

impl Line {
    pub(crate) const fn new() -> Self {
        Self {
            frame: Encoded::empty(),
            incoming: Place::new(),
            is_stirring: false,
            waits: 0,
        }
    }

    /// Returns the bytes that wait for the line: a frame, or none.
    pub(crate) fn outgoing(&self) -> &[u8] {
        self.frame.as_slice()
    }

    /// Confirms that the outgoing bytes are on the line.
    pub(crate) const fn sent(&mut self) {
        self.frame.clear();
    }

    /// Returns the buffer for an outgoing frame. A partly received frame is lost.
    pub(crate) fn send(&mut self) -> &mut Encoded {
        self.waits = 0;
        if self.incoming.is_within() {
            self.incoming.refuse(Refusal::Crossed);
        }
        &mut self.frame
    }

    /// Takes a byte, and returns the frame that it ends, if any.
    pub(crate) fn receive(&mut self, byte: u8) -> Option<Result<&mut [u8], Refusal>> {
        if byte != 0 && !self.frame.as_slice().is_empty() {
            self.incoming.refuse(Refusal::Crossed);
        }
        self.is_stirring = true;
        let place = self.frame.place();
        let length = self.incoming.push(byte, place)?;
        Some(length.and_then(|length| place.get_mut(..length).ok_or(Refusal::TooLong)))
    }

    /// Whether a time-out waits for the next one because a frame is coming in, so the line is not
    /// silent.
    pub(crate) fn waits(&mut self) -> bool {
        let is_stirring = core::mem::take(&mut self.is_stirring);
        let waits = is_stirring && self.incoming.is_within() && self.waits < MAX_WAITS;
        self.waits += u8::from(waits);
        waits
    }
}
