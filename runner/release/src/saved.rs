//! State between rounds, as a checkpoint holds it: texts and arrays of numbers.

use std::collections::BTreeMap;

pub use safetensors::tensor::Dtype;

/// What a checkpoint holds of the state of a method, of the server or of the release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Short texts by their key.
    pub entries: BTreeMap<String, String>,
    /// Arrays by their name.
    pub tensors: BTreeMap<String, SavedTensor>,
}

/// An array of numbers, little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedTensor {
    /// The type of the numbers.
    pub dtype: Dtype,
    /// Lengths of its axes.
    pub shape: Vec<usize>,
    /// The numbers.
    pub bytes: Vec<u8>,
}
