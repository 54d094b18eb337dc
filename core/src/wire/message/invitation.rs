//! The invitation to a round (settings of training, grid, noise, request): everything that a device
//! needs except the model itself.

use core::num::NonZeroU32;

#[cfg(feature = "questions")]
use super::question;
use super::{
    chunks::{UPDATE_CHUNK_BYTES, UpdatePart, update_chunks},
    shape::{ModelShape, NetworkId, count},
};
#[cfg(feature = "questions")]
use crate::question::Question;
use crate::{
    bit::BitRequest,
    bytes::{Reader, Writer},
    contrast::{ContrastRequest, Part},
    crc32::crc32,
    mask::Masking,
    noise::Sigma,
    pack,
    params::{ClipNorm, LearningRate, Penalty},
    personal::{Personal, PersonalRequest},
    quantize::Grid,
    smooth::{NarrowSmoothing, SmoothingFactor},
    train::{Clipping, LocalTraining},
};

/// The parts that cover an update on the line or follow it.
#[derive(Clone, Copy)]
struct Extras {
    /// σ of the device's noise.
    noise: Option<Sigma>,
    /// The bit of an adaptive clip norm.
    bit: Option<BitRequest>,
    /// The masks.
    masks: Option<Masking>,
}

impl Extras {
    /// Returns the number of tags after the update: one per helper.
    const fn tags(&self) -> usize {
        match self.masks {
            Some(masks) => masks.helpers() as usize,
            None => 0,
        }
    }
}

/// A device's work in addition to training the shared model, or instead of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request {
    /// The device has a personal model.
    Personal(PersonalRequest),
    /// The device learns without labels.
    Contrast(ContrastRequest),
    /// The device does not train, and answers a question about its samples.
    #[cfg(feature = "questions")]
    Question(Question),
}

impl Request {
    /// Returns the number of entries of an update.
    const fn entries(&self) -> u32 {
        match self {
            Self::Personal(personal) => personal.shared,
            Self::Contrast(contrast) => contrast.entries,
            // This also depends on the model's dimensions: `Invitation::update_length`.
            #[cfg(feature = "questions")]
            Self::Question(_) => 0,
        }
    }

    /// Whether it is valid for a model of this shape.
    fn is_valid(&self, shape: &ModelShape) -> bool {
        let parameters = shape.parameters();
        match self {
            Self::Personal(personal) => personal.is_valid(parameters),
            Self::Contrast(contrast) => contrast.is_valid(parameters, shape.outputs.into()),
            #[cfg(feature = "questions")]
            Self::Question(question) => question.check(&shape.dimensions()).is_ok(),
        }
    }
}

/// How to take part in a round. The header of the frame has the round number.
#[derive(Clone, Copy, Debug)]
pub struct Invitation {
    /// The model.
    pub shape: ModelShape,
    /// Local epochs.
    pub epochs: u32,
    /// Samples per batch.
    pub batch_size: NonZeroU32,
    /// Step size.
    pub learning_rate: LearningRate,
    /// Weight decay.
    pub weight_decay: Penalty,
    /// Proximal term.
    pub proximal: Penalty,
    /// When the update is clipped.
    pub clipping: Clipping,
    /// Smoothing of the local gradient, `None` for no smoothing.
    pub gradient_smoothing: Option<SmoothingFactor>,
    /// Clip norm and bits of the update.
    pub grid: Grid,
    /// σ of the device's own noise (local trust), in steps of the grid. `None` if the coordinator
    /// adds the noise.
    pub noise: Option<Sigma>,
    /// Whether the device also reports if its update was clipped (adaptive clip norm). Either both
    /// bit and update have the device's noise, or neither does.
    pub bit: Option<BitRequest>,
    /// The masks of the update, in a federation with helpers. The device then adds neither noise
    /// nor a bit.
    pub masks: Option<Masking>,
    /// For methods with a personal model or without labels.
    pub request: Option<Request>,
}

impl Invitation {
    /// Returns the settings for training in pieces. Smoothing coefficients are computed where they
    /// are needed.
    pub const fn training(&self) -> LocalTraining {
        LocalTraining {
            gradient_smoothing: match self.gradient_smoothing {
                None => None,
                Some(factor) => Some(NarrowSmoothing::deferred(factor)),
            },
            ..self.unsmoothed()
        }
    }

