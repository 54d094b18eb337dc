//! The buffer of one frame, incoming or outgoing: a half-duplex line.
//!
//! A device answers what it receives, and receives nothing while it sends, so the memory of one
//! frame is enough. Where both meet, the outgoing frame wins: the other one is refused and counted,
//! and comes again because the device asks again.

use crate::wire::{cobs::Place, frame::Encoded, refusal::Refusal};

/// Time-outs that a message is held back for at most, while frames keep coming in: a slow line gets
/// a frame through, and nobody silences a device by two bytes now and then.
const MAX_WAITS: u8 = 4;

/// One frame, in one direction at a time.
pub(super) struct Line {
    frame: Encoded,
    incoming: Place,
    /// Whether a byte has come since the last time-out.
    is_stirring: bool,
    /// Time-outs that have waited since something was sent.
    waits: u8,
}

impl Line {
    pub(super) const fn new() -> Self {
        Self {
            frame: Encoded::empty(),
            incoming: Place::new(),
            is_stirring: false,
            waits: 0,
        }
    }

    /// Bytes that wait for the line: a frame, or none.
    pub(super) fn outgoing(&self) -> &[u8] {
        self.frame.as_slice()
    }

    /// The outgoing bytes are on the line.
    pub(super) const fn sent(&mut self) {
        self.frame.clear();
    }

    /// Where a frame goes out from. The one that was coming in is lost.
    pub(super) fn send(&mut self) -> &mut Encoded {
        self.waits = 0;
        if self.incoming.is_within() {
            self.incoming.refuse(Refusal::Crossed);
        }
        &mut self.frame
    }

    /// Takes a byte; a frame, if it ends one.
    pub(super) fn receive(&mut self, byte: u8) -> Option<Result<&mut [u8], Refusal>> {
        if byte != 0 && !self.frame.as_slice().is_empty() {
            self.incoming.refuse(Refusal::Crossed);
        }
        self.is_stirring = true;
        let place = self.frame.place();
        let length = self.incoming.push(byte, place)?;
        Some(length.and_then(|length| place.get_mut(..length).ok_or(Refusal::TooLong)))
    }

    /// Whether a time-out waits for the next one, because a frame is coming in: the line is not
    /// silent.
    pub(super) fn waits(&mut self) -> bool {
        let is_stirring = core::mem::take(&mut self.is_stirring);
        let waits = is_stirring && self.incoming.is_within() && self.waits < MAX_WAITS;
        self.waits += u8::from(waits);
        waits
    }
}
