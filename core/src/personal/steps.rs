//! The loop of personal training: shuffle, gradient, penalties, step. It can stop after any sample
//! and, without a floating-point unit, also within a sample and within a step.

use core::{num::NonZeroU32, ops::Range};

use crate::{
    lanes,
    model::{BatchPart, Model, Sums},
    params::{LearningRate, Penalty},
    samples::Samples,
    train::{Cursor, Report, TrainError, TrainReport},
};

/// Length of training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Effort {
    /// Number of passes over the local samples.
    Epochs(u32),
    /// Number of mini-batches, over as many passes as needed.
    Steps(NonZeroU32),
}

/// Settings of local training of a personal model.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PersonalTraining {
    /// Length of training.
    pub effort: Effort,
    /// Samples in a batch.
    pub batch_size: NonZeroU32,
    /// Step size η of this round.
    pub learning_rate: LearningRate,
    /// Adds `weight_decay · w` to the gradient.
    pub weight_decay: Penalty,
}

/// Working memory of [`descend`](super::descend), owned by the caller.
pub struct StepMemory<'a> {
    /// Gradient, as long as the model.
    pub gradient: &'a mut [f32],
    /// Order of the local samples, with at least one entry for each sample.
    pub order: &'a mut [u32],
    /// Scores. See [`Model::scratch_count`].
    pub scratch: &'a mut [f32],
}

/// The constant part of a device's steps. A [`Cursor`] holds their position.
///
/// With `SPLIT`, a sample is processed in two halves, if the model supports it, and a step in
/// thirds. The result has the same bits.
pub(crate) struct Steps<'a, M, S, const SPLIT: bool = { lanes::SOFT }> {
    pub(crate) model: &'a M,
    pub(crate) samples: &'a S,
    pub(crate) settings: &'a PersonalTraining,
}

/// Number of pieces of a split step.
const THIRDS: usize = 3;

impl<M: Model, S: Samples<Target = M::Target>, const SPLIT: bool> Steps<'_, M, S, SPLIT> {
    /// Checks all lengths, and starts with the samples in order.
    ///
    /// # Errors
    /// [`TrainError::Workspace`], [`TrainError::NoSamples`].
    #[inline(always)]
    pub(crate) fn begin(
        &self,
        local: &[f32],
        memory: &mut StepMemory<'_>,
    ) -> Result<Cursor, TrainError> {
        self.check_lengths(local, memory.gradient)?;
        Cursor::begin(self.samples.len(), memory.order)
    }

    /// Returns whether all steps are complete.
    pub(crate) fn is_complete(&self, cursor: &Cursor) -> bool {
        let PersonalTraining {
            effort, batch_size, ..
        } = self.settings;
        match effort {
            Effort::Epochs(epochs) => cursor.epochs() >= *epochs,
            Effort::Steps(steps) => cursor.steps(*batch_size) >= steps.get(),
        }
    }

    /// Sums up the gradients of up to `most` samples of a batch, and takes the step with the last
    /// one. With split steps, computes the next piece of a sample or of a step. `adjust` changes
    /// some entries of the gradient, given those of the model, before the step.
    ///
    /// # Errors
    /// [`TrainError`]. The training is then over.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "what is lent for a piece")]
    pub(crate) fn advance(
        &self,
        cursor: &mut Cursor,
        shuffle: impl FnOnce(&mut [u32]),
        local: &mut [f32],
        memory: &mut StepMemory<'_>,
        most: usize,
        adjust: &mut impl FnMut(Range<usize>, &[f32], &mut [f32]) -> Result<(), TrainError>,
        report: &mut Report,
    ) -> Result<(), TrainError> {
        let StepMemory {
            gradient,
            order,
            scratch,
        } = memory;
        self.check_lengths(local, gradient)?;
        let (count, size) = (self.samples.len(), self.settings.batch_size);
        let batch = cursor.batch(count, size, order, shuffle)?;
        let mut done = cursor.done as usize;
        if SPLIT {
            cursor.done += 1;
            // The order of an epoch is a separate piece.
            match done.checked_sub(1) {
                Some(behind) => done = behind,
                None => return Ok(()),
            }
        }
        let (part, samples) = match SPLIT && M::HAS_HALVES {
            true => (BatchPart::half(batch, done), 2 * batch.len()),
            false => {
                let most = if SPLIT { 1 } else { most };
                (BatchPart::of(batch, done, most), batch.len())
            }
        };
        if done < samples {
            let sums = Sums {
                gradient,
                loss: &mut report.batch,
            };
            let model = self.model;
            model.add_part(local, self.samples, part, scratch, sums, &mut ())?;
            if SPLIT {
                return Ok(());
            }
            if !part.is_last() {
                cursor.done += part.len() as u32;
                return Ok(());
            }
        }
        let (length, pieces) = (gradient.len(), if SPLIT { THIRDS } else { 1 });
        let piece = done.saturating_sub(samples);
        let range = length * piece / pieces..length * (piece + 1) / pieces;
        self.step(range, local, gradient, adjust)?;
        if piece + 1 < pieces {
            return Ok(());
        }
        report.step(1.0 / batch.len() as f32);
        if let Some(ended) = cursor.step(batch.len()) {
            report.epoch(ended == 0);
        }
        Ok(())
    }

    /// Takes the step of some entries.
    #[inline(always)]
    fn step(
        &self,
        range: Range<usize>,
        local: &mut [f32],
        gradient: &mut [f32],
        adjust: &mut impl FnMut(Range<usize>, &[f32], &mut [f32]) -> Result<(), TrainError>,
    ) -> Result<(), TrainError> {
        let local = local.get_mut(range.clone()).unwrap_or_default();
        let gradient = gradient.get_mut(range.clone()).unwrap_or_default();
        adjust(range, local, gradient)?;
        let rate = self.settings.learning_rate.get();
        for (w, g) in local.iter_mut().zip(gradient.iter()) {
            *w -= rate * g;
        }
        Ok(())
    }

    /// Returns the report of a training that has not diverged.
    ///
    /// # Errors
    /// [`TrainError::Diverged`].
    #[inline(always)]
    pub(crate) fn finish(
        &self,
        cursor: &Cursor,
        local: &[f32],
        report: Report,
    ) -> Result<TrainReport, TrainError> {
        match lanes::norm(local).is_finite() {
            true => Ok(report.end(cursor.epochs() == 0)),
            false => Err(TrainError::Diverged),
        }
    }

    /// Checks one by one, so that the compiler knows that each is as long as the model.
    #[inline(always)]
    fn check_lengths(&self, local: &[f32], gradient: &[f32]) -> Result<(), TrainError> {
        let expected = self.model.parameter_count();
        let misfit = |found| Err(TrainError::Workspace { expected, found });
        if local.len() != expected {
            return misfit(local.len());
        }
        if gradient.len() != expected {
            return misfit(gradient.len());
        }
        Ok(())
    }
}