    /// [`Self::training`] in a session. Without the feature `gradient-smoothing` the device takes
    /// part in no round with smoothing, and has no code for it.
    pub(crate) const fn own_training(&self) -> LocalTraining {
        match cfg!(feature = "gradient-smoothing") {
            true => self.training(),
            false => self.unsmoothed(),
        }
    }

    /// [`Self::training`] without smoothing of gradients, so a program that never smooths has no
    /// code for it.
    pub(crate) const fn unsmoothed(&self) -> LocalTraining {
        LocalTraining {
            epochs: self.epochs,
            batch_size: self.batch_size,
            learning_rate: self.learning_rate,
            weight_decay: self.weight_decay,
            proximal: self.proximal,
            clip_norm: Some(self.grid.clip_norm()),
            clipping: self.clipping,
            gradient_smoothing: None,
        }
    }

    /// Returns the request for a personal model, if the method has one.
    pub const fn personal(&self) -> Option<&PersonalRequest> {
        match &self.request {
            Some(Request::Personal(personal)) => Some(personal),
            _ => None,
        }
    }

    /// Returns the request for learning without labels, if the method has none.
    pub const fn contrast(&self) -> Option<&ContrastRequest> {
        match &self.request {
            Some(Request::Contrast(contrast)) => Some(contrast),
            _ => None,
        }
    }

    /// Returns the question, if the invitation asks one instead of training.
    #[cfg(feature = "questions")]
    pub const fn question(&self) -> Option<&Question> {
        match &self.request {
            Some(Request::Question(question)) => Some(question),
            _ => None,
        }
    }

    /// Whether the invitation asks for a correlation matrix.
    pub const fn is_matrix(&self) -> bool {
        match self.contrast() {
            Some(contrast) => contrast.is_matrix(),
            None => false,
        }
    }

    /// Returns the parts that cover and follow an update: all of them, or only those that this
    /// build has code for. A device takes part in no round with other parts
    /// ([`build`](crate::session)).
    const fn extras<const OWN: bool>(&self) -> Extras {
        Extras {
            noise: if OWN { self.own_noise() } else { self.noise },
            bit: if OWN && cfg!(not(feature = "adaptive-bit")) {
                None
            } else {
                self.bit
            },
            masks: if OWN { self.own_masks() } else { self.masks },
        }
    }

    /// Returns σ of the device's noise, which a build without `local-noise` lacks.
    pub(crate) const fn own_noise(&self) -> Option<Sigma> {
        match cfg!(feature = "local-noise") {
            true => self.noise,
            false => None,
        }
    }

    /// Returns the masks of the update, which a build without `masks` lacks.
    pub(crate) const fn own_masks(&self) -> Option<Masking> {
        match cfg!(feature = "masks") {
            true => self.masks,
            false => None,
        }
    }

    /// Returns the bits per update entry on the line.
    pub const fn width(&self) -> u32 {
        self.width_of::<false>()
    }

    /// [`Self::width`], using [`Self::extras`] on a device.
    pub(crate) const fn width_of<const OWN: bool>(&self) -> u32 {
        let (bits, extras) = (self.grid.bits(), self.extras::<OWN>());
        if let Some(masks) = extras.masks {
            return masks.width() as u32;
        }
        match self.contrast() {
            Some(contrast) if contrast.is_matrix() => {
                pack::width_of_sum(bits, contrast.max_samples, extras.noise)
            }
            _ => pack::width(bits, extras.noise),
        }
    }

    /// Returns the bits of the clip bit on the line, if there is one.
    pub fn bit_width(&self) -> Option<u32> {
        self.bit_width_of::<false>()
    }

    /// [`Self::bit_width`], using [`Self::extras`] on a device.
    pub(crate) fn bit_width_of<const OWN: bool>(&self) -> Option<u32> {
        let bit = self.extras::<OWN>().bit;
        bit.map(|bit| bit.width(self.grid.bits()))
    }

