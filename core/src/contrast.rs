//! Learning without labels (contrastive, self-supervised): the spectral contrastive loss through
//! correlation matrices, and the local steps of an encoder. The method is FedSC (Jing et al. 2024,
//! arXiv:2405.03949).
//!
//! A device presents each sample to its encoder in 2V views: random variations from which the
//! encoder learns their common part. With z the representation of a view and R the mean of `z zᵀ`
//! over all views of a batch, its loss is (equation 5)
//!
//! `−Tr R⁺ + α/2 ‖R‖² + (1 − α) Tr(R R̄)`,
//!
//! R⁺ the mean of `z z'ᵀ` over views of one sample, and R̄ the correlation matrix of all other
//! devices, which keeps the representations of different devices apart. Devices share their
//! correlation matrices, with noise ([`correlation`]), in addition to the encoder.

pub mod augment;
pub mod correlation;
mod recipe;
mod representation;
mod request;

use core::num::NonZeroU32;

use rand_core::Rng;

use crate::{
    lanes,
    params::{LearningRate, Penalty},
    samples::Samples,
    stream,
    train::{LocalTraining, TrainError},
};

pub use augment::{Augment, Augmented, Views};
pub use recipe::{FromRecipe, RECIPE_LENGTH, Recipe, Windows, given};
pub use representation::{Projection, Representation};
pub use request::{ContrastRequest, MAX_PAIRS, MAX_SAMPLES, Part};

use correlation::{add_outer, clip_to_root, inner_product, packed_length, times};

/// Settings of the loss of one batch.
#[derive(Clone, Copy, Debug)]
pub struct Objective<'a> {
    /// α: share of the repulsion from the device's own samples. 1 is federated averaging.
    pub alpha: f32,
    /// R̄ of the other devices, packed. All zero if there are none.
    pub others: &'a [f32],
    /// μ: representations are clipped to norm √μ, if present (papers.md F7).
    pub norm_bound: Option<f32>,
}

/// Returns α of a round: from 1 in the first to 0.2 in the last (Appendix C, papers.md F6).
#[must_use]
pub fn alpha(round: u32, rounds: u32) -> f32 {
    match rounds.saturating_sub(1) {
        0 => 1.0,
        last => 1.0 - 0.8 * (round.min(last) as f32 / last as f32),
    }
}

/// Working memory of a batch, owned by the caller.
pub struct BatchMemory<'a> {
    /// Representations of all views: 2V · batch · H.
    pub representations: &'a mut [f32],
    /// One view: D.
    pub view: &'a mut [f32],
    /// Hidden values of one view: [`Representation::hidden_count`].
    pub hidden: &'a mut [f32],
    /// A representation and a derivative: 2H.
    pub pair: &'a mut [f32],
    /// A packed matrix of width H.
    pub matrix: &'a mut [f32],
    /// As long as the encoder.
    pub gradient: &'a mut [f32],
}

/// Working memory of [`descend`], owned by the caller.
pub struct TrainingMemory<'a> {
    /// Order of the local samples, with at least one entry for each sample.
    pub order: &'a mut [u32],
    /// Memory of a batch.
    pub batch: BatchMemory<'a>,
}

