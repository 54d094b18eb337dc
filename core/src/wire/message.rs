//! The message bodies of a session, kind by kind. All numbers are little-endian.

use super::{Direction, keys::Fingerprint, refusal::Refusal};
use crate::bytes::{Reader, Writer};
use crate::mask::Tag;
use crate::pack;

mod chunks;
#[cfg(feature = "delivery")]
mod delivery;
mod invitation;
#[cfg(feature = "questions")]
mod question;
mod reasons;
mod shape;
#[cfg(feature = "short")]
mod short;

use chunks::window;
pub use chunks::{
    MAX_WINDOW, MODEL_CHUNK, UPDATE_CHUNK_BYTES, UpdatePart, model_chunks, update_chunks,
};
#[cfg(feature = "delivery")]
pub use delivery::{Delivery, FILE_CHUNK, Installed};
pub(crate) use invitation::MAX_BYTES as MAX_INVITATION_BYTES;
pub use invitation::{Invitation, InvitationBytes, PackedInvitation, Request};
pub use reasons::{Abort, Decline, WhyRefused};
pub use shape::{MAX_SHAPE_BYTES, ModelShape, NetworkId};
#[cfg(feature = "short")]
pub use short::{ModelGrid, Numbers, SHORT_CHUNK, Short};

/// A device's description of itself in an open session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready<'a> {
    /// The device's ledger ([`ledger_fingerprint`](super::keys::ledger_fingerprint)).
    pub ledger: Fingerprint,
    /// The model that the device can train.
    pub shape: ModelShape,
    /// Whether it takes part only with its own noise.
    pub needs_local_noise: bool,
    /// Whether it answers questions.
    #[cfg(feature = "questions")]
    pub answers_questions: bool,
    /// The encoded [`Recipe`](crate::recipe::Recipe) of the features that it computes from its
    /// samples. Empty if it computes none.
    pub recipe: &'a [u8],
}

/// The coordinator's refusal to work with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<'a> {
    /// The reason.
    pub reason: WhyRefused,
    /// The experiment's value, where it differs from the device's: with [`WhyRefused::Shape`] its
    /// encoded [`ModelShape`], and with [`WhyRefused::RECIPE`] its encoded
    /// [`Recipe`](crate::recipe::Recipe) or [`NO_RECIPE`]. Empty otherwise. A device that ignores
    /// it accepts any bytes.
    pub experiment: &'a [u8],
}

/// Replaces the recipe of an experiment without one: no kind of recipe has this number.
pub const NO_RECIPE: &[u8] = &[0];

/// A part of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateChunk<'a> {
    /// Number of the chunk, from 0.
    pub index: u16,
    /// Whether all unpacked values of the update must be negated.
    ///
    /// Only for an update whose single nonzero entry is +2^b, because b + 1 bits can hold −2^b, but
    /// not +2^b.
    pub negated: bool,
    /// Whether the next chunk follows at once, without an answer to this one.
    pub more: bool,
    /// As many values as fit in [`UPDATE_CHUNK_BYTES`], or the remaining ones.
    pub packed: Packed<'a>,
}

/// Values of an [`UpdateChunk`], as in [`pack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed<'a> {
    /// Packed values as received.
    Bytes(&'a [u8]),
    /// Values to pack into the outgoing frame.
    Halves {
        /// The lower half of each value.
        low: &'a [u32],
        /// The upper half of each value.
        high: &'a [u32],
        /// Bits of a value.
        width: u32,
    },
    /// A tag for a helper, sent instead of values.
    Tag(Tag),
}

impl Packed<'_> {
    /// Unpacks a received chunk: see [`pack::unpack`].
    pub fn unpack(&self, width: u32, values: &mut [i64]) -> Option<()> {
        match self {
            Self::Bytes(bytes) => pack::unpack(bytes, width, values),
            Self::Halves { .. } | Self::Tag(_) => None,
        }
    }

    /// Returns the tag of a chunk with a tag. `None` if it has the wrong length.
    pub fn tag(&self) -> Option<Tag> {
        match self {
            Self::Bytes(bytes) => (*bytes).try_into().ok(),
            Self::Tag(tag) => Some(*tag),
            Self::Halves { .. } => None,
        }
    }

    fn write(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::Bytes(bytes) => {
                writer.put(bytes);
            }
            Self::Tag(ref tag) => {
                writer.put(tag);
            }
            Self::Halves { low, high, width } => {
                let values = low.iter().zip(high);
                let values =
                    values.map(|(low, high)| i64::from(*high as i32) << 32 | i64::from(*low));
                writer.fill(|place| pack::pack(values, width, place));
            }
        }
    }
}

