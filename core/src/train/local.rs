//! The loop of local training: shuffle, gradient, step, projection. It can stop after any sample
//! and, without a floating-point unit, also within a step. [`Descent`] holds the position from
//! which [`Local`] continues.

use core::ops::Range;

use super::{Clipping, Cursor, LocalTraining, Report, TrainError, TrainReport, Workspace};
use crate::{
    clip,
    lanes::{self, Squares},
    model::{BatchPart, Model, Sums, Then},
    samples::Samples,
};

/// Trains on a device's samples, starting from `global`, and leaves the update in `work.update`.
///
/// * Shape: `global`, `work.local` and `work.update` are as long as the model.
/// * Randomness: the order of the samples, from `rng` (purpose
///   [`BatchShuffle`](crate::stream::Purpose::BatchShuffle)).
/// * Cost: `epochs · samples · parameters · 4` flop and two passes over the parameters per step.
/// * Privacy: the update is clipped but has no noise. It is private until the noise is added. A
///   device trains with [`Client::train`](crate::client::Client::train) or a session. Outside the
///   crate this function needs the feature `hazmat`.
///
/// # Errors
/// [`TrainError`]. The contents of `work` are then meaningless and nothing may be sent.
#[inline(always)]
pub fn local_update<M: Model, S: Samples<Target = M::Target>>(
    model: &M,
    samples: &S,
    global: &[f32],
    settings: &LocalTraining,
    rng: &mut impl rand_core::Rng,
    mut work: Workspace<'_>,
) -> Result<TrainReport, TrainError> {
    let local: Local<'_, _, _> = Local {
        model,
        samples,
        global,
        settings,
    };
    let mut descent = local.begin(&mut work)?;
    let mut report = Report::default();
    while !descent.is_complete(settings) {
        let shuffle = |order: &mut [u32]| crate::stream::shuffle(order, rng);
        local.advance(&mut descent, shuffle, &mut work, usize::MAX, &mut report)?;
    }
    local.finish(&descent, work.update, &mut report);
    Ok(report.train)
}

/// The constant part of a device's training in a round.
///
/// With `SPLIT`, a sample is processed in two halves, if the model supports it, and a step pass by
/// pass. The result has the same bits.
pub(crate) struct Local<'a, M, S, const SPLIT: bool = { lanes::SOFT }> {
    pub(crate) model: &'a M,
    pub(crate) samples: &'a S,
    pub(crate) global: &'a [f32],
    pub(crate) settings: &'a LocalTraining,
}

/// The memory of a step: the [`Workspace`] without the order of the samples, which contains its
/// batch.
struct StepMemory<'a> {
    local: &'a [f32],
    update: &'a mut [f32],
    scratch: &'a mut [f32],
}

/// Passes of a split step, numbered after the samples of its batch: the quarters of the smoothing,
/// if any, then the difference to the global model, a third of its entries at a time, then its
/// norm, and last the new parameters. Except for a quarter of a wide smoothing, no pass takes
/// longer than the scores of a sample.
const QUARTERS: usize = 4;
const THIRDS: Range<usize> = QUARTERS..QUARTERS + 3;
const NORM: usize = THIRDS.end;

/// Progress of local training. The rest of its state is in the [`Workspace`].
#[derive(Clone, Copy, Debug)]
pub struct Descent {
    pub(crate) cursor: Cursor,
    /// L2 norm of the difference before the last clipping, and the factor of the clipping.
    norm: f32,
    pending: f32,
}

impl Descent {
    /// Starts at a position in the samples.
    #[inline(always)]
    pub(crate) const fn at(cursor: Cursor) -> Self {
        Self {
            cursor,
            norm: 0.0,
            pending: 1.0,
        }
    }

    /// Returns whether all epochs are complete.
    #[inline(always)]
    pub(crate) const fn is_complete(&self, settings: &LocalTraining) -> bool {
        self.cursor.is_complete(settings)
    }
}

