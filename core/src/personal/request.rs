//! What a device with a personal model is asked to do in a round: where it starts, what it sends
//! and what it keeps.

use core::{num::NonZeroU32, ops::Range};

use rand_core::Rng;

use super::{
    Anchor, Effort, PersonalTraining, StepMemory, descend, difference,
    store::{PersonalStore, StateId, StateKind, StoreError},
};
use crate::{
    clip::clip_l2,
    ledger::LedgerNonce,
    model::Model,
    params::{LearningRate, Penalty},
    samples::Samples,
    train::{LocalTraining, TrainError, TrainReport, Workspace},
};

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
/// Everything else is as for all devices ([`LocalTraining`]), except that only the update is
/// clipped, after the last step, and that there is no proximal term.
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
        let shared = self.shared as usize;
        match self.personal {
            Personal::Model { .. } => shared == parameters,
            Personal::Offset { ratio } => {
                shared == parameters && (0.0..=MAX_RATIO).contains(&ratio)
            }
            Personal::Rest => (1..=parameters).contains(&shared),
            Personal::Tuned { .. } => shared == 0,
        }
    }

    /// Where [`PersonalRound::train`] leaves the new state.
    pub const fn new_state(&self, parameters: usize) -> Range<usize> {
        let first = parameters - self.state_length(parameters);
        first..parameters
    }
}

/// A round of a device with a personal model.
#[derive(Clone, Copy, Debug)]
pub struct PersonalRound<'a> {
    /// What is asked for.
    pub request: &'a PersonalRequest,
    /// How to train.
    pub training: &'a LocalTraining,
    /// The shared parameters, and behind them what the personal ones are before the first round; as
    /// long as the model.
    pub global: &'a [f32],
    /// The device's ledger.
    pub owner: LedgerNonce,
}

impl PersonalRound<'_> {
    /// Trains on `samples`. Leaves the clipped update in the first entries of `work.update`, as
    /// many as are shared, and the state to keep in those entries of `work.local` that
    /// [`PersonalRequest::new_state`] names.
    ///
    /// * Shape: the vectors of `work` are as long as the model.
    /// * Randomness: the order of the samples, from `rng`.
    /// * Privacy: the update is clipped and has no noise; the state must not leave the device.
    ///
    /// # Errors
    /// [`PersonalError`]; `work` is then meaningless, and nothing may be sent or kept.
    // The sequences of operations are those of the simulator: same bits.
    #[inline(always)]
    pub fn train<M, S, K>(
        &self,
        model: &M,
        samples: &S,
        rng: &mut impl Rng,
        work: Workspace<'_>,
        store: &mut K,
    ) -> Result<TrainReport, PersonalError>
    where
        M: Model,
        S: Samples<Target = M::Target>,
        K: PersonalStore,
    {
        let Workspace {
            local,
            update,
            order,
            scratch,
        } = work;
        let has_state = self.start(local, update, store)?;
        let pull = self.request.pull();
        let anchor = pull.map(|strength| Anchor {
            at: self.global,
            strength,
            importance: None,
        });
        let memory = StepMemory {
            gradient: update,
            order,
            scratch,
        };
        let (settings, anchor) = (self.settings()?, anchor.as_ref());
        let mut report = descend(model, samples, local, anchor, &settings, rng, memory)?;
        self.conclude(local, update, has_state, store)?;
        let shared = self.request.shared as usize;
        let update = update.get_mut(..shared).unwrap_or_default();
        if let Some(bound) = self.training.clip_norm {
            report.norm = clip_l2(update, bound.get()).map_err(|_| TrainError::Diverged)?;
            report.clipped_steps = u32::from(report.norm > bound.get());
            report.clipping_chances = 1;
        }
        Ok(report)
    }

    fn settings(&self) -> Result<PersonalTraining, TrainError> {
        let Self {
            request, training, ..
        } = self;
        let learning_rate = match request.personal {
            Personal::Offset { ratio } => {
                LearningRate::new(training.learning_rate.get() * (1.0 + ratio))
                    .map_err(|_| TrainError::Diverged)?
            }
            Personal::Model { .. } | Personal::Rest | Personal::Tuned { .. } => {
                training.learning_rate
            }
        };
        Ok(PersonalTraining {
            effort: match request.steps {
                Some(steps) => Effort::Steps(steps),
                None => Effort::Epochs(training.epochs),
            },
            batch_size: training.batch_size,
            learning_rate,
            weight_decay: training.weight_decay,
        })
    }

    /// Puts what training starts from into `local`; whether the device has a state.
    fn start<K: PersonalStore>(
        &self,
        local: &mut [f32],
        spare: &mut [f32],
        store: &mut K,
    ) -> Result<bool, StoreError> {
        let Self {
            request, global, ..
        } = self;
        for (w, start) in local.iter_mut().zip(*global) {
            *w = *start;
        }
        let Some(before) = request.before(self.owner) else {
            return Ok(false);
        };
        if matches!(request.personal, Personal::Tuned { .. }) {
            return Ok(false);
        }
        if matches!(request.personal, Personal::Offset { .. }) {
            let has_state = store.load(&before, spare)?;
            if has_state {
                for (w, offset) in local.iter_mut().zip(spare) {
                    *w += *offset;
                }
            }
            return Ok(has_state);
        }
        let range = request.new_state(global.len());
        let own = local.get_mut(range.clone()).unwrap_or_default();
        let has_state = store.load(&before, own)?;
        if !has_state {
            // A store that found damage may have written a part.
            for (w, start) in own.iter_mut().zip(global.get(range).unwrap_or_default()) {
                *w = *start;
            }
        }
        Ok(has_state)
    }

    /// Puts what is to be sent into `update`, without a bound yet, and the new state into `local`.
    fn conclude<K: PersonalStore>(
        &self,
        local: &mut [f32],
        update: &mut [f32],
        has_state: bool,
        store: &mut K,
    ) -> Result<(), StoreError> {
        let Self {
            request, global, ..
        } = self;
        let before = request.before(self.owner).filter(|_| has_state);
        match request.personal {
            Personal::Model {
                from_previous: true,
                ..
            } if has_state => {
                again(store, before.as_ref(), update)?;
                for (update, local) in update.iter_mut().zip(local.iter()) {
                    *update = local - *update;
                }
            }
            Personal::Model { .. } | Personal::Rest => difference(local, global, update),
            Personal::Tuned { .. } => {}
            Personal::Offset { ratio } => {
                again(store, before.as_ref(), update)?;
                super::split_in_place(local, global, ratio, update);
            }
        }
        Ok(())
    }
}

/// Reads the state that training began with once more; zeros if there was none.
fn again<K: PersonalStore>(
    store: &mut K,
    before: Option<&StateId>,
    to: &mut [f32],
) -> Result<(), StoreError> {
    match before {
        None => to.fill(0.0),
        // It has not changed in the meantime.
        Some(before) if store.load(before, to)? => {}
        Some(_) => return Err(StoreError),
    }
    Ok(())
}

/// Why a device with a personal model has no update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PersonalError {
    /// Training failed.
    Train(TrainError),
    /// The personal model cannot be read.
    Store,
}

impl From<TrainError> for PersonalError {
    fn from(error: TrainError) -> Self {
        Self::Train(error)
    }
}

impl From<StoreError> for PersonalError {
    fn from(_: StoreError) -> Self {
        Self::Store
    }
}

impl core::fmt::Display for PersonalError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Train(error) => error.fmt(f),
            Self::Store => StoreError.fmt(f),
        }
    }
}

impl core::error::Error for PersonalError {}
