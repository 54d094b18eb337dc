//! Format of signed model files for devices that only infer (header, encoding of parameters,
//! signature): `docs/protocol-delivery.md`.
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 4 | `SFM1` |
//! | 4 | 4 | version, from 1 |
//! | 8 | 4 | number of parameters n |
//! | 12 | 1 | encoding: 0 for words, 1 + p for 16 bits with p binary places |
//! | 13 | 1 | bytes of the shape |
//! | 14 | 1 | bytes of the recipe, 0 without one |
//! | 15 | 1 | 0 |
//! | 16 | 32 | shape, then zeros |
//! | 48 | 64 | recipe, then zeros |
//! | 112 | 16 | zeros |
//! | 128 | 4n or 2n | parameters |
//! | | 64 | signature |
//!
//! The signature is Ed25519 over `smolfed model file 1`, a zero, and the SHA-512 of everything
//! before it.

use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha512};

use super::DeliveryError;
use crate::{
    bytes::{Reader, Writer},
    fixed_point::is_weight,
    recipe::{MAX_RECIPE_BYTES, Recipe},
    wire::message::{MAX_SHAPE_BYTES, ModelGrid, ModelShape},
};

const MAGIC: [u8; 4] = *b"SFM1";

/// Bytes before the parameters.
pub const HEADER_BYTES: usize = 128;

/// Bytes of a signature, at the end of a file.
pub const SIGNATURE_BYTES: usize = 64;

/// Places of the shape and of the recipe.
const SHAPE: core::ops::Range<usize> = 16..48;
const RECIPE: core::ops::Range<usize> = 48..112;

const _: () = assert!(
    MAX_SHAPE_BYTES <= SHAPE.end - SHAPE.start && MAX_RECIPE_BYTES <= RECIPE.end - RECIPE.start,
    "every shape and every recipe fits"
);

/// Separates these signatures from others under the same key.
const LABEL: &[u8; 21] = b"smolfed model file 1\0";

/// Bytes under a signature.
const SIGNED_BYTES: usize = LABEL.len() + 64;

/// How a file stores parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// In four bytes: `f32`, or the bit patterns of integer weights.
    Words,
    /// In two bytes, as steps of a grid.
    Short(ModelGrid),
}

impl Encoding {
    /// Returns the bytes of a parameter.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Words => 4,
            Self::Short(_) => 2,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Words => 0,
            Self::Short(grid) => 1 + grid.places(),
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        match code.checked_sub(1) {
            None => Some(Self::Words),
            Some(places) => ModelGrid::new(places).map(Self::Short),
        }
    }

    /// Reads parameters from whole words of a file.
    pub(super) fn decode(self, bytes: &[u8], to: &mut [f32]) {
        match self {
            Self::Words => {
                for (to, bytes) in to.iter_mut().zip(bytes.as_chunks().0) {
                    *to = f32::from_le_bytes(*bytes);
                }
            }
            Self::Short(grid) => {
                for (to, bytes) in to.iter_mut().zip(bytes.as_chunks().0) {
                    *to = grid.value(i16::from_le_bytes(*bytes));
                }
            }
        }
    }
}

/// The start of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version, from 1. A publisher uses each number once.
    pub version: u32,
    /// The model.
    pub shape: ModelShape,
    /// The features of the model's samples, if they are computed.
    pub recipe: Option<Recipe>,
    /// How the parameters are stored.
    pub encoding: Encoding,
}

impl Header {
    /// Returns the bytes of the parameters, or `None` if they exceed any device's memory.
    pub fn parameter_bytes(&self) -> Option<u32> {
        let bytes = self.shape.parameters().checked_mul(self.encoding.bytes())?;
        u32::try_from(bytes).ok()
    }

    /// Whether these words of a file are numbers of the model: finite, or weights of integer
    /// arithmetic. Steps of a grid always are.
    pub(super) fn has_numbers(&self, words: &[u8]) -> bool {
        let words = words
            .as_chunks()
            .0
            .iter()
            .map(|word| u32::from_le_bytes(*word));
        match (self.encoding, self.shape.integer) {
            (Encoding::Short(_), _) => true,
            (Encoding::Words, Some(_)) => words.map(|word| word as i32).all(is_weight),
            (Encoding::Words, None) => words.map(f32::from_bits).all(f32::is_finite),
        }
    }

    /// Returns the bytes of the file, or `None` if they exceed any device's memory.
    pub fn file_bytes(&self) -> Option<u32> {
        self.parameter_bytes()?
            .checked_add((HEADER_BYTES + SIGNATURE_BYTES) as u32)
    }