/// Returns the loss of a batch, and writes its gradient to `memory.gradient`.
///
/// Views are computed twice, for the loss and for the gradient, so they need no memory.
///
/// * Shape: `parameters` is as long as the encoder, `objective.others` is packed, of width H.
/// * Cost: about `2V · batch · (6 · parameters + 2 · H²)` flop.
///
/// # Errors
/// [`TrainError::Workspace`] if a length does not fit, [`TrainError::NoSamples`] for an empty batch
/// or no pair of views, [`TrainError::Diverged`] if the loss or its gradient is not finite.
pub fn loss_and_gradient<R: Representation, V: Views>(
    encoder: &R,
    parameters: &[f32],
    views: &V,
    batch: &[u32],
    objective: &Objective<'_>,
    memory: &mut BatchMemory<'_>,
) -> Result<f32, TrainError> {
    let (width, pairs) = (encoder.output_count(), views.pair_count());
    let total = 2 * pairs * batch.len();
    if total == 0 {
        return Err(TrainError::NoSamples);
    }
    check(encoder, parameters, objective, memory)?;
    let (expected, found) = (total * width, memory.representations.len());
    let Some(representations) = memory.representations.get_mut(..expected) else {
        return Err(TrainError::Workspace { expected, found });
    };
    let BatchMemory {
        view,
        hidden,
        pair,
        matrix,
        gradient,
        ..
    } = memory;
    let (raw, derivative) = pair.split_at_mut(width);

    // Representations sample by sample, view by view, and their correlation matrix.
    encoder.begin(parameters, hidden)?;
    matrix.fill(0.0);
    let names = views_of(batch, 2 * pairs);
    for (z, (sample, number)) in representations.chunks_exact_mut(width).zip(names) {
        views.write(sample, number, view);
        encoder.forward(parameters, view, hidden, z)?;
        if let Some(bound) = objective.norm_bound {
            clip_to_root(z, bound);
        }
        add_outer(z, 1.0, matrix);
    }
    let mean = 1.0 / total as f32;
    lanes::scale(matrix, mean);
    let loss = loss(objective, matrix, representations, pairs * width, width);

    // The derivative with respect to the representation z of a view is 2/(2VB) · ((αR + (1 − α)R̄)
    // z − z'), with z' the representation of the paired view.
    blend(objective, matrix);
    gradient.fill(0.0);
    for (index, (sample, number)) in views_of(batch, 2 * pairs).enumerate() {
        let partner = index - number + (number + pairs) % (2 * pairs);
        let row = |index: usize| representations.get(index * width..(index + 1) * width);
        let (Some(own), Some(other)) = (row(index), row(partner)) else {
            continue;
        };
        times(matrix, own, derivative);
        for (derivative, other) in derivative.iter_mut().zip(other) {
            *derivative = 2.0 * mean * (*derivative - other);
        }
        views.write(sample, number, view);
        encoder.forward(parameters, view, hidden, raw)?;
        if let Some(bound) = objective.norm_bound {
            through_clip(raw, own, bound, derivative);
        }
        encoder.backward(parameters, view, hidden, derivative, gradient)?;
    }
    encoder.end(hidden, gradient)?;
    if loss.is_finite() && lanes::norm(gradient).is_finite() {
        Ok(loss)
    } else {
        Err(TrainError::Diverged)
    }
}

/// Returns all views of a batch, as samples with the numbers of their views.
fn views_of(batch: &[u32], count: usize) -> impl Iterator<Item = (u32, usize)> {
    let samples = batch.iter().copied();
    samples.flat_map(move |sample| (0..count).map(move |number| (sample, number)))
}

/// Replaces R by αR + (1 − α)R̄.
#[inline(always)]
fn blend(objective: &Objective<'_>, matrix: &mut [f32]) {
    let alpha = objective.alpha;
    for (own, other) in matrix.iter_mut().zip(objective.others) {
        *own = alpha * *own + (1.0 - alpha) * other;
    }
}

/// Checks that all lengths fit the encoder.
#[inline(always)]
fn check<R: Representation>(
    encoder: &R,
    parameters: &[f32],
    objective: &Objective<'_>,
    memory: &BatchMemory<'_>,
) -> Result<(), TrainError> {
    let width = encoder.output_count();
    for (found, expected) in [
        (parameters.len(), encoder.parameter_count()),
        (memory.gradient.len(), encoder.parameter_count()),
        (memory.view.len(), encoder.feature_count()),
        (memory.hidden.len(), encoder.hidden_count()),
        (memory.pair.len(), 2 * width),
        (memory.matrix.len(), packed_length(width)),
        (objective.others.len(), packed_length(width)),
    ] {
        if found != expected {
            return Err(TrainError::Workspace { expected, found });
        }
    }
    Ok(())
}

/// Returns the loss from the representations and their correlation matrix. The first `half` numbers
/// of a sample are its first views, and the next `half` the second ones.
#[inline(always)]
fn loss(
    objective: &Objective<'_>,
    matrix: &[f32],
    representations: &[f32],
    half: usize,
    width: usize,
) -> f32 {
    let mean = 1.0 / (representations.len() / width) as f32;
    let alpha = objective.alpha;
    let mut attraction = 0.0;
    for views in representations.chunks_exact(2 * half) {
        let (first, second) = views.split_at(half);
        for (a, b) in first.chunks_exact(width).zip(second.chunks_exact(width)) {
            attraction += lanes::dot(a, b);
        }
    }
    0.5 * alpha * inner_product(matrix, matrix)
        + (1.0 - alpha) * inner_product(matrix, objective.others)
        - 2.0 * mean * attraction
}

