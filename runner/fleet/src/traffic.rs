//! The frames of a device's round, predicted.
//!
//! The messages of `docs/protocol.md` ("A round") are made and sealed with an arbitrary key and
//! zeros instead of all numbers, and only the lengths of the frames are kept: they do not depend on
//! the numbers. The device asks for one chunk at a time, as boards do, and no frame is lost.
//! Answers to questions and fine-tuning after the last round are not included.

use smolfed_core::contrast::{ContrastRequest, Part, RECIPE_LENGTH};
use smolfed_core::crypto::Key;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::Penalty;
use smolfed_core::wire::greeting::{Greeting, Hello, Name, Versions, Welcome};
use smolfed_core::wire::keys::{Chain, ChainKey, SessionKeys};
use smolfed_core::wire::link::{CoordinatorEnd, DeviceEnd, Link};
use smolfed_core::wire::message::{
    Invitation, MODEL_CHUNK, Message, ModelGrid, ModelShape, Packed, PackedInvitation, Ready,
    Request, SHORT_CHUNK, Short, UPDATE_CHUNK_BYTES, UpdateChunk, UpdatePart, Values, model_chunks,
};
use smolfed_core::wire::{VERSION, pack};

use crate::source::invitation;
use crate::source::terms::{ServeError, terms};
use smolfed_engine::experiment::Experiment;
use smolfed_engine::method::contract::SecondMessage;

/// Lengths of frames in bytes, in order, including the zero at the end of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From the device.
    pub up: Vec<usize>,
    /// To the device.
    pub down: Vec<usize>,
}

impl Traffic {
    /// Returns a greeting without X25519 and without a Call of the coordinator, of a device with
    /// this model whose samples are already features. No invitation follows at once.
    #[must_use]
    pub fn of_greeting(shape: ModelShape) -> Self {
        let nonce = [0; 16];
        let hello = Hello::new(&chain().greeting(), Name::Number(0), nonce, Versions::OURS);
        let welcome = Welcome::new(&session(), nonce, Ok(VERSION));
        let length = |greeting: Greeting| greeting.encoded().as_slice().len();
        let mut line = Line::new();
        line.traffic.up.push(length(Greeting::Hello(hello)));
        line.traffic.down.push(length(Greeting::Welcome(welcome)));
        line.up(&Message::Ready(Ready {
            ledger: [0; 8],
            shape,
            needs_local_noise: false,
            answers_questions: false,
            recipe: &[],
        }));
        line.down(&Message::Wait);
        line.traffic
    }

    /// Returns an exchange from an invitation to `Done`, with a model of this many numbers. The
    /// device already has the first `known_chunks` chunks.
    #[must_use]
    pub fn of_exchange(invitation: &Invitation, numbers: usize, known_chunks: usize) -> Self {
        let mut line = Line::invited(invitation);
        for chunk in known_chunks..model_chunks(numbers) {
            let index = number(chunk);
            let (chunk, count) = (index, 1);
            line.up(&Message::WantModel { chunk, count });
            let rest = numbers.saturating_sub(usize::from(index) * MODEL_CHUNK);
            let zeros = [0.0; MODEL_CHUNK];
            let values = Values::Floats(zeros.get(..rest).unwrap_or(&zeros));
            line.down(&Message::ModelChunk { index, values });
        }
        line.updated(invitation)
    }

    /// Returns an exchange with a model of this many numbers on a grid, for a device that asks for
    /// short chunks: in 16 bits, or as differences that all fit in a byte.
    #[must_use]
    pub fn of_short_exchange(
        invitation: &Invitation,
        numbers: usize,
        grid: ModelGrid,
        is_difference: bool,
    ) -> Self {
        let mut line = Line::invited(invitation);
        let steps = vec![0; numbers];
        for (frame, steps) in steps.chunks(SHORT_CHUNK).enumerate() {
            let chunk = number(frame * SHORT_CHUNK / MODEL_CHUNK);
            let (count, base) = (1, is_difference.then_some(0));
            line.up(&Message::WantShort { chunk, count, base });
            let values = Short::to_send(grid, steps, is_difference.then_some(steps));
            line.down(&Message::ModelChunk {
                index: chunk,
                values: Values::Short(values),
            });
        }
        line.updated(invitation)
    }

    /// Returns the number of bytes of all frames from the device.
    #[must_use]
    pub fn bytes_up(&self) -> usize {
        self.up.iter().sum()
    }

    /// Returns the number of bytes of all frames to the device.
    #[must_use]
    pub fn bytes_down(&self) -> usize {
        self.down.iter().sum()
    }

    /// Appends the frames of `other`.
    #[must_use]
    pub(crate) fn then(mut self, other: Self) -> Self {
        self.up.extend(other.up);
        self.down.extend(other.down);
        self
    }
}

/// A round of one device.
#[derive(Clone, Debug)]
pub struct DeviceRound {
    /// The invitation to train.
    pub invitation: Invitation,
    /// Its frames. If devices send a matrix as well, the frames of the matrix come first.
    pub traffic: Traffic,
    /// The frames of devices that ask for short chunks, if the model is on a grid.
    pub short: Option<ShortTraffic>,
}

/// The frames of a device that asks for short chunks.
#[derive(Clone, Debug)]
pub struct ShortTraffic {
    /// With all 16 bits.
    pub whole: Traffic,
    /// With differences to the device's model, all of one byte.
    pub differences: Traffic,
}

