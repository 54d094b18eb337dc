//! Kind, size and arithmetic of a model on the line, by which a coordinator and a device compare
//! models.

#[cfg(feature = "questions")]
use crate::question::Dimensions;
use crate::{
    bytes::{Reader, Writer},
    contrast::Representation,
    crc32::crc32,
    fixed_point::FeatureFormat,
    model::{DIGEST_BYTES, Model, ModelKind, Sequential},
};

/// Maximum bytes of a [`ModelShape`] on the line.
pub const MAX_SHAPE_BYTES: usize = 5 + NetworkId::BYTES;

/// Kind and size of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ModelShape {
    /// Kind of the model.
    pub kind: ModelKind,
    /// Features of a sample.
    pub features: u16,
    /// Scores of a sample.
    pub outputs: u16,
    /// Identity of the network, for networks.
    pub network: Option<NetworkId>,
    /// Storage format of the features, if the model trains in integers. Its parameters then come
    /// down as integers: weights of [`fixed_point`](crate::fixed_point).
    pub integer: Option<FeatureFormat>,
}

impl core::fmt::Display for ModelShape {
    /// Writes kind, sizes and arithmetic, for comparison by an operator.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let kind = match self.kind {
            ModelKind::Linear => "linear",
            ModelKind::Logistic => "logistic",
            ModelKind::Softmax => "softmax",
            ModelKind::Encoder => "encoder",
            ModelKind::Sequential => "network",
            ModelKind::Projection => "linear encoder without labels",
            ModelKind::Representation => "encoder without labels",
        };
        write!(
            f,
            "{kind}, {} features, {} outputs",
            self.features, self.outputs
        )?;
        if let Some(network) = &self.network {
            write!(f, ", {} parameters, layers ", network.parameters)?;
            for byte in network.digest {
                write!(f, "{byte:02x}")?;
            }
        }
        match self.arithmetic() {
            (features, Some(places)) => write!(f, ", {features} with {places} places"),
            (numbers, None) => write!(f, ", {numbers}"),
        }
    }
}

/// Flags of a kind that trains in integers, above its two bits: 1, wide, F in four bits, kind.
const INTEGER: u8 = 0x80;
const WIDE: u8 = 0x40;

/// Returns the byte of a kind and its number format.
fn code(kind: ModelKind, integer: Option<FeatureFormat>) -> u8 {
    match integer {
        None => kind.code(),
        Some(format) => {
            let wide = if format.is_wide() { WIDE } else { 0 };
            // F is at most 15, and linear, logistic and softmax models have the numbers 1 to 3.
            INTEGER | wide | (format.scale().fraction() as u8) << 2 | kind.code() & 3
        }
    }
}

/// Returns the kind and the number format of a byte.
fn from_code(code: u8) -> Option<(ModelKind, Option<FeatureFormat>)> {
    if code & INTEGER == 0 {
        return Some((ModelKind::from_code(code)?, None));
    }
    let format = FeatureFormat::new(code & WIDE != 0, code >> 2 & 15).ok()?;
    Some((ModelKind::from_code(code & 3)?, Some(format)))
}

/// Distinguishes a network from others with as many features and scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NetworkId {
    /// Number of parameters.
    pub parameters: u32,
    /// Digest of the sample shape and the layers: [`Sequential::digest`].
    pub digest: [u8; DIGEST_BYTES],
}

impl NetworkId {
    /// Bytes on the line.
    pub(super) const BYTES: usize = size_of::<u32>() + DIGEST_BYTES;

    fn of(network: &Sequential) -> Option<Self> {
        Some(Self {
            parameters: u32::try_from(network.parameter_count()).ok()?,
            digest: network.digest(),
        })
    }
}

impl ModelShape {
    /// Returns the shape of a model. `None` if a number exceeds 65,535, or the protocol does not
    /// know its kind.
    pub fn of<M: Model>(model: &M) -> Option<Self> {
        Some(Self {
            kind: ModelKind::from_code(M::KIND.code())?,
            features: u16::try_from(model.feature_count()).ok()?,
            outputs: u16::try_from(model.output_count()).ok()?,
            network: match model.network() {
                None => None,
                Some(network) => Some(NetworkId::of(network)?),
            },
            integer: None,
        })
    }

