//! One end of a session: the key, the numbers of its frames, and what it lets in.

use core::marker::PhantomData;

use super::{
    Direction, GREETING_VERSION, VERSION,
    frame::{Encoded, Frame, Header},
    mac::Key,
    message::{Message, is_greeting},
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
    key: Key,
    sent: u32,
    received: u32,
    end: PhantomData<E>,
}

impl<E: End> Link<E> {
    /// A session at its beginning.
    pub const fn new(session: Key) -> Self {
        Self {
            key: session,
            sent: 0,
            received: 0,
            end: PhantomData,
        }
    }

    /// The message of an authentic new frame of this session.
    ///
    /// # Errors
    /// [`Refusal`]; the session goes on as if the frame had not come. A frame whose number counts
    /// but whose body is malformed uses the number up.
    pub fn open<'a>(&mut self, frame: &Frame<'a>) -> Result<Message<'a>, Refusal> {
        self.admit(frame)?;
        read::<E>(frame)
    }

    /// Whether the frame is let in: [`Self::open`] but for its message.
    ///
    /// # Errors
    /// [`Refusal`], as there.
    pub(crate) fn admit(&mut self, frame: &Frame<'_>) -> Result<(), Refusal> {
        if is_greeting(frame.header.kind) {
            return Err(Refusal::Unexpected);
        }
        if frame.header.version != VERSION {
            return Err(Refusal::Version);
        }
        let incoming = E::OUTGOING.opposite();
        if !frame.is_authentic(&self.key, incoming) {
            return Err(Refusal::Tag);
        }
        if frame.header.sequence <= self.received {
            return Err(Refusal::Replayed);
        }
        self.received = frame.header.sequence;
        Ok(())
    }

    /// The next frame of this end, with this message.
    ///
    /// No bytes once 2³² − 1 frames were sent, so that no number comes twice: the session is over.
    pub fn seal(&mut self, round: u32, message: &Message<'_>) -> Encoded {
        let mut encoded = Encoded::empty();
        self.compose(round, message, &mut encoded);
        finish::<E>(&self.key, &mut encoded);
        encoded
    }

    /// Header and body of the next frame, in the place of an older one; [`finish`] makes it one.
    pub(crate) fn compose(&mut self, round: u32, message: &Message<'_>, encoded: &mut Encoded) {
        encoded.clear();
        if let Some(sequence) = self.sent.checked_add(1) {
            self.sent = sequence;
            compose::<E>(round, sequence, message, encoded);
        }
    }

    /// The key of the session.
    pub(crate) const fn key(&self) -> &Key {
        &self.key
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

/// A frame of the greeting: round 0, number 0, the same layout in every version.
pub fn greet<E: End>(message: &Message<'_>, key: &Key) -> Encoded {
    let mut encoded = Encoded::empty();
    compose_greeting::<E>(message, &mut encoded);
    finish::<E>(key, &mut encoded);
    encoded
}

/// Header and body of a frame of the greeting, in the place of an older frame; [`finish`] makes it
/// one.
pub(crate) fn compose_greeting<E: End>(message: &Message<'_>, encoded: &mut Encoded) {
    compose::<E>(0, 0, message, encoded);
}

/// Tag and checksum of a composed frame. Apart from what composes it, so that the message is off a
/// device's stack when the tag is made.
pub(crate) fn finish<E: End>(key: &Key, encoded: &mut Encoded) {
    encoded.finish(key, E::OUTGOING);
}

/// The message of a frame of the greeting that has come to this end. The caller checks its tag,
/// when it knows the key.
///
/// # Errors
/// [`Refusal::Unexpected`] if it is not of the greeting, [`Refusal::Version`] if it says to be of
/// another version, and those of [`Message::parse`].
pub fn open_greeting<'a, E: End>(frame: &Frame<'a>) -> Result<Message<'a>, Refusal> {
    if !is_greeting(frame.header.kind) {
        return Err(Refusal::Unexpected);
    }
    if frame.header.version != GREETING_VERSION {
        return Err(Refusal::Version);
    }
    read::<E>(frame)
}

/// The message of a frame that has come to this end and was let in.
///
/// # Errors
/// Those of [`Message::parse`].
pub(crate) fn read<'a, E: End>(frame: &Frame<'a>) -> Result<Message<'a>, Refusal> {
    Message::parse(frame.header.kind, frame.body, E::OUTGOING.opposite())
}

fn compose<E: End>(round: u32, sequence: u32, message: &Message<'_>, encoded: &mut Encoded) {
    let header = Header {
        version: if is_greeting(message.kind()) {
            GREETING_VERSION
        } else {
            VERSION
        },
        kind: message.kind(),
        round,
        sequence,
    };
    encoded.compose(header, |writer| message.write(E::OUTGOING, writer));
}