    /// Returns the parameters in a whole file with this header, for the publisher.
    #[cfg(any(test, feature = "hazmat"))]
    pub fn parameters<V: FromIterator<f32>>(&self, file: &[u8]) -> V {
        let bytes = file.get(HEADER_BYTES..).unwrap_or_default();
        let values = bytes.chunks_exact(self.encoding.bytes());
        let values = values.take(self.shape.parameters()).map(|bytes| {
            let mut value = [0.0];
            self.encoding.decode(bytes, &mut value);
            let [value] = value;
            value
        });
        values.collect()
    }

    /// Writes the header.
    pub fn write(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let (mut shape, mut recipe) = ([0; MAX_SHAPE_BYTES], [0; MAX_RECIPE_BYTES]);
        let shape = self.shape.write(&mut shape);
        let recipe = match &self.recipe {
            Some(own) => own.write(&mut recipe),
            None => &[],
        };
        Writer::new(&mut bytes)
            .put(&MAGIC)
            .u32(self.version)
            .u32(self.shape.parameters() as u32)
            .u8(self.encoding.code())
            .u8(shape.len() as u8)
            .u8(recipe.len() as u8)
            .u8(0)
            .put(shape);
        let place = bytes.get_mut(RECIPE).unwrap_or_default();
        Writer::new(place).put(recipe);
        bytes
    }

    /// Reads a header. `None` for other bytes.
    pub fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let reader = &mut Reader(bytes);
        if reader.array() != Some(MAGIC) {
            return None;
        }
        let (version, _) = (reader.u32()?, reader.u32()?);
        let encoding = Encoding::from_code(reader.u8()?)?;
        let (shape, recipe) = (reader.u8()?, reader.u8()?);
        let shape = bytes.get(SHAPE)?.get(..shape.into())?;
        let recipe = match bytes.get(RECIPE)?.get(..recipe.into())? {
            [] => None,
            bytes => Some(Recipe::read(bytes)?),
        };
        let header = Self {
            version,
            shape: ModelShape::read(shape)?,
            recipe,
            encoding,
        };
        // Weights of integer arithmetic have more places than any grid.
        let is_encoded = header.shape.integer.is_none() || encoding == Encoding::Words;
        // One header has one form: the number of parameters fits, and the rest is zero.
        (is_encoded && version > 0 && header.write() == *bytes).then_some(header)
    }
}

/// The hash of a file up to its signature.
#[derive(Clone)]
pub struct FileDigest(Sha512);

impl Default for FileDigest {
    fn default() -> Self {
        Self(Sha512::new())
    }
}

impl FileDigest {
    /// Adds bytes of the file.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the bytes that the publisher signs.
    pub fn signed_bytes(self) -> [u8; SIGNED_BYTES] {
        let mut signed = [0; SIGNED_BYTES];
        Writer::new(&mut signed).put(LABEL).put(&self.0.finalize());
        signed
    }
}

impl core::fmt::Debug for FileDigest {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FileDigest")
    }
}

/// The public key of a publisher of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherKey(VerifyingKey);

impl PublisherKey {
    /// Reads a key. `None` if the bytes are not a point of the curve, or are one of small order.
    pub fn new(bytes: &[u8; 32]) -> Option<Self> {
        let key = VerifyingKey::from_bytes(bytes).ok();
        key.filter(|key| !key.is_weak()).map(Self)
    }

    /// Whether the publisher has signed the file with this digest.
    pub fn has_signed(&self, digest: FileDigest, signature: &[u8; SIGNATURE_BYTES]) -> bool {
        let signature = Signature::from_bytes(signature);
        let signed = digest.signed_bytes();
        self.0.verify_strict(&signed, &signature).is_ok()
    }

    /// Whether the publisher has signed this whole file.
    pub fn has_signed_file(&self, file: &[u8]) -> bool {
        file.split_last_chunk().is_some_and(|(content, signature)| {
            let mut digest = FileDigest::default();
            digest.update(content);
            self.has_signed(digest, signature)
        })
    }
}

/// The files that a device accepts.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// The publisher.
    pub publisher: PublisherKey,
    /// The model of the firmware.
    pub shape: ModelShape,
    /// The features that the firmware computes, if it computes any.
    pub recipe: Option<Recipe>,
}

impl Accepted {
    /// Checks that the firmware can use the model of a file.
    pub(super) fn check(&self, header: &Header) -> Result<(), DeliveryError> {
        match () {
            () if header.shape != self.shape => Err(DeliveryError::Shape),
            () if header.recipe != self.recipe => Err(DeliveryError::Recipe),
            () => Ok(()),
        }
    }
}