impl DeviceRound {
    /// Returns the first round of an experiment.
    ///
    /// # Errors
    /// [`ServeError`] if real devices cannot take part in the experiment.
    pub fn of(experiment: &Experiment) -> Result<Self, ServeError> {
        let shape = terms(experiment)?.shape;
        let method = experiment.method();
        let request = method.properties().request;
        let training = experiment.training_in(0);
        let invitation = invitation::training(shape, &training, experiment.release(), request)
            .ok_or(ServeError::NoClipNorm)?;
        let traffic = match method.second_message() {
            Some(message) => with_matrix(&invitation, message),
            None => {
                let tail = invitation.contrast().map_or(0, |_| RECIPE_LENGTH);
                Traffic::of_exchange(&invitation, shape.parameters() + tail, 0)
            }
        };
        let short = experiment
            .model_grid()
            .filter(|_| invitation.contrast().is_none());
        Ok(Self {
            short: short.map(|grid| ShortTraffic::of(&invitation, grid)),
            invitation,
            traffic,
        })
    }
}

impl ShortTraffic {
    fn of(invitation: &Invitation, grid: ModelGrid) -> Self {
        let numbers = invitation.shape.parameters();
        let of =
            |is_difference| Traffic::of_short_exchange(invitation, numbers, grid, is_difference);
        Self {
            whole: of(false),
            differences: of(true),
        }
    }
}

/// Returns a round in which devices send a matrix and then an update: the encoder comes down once,
/// followed by the mean of the other devices' matrices.
fn with_matrix(invitation: &Invitation, message: &SecondMessage) -> Traffic {
    let (shape, parameters) = (invitation.shape, invitation.shape.parameters());
    let entries = ContrastRequest::matrix_entries(shape.outputs.into());
    let with_part = |part, entries, max_samples| {
        let request = invitation.contrast().map(|contrast| ContrastRequest {
            part,
            entries,
            max_samples,
            ..*contrast
        });
        request.map(Request::Contrast)
    };
    let matrix = Invitation {
        grid: message.release.grid,
        noise: message.release.noise.as_ref().map(DiscreteGaussian::sigma),
        bit: None,
        masks: None,
        proximal: Penalty::NONE,
        gradient_smoothing: None,
        request: with_part(
            Part::Matrix,
            u32::try_from(entries).unwrap_or(u32::MAX),
            message.max_samples.max(1),
        ),
        ..*invitation
    };
    let update = Invitation {
        request: with_part(
            Part::Training { has_others: true },
            u32::try_from(parameters).unwrap_or(u32::MAX),
            0,
        ),
        ..*invitation
    };
    of_both_parts(&matrix, &update)
}

/// Returns a round with a matrix and an update, for devices with these invitations.
pub(crate) fn of_both_parts(matrix: &Invitation, update: &Invitation) -> Traffic {
    let encoder = matrix.shape.parameters();
    // The last entry of a matrix is the number of samples.
    let others = matrix.update_length().saturating_sub(1);
    let numbers = encoder + RECIPE_LENGTH;
    let first = Traffic::of_exchange(matrix, numbers, 0);
    let known_chunks = encoder / MODEL_CHUNK;
    first.then(Traffic::of_exchange(update, numbers + others, known_chunks))
}

/// Both ends of a session, and the lengths of their frames.
struct Line {
    device: Link<DeviceEnd>,
    coordinator: Link<CoordinatorEnd>,
    traffic: Traffic,
}

impl Line {
    fn new() -> Self {
        Self {
            device: Link::new(session().cipher()),
            coordinator: Link::new(session().cipher()),
            traffic: Traffic::default(),
        }
    }

    /// Returns the line of a device that gets this invitation.
    fn invited(invitation: &Invitation) -> Self {
        let mut line = Self::new();
        let packed = PackedInvitation::from(invitation);
        line.down(&Message::Invitation(packed.bytes()));
        line
    }

    /// Appends the frames of the update, and returns all frames.
    fn updated(mut self, invitation: &Invitation) -> Traffic {
        let chunks = invitation.update_chunks();
        for (index, part) in
            (0..chunks).map_while(|chunk| Some((chunk, invitation.update_part(chunk)?)))
        {
            self.up(&Message::UpdateChunk(UpdateChunk {
                index: number(index),
                negated: false,
                more: false,
                packed: packed(invitation, part),
            }));
            self.down(&match index + 1 {
                last if last == chunks => Message::Done,
                next => Message::WantUpdate(number(next)),
            });
        }
        self.traffic
    }

    fn up(&mut self, message: &Message<'_>) {
        let frame = self.device.seal(0, message);
        self.traffic.up.push(frame.as_slice().len());
    }

    fn down(&mut self, message: &Message<'_>) {
        let frame = self.coordinator.seal(0, message);
        self.traffic.down.push(frame.as_slice().len());
    }
}

/// Returns an arbitrary key.
fn chain() -> ChainKey {
    ChainKey::new(Key::from_secret([0; 32]))
}

fn session() -> SessionKeys {
    chain().session(0, &[0; 16], &[0; 16])
}

/// Returns the number of a chunk. [`terms`] refuses models with more.
fn number(chunk: usize) -> u16 {
    u16::try_from(chunk).unwrap_or(u16::MAX)
}

/// Returns a part of an update, all zeros.
fn packed(invitation: &Invitation, part: UpdatePart) -> Packed<'static> {
    const ZEROS: &[u8] = &[0; UPDATE_CHUNK_BYTES];
    let bytes = match part {
        UpdatePart::Entries(entries) => pack::packed_bytes(invitation.width(), entries.len()),
        UpdatePart::Bit => pack::packed_bytes(invitation.bit_width().unwrap_or_default(), 1),
        UpdatePart::Tag(_) => return Packed::Tag([0; 16]),
    };
    Packed::Bytes(ZEROS.get(..bytes).unwrap_or(ZEROS))
}
