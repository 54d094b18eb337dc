//! The invitation to a round: everything that a device needs to know but the model itself.

use core::num::NonZeroU32;

use super::{
    super::{
        bytes::{Reader, Writer},
        pack,
    },
    chunks::update_chunks,
};
use crate::{
    bit::BitRequest,
    model::{DIGEST_BYTES, Model, ModelKind, Sequential},
    noise::DiscreteGaussian,
    params::{ClipNorm, LearningRate, Penalty},
    quantize::Grid,
    smooth::NarrowSmoothing,
    train::{Clipping, LocalTraining},
};

/// Kind and size of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Which model.
    pub kind: ModelKind,
    /// Features of a sample.
    pub features: u16,
    /// Scores of a sample.
    pub outputs: u16,
    /// Which network, if it is one.
    pub network: Option<NetworkId>,
}

/// What tells a network from others of as many features and scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkId {
    /// Number of parameters.
    pub parameters: u32,
    /// Of the shape of a sample and the layers: [`Sequential::digest`].
    pub digest: [u8; DIGEST_BYTES],
}

impl NetworkId {
    /// Bytes on the line.
    const BYTES: usize = size_of::<u32>() + DIGEST_BYTES;

    fn of(network: &Sequential) -> Option<Self> {
        Some(Self {
            parameters: u32::try_from(network.parameter_count()).ok()?,
            digest: network.digest(),
        })
    }
}

impl Shape {
    /// The shape of a model; `None` if a number exceeds 65,535, or the protocol does not know its
    /// kind.
    pub fn of<M: Model>(model: &M) -> Option<Self> {
        Some(Self {
            kind: ModelKind::from_code(M::KIND.code())?,
            features: u16::try_from(model.feature_count()).ok()?,
            outputs: u16::try_from(model.output_count()).ok()?,
            network: match model.network() {
                None => None,
                Some(network) => Some(NetworkId::of(network)?),
            },
        })
    }

    /// Number of parameters.
    pub const fn parameters(&self) -> usize {
        if let Some(network) = &self.network {
            return network.parameters as usize;
        }
        // At most 2^16 · 2^16: below a usize of 32 bits only by the saturation.
        (self.features as usize + 1).saturating_mul(self.outputs as usize)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let kind = ModelKind::from_code(reader.u8()?)?;
        Some(Self {
            kind,
            features: reader.u16()?,
            outputs: reader.u16()?,
            network: match kind {
                ModelKind::Sequential => Some(NetworkId {
                    parameters: reader.u32()?,
                    digest: reader.array()?,
                }),
                _ => None,
            },
        })
    }

    pub(super) fn write<'w, 'b>(&self, writer: &'w mut Writer<'b>) -> &'w mut Writer<'b> {
        let writer = writer
            .u8(self.kind.code())
            .u16(self.features)
            .u16(self.outputs);
        match &self.network {
            None => writer,
            Some(network) => writer.u32(network.parameters).put(&network.digest),
        }
    }
}

/// How to take part in a round. The round's number stands in the header of the frame.
#[derive(Clone, Copy, Debug)]
pub struct Invitation {
    /// The model.
    pub shape: Shape,
    /// How to train.
    pub epochs: u32,
    /// Samples in a batch.
    pub batch_size: NonZeroU32,
    /// Step size.
    pub learning_rate: LearningRate,
    /// Weight decay.
    pub weight_decay: Penalty,
    /// Proximal term.
    pub proximal: Penalty,
    /// When the update is clipped.
    pub clipping: Clipping,
    /// Smoothing of the local gradient, 0 for none.
    pub gradient_smoothing: Option<NarrowSmoothing>,
    /// Clip norm and bits of the update.
    pub grid: Grid,
    /// The noise that the device adds (local trust); `None` if the coordinator adds it.
    pub noise: Option<DiscreteGaussian>,
    /// Whether the device also says if its update was clipped (adaptive clip norm). Bit and update
    /// both have noise of the device, or neither has.
    pub bit: Option<BitRequest>,
}

impl Invitation {
    /// How to train.
    pub const fn training(&self) -> LocalTraining {
        LocalTraining {
            epochs: self.epochs,
            batch_size: self.batch_size,
            learning_rate: self.learning_rate,
            weight_decay: self.weight_decay,
            proximal: self.proximal,
            clip_norm: Some(self.grid.clip_norm()),
            clipping: self.clipping,
            gradient_smoothing: self.gradient_smoothing,
        }
    }

    /// Bits of an entry of the update on the line.
    pub const fn width(&self) -> u32 {
        pack::width(self.grid.bits(), self.noise.as_ref())
    }

