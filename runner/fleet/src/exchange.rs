//! One round with one device, from the invitation to the update or to the reason for its absence.
//!
//! The device drives: it asks for the model chunk by chunk, trains, and sends its update chunk by
//! chunk. A repeated request gets the same answer. An update passes all possible checks here, in
//! integers, before it is added to anything.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use smolfed_core::contrast::{ContrastRequest, Part, RECIPE_LENGTH};
use smolfed_core::mask::Tag;
use smolfed_core::personal::PersonalRequest;
use smolfed_core::wire::message::{
    Abort, Decline, Invitation, MODEL_CHUNK, Message, PackedInvitation, Request, SHORT_CHUNK,
    UpdateChunk, UpdatePart, Values, model_chunks,
};
use smolfed_core::wire::refusal::Refusal;
use smolfed_core::wire::round_trip::RoundTrip;

use super::quorum::Places;
use super::short_model::ShortModel;
use smolfed_release::{InvalidUpdate, ReceivedUpdate};

/// Number of model chunks in a frame of 16-bit numbers.
const CHUNKS_IN_SHORT: u16 = (SHORT_CHUNK / MODEL_CHUNK) as u16;

/// A round as offered to devices.
#[derive(Debug)]
pub struct Offer {
    /// The round's number, which names its random streams. It is never offered twice, except for
    /// another part of the round.
    pub number: u32,
    /// How to take part.
    pub invitation: Invitation,
    /// The global model.
    pub model: Vec<f32>,
    /// The model in 16 bits, if it is on a grid.
    pub short: Option<ShortModel>,
    /// Values behind the model, by device. Only for methods without labels.
    pub tails: BTreeMap<u32, Vec<f32>>,
    /// The number of updates that count, if not all.
    pub places: Option<Places>,
    /// The last round of the run in which the device's update counted. It identifies the personal
    /// model to continue from. Only for methods with personal models.
    pub last_rounds: BTreeMap<u32, u32>,
}

impl Offer {
    /// Returns a round that offers only this model.
    #[must_use]
    pub const fn new(number: u32, invitation: Invitation, model: Vec<f32>) -> Self {
        Self {
            number,
            invitation,
            model,
            short: None,
            tails: BTreeMap::new(),
            places: None,
            last_rounds: BTreeMap::new(),
        }
    }

    /// Returns the invitation of a device.
    fn invitation_of(&self, device: u32) -> Invitation {
        let request = self.invitation.request.map(|request| match request {
            Request::Personal(request) => Request::Personal(PersonalRequest {
                last: self.last_rounds.get(&device).copied(),
                ..request
            }),
            Request::Contrast(request) => Request::Contrast(ContrastRequest {
                part: match request.part {
                    Part::Matrix => Part::Matrix,
                    Part::Training { .. } => Part::Training {
                        has_others: self.tail(device).len() > RECIPE_LENGTH,
                    },
                },
                ..request
            }),
            Request::Question(question) => Request::Question(question),
        });
        Invitation {
            request,
            ..self.invitation
        }
    }

    /// Returns whether the round asks a question.
    pub(super) const fn is_question(&self) -> bool {
        self.invitation.question().is_some()
    }

    fn tail(&self, device: u32) -> &[f32] {
        self.tails.get(&device).map_or(&[], Vec::as_slice)
    }
}

/// Reason why a selected device has no update in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It had no session when the round ended.
    NotConnected,
    /// It had a session and did not answer the invitation.
    Silent,
    /// It had answered the invitation but not completed its update at the deadline.
    Late,
    /// It was not connected for the whole round, and had not answered the invitation when the round
    /// ended.
    CameLate,
    /// It had answered the invitation, and lost its connection before its update was complete.
    Disconnected,
    /// It lost its session after the whole model was delivered, and returned without an update. It
    /// may have trained, and does not train in the same round again.
    SessionLost,
    /// It declined the round.
    Declined(Decline),
    /// Its update exceeds the clip norm, which an honest device's update cannot.
    OutOfBound,
    /// It had to wait for its turn to receive the model, and its turn came too late or never.
    NoTurn,
    /// Its update was complete, but the quorum already had all its updates.
    BeyondQuorum,
    /// It was not invited: it stalled or lied before, and has not been readmitted.
    Quarantined,
    /// The bit of its update has an invalid third value, which an honest device never sends.
    InvalidBit,
    /// Its key was revoked and not replaced.
    Revoked,
    /// The windows in which its update would have counted are over.
    Expired,
    /// Its update was incomplete, and a message under the session's key violated the protocol,
    /// which line errors cannot cause.
    Malformed,
}

