//! One round with one device, from the invitation to the update or to the reason why there is none.
//!
//! The device drives: it asks for the model chunk by chunk, trains, and sends its update chunk by
//! chunk. A repeated request gets the same answer. All that can be checked about an update is
//! checked here, in integers, before it is added to anything.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use smolfed_core::wire::message::{
    Abort, Decline, Invitation, MODEL_CHUNK, Message, UPDATE_CHUNK_BYTES, UpdateChunk, Values,
    model_chunks,
};
use smolfed_core::wire::pack;
use smolfed_core::wire::refusal::Refusal;

use crate::release::{InvalidUpdate, ReceivedUpdate};

/// Interval at which an unanswered invitation is repeated.
const INVITE_INTERVAL: Duration = Duration::from_millis(500);

/// A round as it is offered to devices.
#[derive(Debug)]
pub struct Offer {
    /// The round's number, which names its random streams; never offered twice.
    pub number: u32,
    /// How to take part.
    pub invitation: Invitation,
    /// The global model.
    pub model: Vec<f32>,
}

/// Why a device that was drawn has no update in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It had no session when the round ended.
    NotConnected,
    /// It had a session and did not answer the invitation.
    Silent,
    /// It had answered the invitation but not completed its update at the deadline.
    Late,
    /// It lost its session after the whole model was delivered: it may have trained, and must not
    /// train in the same round again.
    SessionLost,
    /// It declined the round.
    Declined(Decline),
    /// Its update exceeds the clip norm, which an honest device's cannot.
    OutOfBound,
    /// The bit of its update has a third value, which an honest device's cannot have.
    InvalidBit,
}

impl std::fmt::Display for Absence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotConnected => f.write_str("not connected"),
            Self::Silent => f.write_str("no answer to the invitation"),
            Self::Late => f.write_str("too late"),
            Self::SessionLost => f.write_str("the session was lost after the model was delivered"),
            Self::Declined(reason) => write!(f, "declined: {reason}"),
            Self::OutOfBound => f.write_str("the update exceeds its bound"),
            Self::InvalidBit => {
                f.write_str("the bit that says whether it was clipped is neither 2^b nor -2^b")
            }
        }
    }
}

/// The result of a round with one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeOutcome {
    /// Its update, checked as far as the trust model allows.
    Answered(ReceivedUpdate),
    /// Why there is none.
    Missing(Absence),
}

/// How far a device has progressed.
enum Stage {
    /// It has not answered the invitation.
    Invited,
    /// It requests the model.
    Fetching {
        /// Whether the last chunk was sent to it.
        delivered: bool,
    },
    /// It sends its update.
    Sending {
        integers: Vec<i64>,
        /// The next chunk.
        next: u16,
        negated: bool,
    },
    /// The update is complete.
    Complete { update: ReceivedUpdate, last: u16 },
    /// There will be no update.
    Missing(Absence),
}

/// One round with one device.
pub(super) struct Exchange {
    offer: Arc<Offer>,
    stage: Stage,
    /// When it was last invited in this session.
    invited: Option<Duration>,
    /// Whether the result was taken: what is received now is too late.
    closed: bool,
}

/// The answer to a device.
pub(super) enum Reply {
    /// These chunks.
    Model(Range<u16>),
    Invitation,
    WantUpdate(u16),
    Done,
    Abort(Abort),
    Nothing,
}

impl Exchange {
    pub(super) const fn new(offer: Arc<Offer>) -> Self {
        Self {
            offer,
            stage: Stage::Invited,
            invited: None,
            closed: false,
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.offer.number
    }

    /// Whether the outcome is final.
    pub(super) const fn is_settled(&self) -> bool {
        self.closed || matches!(self.stage, Stage::Complete { .. } | Stage::Missing(_))
    }

    /// Whether the device may be invited: it has not answered, and the round is not closed.
    pub(super) const fn is_open(&self) -> bool {
        !self.closed && matches!(self.stage, Stage::Invited)
    }

    /// Whether an invitation is due, which then counts as sent.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let waited = self.invited.map(|then| now.saturating_sub(then));
        let due = self.is_open() && waited.is_none_or(|waited| waited >= INVITE_INTERVAL);
        if due {
            self.invited = Some(now);
        }
        due
    }