    /// Returns the shape of an encoder for training without labels. `None` as for [`Self::of`].
    pub fn of_encoder<E: Representation>(encoder: &E) -> Option<Self> {
        Some(Self {
            kind: ModelKind::from_code(encoder.kind().code())?,
            features: u16::try_from(encoder.feature_count()).ok()?,
            outputs: u16::try_from(encoder.output_count()).ok()?,
            network: match encoder.network() {
                None => None,
                Some(network) => Some(NetworkId::of(network)?),
            },
            integer: None,
        })
    }

    /// Returns the dimensions that a question needs.
    #[cfg(feature = "questions")]
    pub const fn dimensions(&self) -> Dimensions {
        Dimensions {
            features: self.features as usize,
            classes: match (self.kind, self.outputs) {
                (ModelKind::Linear, _) => 0,
                (ModelKind::Logistic, _) => 2,
                (_, outputs) => outputs as usize,
            },
        }
    }

    /// Returns the arithmetic of the model, with its binary places in integers.
    fn arithmetic(&self) -> (&'static str, Option<u32>) {
        match self.integer {
            None => ("f32", None),
            Some(format) if format.is_wide() => ("i16", Some(format.scale().fraction())),
            Some(format) => ("i8", Some(format.scale().fraction())),
        }
    }

    /// Returns the number of parameters.
    pub const fn parameters(&self) -> usize {
        if let Some(network) = &self.network {
            return count(network.parameters);
        }
        let biases = match self.kind {
            ModelKind::Projection => 0,
            _ => 1,
        };
        // At most 2^16 · 2^16, which fits a usize of 16 or 32 bits only with saturation.
        (self.features as usize)
            .saturating_add(biases)
            .saturating_mul(self.outputs as usize)
    }

    /// Returns the CRC-32 of the shape as encoded on the line. It distinguishes models with as many
    /// parameters and another shape.
    pub fn checksum(&self) -> u32 {
        let mut bytes = [0; MAX_SHAPE_BYTES];
        self.put(&mut Writer::new(&mut bytes));
        crc32(&bytes)
    }

    /// Writes the shape as encoded on the line. `docs/protocol.md` has the layout.
    pub fn write<'a>(&self, bytes: &'a mut [u8; MAX_SHAPE_BYTES]) -> &'a [u8] {
        let mut writer = Writer::new(bytes);
        self.put(&mut writer);
        let length = writer.finish().unwrap_or_default();
        bytes.get(..length).unwrap_or_default()
    }

    /// Reads a shape. `None` for other bytes.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let shape = Self::take(&mut reader)?;
        reader.end()?;
        Some(shape)
    }

    pub(super) fn take(reader: &mut Reader<'_>) -> Option<Self> {
        let (kind, integer) = from_code(reader.u8()?)?;
        Some(Self {
            kind,
            features: reader.u16()?,
            outputs: reader.u16()?,
            network: match kind {
                ModelKind::Sequential | ModelKind::Representation => Some(NetworkId {
                    parameters: reader.u32()?,
                    digest: reader.array()?,
                }),
                _ => None,
            },
            integer,
        })
    }

    pub(super) fn put<'w, 'b>(&self, writer: &'w mut Writer<'b>) -> &'w mut Writer<'b> {
        let writer = writer
            .u8(code(self.kind, self.integer))
            .u16(self.features)
            .u16(self.outputs);
        match &self.network {
            None => writer,
            Some(network) => writer.u32(network.parameters).put(&network.digest),
        }
    }
}

/// Converts a number on the line to `usize`, saturating.
pub(super) const fn count(number: u32) -> usize {
    if number as u64 > usize::MAX as u64 {
        usize::MAX
    } else {
        number as usize
    }
}