impl std::fmt::Display for Absence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotConnected => f.write_str("not connected"),
            Self::Silent => f.write_str("no answer to the invitation"),
            Self::Late => f.write_str("too late"),
            Self::CameLate => f.write_str("connected too late to answer"),
            Self::Disconnected => f.write_str("the connection was lost during the round"),
            Self::SessionLost => f.write_str("the session was lost after the model was delivered"),
            Self::Declined(reason) => write!(f, "declined: {reason}"),
            Self::NoTurn => f.write_str("its turn to receive the model came late, or not at all"),
            Self::BeyondQuorum => f.write_str("the round had the updates of its quorum"),
            Self::Quarantined => f.write_str("in quarantine"),
            Self::OutOfBound => f.write_str("the update exceeds its bound"),
            Self::InvalidBit => {
                f.write_str("the bit that says whether it was clipped is neither 2^b nor -2^b")
            }
            Self::Revoked => f.write_str("its key was revoked"),
            Self::Expired => f.write_str("the windows in which its update would count are over"),
            Self::Malformed => f.write_str("a message of it was malformed"),
        }
    }
}

/// Returns whether a device declines for a reason that depends on its data.
pub(super) const fn is_of_data(reason: Decline) -> bool {
    matches!(
        reason,
        Decline::NoSamples | Decline::Diverged | Decline::SAMPLES
    )
}

/// The result of a round with one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeOutcome {
    /// Its update, checked as far as the trust model allows.
    Answered(ReceivedUpdate),
    /// The integers of another message, unchecked.
    Message(Vec<i64>),
    /// The reason for its absence.
    Missing(Absence),
}

/// Progress of a device.
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
        /// The tags for helpers received so far.
        tags: Vec<Tag>,
    },
    /// The update is complete.
    Complete { answer: ExchangeOutcome, last: u16 },
    /// There will be no update.
    Missing(Absence),
}

/// One round with one device.
pub(super) struct Exchange {
    offer: Arc<Offer>,
    /// How this device takes part.
    invitation: PackedInvitation,
    /// The chunks of the model that differ between devices. Empty if all are the same.
    end: Vec<f32>,
    stage: Stage,
    /// Whether the device waits for its turn and must not be invited yet.
    is_held: bool,
    /// Whether it had to wait for others, who then determined how much of the round it had.
    has_waited: bool,
    /// Time of the next invitation, once it has been invited in this session.
    due: Option<Duration>,
    /// Time of the first invitation in this session.
    invited: Option<Duration>,
    /// Whether the whole model was delivered in an earlier session, now lost. A device that has its
    /// update sends it.
    was_delivered: bool,
    /// Whether the device was without a connection at any time of the round. Its share of the round
    /// then does not measure its speed.
    was_disconnected: bool,
    /// Whether the device sent a malformed message.
    was_malformed: bool,
    /// Whether the result was taken. Later messages are too late.
    closed: bool,
}

/// The answer to a device.
pub(super) enum Reply {
    /// These chunks of the model.
    Model(Range<u16>),
    /// These chunks in 16 bits, or as differences to the model of this number.
    Short(Range<u16>, Option<u32>),
    Invitation,
    WantUpdate(u16),
    Done,
    Abort(Abort),
    Nothing,
}