impl<M: Model, S: Samples<Target = M::Target>, const SPLIT: bool> Local<'_, M, S, SPLIT> {
    /// Checks all lengths, and starts at the global model with the samples in order.
    ///
    /// # Errors
    /// [`TrainError::Workspace`], [`TrainError::NoSamples`].
    #[inline(always)]
    pub(crate) fn begin(&self, work: &mut Workspace<'_>) -> Result<Descent, TrainError> {
        self.check_lengths(work)?;
        let cursor = Cursor::begin(self.samples.len(), work.order)?;
        // Both have the same length, but the compiler does not know it: no `copy_from_slice`.
        for (w, start) in work.local.iter_mut().zip(self.global) {
            *w = *start;
        }
        work.update.fill(0.0);
        Ok(Descent::at(cursor))
    }

    /// Sums up the gradients of up to `most` samples of a batch, and takes the step with the last
    /// one. With split steps, computes the next piece of a sample or of a step. `shuffle` puts the
    /// samples into the order of an epoch at its start.
    ///
    /// # Errors
    /// [`TrainError`]. The training is then over.
    #[inline(always)]
    pub(crate) fn advance(
        &self,
        descent: &mut Descent,
        shuffle: impl FnOnce(&mut [u32]),
        work: &mut Workspace<'_>,
        most: usize,
        report: &mut Report,
    ) -> Result<(), TrainError> {
        let Self {
            samples,
            global,
            settings,
            ..
        } = *self;
        self.check_lengths(work)?;
        let (count, size) = (samples.len(), settings.batch_size);
        let batch = (descent.cursor).batch(count, size, work.order, shuffle)?;
        let (local, update, scratch) = (&mut *work.local, &mut *work.update, &mut *work.scratch);
        let mean = 1.0 / batch.len() as f32;
        let memory = StepMemory {
            local,
            update,
            scratch,
        };
        let has_difference = match SPLIT {
            true => self.next_pass(descent, batch, memory, report)?,
            false => self.next_samples(descent, batch, most, memory, report)?,
        };
        if !has_difference {
            return Ok(());
        }
        if !descent.norm.is_finite() {
            return Err(TrainError::Diverged);
        }
        let shrink = settings
            .step_clip()
            .and_then(|bound| clip::shrink_factor(descent.norm, bound));
        descent.pending = shrink.unwrap_or(1.0);
        // w ← w^t + clip(w − η·g − w^t, L)
        for ((w, start), difference) in local.iter_mut().zip(global).zip(update.iter()) {
            *w = start + descent.pending * difference;
        }
        report.step(mean);
        report.train.clipped_steps += u32::from(shrink.is_some());
        report.train.clipping_chances += u32::from(settings.step_clip().is_some());
        if let Some(ended) = descent.cursor.step(batch.len()) {
            report.epoch(ended == 0);
        }
        Ok(())
    }

    /// Sums up the gradients of up to `most` samples of a batch. With the last one, replaces the
    /// gradient by the difference and stores its norm in `descent`. Returns whether it did so.
    #[inline(always)]
    fn next_samples(
        &self,
        descent: &mut Descent,
        batch: &[u32],
        most: usize,
        memory: StepMemory<'_>,
        report: &mut Report,
    ) -> Result<bool, TrainError> {
        let Self {
            model,
            samples,
            global,
            settings,
            ..
        } = *self;
        let StepMemory {
            local,
            update,
            scratch,
        } = memory;
        let part = BatchPart::of(batch, descent.cursor.done as usize, most);
        let sums = Sums {
            gradient: &mut *update,
            loss: &mut report.batch,
        };
        // Smoothing needs the whole gradient, and without vectors there is no time to gain.
        let squares = if lanes::WIDE && settings.gradient_smoothing.is_none() {
            let mut step = Step {
                settings,
                global,
                local,
                squares: Squares::new(),
            };
            model.add_part(local, samples, part, scratch, sums, &mut step)?;
            Some(step.squares)
        } else {
            model.add_part(local, samples, part, scratch, sums, &mut ())?;
            None
        };
        if !part.is_last() {
            descent.cursor.done += part.len() as u32;
            return Ok(false);
        }
        let squares = match squares {
            Some(squares) => squares.finish(update),
            None => {
                self.smooth(update, None);
                descend(settings, global, local, update)
            }
        };
        descent.norm = lanes::norm_from(squares, update);
        Ok(true)
    }

    /// Runs the next pass of a split step: an order, half a sample, or a pass over the parameters.
    /// Returns whether the new parameters are next.
    #[inline(always)]
    fn next_pass(
        &self,
        descent: &mut Descent,
        batch: &[u32],
        memory: StepMemory<'_>,
        report: &mut Report,
    ) -> Result<bool, TrainError> {
        let StepMemory {
            local,
            update,
            scratch,
        } = memory;
        let done = descent.cursor.done as usize;
        descent.cursor.done += 1;
        // The order of an epoch is a separate piece.
        let Some(done) = done.checked_sub(1) else {
            return Ok(false);
        };
        let (part, samples) = match M::HAS_HALVES {
            true => (BatchPart::half(batch, done), 2 * batch.len()),
            false => (BatchPart::of(batch, done, 1), batch.len()),
        };
        if done < samples {
            let sums = Sums {
                gradient: update,
                loss: &mut report.batch,
            };
            let model = self.model;
            model.add_part(local, self.samples, part, scratch, sums, &mut ())?;
            return Ok(false);
        }
        let skipped = match self.settings.gradient_smoothing {
            Some(_) => 0,
            None => QUARTERS,
        };
        match done - samples + skipped {
            quarter if quarter < QUARTERS => self.smooth(update, Some(quarter)),
            NORM => descent.norm = lanes::norm(update),
            pass if THIRDS.contains(&pass) => {
                let third = update.len().div_ceil(THIRDS.len());
                let start = (pass - THIRDS.start) * third;
                let range = start.min(update.len())..(start + third).min(update.len());
                difference_in_place(self.settings, range, self.global, local, update);
            }
            _ => return Ok(true),
        }
        Ok(false)
    }

    /// Applies the last clipping to the update itself.
    #[inline(always)]
    pub(crate) fn finish(&self, descent: &Descent, update: &mut [f32], report: &mut Report) {
        report.train.norm = descent.norm;
        let mut pending = descent.pending;
        if let (Clipping::Final, Some(bound)) = (self.settings.clipping, self.settings.clip_norm) {
            // The norm of the last step is the norm of the whole update.
            let shrink = clip::shrink_factor(descent.norm, bound);
            pending = shrink.unwrap_or(1.0);
            report.train.clipped_steps = u32::from(shrink.is_some());
            report.train.clipping_chances = 1;
        }
        lanes::scale(update, pending);
    }

    /// Checks one by one, so that the compiler knows that each is as long as the model.
    #[inline(always)]
    fn check_lengths(&self, work: &Workspace<'_>) -> Result<(), TrainError> {
        let expected = self.model.parameter_count();
        let misfit = |found| Err(TrainError::Workspace { expected, found });
        if self.global.len() != expected {
            return misfit(self.global.len());
        }
        if work.local.len() != expected {
            return misfit(work.local.len());
        }
        if work.update.len() != expected {
            return misfit(work.update.len());
        }
        Ok(())
    }

    /// Applies Laplacian smoothing to the gradient of a batch, if enabled, or a quarter of it.
    #[inline(always)]
    fn smooth(&self, gradient: &mut [f32], quarter: Option<usize>) {
        if let Some(smoothing) = self.settings.gradient_smoothing {
            let (tensors, largest) = (self.model.tensors(), M::LARGEST_TENSOR);
            let tensors = tensors.as_ref();
            // The tensors add up to the update, whose length was checked.
            let _ = match quarter {
                None => smoothing.apply_tensors(gradient, tensors, largest),
                Some(quarter) => {
                    smoothing.apply_tensors_quarter(gradient, tensors, largest, quarter)
                }
            };
        }
    }
}

