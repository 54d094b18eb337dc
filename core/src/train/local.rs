//! The loop of local training: shuffle, gradient, step, projection.

use core::ops::Range;

use rand_core::Rng;

use super::{Clipping, LocalTraining, TrainError, TrainReport, Workspace};
use crate::{
    clip,
    lanes::{self, Squares},
    model::{Model, Then},
    samples::Samples,
    stream,
};

/// Trains on a device's samples, starting from `global`; the update is left in `work.update`.
///
/// * Shape: `global`, `work.local` and `work.update` have as many entries as the model.
/// * Randomness: the order of the samples, from `rng` (purpose
///   [`BatchShuffle`](crate::stream::Purpose::BatchShuffle)).
/// * Cost: `epochs · samples · parameters · 4` flop and two passes over the parameters a step.
/// * Privacy: the update is clipped but carries no noise; it is private until the noise is added.
///   A device trains with [`Client::train`](crate::client::Client::train) or a session; outside of
///   the crate this function takes the feature `hazmat`.
///
/// # Errors
/// [`TrainError`]; `work` is then meaningless and nothing may be sent.
#[inline(always)]
pub fn local_update<M: Model, S: Samples<Target = M::Target>>(
    model: &M,
    samples: &S,
    global: &[f32],
    settings: &LocalTraining,
    rng: &mut impl Rng,
    work: Workspace<'_>,
) -> Result<TrainReport, TrainError> {
    let Workspace {
        local,
        update,
        order,
        scratch,
    } = begin(model.parameter_count(), samples.len(), global, work)?;
    let step_clip = settings
        .clip_norm
        .filter(|_| settings.clipping == Clipping::EveryStep);
    // Smoothing needs the whole gradient; without vectors, there is no time to gain.
    let is_fused = lanes::WIDE && settings.gradient_smoothing.is_none();
    let mut report = TrainReport::default();
    let mut pending = 1.0;
    for epoch in 0..settings.epochs {
        stream::shuffle(order, rng);
        let (mut loss, mut batches) = (0.0, 0.0);
        for batch in order.chunks(settings.batch_size.get() as usize) {
            let (batch_loss, squares) = if is_fused {
                let mut step = Step {
                    settings,
                    global,
                    local,
                    squares: Squares::new(),
                };
                let loss = model
                    .loss_and_gradient_then(local, samples, batch, scratch, update, &mut step)?;
                (loss, step.squares.finish(update))
            } else {
                let loss = model.loss_and_gradient(local, samples, batch, scratch, update)?;
                if let Some(smoothing) = settings.gradient_smoothing {
                    // The tensors add up to the update, whose length was checked above.
                    let tensors = model.tensors();
                    let _ = smoothing.apply_tensors(update, tensors.as_ref(), M::LARGEST_TENSOR);
                }
                (loss, descend(settings, global, local, update))
            };
            loss += batch_loss;
            batches += 1.0;
            let norm = lanes::norm_from(squares, update);
            if !norm.is_finite() {
                return Err(TrainError::Diverged);
            }
            let shrink = step_clip.and_then(|bound| clip::shrink_factor(norm, bound));
            pending = shrink.unwrap_or(1.0);
            // w ← w^t + clip(w − η·g − w^t, L)
            for ((w, start), difference) in local.iter_mut().zip(global).zip(update.iter()) {
                *w = start + pending * difference;
            }
            report.norm = norm;
            report.steps += 1;
            report.clipped_steps += u32::from(shrink.is_some());
            report.clipping_chances += u32::from(step_clip.is_some());
        }
        let mean = loss / batches;
        if epoch == 0 {
            report.first_loss = mean;
        }
        report.last_loss = mean;
    }
    if let (Clipping::Final, Some(bound)) = (settings.clipping, settings.clip_norm) {
        // The norm of the last step is that of the whole update.
        let shrink = clip::shrink_factor(report.norm, bound);
        pending = shrink.unwrap_or(1.0);
        report.clipped_steps = u32::from(shrink.is_some());
        report.clipping_chances = 1;
    }
    // The last clipping, applied to the update itself.
    lanes::scale(update, pending);
    Ok(report)
}

/// Checks all lengths, and begins at the global model with the samples in order.
#[inline(always)]
fn begin<'a>(
    expected: usize,
    count: usize,
    global: &[f32],
    work: Workspace<'a>,
) -> Result<Workspace<'a>, TrainError> {
    let Workspace {
        local,
        update,
        order,
        scratch,
    } = work;
    // One by one: the compiler then knows that each is as long as the model.
    let misfit = |found| Err(TrainError::Workspace { expected, found });
    if global.len() != expected {
        return misfit(global.len());
    }
    if local.len() != expected {
        return misfit(local.len());
    }
    if update.len() != expected {
        return misfit(update.len());
    }
    if count == 0 {
        return Err(TrainError::NoSamples);
    }
    let found = order.len();
    let Some(order) = order.get_mut(..count) else {
        return Err(TrainError::Workspace {
            expected: count,
            found,
        });
    };
    // As long as each other, which the compiler has not understood: no `copy_from_slice`.
    for (w, start) in local.iter_mut().zip(global) {
        *w = *start;
    }
    update.fill(0.0);
    for (slot, index) in order.iter_mut().zip(0..) {
        *slot = index;
    }
    Ok(Workspace {
        local,
        update,
        order,
        scratch,
    })
}

/// Turns the gradient in `update` into the difference `w − η·g − w^t`; returns its squared norm.
#[inline(always)]
fn descend(settings: &LocalTraining, global: &[f32], local: &[f32], update: &mut [f32]) -> f32 {
    lanes::rewrite(update, local, global, difference(settings))
}

/// [`descend`], block by block while the gradient is summed up.
struct Step<'a> {
    settings: &'a LocalTraining,
    global: &'a [f32],
    local: &'a [f32],
    squares: Squares,
}

impl Then for Step<'_> {
    #[inline(always)]
    fn complete(&mut self, update: &mut [f32], block: Range<usize>, complete: usize) {
        let difference = difference(self.settings);
        let local = self.local.get(block.clone()).unwrap_or_default();
        let global = self.global.get(block.clone()).unwrap_or_default();
        let entries = update.get_mut(block).unwrap_or_default();
        for ((gradient, w), start) in entries.iter_mut().zip(local).zip(global) {
            *gradient = difference(*gradient, *w, *start);
        }
        self.squares.advance(update, complete);
    }
}

/// The difference of an entry from its gradient, its local and its global value.
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