impl Exchange {
    /// Creates a round that invites its device at once or, if it `is_held`, after
    /// [`Self::release`].
    pub(super) fn new(device: u32, offer: Arc<Offer>, is_held: bool) -> Self {
        let tail = offer.tail(device);
        let (_, rest) = offer.model.as_chunks::<MODEL_CHUNK>();
        let end = match tail.is_empty() {
            true => Vec::new(),
            false => [rest, tail].concat(),
        };
        Self {
            invitation: (&offer.invitation_of(device)).into(),
            offer,
            end,
            stage: Stage::Invited,
            is_held,
            has_waited: false,
            due: None,
            invited: None,
            was_delivered: false,
            was_disconnected: false,
            was_malformed: false,
            closed: false,
        }
    }

    /// Gives the device its turn, for which it may have had to wait.
    pub(super) const fn release(&mut self, has_waited: bool) {
        self.is_held = false;
        self.has_waited |= has_waited;
    }

    pub(super) fn number(&self) -> u32 {
        self.offer.number
    }

    /// Returns whether the outcome was taken.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns whether the device waits for its turn.
    pub(super) const fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns whether the device probably has the whole model, so that it may have recorded the
    /// round, and has no outcome yet.
    pub(super) const fn has_model(&self) -> bool {
        let is_beyond = match self.stage {
            Stage::Invited => self.was_delivered,
            Stage::Fetching { delivered } => delivered || self.was_delivered,
            Stage::Sending { .. } => true,
            Stage::Complete { .. } | Stage::Missing(_) => false,
        };
        is_beyond && !self.closed
    }

    /// Returns whether the device has begun the round by asking for its model.
    pub(super) const fn is_engaged(&self) -> bool {
        self.has_model() || (matches!(self.stage, Stage::Fetching { .. }) && !self.closed)
    }

    /// Returns whether the device has declined for a public reason: before it had the model, and
    /// independently of its data.
    pub(super) const fn has_declined(&self) -> bool {
        match self.stage {
            Stage::Missing(Absence::Declined(reason)) => !is_of_data(reason),
            _ => false,
        }
    }

    /// Returns whether the outcome is final.
    pub(super) const fn is_settled(&self) -> bool {
        self.closed || matches!(self.stage, Stage::Complete { .. } | Stage::Missing(_))
    }

    /// Returns whether the device may be invited: it is its turn, it has not answered, and the
    /// round is not closed.
    pub(super) const fn is_open(&self) -> bool {
        !self.closed && !self.is_held && matches!(self.stage, Stage::Invited)
    }

    /// Returns whether the device occupies the line: invited, but without the whole model.
    pub(super) const fn is_in_flight(&self) -> bool {
        let is_before_training = matches!(
            self.stage,
            Stage::Invited | Stage::Fetching { delivered: false }
        );
        !self.closed && !self.is_held && is_before_training
    }

    /// Returns when the next invitation is due, if any.
    pub(super) fn due(&self) -> Option<Duration> {
        self.is_open().then(|| self.due.unwrap_or_default())
    }

    /// Notes that an invitation is sent. It is repeated after the timeout of `trip`. `jitter` (any
    /// number) spreads the repetitions of several devices, so that they do not collide again.
    pub(super) fn invite(&mut self, now: Duration, jitter: u32, trip: &mut RoundTrip) {
        match self.invited {
            // An invitation is one frame.
            None => trip.sent(0),
            Some(_) => trip.repeated(),
        }
        let pause = Duration::from_millis(trip.timeout_ms().into());
        // At most a quarter more.
        let spread = pause / 4 * (jitter % 256) / 256;
        self.due = Some(now + pause + spread);
        self.invited.get_or_insert(now);
    }

    /// Returns when the unanswered invitation was first sent.
    pub(super) fn invited(&self) -> Option<Duration> {
        self.invited.filter(|_| self.is_open())
    }

