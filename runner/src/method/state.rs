//! What a method keeps from round to round, as a checkpoint holds it.

use std::collections::BTreeMap;

pub use safetensors::tensor::Dtype;

use crate::ranks::RankError;

/// What a checkpoint holds of a method's state.
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

/// What can go wrong with the state of a method.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Reading or writing failed.
    #[error("the personal models {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is cut short or was changed.
    #[error("the personal models {path} are damaged: {reason}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The file belongs to another run.
    #[error("the personal models {path} belong to another run")]
    Foreign {
        /// The file.
        path: String,
    },
    /// What the checkpoint holds does not fit the experiment.
    #[error("{reason}")]
    Checkpoint {
        /// What differs.
        reason: String,
    },
    /// Another rank cannot go on.
    #[error(transparent)]
    Rank(#[from] RankError),
}

impl StateError {
    /// Whether the file is to blame, not the disk.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
            Self::Damaged { .. } | Self::Foreign { .. } | Self::Checkpoint { .. } => true,
            Self::Rank(_) => false,
        }
    }
}