/// Converts the derivative with respect to a clipped representation to the raw one: with n its norm
/// and u its direction, `√μ/n · (g − u (u·g))` if it was clipped.
fn through_clip(raw: &[f32], clipped: &[f32], bound: f32, derivative: &mut [f32]) {
    let squares = lanes::squared_norm(raw);
    if squares <= bound {
        return;
    }
    let shrink = crate::math::sqrt(bound / squares);
    // u = clipped / √μ.
    let along = lanes::dot(clipped, derivative) / bound;
    for (g, z) in derivative.iter_mut().zip(clipped) {
        *g = shrink * (*g - along * z);
    }
}

/// Settings of local training of an encoder.
#[derive(Clone, Copy, Debug)]
pub struct ContrastTraining {
    /// Passes over the local samples.
    pub epochs: u32,
    /// Samples in a batch.
    pub batch_size: NonZeroU32,
    /// Step size. From 0.3 on, training diverges in the paper's setting.
    pub learning_rate: LearningRate,
    /// Weight decay: adds `weight_decay · w` to the gradient.
    pub weight_decay: Penalty,
}

impl From<&LocalTraining> for ContrastTraining {
    /// Takes the settings that apply without labels.
    fn from(training: &LocalTraining) -> Self {
        Self {
            epochs: training.epochs,
            batch_size: training.batch_size,
            learning_rate: training.learning_rate,
            weight_decay: training.weight_decay,
        }
    }
}

/// Runs mini-batch SGD in place, and returns the mean loss over the last pass.
///
/// * Randomness: the order of the samples, from `rng`. The views have a separate stream.
/// * Privacy: `parameters` are not protected unless they are clipped and noised before they leave
///   the device.
///
/// # Errors
/// As [`loss_and_gradient`]. `parameters` are then meaningless.
pub fn descend<R: Representation, V: Views>(
    encoder: &R,
    parameters: &mut [f32],
    views: &mut V,
    objective: &Objective<'_>,
    settings: &ContrastTraining,
    rng: &mut impl Rng,
    memory: &mut TrainingMemory<'_>,
) -> Result<f32, TrainError> {
    let count = views.sample_count();
    if count == 0 {
        return Err(TrainError::NoSamples);
    }
    let TrainingMemory {
        order,
        batch: memory,
    } = memory;
    let found = order.len();
    let Some(order) = order.get_mut(..count) else {
        return Err(TrainError::Workspace {
            expected: count,
            found,
        });
    };
    for (slot, index) in order.iter_mut().zip(0..) {
        *slot = index;
    }
    let (rate, decay) = (settings.learning_rate.get(), settings.weight_decay.get());
    let mut mean = 0.0;
    for pass in 0..settings.epochs {
        views.begin_pass(pass);
        stream::shuffle(order, rng);
        let (mut loss, mut batches) = (0.0, 0.0);
        for batch in order.chunks(settings.batch_size.get() as usize) {
            loss += loss_and_gradient(encoder, parameters, views, batch, objective, memory)?;
            batches += 1.0;
            for (w, g) in parameters.iter_mut().zip(memory.gradient.iter()) {
                *w -= rate * (g + decay * *w);
            }
        }
        mean = loss / batches;
    }
    if lanes::norm(parameters).is_finite() {
        Ok(mean)
    } else {
        Err(TrainError::Diverged)
    }
}

/// Writes the representations of all samples, without variations, one after the other. A personal
/// model learns from them with its few labels.
///
/// * Shape: `hidden` as [`Representation::hidden_count`], `representations` H numbers for each
///   sample.
///
/// # Errors
/// [`TrainError::Workspace`] or [`TrainError::Model`] if a length does not fit,
/// [`TrainError::Diverged`] if a representation is not finite.
pub fn represent<R: Representation>(
    encoder: &R,
    parameters: &[f32],
    samples: &impl Samples,
    hidden: &mut [f32],
    representations: &mut [f32],
) -> Result<(), TrainError> {
    let expected = samples.len() * encoder.output_count();
    for (found, expected) in [
        (representations.len(), expected),
        (hidden.len(), encoder.hidden_count()),
        (parameters.len(), encoder.parameter_count()),
    ] {
        if found != expected {
            return Err(TrainError::Workspace { expected, found });
        }
    }
    encoder.begin(parameters, hidden)?;
    let rows = representations.chunks_exact_mut(encoder.output_count().max(1));
    for (index, z) in rows.enumerate() {
        encoder.forward(parameters, samples.features(index), hidden, z)?;
    }
    match lanes::norm(representations).is_finite() {
        true => Ok(()),
        false => Err(TrainError::Diverged),
    }
}

#[cfg(test)]
mod tests;