    /// How far the device has progressed, in a word or two.
    pub(super) const fn state(&self) -> &'static str {
        match &self.stage {
            Stage::Invited => "invited",
            Stage::Fetching { delivered: false } => "fetching the model",
            Stage::Fetching { delivered: true } => "training",
            Stage::Sending { .. } => "sending",
            Stage::Complete { .. } => "done",
            Stage::Missing(_) => "missing",
        }
    }

    /// The device has opened a new session, which has no part in the round yet.
    ///
    /// If the whole model was delivered it may have trained, and is not invited to this round
    /// again.
    pub(super) fn session_lost(&mut self) {
        self.invited = None;
        match self.stage {
            Stage::Fetching { delivered: false } => self.stage = Stage::Invited,
            Stage::Fetching { delivered: true } | Stage::Sending { .. } => {
                self.stage = Stage::Missing(Absence::SessionLost);
            }
            Stage::Invited | Stage::Complete { .. } | Stage::Missing(_) => {}
        }
    }

    /// Ends the round for this device, at the latest at its deadline.
    pub(super) fn close(&mut self, has_session: bool) -> ExchangeOutcome {
        self.closed = true;
        match &mut self.stage {
            Stage::Complete { update, .. } => ExchangeOutcome::Answered(std::mem::take(update)),
            Stage::Missing(absence) => ExchangeOutcome::Missing(*absence),
            Stage::Invited if has_session => self.miss(Absence::Silent),
            Stage::Invited => self.miss(Absence::NotConnected),
            Stage::Fetching { .. } | Stage::Sending { .. } => self.miss(Absence::Late),
        }
    }

    fn miss(&mut self, absence: Absence) -> ExchangeOutcome {
        self.stage = Stage::Missing(absence);
        ExchangeOutcome::Missing(absence)
    }

    /// The answer to a message of the device about this round.
    pub(super) fn receive(&mut self, message: &Message<'_>) -> Result<Reply, Refusal> {
        if let Stage::Missing(absence) = self.stage {
            return Ok(match (message, absence) {
                (Message::Decline(_), _) => Reply::Nothing,
                (_, Absence::OutOfBound | Absence::InvalidBit) => Reply::Abort(Abort::OutOfBound),
                _ => Reply::Abort(Abort::Late),
            });
        }
        match message {
            Message::WantModel { chunk, count } => self.want_model(*chunk, *count),
            Message::UpdateChunk(chunk) => self.update_chunk(chunk),
            Message::Decline(reason) => match self.stage {
                Stage::Invited | Stage::Fetching { .. } => {
                    self.stage = Stage::Missing(Absence::Declined(*reason));
                    Ok(Reply::Nothing)
                }
                _ => Err(Refusal::Unexpected),
            },
            _ => Err(Refusal::Unexpected),
        }
    }

    fn want_model(&mut self, index: u16, count: u8) -> Result<Reply, Refusal> {
        let chunks = model_chunks(self.offer.model.len());
        if usize::from(index) >= chunks {
            return Err(Refusal::Body);
        }
        let end = index.saturating_add(count.into());
        // Fewer at the end of the model.
        let end = u16::try_from(chunks).map_or(end, |chunks| end.min(chunks));
        let is_last = usize::from(end) == chunks;
        match &mut self.stage {
            Stage::Invited => self.stage = Stage::Fetching { delivered: is_last },
            Stage::Fetching { delivered } => *delivered |= is_last,
            _ => return Err(Refusal::Unexpected),
        }
        Ok(Reply::Model(index..end))
    }

    fn update_chunk(&mut self, chunk: &UpdateChunk<'_>) -> Result<Reply, Refusal> {
        if let Stage::Complete { last, .. } = self.stage {
            // The device has not received `Done`.
            return match chunk {
                chunk if chunk.index == last => Ok(Reply::Done),
                // Sent once more, with the last one behind it.
                chunk if chunk.more => Ok(Reply::Nothing),
                _ => Err(Refusal::Unexpected),
            };
        }
        if matches!(self.stage, Stage::Fetching { delivered: true }) {
            self.stage = Stage::Sending {
                integers: vec![0; self.offer.model.len()],
                next: 0,
                negated: chunk.negated,
            };
        }
        let invitation = &self.offer.invitation;
        let chunks = invitation.update_chunks(self.offer.model.len());
        let Stage::Sending {
            integers,
            next,
            negated,
        } = &mut self.stage
        else {
            return Err(Refusal::Unexpected);
        };
        if chunk.index != *next {
            // Repeated, or one before it was lost: only the last of those that were sent is
            // answered.
            return Ok(if chunk.more {
                Reply::Nothing
            } else {
                Reply::WantUpdate(*next)
            });
        }
        if chunk.negated != *negated {
            return Err(Refusal::Body);
        }
        let bit = place(invitation, integers, chunk)?;
        if usize::from(chunk.index) + 1 < chunks {
            *next += 1;
            return Ok(if chunk.more {
                Reply::Nothing
            } else {
                Reply::WantUpdate(*next)
            });
        }
        let (integers, negated) = (std::mem::take(integers), *negated);
        let Invitation { grid, noise, .. } = invitation;
        let checked = ReceivedUpdate::check(grid, integers, negated, bit, noise.is_some());
        let (stage, reply) = match checked {
            Ok(update) => {
                let last = chunk.index;
                (Stage::Complete { update, last }, Reply::Done)
            }
            Err(invalid) => {
                let absence = match invalid {
                    InvalidUpdate::OutOfBound => Absence::OutOfBound,
                    InvalidUpdate::Bit => Absence::InvalidBit,
                };
                (Stage::Missing(absence), Reply::Abort(Abort::OutOfBound))
            }
        };
        self.stage = stage;
        Ok(reply)
    }

    /// The messages for a reply, one by one.
    pub(super) fn messages(&self, reply: Reply) -> impl Iterator<Item = Message<'_>> {
        // All but chunks of the model are one message.
        let (reply, chunks) = match reply {
            Reply::Model(chunks) => (None, chunks),
            reply => (Some(reply), 0..0),
        };
        let one = reply.and_then(|reply| self.message(&reply));
        one.into_iter()
            .chain(chunks.filter_map(|chunk| self.chunk(chunk)))
    }

    /// A chunk of the model.
    fn chunk(&self, index: u16) -> Option<Message<'_>> {
        let chunk = self.offer.model.chunks(MODEL_CHUNK).nth(index.into())?;
        let values = Values::Floats(chunk);
        Some(Message::ModelChunk { index, values })
    }

    fn message(&self, reply: &Reply) -> Option<Message<'_>> {
        Some(match reply {
            Reply::Nothing | Reply::Model(_) => return None,
            Reply::Invitation => Message::Invitation((&self.offer.invitation).into()),
            Reply::WantUpdate(index) => Message::WantUpdate(*index),
            Reply::Done => Message::Done,
            Reply::Abort(reason) => Message::Abort(*reason),
        })
    }
}

/// Puts the values of a chunk where they belong; returns the bit if that is what the chunk has: it
/// comes behind the last entry of the update.
fn place(
    invitation: &Invitation,
    integers: &mut [i64],
    chunk: &UpdateChunk<'_>,
) -> Result<Option<i64>, Refusal> {
    let width = invitation.width();
    let count = pack::capacity(width, UPDATE_CHUNK_BYTES);
    if let Some(place) = integers.chunks_mut(count.max(1)).nth(chunk.index.into()) {
        chunk.packed.unpack(width, place).ok_or(Refusal::Body)?;
        return Ok(None);
    }
    let (width, mut bit) = (invitation.bit_width().ok_or(Refusal::Body)?, 0);
    let place = std::slice::from_mut(&mut bit);
    chunk.packed.unpack(width, place).ok_or(Refusal::Body)?;
    Ok(Some(bit))
}
