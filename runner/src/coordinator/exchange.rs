//! One round with one device, from the invitation to the update or to the reason why there is none.
//!
//! The device drives: it asks for the model chunk by chunk, trains, and sends its update chunk by
//! chunk. A repeated request gets the same answer. What can be checked about an update is checked
//! here, in integers, before anybody adds it to anything.

use std::sync::Arc;
use std::time::Duration;

use smolfed_core::wire::message::{
    Abort, Decline, Invitation, MODEL_CHUNK, Message, UPDATE_CHUNK_BYTES, UpdateChunk, Values,
    model_chunks, update_chunks,
};
use smolfed_core::wire::pack;
use smolfed_core::wire::refusal::Refusal;

/// Time after which an invitation without an answer is repeated.
pub const INVITE_EVERY: Duration = Duration::from_millis(500);

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
    /// It had begun when the time was up.
    Late,
    /// It lost its session after it had the whole model: it may have begun and cannot begin again.
    SessionLost,
    /// It sits the round out.
    Declined(Decline),
    /// Its update is longer than the clip norm, which no honest device's is.
    OutOfBound,
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
        }
    }
}

/// What came of a round with one device. Debug output shows no update.
#[derive(Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Its update, checked as far as the trust model allows.
    Answered(Vec<i64>),
    /// Why there is none.
    Missing(Absence),
}

impl std::fmt::Debug for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Answered(integers) => write!(f, "Answered({} integers)", integers.len()),
            Self::Missing(absence) => write!(f, "Missing({absence})"),
        }
    }
}

/// How far a device has come.
enum Stage {
    /// It has not answered the invitation.
    Invited,
    /// It asks for the model.
    Fetching {
        /// Whether it has all of it, or may have.
        delivered: bool,
    },
    /// Its update comes in.
    Sending {
        integers: Vec<i64>,
        /// The chunk that is awaited.
        next: u16,
        negated: bool,
    },
    /// The whole update is there.
    Complete { integers: Vec<i64>, last: u16 },
    /// There will be none.
    Missing(Absence),
}

/// One round with one device.
pub(super) struct Exchange {
    offer: Arc<Offer>,
    stage: Stage,
    /// When it was invited last in this session.
    invited: Option<Duration>,
    /// Whether the result was taken: what comes now comes too late.
    closed: bool,
}

/// What to say to a device.
pub(super) enum Reply {
    Model(u16),
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

    /// Whether nothing more can come of it.
    pub(super) const fn is_settled(&self) -> bool {
        self.closed || matches!(self.stage, Stage::Complete { .. } | Stage::Missing(_))
    }

    /// Whether the device may be invited: it has not answered, and nobody gave up.
    pub(super) const fn is_open(&self) -> bool {
        !self.closed && matches!(self.stage, Stage::Invited)
    }

