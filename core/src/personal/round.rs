//! A round of a device with a personal model: its start, its update and its new state.
//!
//! This module does not access the store, so that the store may be async: a round asks for the
//! previous state in some place, and the caller reports whether it was found.

use super::{
    Anchor, Effort, Personal, PersonalRequest, PersonalTraining, StepMemory, Steps, difference,
    penalties, split_in_place,
};
use crate::{
    clip::clip_l2,
    model::Model,
    params::LearningRate,
    samples::Samples,
    train::{Cursor, LocalTraining, Report, TrainError, TrainReport, Workspace},
};

/// Destination of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The place of the new state in the local model ([`PersonalRequest::new_state`]).
    Local,
    /// The update.
    Update,
}

/// The previous state, from which a device continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Not read yet.
    Unknown,
    /// There is no such state.
    Missing,
    /// The state was read, and training starts from it.
    Found,
    /// The state was read again, after the last step.
    Again,
}

/// A round of a device with a personal model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PersonalRound<'a> {
    /// The request.
    pub(crate) request: &'a PersonalRequest,
    /// Settings of training.
    pub(crate) training: &'a LocalTraining,
    /// The shared parameters, followed by the initial personal ones. As long as the model.
    pub(crate) global: &'a [f32],
}

// The operations and their order are the same as in the simulator: same bits.
impl PersonalRound<'_> {
    /// Returns the destination of the previous state before training, if it is needed.
    pub(crate) fn wants_first(&self, before: Before) -> Option<Place> {
        let is_unknown = before == Before::Unknown && self.request.last.is_some();
        match self.request.personal {
            Personal::Tuned { .. } => None,
            Personal::Offset { .. } => is_unknown.then_some(Place::Update),
            Personal::Model { .. } | Personal::Rest => is_unknown.then_some(Place::Local),
        }
    }

    /// Returns the destination of the previous state after the last step, if it is needed.
    pub(crate) fn wants_again(&self, before: Before) -> Option<Place> {
        let is_wanted = match self.request.personal {
            Personal::Model { from_previous, .. } => from_previous,
            Personal::Offset { .. } => true,
            Personal::Rest | Personal::Tuned { .. } => false,
        };
        (is_wanted && before == Before::Found).then_some(Place::Update)
    }

    /// Returns the settings of training.
    ///
    /// # Errors
    /// [`TrainError::Diverged`] if the steps of PP-SGD are too long.
    pub(crate) fn settings(&self) -> Result<PersonalTraining, TrainError> {
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

    /// Writes the start of training to `work.local`, and puts the samples in order.
    ///
    /// # Errors
    /// Those of [`Steps::begin`].
    #[inline(always)]
    pub(crate) fn begin<M: Model, S: Samples<Target = M::Target>>(
        &self,
        steps: &Steps<'_, M, S>,
        before: Before,
        work: &mut Workspace<'_>,
    ) -> Result<Cursor, TrainError> {
        let has_state = matches!(before, Before::Found | Before::Again);
        let kept = match self.request.personal {
            Personal::Model { .. } | Personal::Rest if has_state => {
                self.request.new_state(self.global.len())
            }
            _ => 0..0,
        };
        for (place, (w, start)) in work.local.iter_mut().zip(self.global).enumerate() {
            if !kept.contains(&place) {
                *w = *start;
            }
        }
        if has_state && matches!(self.request.personal, Personal::Offset { .. }) {
            for (w, offset) in work.local.iter_mut().zip(work.update.iter()) {
                *w += *offset;
            }
        }
        let (local, mut memory) = step_memory(work);
        steps.begin(local, &mut memory)
    }

    /// Runs the next piece of the steps, as [`Steps::advance`].
    ///
    /// # Errors
    /// Those of [`Steps::advance`].
    #[inline(always)]
    pub(crate) fn advance<M: Model, S: Samples<Target = M::Target>>(
        &self,
        steps: &Steps<'_, M, S>,
        cursor: &mut Cursor,
        shuffle: impl FnOnce(&mut [u32]),
        work: &mut Workspace<'_>,
        most: usize,
        report: &mut Report,
    ) -> Result<(), TrainError> {
        let anchor = self.request.pull().map(|strength| Anchor {
            at: self.global,
            strength,
            importance: None,
        });
        let adjust = &mut penalties(anchor.as_ref(), steps.settings);
        let (local, mut memory) = step_memory(work);
        steps.advance(cursor, shuffle, local, &mut memory, most, adjust, report)
    }

    /// Leaves the clipped update in the first entries of `work.update`, one for each shared
    /// parameter, and the new state in `work.local`. Returns the report of training.
    ///
    /// * Privacy: the update is clipped and has no noise. The state must not leave the device.
    ///
    /// # Errors
    /// [`TrainError::Diverged`].
    #[inline(always)]
    pub(crate) fn finish<M: Model, S: Samples<Target = M::Target>>(
        &self,
        steps: &Steps<'_, M, S>,
        cursor: &Cursor,
        before: Before,
        report: Report,
        work: Workspace<'_>,
    ) -> Result<TrainReport, TrainError> {
        let Workspace { local, update, .. } = work;
        let mut report = steps.finish(cursor, local, report)?;
        match self.request.personal {
            Personal::Model {
                from_previous: true,
                ..
            } if before == Before::Again => {
                for (update, local) in update.iter_mut().zip(local.iter()) {
                    *update = local - *update;
                }
            }
            Personal::Model { .. } | Personal::Rest => difference(local, self.global, update),
            Personal::Tuned { .. } => {}
            Personal::Offset { ratio } => {
                if before != Before::Again {
                    update.fill(0.0);
                }
                split_in_place(local, self.global, ratio, update);
            }
        }
        let shared = self.request.shared as usize;
        let update = update.get_mut(..shared).unwrap_or_default();
        if let Some(bound) = self.training.clip_norm {
            let norm = clip_l2(update, bound.get()).map_err(|_| TrainError::Diverged)?;
            report.clipped(norm, bound);
        }
        Ok(report)
    }
}

/// Returns the local model and the memory of steps.
fn step_memory<'a>(work: &'a mut Workspace<'_>) -> (&'a mut [f32], StepMemory<'a>) {
    let memory = StepMemory {
        gradient: work.update,
        order: work.order,
        scratch: work.scratch,
    };
    (work.local, memory)
}