    /// Returns the number of entries of an update (all or shared parameters) or of an answer.
    // Not inlined, so it is in flash once.
    #[inline(never)]
    pub const fn update_length(&self) -> usize {
        match &self.request {
            #[cfg(feature = "questions")]
            Some(Request::Question(question)) => question.length(&self.shape.dimensions()),
            Some(request) => count(request.entries()),
            None => self.shape.parameters(),
        }
    }

    /// Whether nothing is sent: fine-tuning.
    pub const fn is_silent(&self) -> bool {
        self.update_length() == 0
    }

    /// Returns the number of helpers that mask the update, or 0.
    pub const fn helpers(&self) -> u8 {
        match self.masks {
            Some(masks) => masks.helpers(),
            None => 0,
        }
    }

    /// Returns the number of chunks of an update, including one for the bit, if there is one, and
    /// one for each helper's tag. A silent round has one empty chunk, which reports the end of
    /// training.
    pub const fn update_chunks(&self) -> usize {
        self.chunks_of::<false>()
    }

    /// [`Self::update_chunks`], using [`Self::extras`] on a device.
    pub(crate) const fn chunks_of<const OWN: bool>(&self) -> usize {
        let extras = self.extras::<OWN>();
        let behind = extras.bit.is_some() as usize + extras.tags();
        match self.update_length() {
            0 => 1,
            length => update_chunks(length, self.width_of::<OWN>()) + behind,
        }
    }

    /// Returns the content of this update chunk. `None` if there is no such chunk.
    pub const fn update_part(&self, chunk: usize) -> Option<UpdatePart> {
        self.part_of::<false>(chunk)
    }

    /// [`Self::update_part`], using [`Self::extras`] on a device.
    pub(crate) const fn part_of<const OWN: bool>(&self, chunk: usize) -> Option<UpdatePart> {
        let extras = self.extras::<OWN>();
        let (length, chunks) = (self.update_length(), self.chunks_of::<OWN>());
        if chunk >= chunks {
            return None;
        }
        let first_tag = chunks.saturating_sub(extras.tags());
        if chunk >= first_tag {
            // At most 8.
            return Some(UpdatePart::Tag((chunk - first_tag) as u8));
        }
        let count = pack::capacity(self.width_of::<OWN>(), UPDATE_CHUNK_BYTES);
        let start = chunk.saturating_mul(count);
        if extras.bit.is_some() && (start > length || (start == length && chunk > 0)) {
            return Some(UpdatePart::Bit);
        }
        let rest = length - start;
        let end = start + if rest < count { rest } else { count };
        Some(UpdatePart::Entries(start..end))
    }