    /// Returns the device's progress in a few words.
    pub(super) const fn state(&self) -> &'static str {
        match &self.stage {
            Stage::Invited if self.is_held => "waiting for its turn",
            Stage::Invited if self.was_delivered => "invited again",
            Stage::Invited => "invited",
            Stage::Fetching { delivered: false } => "fetching the model",
            Stage::Fetching { delivered: true } => "training",
            Stage::Sending { .. } => "sending",
            Stage::Complete { .. } => "done",
            Stage::Missing(_) => "missing",
        }
    }

    /// Notes that the device has opened a new session, which has no part in the round yet.
    ///
    /// It is invited again. A device that has trained sends its update from the beginning. One that
    /// has lost its update finds the round in its ledger, and declines.
    pub(super) fn session_lost(&mut self) {
        (self.due, self.invited) = (None, None);
        match self.stage {
            Stage::Fetching { delivered } => {
                self.was_delivered |= delivered;
                self.stage = Stage::Invited;
            }
            Stage::Sending { .. } => {
                self.was_delivered = true;
                self.stage = Stage::Invited;
            }
            Stage::Invited | Stage::Complete { .. } | Stage::Missing(_) => {}
        }
    }

    /// Notes that the device answers no questions, so it is not asked one.
    pub(super) fn answers_nothing(&mut self) {
        if self.offer.is_question() && !self.is_settled() {
            self.miss(Absence::Declined(Decline::QUESTION));
        }
    }

    /// Notes that the device has no connection.
    pub(super) const fn disconnected(&mut self) {
        self.was_disconnected = true;
    }

    /// Ends the round for this device, at the latest at its deadline.
    pub(super) fn close(&mut self, has_session: bool) -> ExchangeOutcome {
        self.closed = true;
        let late = match self.has_quorum() {
            true => Absence::BeyondQuorum,
            false => Absence::Late,
        };
        match &mut self.stage {
            Stage::Complete { answer, .. } => std::mem::replace(answer, taken()),
            Stage::Missing(absence) => ExchangeOutcome::Missing(*absence),
            _ if self.was_malformed => self.miss(Absence::Malformed),
            Stage::Invited if self.was_delivered => self.miss(Absence::SessionLost),
            Stage::Invited if !has_session => self.miss(Absence::NotConnected),
            Stage::Invited if late == Absence::BeyondQuorum => self.miss(late),
            Stage::Invited | Stage::Fetching { .. } | Stage::Sending { .. }
                if (self.is_held || self.has_waited) && late == Absence::Late =>
            {
                self.miss(Absence::NoTurn)
            }
            Stage::Invited if self.was_disconnected => self.miss(Absence::CameLate),
            Stage::Invited => self.miss(Absence::Silent),
            Stage::Fetching { .. } | Stage::Sending { .. }
                if self.was_disconnected && late == Absence::Late =>
            {
                self.miss(Absence::Disconnected)
            }
            Stage::Fetching { .. } | Stage::Sending { .. } => self.miss(late),
        }
    }

    /// Notes an authentic but malformed message. The device may still complete its update.
    pub(super) const fn malformed(&mut self) {
        self.was_malformed = true;
    }

    /// Returns whether the round ended because enough others had answered.
    fn has_quorum(&self) -> bool {
        let places = self.offer.places.as_ref();
        places.is_some_and(Places::are_taken)
    }

    fn miss(&mut self, absence: Absence) -> ExchangeOutcome {
        self.stage = Stage::Missing(absence);
        ExchangeOutcome::Missing(absence)
    }

    /// Returns the answer to a message of the device about this round.
    pub(super) fn receive(&mut self, message: &Message<'_>) -> Result<Reply, Refusal> {
        if let Stage::Missing(absence) = self.stage {
            return Ok(match (message, absence) {
                (Message::Decline(_), _) => Reply::Nothing,
                (_, Absence::OutOfBound | Absence::InvalidBit) => Reply::Abort(Abort::OutOfBound),
                _ => Reply::Abort(Abort::Late),
            });
        }
        if self.is_held {
            // For another part of the round. The device has not been invited to this one.
            return Err(Refusal::Unexpected);
        }
        if let Some((chunk, count)) = message.wanted() {
            return match message {
                Message::WantShort { base, .. } if self.offer.short.is_some() => {
                    let chunks = self.want_model(chunk, u16::from(count) * CHUNKS_IN_SHORT);
                    chunks.map(|chunks| Reply::Short(chunks, *base))
                }
                _ => self.want_model(chunk, count.into()).map(Reply::Model),
            };
        }
        match message {
            Message::UpdateChunk(chunk) => self.update_chunk(chunk),
            Message::Decline(reason) => match self.stage {
                Stage::Invited if self.was_delivered && *reason == Decline::RoundUsed => {
                    self.miss(Absence::SessionLost);
                    Ok(Reply::Nothing)
                }
                Stage::Invited | Stage::Fetching { .. } => {
                    self.miss(Absence::Declined(*reason));
                    Ok(Reply::Nothing)
                }
                _ => Err(Refusal::Unexpected),
            },
            _ => Err(Refusal::Unexpected),
        }
    }

    /// Returns the number of values that the device receives.
    fn received_length(&self) -> usize {
        let (chunks, rest) = self.offer.model.as_chunks::<MODEL_CHUNK>();
        chunks.as_flattened().len() + rest.len().max(self.end.len())
    }

    /// Returns the existing chunks among the `count` requested.
    fn want_model(&mut self, index: u16, count: u16) -> Result<Range<u16>, Refusal> {
        let chunks = model_chunks(self.received_length());
        if usize::from(index) >= chunks {
            return Err(Refusal::Body);
        }
        let end = index.saturating_add(count);
        // Fewer at the end of the model.
        let end = u16::try_from(chunks).map_or(end, |chunks| end.min(chunks));
        let is_last = usize::from(end) == chunks;
        match &mut self.stage {
            Stage::Invited => self.stage = Stage::Fetching { delivered: is_last },
            Stage::Fetching { delivered } => *delivered |= is_last,
            _ => return Err(Refusal::Unexpected),
        }
        Ok(index..end)
    }

    fn update_chunk(&mut self, chunk: &UpdateChunk<'_>) -> Result<Reply, Refusal> {
        if let Stage::Complete { last, .. } = self.stage {
            // The device has not received `Done`.
            return match chunk {
                chunk if chunk.index == last => Ok(Reply::Done),
                // Sent again, followed by the last one.
                chunk if chunk.more => Ok(Reply::Nothing),
                _ => Err(Refusal::Unexpected),
            };
        }
        let may_begin = match self.stage {
            Stage::Fetching { delivered } => delivered,
            Stage::Invited => self.was_delivered,
            _ => false,
        };
        if may_begin {
            self.stage = Stage::Sending {
                integers: vec![0; self.offer.invitation.update_length()],
                next: 0,
                negated: chunk.negated,
                tags: Vec::new(),
            };
        }
        let invitation = &self.offer.invitation;
        let chunks = invitation.update_chunks();
        let Stage::Sending {
            integers,
            next,
            negated,
            tags,
        } = &mut self.stage
        else {
            return Err(Refusal::Unexpected);
        };
        let wanted = |next| match chunk.more {
            true => Reply::Nothing,
            false => Reply::WantUpdate(next),
        };
        if chunk.index != *next {
            // Repeated, or an earlier one was lost. Only the last one sent gets an answer.
            return Ok(wanted(*next));
        }
        if chunk.negated != *negated {
            return Err(Refusal::Body);
        }
        let mut bit = None;
        match place(invitation, integers, chunk)? {
            Placed::Entries => {}
            Placed::Bit(found) => bit = Some(found),
            Placed::Tag(tag) => tags.push(tag),
        }
        if usize::from(chunk.index) + 1 < chunks {
            *next += 1;
            return Ok(wanted(*next));
        }
        let (integers, negated) = (std::mem::take(integers), *negated);
        let tags = std::mem::take(tags);
        Ok(self.complete(integers, negated, bit, tags, chunk.index))
    }

    /// Checks the complete update, and decides whether it counts.
    fn complete(
        &mut self,
        integers: Vec<i64>,
        negated: bool,
        bit: Option<i64>,
        tags: Vec<Tag>,
        last: u16,
    ) -> Reply {
        let Invitation {
            grid, noise, masks, ..
        } = &self.offer.invitation;
        if self.offer.invitation.is_matrix() {
            // The requester knows the valid range of the message.
            let answer = ExchangeOutcome::Message(integers);
            self.stage = Stage::Complete { answer, last };
            return Reply::Done;
        }
        // Masked values are arbitrary, too.
        let is_covered = noise.is_some() || masks.is_some();
        let checked = ReceivedUpdate::check(grid, integers, negated, bit, is_covered);
        let places = self.offer.places.as_ref();
        let (stage, reply) = match checked {
            // Counted now, not when the round is closed: see `quorum`.
            Ok(_) if places.is_some_and(|places| !places.take()) => {
                let late = Reply::Abort(Abort::Late);
                (Stage::Missing(Absence::BeyondQuorum), late)
            }
            Ok(update) => {
                let answer = ExchangeOutcome::Answered(update.with_tags(tags));
                (Stage::Complete { answer, last }, Reply::Done)
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
        reply
    }

    /// Returns the messages of a reply, one by one.
    pub(super) fn messages(&self, reply: Reply) -> impl Iterator<Item = Message<'_>> {
        // Every reply except chunks of the model is one message.
        let (one, chunks, step, base) = match reply {
            Reply::Model(chunks) => (None, chunks, 1, None),
            Reply::Short(chunks, base) => (None, chunks, CHUNKS_IN_SHORT, base),
            reply => (self.message(&reply), 0..0, 1, None),
        };
        let short = self.offer.short.as_ref().filter(|_| step > 1);
        let chunk = move |index| match short {
            Some(short) => short.frame(index, base),
            None => self.chunk(index),
        };
        one.into_iter()
            .chain(chunks.step_by(step.into()).filter_map(chunk))
    }

    /// Returns a chunk of the model.
    fn chunk(&self, index: u16) -> Option<Message<'_>> {
        let (chunks, rest) = self.offer.model.as_chunks::<MODEL_CHUNK>();
        let end = match self.end.is_empty() {
            true => rest,
            false => &self.end,
        };
        let chunk = match chunks.get(usize::from(index)) {
            Some(chunk) => chunk,
            None => end
                .chunks(MODEL_CHUNK)
                .nth(usize::from(index) - chunks.len())?,
        };
        let values = Values::Floats(chunk);
        Some(Message::ModelChunk { index, values })
    }

    fn message(&self, reply: &Reply) -> Option<Message<'_>> {
        Some(match reply {
            Reply::Nothing | Reply::Model(_) | Reply::Short(..) => return None,
            Reply::Invitation => Message::Invitation(self.invitation.bytes()),
            Reply::WantUpdate(index) => Message::WantUpdate(*index),
            Reply::Done => Message::Done,
            Reply::Abort(reason) => Message::Abort(*reason),
        })
    }
}

