//! One end of a session: the key, the frame numbers, and the admission of frames.

use core::marker::PhantomData;

use super::{
    Direction, VERSION,
    frame::{Encoded, Header, Sealed},
    keys::SessionKey,
    message::Message,
    refusal::Refusal,
};

/// One of the two ends of a link. It is a type, so that firmware has only the messages of a device.
pub trait End {
    /// Direction of its frames.
    const OUTGOING: Direction;
}

/// The device's end.
#[derive(Clone, Copy, Debug)]
pub struct DeviceEnd;

/// The coordinator's end.
#[derive(Clone, Copy, Debug)]
pub struct CoordinatorEnd;

impl End for DeviceEnd {
    const OUTGOING: Direction = Direction::ToCoordinator;
}

impl End for CoordinatorEnd {
    const OUTGOING: Direction = Direction::ToDevice;
}

/// One end of a session.
///
/// Frames are numbered from 1 in each direction. A frame is admitted if its tag is right and its
/// number is above all earlier ones. Replayed or overtaken frames are refused, and lost content is
/// requested again under a new number.
#[derive(Clone, Debug)]
pub struct Link<E> {
    key: SessionKey,
    sent: u32,
    received: u32,
    end: PhantomData<E>,
}

impl<E: End> Link<E> {
    /// Creates a session at its beginning.
    pub const fn new(session: SessionKey) -> Self {
        Self {
            key: session,
            sent: 0,
            received: 0,
            end: PhantomData,
        }
    }

    /// Returns the round and message of an authentic new frame of this session.
    ///
    /// # Errors
    /// Returns [`Refusal`]. The session continues as if the frame had not come. A frame with a
    /// valid number but a malformed body uses the number up.
    pub fn open<'a>(&mut self, frame: &'a mut Sealed<'_>) -> Result<(u32, Message<'a>), Refusal> {
        self.admit(frame)?;
        read::<E>(frame)
    }

    /// Admits a frame and decrypts it: [`Self::open`] without reading the message.
    ///
    /// # Errors
    /// Returns [`Refusal`] as [`Self::open`] does. After [`Refusal::Version`] and [`Refusal::Tag`]
    /// the frame is unchanged, for another session.
    pub fn admit(&mut self, frame: &mut Sealed<'_>) -> Result<(), Refusal> {
        if frame.version() != VERSION {
            return Err(Refusal::Version);
        }
        if !frame.open(&self.key, E::OUTGOING.opposite()) {
            return Err(Refusal::Tag);
        }
        if frame.sequence() <= self.received {
            return Err(Refusal::Replayed);
        }
        self.received = frame.sequence();
        Ok(())
    }

    /// Returns the next frame of this end, with this message.
    ///
    /// It has no bytes once 2³² − 1 frames were sent, so that no number repeats. The session is
    /// over then.
    pub fn seal(&mut self, round: u32, message: &Message<'_>) -> Encoded {
        let mut encoded = Encoded::empty();
        self.compose(round, message, &mut encoded);
        self.finish(&mut encoded);
        encoded
    }

    /// Writes header and body of the next frame over an older one. [`Self::finish`] makes it a
    /// frame.
    pub(crate) fn compose(&mut self, round: u32, message: &Message<'_>, encoded: &mut Encoded) {
        encoded.clear();
        if let Some(sequence) = self.sent.checked_add(1) {
            // A number is used before its frame is made, so no nonce repeats.
            self.sent = sequence;
            let header = Header {
                version: VERSION,
                sequence,
                kind: message.kind(),
                round,
            };
            encoded.compose(header, |writer| message.write(E::OUTGOING, writer));
        }
    }

    /// Encrypts a composed frame. Separate from [`Self::compose`], so that the message is off a
    /// device's stack by then.
    pub(crate) fn finish(&self, encoded: &mut Encoded) {
        encoded.finish(&self.key, E::OUTGOING);
    }

    /// Sets the number of sent frames.
    #[cfg(test)]
    pub(crate) const fn skip_to(&mut self, sent: u32) {
        self.sent = sent;
    }

    /// Returns the number of the last admitted frame, or 0.
    pub const fn received(&self) -> u32 {
        self.received
    }
}

/// Returns the round and message of an admitted frame.
///
/// # Errors
/// Returns the errors of [`Message::parse`].
pub fn read<'a, E: End>(frame: &'a Sealed<'_>) -> Result<(u32, Message<'a>), Refusal> {
    let opened = frame.opened();
    let message = Message::parse(opened.kind, opened.body, E::OUTGOING.opposite())?;
    Ok((opened.round, message))
}