    /// Reads everything except the request. `is_all` means that nothing else follows.
    ///
    /// All fields are checked before the invitation is built in the caller's memory. If it were
    /// moved, it would be on the stack twice.
    #[inline(never)]
    fn read(reader: &mut Reader<'_>, is_all: bool) -> Option<Self> {
        let shape = ModelShape::take(reader)?;
        let mut fields = reader.part::<FIELD_BYTES>()?;
        if is_all {
            reader.end()?;
        }
        let reader = &mut fields;
        let epochs = reader.u32()?;
        let batch_size = NonZeroU32::new(reader.u32()?)?;
        let learning_rate = LearningRate::new(reader.f32()?).ok()?;
        let weight_decay = Penalty::new(reader.f32()?).ok()?;
        let proximal = Penalty::new(reader.f32()?).ok()?;
        let clipping = match reader.u8()? {
            0 => Clipping::EveryStep,
            1 => Clipping::Final,
            _ => return None,
        };
        let gradient_smoothing = match SmoothingFactor::new(reader.f32()?).ok()? {
            none if none.is_zero() => None,
            factor => Some(factor),
        };
        let clip_norm = ClipNorm::new(reader.f32()?).ok()?;
        let grid = Grid::new(clip_norm, u32::from(reader.u8()?)).ok()?;
        let noise = read_noise(reader)?;
        let has_bit = reader.u8()?;
        let bit_noise = read_noise(reader)?;
        // Without a bit there is no bit noise. A bit has noise if and only if the update has noise.
        match has_bit {
            0 if bit_noise.is_none() => {}
            1 if bit_noise.is_some() == noise.is_some() => {}
            _ => return None,
        }
        let masks = match (reader.u8()?, reader.u8()?) {
            (0, 0) => None,
            (helpers, width) => {
                // One update fits with its sign, and the helpers add all noise.
                if u32::from(width) < grid.bits() + 2 || noise.is_some() || has_bit != 0 {
                    return None;
                }
                Some(Masking::new(helpers, width)?)
            }
        };
        Some(Self {
            shape,
            epochs,
            batch_size,
            learning_rate,
            weight_decay,
            proximal,
            clipping,
            gradient_smoothing,
            grid,
            noise,
            bit: (has_bit == 1).then_some(BitRequest { noise: bit_noise }),
            masks,
            request: None,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        self.shape
            .put(writer)
            .u32(self.epochs)
            .u32(self.batch_size.get())
            .f32(self.learning_rate.get())
            .f32(self.weight_decay.get())
            .f32(self.proximal.get())
            .u8(match self.clipping {
                Clipping::EveryStep => 0,
                Clipping::Final => 1,
            })
            .f32(self.gradient_smoothing.map_or(0.0, SmoothingFactor::get))
            .f32(self.grid.clip_norm().get())
            // At most 24.
            .u8(self.grid.bits() as u8);
        write_noise(self.noise, writer);
        writer.u8(u8::from(self.bit.is_some()));
        write_noise(self.bit.and_then(|bit| bit.noise), writer);
        let masks = self
            .masks
            .map_or((0, 0), |masks| (masks.helpers(), masks.width()));
        writer.u8(masks.0).u8(masks.1);
        match &self.request {
            None => {}
            #[cfg(feature = "questions")]
            Some(Request::Question(asked)) => question::write(asked, writer),
            Some(request) => write_request(request, writer),
        }
    }
}

/// Codes of the requests.
mod kind {
    pub(super) const MODEL: u8 = 1;
    pub(super) const MODEL_FROM_PREVIOUS: u8 = 2;
    pub(super) const OFFSET: u8 = 3;
    pub(super) const REST: u8 = 4;
    pub(super) const TUNED: u8 = 5;
    pub(super) const MATRIX: u8 = 6;
    pub(super) const ALONE: u8 = 7;
    pub(super) const WITH_OTHERS: u8 = 8;
}

#[inline(never)]
fn read_request(reader: &mut Reader<'_>) -> Option<Request> {
    let (kind, strength) = (reader.u8()?, reader.f32()?);
    let (steps, entries, last) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let part = match kind {
        kind::MATRIX => Part::Matrix,
        kind::ALONE | kind::WITH_OTHERS => Part::Training {
            has_others: kind == kind::WITH_OTHERS,
        },
        _ => {
            return Some(Request::Personal(PersonalRequest {
                personal: personal(kind, strength)?,
                steps: NonZeroU32::new(steps),
                shared: entries,
                last: last.checked_sub(1),
            }));
        }
    };
    Some(Request::Contrast(ContrastRequest {
        part,
        pairs: steps,
        norm_bound: (strength.to_bits() != 0).then_some(strength),
        entries,
        max_samples: last,
    }))
}

/// Returns the personal part with this code.
fn personal(kind: u8, strength: f32) -> Option<Personal> {
    Some(match kind {
        kind::MODEL | kind::MODEL_FROM_PREVIOUS => Personal::Model {
            pull: Penalty::new(strength).ok()?,
            from_previous: kind == kind::MODEL_FROM_PREVIOUS,
        },
        kind::OFFSET => Personal::Offset { ratio: strength },
        kind::TUNED => Personal::Tuned {
            pull: Penalty::new(strength).ok()?,
        },
        kind::REST if strength.to_bits() == 0 => Personal::Rest,
        _ => return None,
    })
}

fn write_request(request: &Request, writer: &mut Writer<'_>) {
    let (kind, strength, steps, last) = match request {
        Request::Personal(request) => {
            let (kind, strength) = number(&request.personal);
            let steps = request.steps.map_or(0, NonZeroU32::get);
            // Rounds are below 2³² − 1.
            let last = request.last.map_or(0, |round| round.wrapping_add(1));
            (kind, strength, steps, last)
        }
        Request::Contrast(request) => {
            let kind = match request.part {
                Part::Matrix => kind::MATRIX,
                Part::Training { has_others: false } => kind::ALONE,
                Part::Training { has_others: true } => kind::WITH_OTHERS,
            };
            let bound = request.norm_bound.unwrap_or(0.0);
            (kind, bound, request.pairs, request.max_samples)
        }
        // Questions have their own encoding.
        #[cfg(feature = "questions")]
        Request::Question(_) => return,
    };
    writer
        .u8(kind)
        .f32(strength)
        .u32(steps)
        .u32(request.entries())
        .u32(last);
}

/// Returns the code of the personal part and its strength.
const fn number(personal: &Personal) -> (u8, f32) {
    match *personal {
        Personal::Model {
            pull,
            from_previous,
        } => match from_previous {
            false => (kind::MODEL, pull.get()),
            true => (kind::MODEL_FROM_PREVIOUS, pull.get()),
        },
        Personal::Offset { ratio } => (kind::OFFSET, ratio),
        Personal::Rest => (kind::REST, 0.0),
        Personal::Tuned { pull } => (kind::TUNED, pull.get()),
    }
}

/// Reads σ of the noise, if there is any. Only zeros mean no noise.
#[inline(never)]
fn read_noise(reader: &mut Reader<'_>) -> Option<Option<Sigma>> {
    let reader = &mut reader.part::<16>()?;
    match (reader.u64()?, reader.u64()?) {
        (0, 0) => Some(None),
        (numerator, denominator) => Sigma::new(numerator, denominator).ok().map(Some),
    }
}

fn write_noise(noise: Option<Sigma>, writer: &mut Writer<'_>) {
    let (numerator, denominator) = noise.map_or((0, 0), Sigma::ratio);
    writer.u64(numerator).u64(denominator);
}

/// Bytes of an invitation between shape and request.
const FIELD_BYTES: usize = 65;

/// Bytes of an invitation to train a model other than a network.
const BYTES: usize = 5 + FIELD_BYTES;

/// Additional bytes of an invitation with a [`Request`].
const REQUEST_BYTES: usize = 17;

/// Bytes of an invitation with a [`Request`] but no network.
const WITHOUT_NETWORK: usize = BYTES + REQUEST_BYTES;

/// Bytes of an invitation with a [`Request`] and a network.
const WITH_NETWORK: usize = BYTES + NetworkId::BYTES + REQUEST_BYTES;

/// Maximum bytes of an invitation.
#[cfg(not(feature = "questions"))]
pub(crate) const MAX_BYTES: usize = WITH_NETWORK;
#[cfg(feature = "questions")]
pub(crate) const MAX_BYTES: usize = QUESTION_WITH_NETWORK;

/// Bytes of an invitation with a question but no network.
#[cfg(feature = "questions")]
const QUESTION_WITHOUT_NETWORK: usize = BYTES + question::QUESTION_BYTES;
#[cfg(feature = "questions")]
const QUESTION_WITH_NETWORK: usize = QUESTION_WITHOUT_NETWORK + NetworkId::BYTES;

/// The bytes of an invitation, in the frame that carries it.
///
/// A device leaves them there, so neither an invitation nor a copy of its bytes is on its stack
/// while it handles another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvitationBytes<'a>(&'a [u8]);

impl<'a> InvitationBytes<'a> {
    /// Decodes the invitation. `None` if a value is invalid.
    pub fn unpack(self) -> Option<Invitation> {
        #[cfg(feature = "questions")]
        if self.has_question() {
            return self.unpack_question();
        }
        let reader = &mut Reader(self.0);
        let mut invitation = Invitation::read(reader, !self.has_request())?;
        if self.has_request() {
            let request = read_request(reader)?;
            let (has_bit, has_masks) = (invitation.bit.is_some(), invitation.masks.is_some());
            let is_silent = invitation.noise.is_none() && !has_bit && !has_masks;
            // Where nothing is sent there is neither noise nor mask, and with a matrix no bit. The
            // masks of a round are for one update, in a method with labels.
            let is_contrast = matches!(request, Request::Contrast(_));
            let is_matrix = matches!(request, Request::Contrast(request) if request.is_matrix());
            if !request.is_valid(&invitation.shape)
                || (request.entries() == 0 && !is_silent)
                || (is_matrix && has_bit)
                || (is_contrast && has_masks)
            {
                return None;
            }
            reader.end()?;
            invitation.request = Some(request);
        }
        Some(invitation)
    }

    /// Decodes a [question](Self::has_question), on the grid of bound 1 and without a bit.
    #[cfg(feature = "questions")]
    #[inline(never)]
    pub fn unpack_question(self) -> Option<Invitation> {
        let reader = &mut Reader(self.0);
        let mut invitation = Invitation::read(reader, false)?;
        let request = Request::Question(question::read(&reader.array()?)?);
        reader.end()?;
        let is_of_unit = invitation.grid.clip_norm().get().to_bits() == 1f32.to_bits();
        if !is_of_unit || invitation.bit.is_some() || !request.is_valid(&invitation.shape) {
            return None;
        }
        invitation.request = Some(request);
        Some(invitation)
    }

    /// Bytes from flash, which may be damaged.
    pub(crate) const fn held(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns a checksum that distinguishes the invitations of an honest coordinator.
    pub(crate) fn checksum(self) -> u32 {
        crc32(self.0)
    }

    /// [`Self::unpack`] for a device that only trains the shared model. Other requests are not
    /// read, so its flash has no code for them.
    pub fn unpack_shared(self) -> Option<Invitation> {
        Invitation::read(&mut Reader(self.0), !self.has_request())
    }

    /// Whether the invitation has a [`Request`].
    pub const fn has_request(self) -> bool {
        matches!(self.0.len(), WITHOUT_NETWORK | WITH_NETWORK)
    }

    /// Whether the invitation has a question instead of a request.
    #[cfg(feature = "questions")]
    pub const fn has_question(self) -> bool {
        matches!(
            self.0.len(),
            QUESTION_WITHOUT_NETWORK | QUESTION_WITH_NETWORK
        )
    }

    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        const NETWORK: usize = BYTES + NetworkId::BYTES;
        let body = Self(reader.rest());
        #[cfg(feature = "questions")]
        if body.has_question() {
            return Some(body);
        }
        matches!(
            body.0.len(),
            BYTES | WITHOUT_NETWORK | NETWORK | WITH_NETWORK
        )
        .then_some(body)
    }

    /// Returns the bytes on the line.
    pub const fn as_slice(self) -> &'a [u8] {
        self.0
    }
}

/// An owned copy of [`InvitationBytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedInvitation {
    /// Padded with zeros.
    bytes: [u8; MAX_BYTES],
    length: u8,
}