/// The body of a session frame.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// To the coordinator: the session is open.
    Ready(Ready<'a>),
    /// To the device: take part in this round.
    Invitation(InvitationBytes<'a>),
    /// To the coordinator: the device takes part, and requests these chunks of the model.
    WantModel {
        /// Number of the first chunk, from 0.
        chunk: u16,
        /// Number of chunks, at most [`MAX_WINDOW`]. Fewer are sent at the end of the model.
        count: u8,
    },
    /// To the device: [`MODEL_CHUNK`] parameters, or the remaining ones.
    ModelChunk {
        /// Number of the chunk, from 0.
        index: u16,
        /// The parameters.
        values: Values<'a>,
    },
    /// To the coordinator: like [`Self::WantModel`], from a device that accepts short chunks.
    #[cfg(feature = "short")]
    WantShort {
        /// Number of the first chunk, in chunks of [`MODEL_CHUNK`] parameters.
        chunk: u16,
        /// Number of frames, at most [`MAX_WINDOW`], whatever they hold.
        count: u8,
        /// Number of the round or question whose model the device has, if any. Chunks may be
        /// differences to that model.
        base: Option<u32>,
    },
    /// To the coordinator.
    UpdateChunk(UpdateChunk<'a>),
    /// To the device: send this chunk of the update.
    WantUpdate(u16),
    /// To the device: the whole update has arrived.
    Done,
    /// To the coordinator: the device sits the round out.
    Decline(Decline),
    /// To the device: the coordinator gives up the round.
    Abort(Abort),
    /// To the device, the answer to [`Message::Ready`] while there is no invitation: wait for one.
    Wait,
    /// To the device, the answer to [`Message::Ready`]: the coordinator knows the device and will
    /// not work with it. Retrying is useless.
    Refused(Refused<'a>),
    /// The exchange with a device that only infers.
    #[cfg(feature = "delivery")]
    Delivery(Delivery<'a>),
}

/// Parameters in a [`Message::ModelChunk`].
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// As received: four bytes each.
    Bytes(&'a [u8]),
    /// Parameters to send.
    Floats(&'a [f32]),
    /// In 16 bits: up to [`SHORT_CHUNK`] parameters, starting at the numbered chunk.
    #[cfg(feature = "short")]
    Short(Short<'a>),
}

impl<'a> Values<'a> {
    /// Returns the kind of a message with these values.
    const fn kind(&self) -> u8 {
        match self {
            Self::Bytes(_) | Self::Floats(_) => kind::MODEL_CHUNK,
            #[cfg(feature = "short")]
            Self::Short(_) => kind::SHORT_CHUNK,
        }
    }

    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let bytes = reader.rest();
        let is_whole = !bytes.is_empty() && bytes.len().is_multiple_of(4);
        is_whole.then_some(Self::Bytes(bytes))
    }

    /// Copies the parameters to `target`. `None` if the lengths differ or the values are short.
    pub fn copy_to(&self, target: &mut [f32]) -> Option<()> {
        let count = match self {
            Self::Bytes(bytes) => bytes.len() / 4,
            Self::Floats(values) => values.len(),
            #[cfg(feature = "short")]
            Self::Short(_) => return None,
        };
        if target.len() != count {
            return None;
        }
        match self {
            Self::Bytes(bytes) => {
                let (chunks, _) = bytes.as_chunks();
                for (value, bytes) in target.iter_mut().zip(chunks) {
                    *value = f32::from_le_bytes(*bytes);
                }
            }
            Self::Floats(values) => {
                for (value, x) in target.iter_mut().zip(*values) {
                    *value = *x;
                }
            }
            #[cfg(feature = "short")]
            Self::Short(_) => {}
        }
        Some(())
    }
}

/// The second flag of a [`Ready`], which only devices with questions know.
const ANSWERS_QUESTIONS: u8 = if cfg!(feature = "questions") { 2 } else { 0 };

/// The flags of an [`UpdateChunk`].
const NEGATED: u8 = 1;
const MORE: u8 = 2;

/// Codes of the kinds: see [`Message::kind`].
mod kind {
    pub(super) const READY: u8 = 16;
    pub(super) const INVITATION: u8 = 17;
    pub(super) const WANT_MODEL: u8 = 18;
    pub(super) const MODEL_CHUNK: u8 = 19;
    pub(super) const UPDATE_CHUNK: u8 = 20;
    pub(super) const WANT_UPDATE: u8 = 21;
    pub(super) const DONE: u8 = 22;
    pub(super) const DECLINE: u8 = 23;
    pub(super) const ABORT: u8 = 24;
    pub(super) const WAIT: u8 = 25;
    pub(super) const REFUSED: u8 = 26;
    #[cfg(feature = "short")]
    pub(super) const WANT_SHORT: u8 = 27;
    #[cfg(feature = "short")]
    pub(super) const SHORT_CHUNK: u8 = 28;
}

impl<'a> Message<'a> {
    /// Returns the first requested chunk of the model and the number of frames.
    pub const fn wanted(&self) -> Option<(u16, u8)> {
        match self {
            Self::WantModel { chunk, count } => Some((*chunk, *count)),
            #[cfg(feature = "short")]
            Self::WantShort { chunk, count, .. } => Some((*chunk, *count)),
            _ => None,
        }
    }

    /// Returns the kind in the header.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Ready(_) => kind::READY,
            Self::Invitation(_) => kind::INVITATION,
            Self::WantModel { .. } => kind::WANT_MODEL,
            Self::ModelChunk { values, .. } => values.kind(),
            Self::UpdateChunk(_) => kind::UPDATE_CHUNK,
            Self::WantUpdate(_) => kind::WANT_UPDATE,
            Self::Done => kind::DONE,
            Self::Decline(_) => kind::DECLINE,
            Self::Abort(_) => kind::ABORT,
            Self::Wait => kind::WAIT,
            Self::Refused(_) => kind::REFUSED,
            #[cfg(feature = "short")]
            Self::WantShort { .. } => kind::WANT_SHORT,
            #[cfg(feature = "delivery")]
            Self::Delivery(delivery) => delivery.kind(),
        }
    }

    /// Reads the body of a frame that travels in `direction`.
    ///
    /// # Errors
    /// Returns [`Refusal::Kind`] if this direction has no such kind, and [`Refusal::Body`] if the
    /// body has a wrong length or an invalid value.
    pub fn parse(kind: u8, body: &'a [u8], direction: Direction) -> Result<Self, Refusal> {
        if way(kind).is_none_or(|way| way != direction) {
            return Err(Refusal::Kind);
        }
        let reader = &mut Reader(body);
        match direction {
            Direction::ToDevice => Self::read_by_device(kind, reader),
            Direction::ToCoordinator => Self::read_by_coordinator(kind, reader),
        }
        .ok_or(Refusal::Body)
    }

    /// Reads a message to a device.
    fn read_by_device(kind: u8, reader: &mut Reader<'a>) -> Option<Self> {
        let message = match kind {
            kind::INVITATION => Self::Invitation(InvitationBytes::read(reader)?),
            kind::MODEL_CHUNK => Self::ModelChunk {
                index: reader.u16()?,
                values: Values::read(reader)?,
            },
            #[cfg(feature = "short")]
            kind::SHORT_CHUNK => Self::ModelChunk {
                index: reader.u16()?,
                values: Values::Short(Short::read(reader)?),
            },
            kind::WANT_UPDATE => Self::WantUpdate(reader.u16()?),
            kind::DONE => Self::Done,
            kind::ABORT => Self::Abort(Abort::from_code(reader.u8()?)),
            kind::WAIT => Self::Wait,
            kind::REFUSED => Self::Refused(Refused {
                reason: WhyRefused::from_code(reader.u8()?),
                experiment: reader.rest(),
            }),
            #[cfg(feature = "delivery")]
            kind => Self::Delivery(Delivery::read_by_device(kind, reader)?),
            #[cfg(not(feature = "delivery"))]
            _ => return None,
        };
        reader.end()?;
        Some(message)
    }

    /// Reads a message to a coordinator.
    fn read_by_coordinator(kind: u8, reader: &mut Reader<'a>) -> Option<Self> {
        let message = match kind {
            kind::READY => {
                let (ledger, shape) = (reader.array()?, ModelShape::take(reader)?);
                let flags = reader.u8()?;
                Self::Ready(Ready {
                    ledger,
                    shape,
                    needs_local_noise: flag(flags & !ANSWERS_QUESTIONS)?,
                    #[cfg(feature = "questions")]
                    answers_questions: flags & ANSWERS_QUESTIONS != 0,
                    recipe: reader.rest(),
                })
            }
            kind::WANT_MODEL => Self::WantModel {
                chunk: reader.u16()?,
                count: window(reader)?,
            },
            #[cfg(feature = "short")]
            kind::WANT_SHORT => Self::WantShort {
                chunk: reader.u16()?,
                count: window(reader)?,
                base: match reader.end() {
                    Some(()) => None,
                    None => Some(reader.u32()?),
                },
            },
            kind::UPDATE_CHUNK => {
                let (index, flags) = (reader.u16()?, reader.u8()?);
                if flags > NEGATED | MORE {
                    return None;
                }
                Self::UpdateChunk(UpdateChunk {
                    index,
                    negated: flags & NEGATED != 0,
                    more: flags & MORE != 0,
                    packed: Packed::Bytes(reader.rest()),
                })
            }
            kind::DECLINE => Self::Decline(Decline::from_code(reader.u8()?)),
            #[cfg(feature = "delivery")]
            kind => Self::Delivery(Delivery::read_by_coordinator(kind, reader)?),
            #[cfg(not(feature = "delivery"))]
            _ => return None,
        };
        reader.end()?;
        Some(message)
    }

    /// Writes the body. `None` if no such message travels in `direction`.
    pub(super) fn write(&self, direction: Direction, writer: &mut Writer<'_>) -> Option<()> {
        match direction {
            Direction::ToDevice => self.write_by_coordinator(writer),
            Direction::ToCoordinator => self.write_by_device(writer),
        }
    }

    fn write_by_device(&self, writer: &mut Writer<'_>) -> Option<()> {
        match self {
            Self::Ready(ready) => {
                writer.put(&ready.ledger);
                let flags = u8::from(ready.needs_local_noise);
                #[cfg(feature = "questions")]
                let flags = match ready.answers_questions {
                    true => flags | ANSWERS_QUESTIONS,
                    false => flags,
                };
                ready.shape.put(writer).u8(flags).put(ready.recipe);
            }
            Self::WantModel { chunk, count } => {
                writer.u16(*chunk).u8(*count);
            }
            #[cfg(feature = "short")]
            Self::WantShort { chunk, count, base } => {
                writer.u16(*chunk).u8(*count);
                if let Some(base) = base {
                    writer.u32(*base);
                }
            }
            Self::UpdateChunk(chunk) => {
                let flag = |is_set, flag| if is_set { flag } else { 0 };
                let flags = flag(chunk.negated, NEGATED) | flag(chunk.more, MORE);
                writer.u16(chunk.index).u8(flags);
                chunk.packed.write(writer);
            }
            Self::Decline(reason) => {
                writer.u8(reason.code());
            }
            #[cfg(feature = "delivery")]
            Self::Delivery(delivery) => return delivery.write_by_device(writer),
            _ => return None,
        }
        Some(())
    }

    fn write_by_coordinator(&self, writer: &mut Writer<'_>) -> Option<()> {
        match self {
            Self::Done | Self::Wait => {}
            Self::Refused(refused) => {
                writer.u8(refused.reason.code()).put(refused.experiment);
            }
            Self::Invitation(invitation) => {
                writer.put(invitation.as_slice());
            }
            Self::ModelChunk { index, values } => {
                writer.u16(*index);
                match values {
                    Values::Bytes(bytes) => {
                        writer.put(bytes);
                    }
                    Values::Floats(values) => {
                        for value in *values {
                            writer.f32(*value);
                        }
                    }
                    #[cfg(feature = "short")]
                    Values::Short(short) => short.write(writer),
                }
            }
            Self::WantUpdate(index) => {
                writer.u16(*index);
            }
            Self::Abort(reason) => {
                writer.u8(reason.code());
            }
            #[cfg(feature = "delivery")]
            Self::Delivery(delivery) => return delivery.write_by_coordinator(writer),
            _ => return None,
        }
        Some(())
    }
}

/// Returns the direction of a kind, or `None` for an unknown kind.
const fn way(kind: u8) -> Option<Direction> {
    match kind {
        kind::INVITATION
        | kind::MODEL_CHUNK
        | kind::WANT_UPDATE
        | kind::DONE
        | kind::ABORT
        | kind::WAIT
        | kind::REFUSED => Some(Direction::ToDevice),
        #[cfg(feature = "short")]
        kind::SHORT_CHUNK => Some(Direction::ToDevice),
        #[cfg(feature = "short")]
        kind::WANT_SHORT => Some(Direction::ToCoordinator),
        kind::READY | kind::WANT_MODEL | kind::UPDATE_CHUNK | kind::DECLINE => {
            Some(Direction::ToCoordinator)
        }
        #[cfg(feature = "delivery")]
        kind => delivery::way(kind),
        #[cfg(not(feature = "delivery"))]
        _ => None,
    }
}

fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
