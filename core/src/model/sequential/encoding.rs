//! A digest of the layers of a network, for comparison between participants: its length, and the
//! code of each layer.

use super::{Layer, Sequential, Shape};
use crate::crypto::hash;

/// Bytes of the digest of a network.
pub const DIGEST_BYTES: usize = 8;

/// Separates digests of networks from other public functions.
const LABEL: &[u8; 16] = b"smolfed network ";

/// Maximum number of numbers of a layer.
const NUMBERS: usize = 7;

impl Sequential {
    /// Returns the first eight bytes of HChaCha20, from a key of zeros, over the label "smolfed
    /// network " and each block of the encoding. It is not secret.
    ///
    /// The encoding is the shape of a sample and then each layer: a byte for its kind and seven
    /// `u16` numbers, little-endian, padded with zeros, as is the end. `docs/protocol.md` lists
    /// them all.
    // Not inlined, to keep the encoding off the caller's stack.
    #[inline(never)]
    pub fn digest(&self) -> [u8; DIGEST_BYTES] {
        let layers = self.layers().iter().map(|layer| of_layer(*layer));
        let parts = core::iter::once(of_shape(self.input)).chain(layers);
        hash(LABEL, parts.map(|(code, numbers)| record(code, numbers)))
    }
}

fn record(code: u8, numbers: [u16; NUMBERS]) -> [u8; 16] {
    let mut record = [0; 16];
    let [first, rest @ .., _] = &mut record;
    *first = code;
    let (places, _) = rest.as_chunks_mut();
    for (place, number) in places.iter_mut().zip(numbers) {
        *place = number.to_le_bytes();
    }
    record
}

const fn of_shape(shape: Shape) -> (u8, [u16; NUMBERS]) {
    match shape {
        Shape::Image {
            channels,
            height,
            width,
        } => (1, [channels, height, width, 0, 0, 0, 0]),
        Shape::Sequence { length, width } => (2, [length, width, 0, 0, 0, 0, 0]),
        Shape::Vector { length } => (3, [length, 0, 0, 0, 0, 0, 0]),
    }
}

/// Codes are appended and never reused.
const fn of_layer(layer: Layer) -> (u8, [u16; NUMBERS]) {
    match layer {
        Layer::Convolution {
            channels,
            kernel: [height, width],
            stride: [down, right],
            padding: [above, left],
        } => (1, [channels, height, width, down, right, above, left]),
        Layer::Relu => (2, [0; NUMBERS]),
        Layer::MaxPool {
            size: [height, width],
            stride: [down, right],
        } => (3, [height, width, down, right, 0, 0, 0]),
        Layer::GlobalAverage => (4, [0; NUMBERS]),
        Layer::Dense { outputs } => (5, [outputs, 0, 0, 0, 0, 0, 0]),
        Layer::Embedding { vocabulary, width } => (6, [vocabulary, width, 0, 0, 0, 0, 0]),
        Layer::Lstm { hidden } => (7, [hidden, 0, 0, 0, 0, 0, 0]),
        Layer::Last => (8, [0; NUMBERS]),
    }
}