impl PackedInvitation {
    /// Returns the bytes on the line.
    pub fn bytes(&self) -> InvitationBytes<'_> {
        InvitationBytes(self.bytes.get(..self.length.into()).unwrap_or_default())
    }

    /// Returns the part that the tags of a masked update cover in addition to [`Masking::terms`]
    /// and the model. This is the invitation without the last participation of a device with a
    /// personal model, which differs between the invitations of a round. Device and coordinator
    /// both derive it from their own copy.
    #[must_use]
    pub fn tagged(mut self) -> Self {
        let last = usize::from(self.length).saturating_sub(size_of::<u32>());
        if self.bytes().has_request() {
            self.bytes.iter_mut().skip(last).for_each(|byte| *byte = 0);
        }
        self
    }
}

impl From<InvitationBytes<'_>> for PackedInvitation {
    fn from(received: InvitationBytes<'_>) -> Self {
        let mut bytes = [0; MAX_BYTES];
        for (byte, received) in bytes.iter_mut().zip(received.0) {
            *byte = *received;
        }
        // At most the length of the array.
        let length = received.0.len() as u8;
        Self { bytes, length }
    }
}

impl From<&Invitation> for PackedInvitation {
    fn from(invitation: &Invitation) -> Self {
        let mut bytes = [0; MAX_BYTES];
        let mut writer = Writer::new(&mut bytes);
        invitation.write(&mut writer);
        // Every invitation fits.
        let length = writer.finish().unwrap_or_default() as u8;
        Self { bytes, length }
    }
}
