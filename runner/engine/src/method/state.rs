//! The state that a method keeps on each device between rounds (its model, an offset to the shared
//! model, or the parameters that are not shared), and errors in reading or writing it.

use serde::{Deserialize, Serialize};

use crate::check::ExperimentError;
use crate::ranks::RankError;

/// State of a device between rounds, as the values in `personal.states`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PersonalState {
    /// Its model.
    Model,
    /// The offset to the shared model.
    Offset,
    /// The parameters that follow the shared ones.
    Rest,
}

impl PersonalState {
    /// Returns the number of values in a state, for a model of `parameters` parameters of which
    /// `shared` are shared.
    #[must_use]
    pub const fn length(self, parameters: usize, shared: usize) -> usize {
        match self {
            Self::Model | Self::Offset => parameters,
            Self::Rest => parameters - shared,
        }
    }

    /// Returns the model of a device with this state, for prediction and training. `initial` is the
    /// model before the first round. For a device that was never selected, this is its starting
    /// point.
    #[must_use]
    pub fn own_model(self, shared: &[f32], initial: &[f32], state: Option<&[f32]>) -> Vec<f32> {
        let start = if shared.is_empty() { initial } else { shared };
        match (self, state) {
            (Self::Model, state) => state.unwrap_or(start).to_vec(),
            (Self::Offset, Some(offset)) => shared.iter().zip(offset).map(|(w, o)| w + o).collect(),
            (Self::Offset, None) => shared.to_vec(),
            (Self::Rest, state) => {
                let rest = initial.get(shared.len()..).unwrap_or_default();
                [shared, state.unwrap_or(rest)].concat()
            }
        }
    }
}

/// Errors of a method's state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Reading or writing failed.
    #[error("the personal models {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is truncated or was changed.
    #[error("the personal models {path} are damaged: {reason}")]
    Damaged {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The file belongs to another run.
    #[error("the personal models {path} belong to another run")]
    Foreign {
        /// The file.
        path: String,
    },
    /// The state in the checkpoint does not fit the experiment.
    #[error("{reason}")]
    Checkpoint {
        /// The difference.
        reason: String,
    },
    /// The experiment cannot run.
    #[error(transparent)]
    Experiment(Box<ExperimentError>),
    /// Another rank cannot continue.
    #[error(transparent)]
    Rank(#[from] RankError),
}

impl From<ExperimentError> for StateError {
    fn from(error: ExperimentError) -> Self {
        Self::Experiment(Box::new(error))
    }
}

impl StateError {
    /// Returns whether the file is to blame, not the disk.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
            Self::Damaged { .. }
            | Self::Foreign { .. }
            | Self::Checkpoint { .. }
            | Self::Experiment(_) => true,
            Self::Rank(_) => false,
        }
    }
}
