//! The request to a device with a personal model in a round: PMTL, PP-SGD, DPFedMTL or fine-tuning,
//! its state, and the limit of the ratio.

use core::{num::NonZeroU32, ops::Range};

use super::store::{StateId, StateKind};
use crate::{ledger::LedgerNonce, params::Penalty};

/// Maximum ratio of the movements of a PP-SGD offset and the shared model.
pub const MAX_RATIO: f32 = 1000.0;

/// The personal state and the update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Personal {
    /// PMTL: the model, pulled towards the shared one.
    Model {
        /// λ of the pull.
        pull: Penalty,
        /// Whether the update is the difference to the previous personal model instead of the
        /// shared model ([`PmtlUpdate`](super::PmtlUpdate)).
        from_previous: bool,
    },
    /// PP-SGD: an offset to the shared model.
    Offset {
        /// Ratio of the movements of the offset and the shared model: 0 to [`MAX_RATIO`].
        ratio: f32,
    },
    /// DPFedMTL: the parameters after the shared ones.
    Rest,
    /// Fine-tuning: the received model, trained further, without an update.
    Tuned {
        /// λ of the pull towards the received model. 0 for none.
        pull: Penalty,
    },
}

/// Request to a device with a personal model to take part in a round.
///
/// All other settings are as for all devices ([`LocalTraining`](crate::train::LocalTraining)),
/// except that only the update is clipped, after the last step, and that there is no proximal term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PersonalRequest {
    /// The personal state.
    pub personal: Personal,
    /// Local steps in a round, if the effort is not counted in passes over the samples.
    pub steps: Option<NonZeroU32>,
    /// Number of shared parameters, which come first, and of the entries of an update. 0 for
    /// fine-tuning.
    pub shared: u32,
    /// The last round of the run with a valid update of the device. The device continues from the
    /// state of that round.
    pub last: Option<u32>,
}

impl PersonalRequest {
    /// Returns the state from which the device continues, if any.
    pub fn before(&self, owner: LedgerNonce) -> Option<StateId> {
        let kind = self.kind();
        self.last.map(|round| StateId { kind, owner, round })
    }

    /// Returns the state that a round produces.
    pub const fn after(&self, owner: LedgerNonce, round: u32) -> StateId {
        let kind = self.kind();
        StateId { kind, owner, round }
    }

    /// Returns the kind of the state.
    const fn kind(&self) -> StateKind {
        match self.personal {
            Personal::Model { .. } => StateKind::Model,
            Personal::Tuned { .. } => StateKind::Tuned,
            Personal::Offset { .. } => StateKind::Offset,
            Personal::Rest => StateKind::Rest,
        }
    }

    /// Returns the number of values of a state, for a model of `parameters` parameters.
    pub const fn state_length(&self, parameters: usize) -> usize {
        match self.personal {
            Personal::Model { .. } | Personal::Offset { .. } | Personal::Tuned { .. } => parameters,
            Personal::Rest => parameters.saturating_sub(self.shared as usize),
        }
    }

    /// Returns λ of the pull in local steps, if any.
    pub fn pull(&self) -> Option<Penalty> {
        match self.personal {
            Personal::Model { pull, .. } => Some(pull),
            Personal::Tuned { pull } => Some(pull).filter(|pull| pull.get() > 0.0),
            Personal::Offset { .. } | Personal::Rest => None,
        }
    }

    /// Returns whether the request is valid for a model of `parameters` parameters: all are shared,
    /// the rest is personal, or there is no update.
    pub(crate) fn is_valid(&self, parameters: usize) -> bool {
        let (shared, parameters) = (u64::from(self.shared), parameters as u64);
        match self.personal {
            Personal::Model { .. } => shared == parameters,
            Personal::Offset { ratio } => {
                shared == parameters && (0.0..=MAX_RATIO).contains(&ratio)
            }
            Personal::Rest => (1..=parameters).contains(&shared),
            Personal::Tuned { .. } => shared == 0,
        }
    }

    /// Returns the range of the new state in the local model after training.
    pub const fn new_state(&self, parameters: usize) -> Range<usize> {
        let first = parameters - self.state_length(parameters);
        first..parameters
    }
}