    /// Whether it is time for an invitation; then it counts as said.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let waited = self.invited.map(|then| now.saturating_sub(then));
        let due = self.is_open() && waited.is_none_or(|waited| waited >= INVITE_EVERY);
        if due {
            self.invited = Some(now);
        }
        due
    }

    /// A word for how far the device has come.
    pub(super) const fn state(&self) -> &'static str {
        match &self.stage {
            Stage::Invited => "invited",
            Stage::Fetching { delivered: false } => "gets the model",
            Stage::Fetching { delivered: true } => "trains",
            Stage::Sending { .. } => "sends",
            Stage::Complete { .. } => "done",
            Stage::Missing(_) => "missing",
        }
    }

    /// The device has begun a new session, which knows nothing of the round.
    ///
    /// If it may have the whole model it may have begun, and is not asked for this round again.
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
    pub(super) fn close(&mut self, has_session: bool) -> Verdict {
        self.closed = true;
        match &mut self.stage {
            Stage::Complete { integers, .. } => Verdict::Answered(std::mem::take(integers)),
            Stage::Missing(absence) => Verdict::Missing(*absence),
            Stage::Invited if has_session => self.miss(Absence::Silent),
            Stage::Invited => self.miss(Absence::NotConnected),
            Stage::Fetching { .. } | Stage::Sending { .. } => self.miss(Absence::Late),
        }
    }

    fn miss(&mut self, absence: Absence) -> Verdict {
        self.stage = Stage::Missing(absence);
        Verdict::Missing(absence)
    }

    /// What a message of the device about this round leads to.
    pub(super) fn receive(&mut self, message: &Message<'_>) -> Result<Reply, Refusal> {
        if let Stage::Missing(absence) = self.stage {
            return Ok(match (message, absence) {
                (Message::Decline(_), _) => Reply::Nothing,
                (_, Absence::OutOfBound) => Reply::Abort(Abort::OutOfBound),
                _ => Reply::Abort(Abort::Late),
            });
        }
        match message {
            Message::WantModel(index) => self.want_model(*index),
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

    fn want_model(&mut self, index: u16) -> Result<Reply, Refusal> {
        let chunks = model_chunks(self.offer.model.len());
        if usize::from(index) >= chunks {
            return Err(Refusal::Body);
        }
        let is_last = usize::from(index) + 1 == chunks;
        match &mut self.stage {
            Stage::Invited => self.stage = Stage::Fetching { delivered: is_last },
            Stage::Fetching { delivered } => *delivered |= is_last,
            _ => return Err(Refusal::Unexpected),
        }
        Ok(Reply::Model(index))
    }

    fn update_chunk(&mut self, chunk: &UpdateChunk<'_>) -> Result<Reply, Refusal> {
        if let Stage::Complete { last, .. } = self.stage {
            // The device has not heard the end of it.
            return if chunk.index == last {
                Ok(Reply::Done)
            } else {
                Err(Refusal::Unexpected)
            };
        }
        if matches!(self.stage, Stage::Fetching { delivered: true }) {
            self.stage = Stage::Sending {
                integers: vec![0; self.offer.model.len()],
                next: 0,
                negated: chunk.negated,
            };
        }
        let width = self.offer.invitation.width();
        let chunks = update_chunks(self.offer.model.len(), width);
        let Stage::Sending {
            integers,
            next,
            negated,
        } = &mut self.stage
        else {
            return Err(Refusal::Unexpected);
        };
        if chunk.index.checked_add(1) == Some(*next) {
            return Ok(Reply::WantUpdate(*next));
        }
        if chunk.index != *next {
            return Err(Refusal::Unexpected);
        }
        if chunk.negated != *negated {
            return Err(Refusal::Body);
        }
        let count = pack::capacity(width, UPDATE_CHUNK_BYTES);
        let place = integers
            .chunks_mut(count.max(1))
            .nth(chunk.index.into())
            .ok_or(Refusal::Body)?;
        chunk.packed.unpack(width, place).ok_or(Refusal::Body)?;
        if usize::from(chunk.index) + 1 < chunks {
            *next += 1;
            return Ok(Reply::WantUpdate(*next));
        }
        let (mut integers, negated) = (std::mem::take(integers), *negated);
        if is_within_bound(&self.offer.invitation, &mut integers, negated) {
            let last = chunk.index;
            self.stage = Stage::Complete { integers, last };
            Ok(Reply::Done)
        } else {
            self.stage = Stage::Missing(Absence::OutOfBound);
            Ok(Reply::Abort(Abort::OutOfBound))
        }
    }

    /// The message for a reply.
    pub(super) fn message(&self, reply: Reply) -> Option<Message<'_>> {
        Some(match reply {
            Reply::Nothing => return None,
            Reply::Invitation => Message::Invitation((&self.offer.invitation).into()),
            Reply::WantUpdate(index) => Message::WantUpdate(index),
            Reply::Done => Message::Done,
            Reply::Abort(reason) => Message::Abort(reason),
            Reply::Model(index) => {
                let chunk = self.offer.model.chunks(MODEL_CHUNK).nth(index.into())?;
                let values = Values::Floats(chunk);
                Message::ModelChunk { index, values }
            }
        })
    }
}

/// Turns the update round if it came negated, and checks all that can be checked about it.
///
/// Without noise of the device's own: Σq² ≤ 4^b, exactly, and only an update that is one +2^b and
/// otherwise 0 comes negated. With it the values are noisy and any of them may be; that there is
/// noise in them is what the device answers for.
fn is_within_bound(invitation: &Invitation, integers: &mut [i64], negated: bool) -> bool {
    if invitation.noise.is_some() {
        return !negated;
    }
    let grid = &invitation.grid;
    // At most 25 bits each.
    let narrow: Vec<i32> = integers.iter().map(|q| *q as i32).collect();
    if grid.check(&narrow).is_err() {
        return false;
    }
    let lowest = -(1i64 << grid.bits());
    let is_lowest = integers.contains(&lowest);
    if negated {
        integers.iter_mut().for_each(|q| *q = -*q);
    }
    // At the bound, one entry of -2^b leaves 0 for the others.
    !negated || is_lowest
}