/// Turns the gradient in `update` into the difference `w − η·g − w^t`, and returns its squared
/// norm.
#[inline(always)]
fn descend(settings: &LocalTraining, global: &[f32], local: &[f32], update: &mut [f32]) -> f32 {
    lanes::rewrite(update, local, global, difference(settings))
}

/// Like [`descend`], on some entries and without the norm.
#[inline(always)]
fn difference_in_place(
    settings: &LocalTraining,
    range: Range<usize>,
    global: &[f32],
    local: &[f32],
    update: &mut [f32],
) {
    let difference = difference(settings);
    let local = local.get(range.clone()).unwrap_or_default();
    let global = global.get(range.clone()).unwrap_or_default();
    let entries = update.get_mut(range).unwrap_or_default();
    for ((gradient, w), start) in entries.iter_mut().zip(local).zip(global) {
        *gradient = difference(*gradient, *w, *start);
    }
}

/// Like [`descend`], block by block while the gradient is summed up.
struct Step<'a> {
    settings: &'a LocalTraining,
    global: &'a [f32],
    local: &'a [f32],
    squares: Squares,
}

impl Then for Step<'_> {
    #[inline(always)]
    fn complete(&mut self, update: &mut [f32], block: Range<usize>, complete: usize) {
        difference_in_place(self.settings, block, self.global, self.local, update);
        self.squares.advance(update, complete);
    }
}

/// Returns a function that computes the difference of an entry from its gradient, its local and its
/// global value.
#[inline(always)]
fn difference(settings: &LocalTraining) -> impl Fn(f32, f32, f32) -> f32 {
    let rate = settings.learning_rate.get();
    let decay = settings.weight_decay.get();
    let proximal = settings.proximal.get();
    move |gradient, w, start| {
        let moved = w - start;
        moved - rate * ((gradient + decay * w) + proximal * moved)
    }
}

#[cfg(test)]
mod tests;
