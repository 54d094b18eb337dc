//! A round of a device with a personal model: where it starts, what it sends and what it keeps.
//!
//! Nothing here reads or writes the store: a round says where it wants the state that the device
//! goes on from, and is told whether it is there, so that the store may be awaited.

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

/// Where a state is read to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// To where [`PersonalRequest::new_state`] has the new one, in the local model.
    Local,
    /// To the update.
    Update,
}

/// The state that a device goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nobody has looked.
    Unknown,
    /// There is none.
    Missing,
    /// It was read, and is what training begins with.
    Found,
    /// It was read once more, behind the last step.
    Again,
}

/// A round of a device with a personal model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PersonalRound<'a> {
    /// What is asked for.
    pub(crate) request: &'a PersonalRequest,
    /// How to train.
    pub(crate) training: &'a LocalTraining,
    /// The shared parameters, and behind them what the personal ones are before the first round; as
    /// long as the model.
    pub(crate) global: &'a [f32],
}

// The sequences of operations are those of the simulator: same bits.
impl PersonalRound<'_> {
    /// Where the state before is to be read to before training begins, if it is wanted.
    pub(crate) fn wants_first(&self, before: Before) -> Option<Place> {
        let is_unknown = before == Before::Unknown && self.request.last.is_some();
        match self.request.personal {
            Personal::Tuned { .. } => None,
            Personal::Offset { .. } => is_unknown.then_some(Place::Update),
            Personal::Model { .. } | Personal::Rest => is_unknown.then_some(Place::Local),
        }
    }

    /// The same behind the last step.
    pub(crate) fn wants_again(&self, before: Before) -> Option<Place> {
        let is_wanted = match self.request.personal {
            Personal::Model { from_previous, .. } => from_previous,
            Personal::Offset { .. } => true,
            Personal::Rest | Personal::Tuned { .. } => false,
        };
        (is_wanted && before == Before::Found).then_some(Place::Update)
    }

    /// How the device trains.
    ///
    /// # Errors
    /// [`TrainError::Diverged`]: steps of PP-SGD are too long.
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

    /// Puts what training starts from into `work.local`, and the samples in order.
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

    /// The next piece of the steps, as [`Steps::advance`].
    ///
    /// # Errors
    /// As there.
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

    /// Leaves the clipped update in the first entries of `work.update`, as many as are shared, and
    /// the state to keep in `work.local`. How training went.
    ///
    /// * Privacy: the update is clipped and has no noise; the state must not leave the device.
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

/// The memory of steps, beside the local model.
fn step_memory<'a>(work: &'a mut Workspace<'_>) -> (&'a mut [f32], StepMemory<'a>) {
    let memory = StepMemory {
        gradient: work.update,
        order: work.order,
        scratch: work.scratch,
    };
    (work.local, memory)
}
