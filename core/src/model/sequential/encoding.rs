//! What a network is, in a few bytes: for those who have to agree on it.

use super::{Layer, Sequential, Shape};
use crate::crypto::hash;

/// Bytes that tell one network from another.
pub const DIGEST_BYTES: usize = 8;

/// Separates digests of networks from other public functions.
const LABEL: &[u8; 16] = b"smolfed network ";

/// Numbers of a layer, at most.
const NUMBERS: usize = 7;

impl Sequential {
    /// HChaCha20 from a key of zeros over the label "smolfed network " and each block of the
    /// encoding, the first eight bytes: no secret.
    ///
    /// The encoding is the shape of a sample and then each layer: a byte for which it is, and seven
    /// numbers `u16`, little-endian, zeros after the last and at the end. `docs/protocol.md` has
    /// them all.
    // Not inlined: the encoding is not on the stack of what comes after.
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
