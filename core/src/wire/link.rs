//! One end of a session: the key, the numbers of its frames, and what it lets in.

use core::marker::PhantomData;

use super::{
    Direction, VERSION,
    frame::{Encoded, Header, Sealed},
    keys::SessionKey,
    message::Message,
    refusal::Refusal,
};

/// Whose end of a link it is. A type, so that firmware has the messages of a device only.
pub trait End {
    /// Which way its frames travel.
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
/// Frames are numbered from 1 in each direction. A frame is let in if its tag is right and its
/// number is above all that were let in before: what is replayed or overtaken is refused, what is
/// lost is asked for again under a new number.
#[derive(Clone, Debug)]
pub struct Link<E> {
    key: SessionKey,
    sent: u32,
    received: u32,
    end: PhantomData<E>,
}

impl<E: End> Link<E> {
    /// A session at its beginning.
    pub const fn new(session: SessionKey) -> Self {
        Self {
            key: session,
            sent: 0,
            received: 0,
            end: PhantomData,
        }
    }

    /// Round and message of an authentic new frame of this session.
    ///
    /// # Errors
    /// [`Refusal`]; the session goes on as if the frame had not come. A frame whose number counts
    /// but whose body is malformed uses the number up.
    pub fn open<'a>(&mut self, frame: &'a mut Sealed<'_>) -> Result<(u32, Message<'a>), Refusal> {
        self.admit(frame)?;
        read::<E>(frame)
    }

    /// Whether the frame is let in, and then decrypted: [`Self::open`] but for its message.
    ///
    /// # Errors
    /// [`Refusal`], as there. After [`Refusal::Version`] and [`Refusal::Tag`] the frame is as it
    /// was, for another session.
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

    /// The next frame of this end, with this message.
    ///
    /// No bytes once 2³² − 1 frames were sent, so that no number comes twice: the session is over.
    pub fn seal(&mut self, round: u32, message: &Message<'_>) -> Encoded {
        let mut encoded = Encoded::empty();
        self.compose(round, message, &mut encoded);
        self.finish(&mut encoded);
        encoded
    }

    /// Header and body of the next frame, in the place of an older one; [`Self::finish`] makes it
    /// one.
    pub(crate) fn compose(&mut self, round: u32, message: &Message<'_>, encoded: &mut Encoded) {
        encoded.clear();
        if let Some(sequence) = self.sent.checked_add(1) {
            // A number is used before its frame is made: no nonce comes twice.
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

    /// Encrypts a composed frame. Apart from what composes it, so that the message is off a
    /// device's stack then.
    pub(crate) fn finish(&self, encoded: &mut Encoded) {
        encoded.finish(&self.key, E::OUTGOING);
    }

    /// As if that many frames had been sent.
    #[cfg(test)]
    pub(crate) const fn skip_to(&mut self, sent: u32) {
        self.sent = sent;
    }

    /// Frames let in so far, or rather the number of the last one.
    pub const fn received(&self) -> u32 {
        self.received
    }
}

/// Round and message of a frame that has come to this end and was let in.
///
/// # Errors
/// Those of [`Message::parse`].
pub fn read<'a, E: End>(frame: &'a Sealed<'_>) -> Result<(u32, Message<'a>), Refusal> {
    let opened = frame.opened();
    let message = Message::parse(opened.kind, opened.body, E::OUTGOING.opposite())?;
    Ok((opened.round, message))
}
