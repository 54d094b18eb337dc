//! What a device with a personal model is asked to do in a round.

use core::{num::NonZeroU32, ops::Range};

use super::store::{StateId, StateKind};
use crate::{ledger::LedgerNonce, params::Penalty};

/// How far an offset of PP-SGD moves for each step of the shared model, at most.
pub const MAX_RATIO: f32 = 1000.0;

/// What is personal, and what is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Personal {
    /// PMTL: the model, pulled to the shared one.
    Model {
        /// λ of the pull.
        pull: Penalty,
        /// Whether the difference to the personal model before is sent, and not that to the shared
        /// model ([`PmtlUpdate`](super::PmtlUpdate)).
        from_previous: bool,
    },
    /// PP-SGD: what is added to the shared model.
    Offset {
        /// How far it moves for each step of the shared model: 0 to [`MAX_RATIO`].
        ratio: f32,
    },
    /// DPFedMTL: the parameters behind the shared ones.
    Rest,
    /// Fine-tuning: the model that came, trained further. Nothing is sent.
    Tuned {
        /// λ of the pull to the model that came; 0 for none.
        pull: Penalty,
    },
}

/// How a device with a personal model takes part in a round.
///
/// Everything else is as for all devices ([`LocalTraining`](crate::train::LocalTraining)), except
/// that only the update is clipped, after the last step, and that there is no proximal term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PersonalRequest {
    /// What is personal.
    pub personal: Personal,
    /// Local steps in a round, if passes over the samples are not counted.
    pub steps: Option<NonZeroU32>,
    /// Parameters that are shared: they come first, and an update has as many entries. 0 for
    /// fine-tuning.
    pub shared: u32,
    /// The last round of the run in which the device's update counted; its state is what the device
    /// goes on from.
    pub last: Option<u32>,
}

impl PersonalRequest {
    /// The state that the device goes on from, if it has one.
    pub fn before(&self, owner: LedgerNonce) -> Option<StateId> {
        let kind = self.kind();
        self.last.map(|round| StateId { kind, owner, round })
    }

    /// The state that a round leads to.
    pub const fn after(&self, owner: LedgerNonce, round: u32) -> StateId {
        let kind = self.kind();
        StateId { kind, owner, round }
    }

    /// What the device keeps.
    const fn kind(&self) -> StateKind {
        match self.personal {
            Personal::Model { .. } => StateKind::Model,
            Personal::Tuned { .. } => StateKind::Tuned,
            Personal::Offset { .. } => StateKind::Offset,
            Personal::Rest => StateKind::Rest,
        }
    }

    /// Values of a state of a model of `parameters` parameters.
    pub const fn state_length(&self, parameters: usize) -> usize {
        match self.personal {
            Personal::Model { .. } | Personal::Offset { .. } | Personal::Tuned { .. } => parameters,
            Personal::Rest => parameters.saturating_sub(self.shared as usize),
        }
    }

    /// λ of the pull in local steps, if there is one.
    pub fn pull(&self) -> Option<Penalty> {
        match self.personal {
            Personal::Model { pull, .. } => Some(pull),
            Personal::Tuned { pull } => Some(pull).filter(|pull| pull.get() > 0.0),
            Personal::Offset { .. } | Personal::Rest => None,
        }
    }

    /// Whether the request makes sense for a model of `parameters` parameters: all are shared, the
    /// rest is personal, or nothing is sent.
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

    /// Where training leaves the new state in the local model.
    pub const fn new_state(&self, parameters: usize) -> Range<usize> {
        let first = parameters - self.state_length(parameters);
        first..parameters
    }
}