/// Placeholder for a taken outcome.
const fn taken() -> ExchangeOutcome {
    ExchangeOutcome::Missing(Absence::Late)
}

/// Content of a chunk.
enum Placed {
    /// Entries, now in their place.
    Entries,
    /// The bit.
    Bit(i64),
    /// The tag for the next helper.
    Tag(Tag),
}

/// Puts the values of a chunk into place, if they are entries of the update. The bit and the tags
/// come after the last entry.
fn place(
    invitation: &Invitation,
    integers: &mut [i64],
    chunk: &UpdateChunk<'_>,
) -> Result<Placed, Refusal> {
    let part = invitation.update_part(chunk.index.into());
    match part.ok_or(Refusal::Body)? {
        UpdatePart::Entries(range) => {
            let place = integers.get_mut(range).ok_or(Refusal::Body)?;
            let unpacked = chunk.packed.unpack(invitation.width(), place);
            unpacked.ok_or(Refusal::Body)?;
            Ok(Placed::Entries)
        }
        UpdatePart::Bit => {
            let (width, mut bit) = (invitation.bit_width().ok_or(Refusal::Body)?, 0);
            let place = std::slice::from_mut(&mut bit);
            chunk.packed.unpack(width, place).ok_or(Refusal::Body)?;
            Ok(Placed::Bit(bit))
        }
        UpdatePart::Tag(_) => chunk.packed.tag().map(Placed::Tag).ok_or(Refusal::Body),
    }
}