    /// Bits of the bit on the line, if there is one.
    pub fn bit_width(&self) -> Option<u32> {
        self.bit.map(|bit| bit.width(self.grid.bits()))
    }

    /// Chunks of an update of `parameters` entries; one more for the bit, if there is one.
    pub const fn update_chunks(&self, parameters: usize) -> usize {
        update_chunks(parameters, self.width()) + self.bit.is_some() as usize
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let invitation = Self {
            shape: Shape::read(reader)?,
            epochs: reader.u32()?,
            batch_size: NonZeroU32::new(reader.u32()?)?,
            learning_rate: LearningRate::new(reader.f32()?).ok()?,
            weight_decay: Penalty::new(reader.f32()?).ok()?,
            proximal: Penalty::new(reader.f32()?).ok()?,
            clipping: match reader.u8()? {
                0 => Clipping::EveryStep,
                1 => Clipping::Final,
                _ => return None,
            },
            gradient_smoothing: match NarrowSmoothing::new(reader.f32()?).ok()? {
                none if none.sigma() <= 0.0 => None,
                smoothing => Some(smoothing),
            },
            grid: {
                let clip_norm = ClipNorm::new(reader.f32()?).ok()?;
                Grid::new(clip_norm, u32::from(reader.u8()?)).ok()?
            },
            noise: read_noise(reader)?,
            bit: match (reader.u8()?, read_noise(reader)?) {
                (0, None) => None,
                (1, noise) => Some(BitRequest { noise }),
                _ => return None,
            },
        };
        let is_alike = |bit: BitRequest| bit.noise.is_some() == invitation.noise.is_some();
        invitation.bit.is_none_or(is_alike).then_some(invitation)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        self.shape
            .write(writer)
            .u32(self.epochs)
            .u32(self.batch_size.get())
            .f32(self.learning_rate.get())
            .f32(self.weight_decay.get())
            .f32(self.proximal.get())
            .u8(match self.clipping {
                Clipping::EveryStep => 0,
                Clipping::Final => 1,
            })
            .f32(
                self.gradient_smoothing
                    .map_or(0.0, |smoothing| smoothing.sigma()),
            )
            .f32(self.grid.clip_norm().get())
            // At most 24.
            .u8(self.grid.bits() as u8);
        write_noise(self.noise, writer);
        writer.u8(u8::from(self.bit.is_some()));
        write_noise(self.bit.and_then(|bit| bit.noise), writer);
    }
}

/// σ as numerator and denominator; both are 0 for no noise.
#[inline(never)]
fn read_noise(reader: &mut Reader<'_>) -> Option<Option<DiscreteGaussian>> {
    match (reader.u64()?, reader.u64()?) {
        (0, 0) => Some(None),
        (numerator, denominator) => DiscreteGaussian::new(numerator, denominator).ok().map(Some),
    }
}

fn write_noise(noise: Option<DiscreteGaussian>, writer: &mut Writer<'_>) {
    let (numerator, denominator) = noise.map_or((0, 0), |noise| noise.sigma());
    writer.u64(numerator).u64(denominator);
}

/// Bytes of an invitation to train a model that is no network.
const BYTES: usize = 68;

/// Bytes of an invitation to train a network.
const NETWORK_BYTES: usize = BYTES + NetworkId::BYTES;

/// An invitation as it travels: a message is a third as large with it, and so is what a device
/// keeps on its stack while it handles any other message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedInvitation {
    /// Zeros behind the last byte.
    bytes: [u8; NETWORK_BYTES],
    is_of_network: bool,
}

impl PackedInvitation {
    /// The invitation; `None` if a value is invalid.
    pub fn unpack(&self) -> Option<Invitation> {
        let reader = &mut Reader(self.as_slice());
        let invitation = Invitation::read(reader)?;
        reader.end()?;
        Some(invitation)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let body = reader.rest();
        let mut bytes = [0; NETWORK_BYTES];
        for (byte, received) in bytes.iter_mut().zip(body) {
            *byte = *received;
        }
        matches!(body.len(), BYTES | NETWORK_BYTES).then_some(Self {
            bytes,
            is_of_network: body.len() == NETWORK_BYTES,
        })
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        let length = if self.is_of_network {
            NETWORK_BYTES
        } else {
            BYTES
        };
        self.bytes.get(..length).unwrap_or_default()
    }
}

impl From<&Invitation> for PackedInvitation {
    fn from(invitation: &Invitation) -> Self {
        let mut bytes = [0; NETWORK_BYTES];
        invitation.write(&mut Writer::new(&mut bytes));
        Self {
            bytes,
            is_of_network: invitation.shape.network.is_some(),
        }
    }
}
