//! Personal models: local training with a state that stays on the device between rounds.
//!
//! | method | starts from | personal state | shared |
//! | --- | --- | --- | --- |
//! | PMTL | the personal model | the model | [`PmtlUpdate`] |
//! | PP-SGD | shared model + offset | an offset θ | half of the difference, [`split_step`] |
//! | shared encoder, private head | shared model, private head | the head | shared difference |
//! | local only | the personal model | the model | nothing |
//!
//! Sources: PMTL is Hu, Wu, Smith 2023, arXiv:2108.12978, Algorithm 1. PP-SGD is Bietti et al.
//! 2022, arXiv:2202.05318. The private head is Wu, Chen, Wang 2020, arXiv:2011.07179.
//!
//! All methods take the same steps, [`descend`], and differ in start, regularization and update.
//! The personal state never leaves the device. Only the update is clipped and gets noise, and only
//! the update is private (papers.md P10).

mod fisher;
mod noisy;
mod request;
mod round;
mod steps;
pub mod store;

use core::ops::Range;

use rand_core::Rng;

use crate::{
    model::Model,
    params::Penalty,
    samples::Samples,
    stream,
    train::{Report, TrainError, TrainReport},
};

pub use fisher::fisher_diagonal;
pub use noisy::NoisySteps;
pub use request::{MAX_RATIO, Personal, PersonalRequest};
pub(crate) use round::{Before, PersonalRound, Place};
pub(crate) use steps::Steps;
pub use steps::{Effort, PersonalTraining, StepMemory};

/// A penalty that pulls the model at every step: `λ/2 · Σᵢ Fᵢ (wᵢ − aᵢ)²`.
#[derive(Clone, Copy, Debug)]
pub struct Anchor<'a> {
    /// a, as long as the model.
    pub at: &'a [f32],
    /// λ, on the scale of the mean loss (papers.md P3).
    pub strength: Penalty,
    /// F, for elastic weight consolidation. All 1 if absent.
    pub importance: Option<&'a [f32]>,
}

/// Mini-batch SGD in place: `w ← w − η·(g(w) + weight_decay·w + λF(w − a))`. The pull is recomputed
/// in every step (a public implementation loses it after the first, papers.md P2).
///
/// * Shape: `local`, the anchor and the gradient are as long as the model.
/// * Randomness: the order of the samples, from `rng` (purpose
///   [`BatchShuffle`](crate::stream::Purpose::BatchShuffle)).
/// * Privacy: there is no clipping and no noise. `local` must not leave the device.
///
/// # Errors
/// [`TrainError`]. `local` is then meaningless, and the caller keeps its previous state.
#[inline(always)]
pub fn descend<M: Model, S: Samples<Target = M::Target>>(
    model: &M,
    samples: &S,
    local: &mut [f32],
    anchor: Option<&Anchor<'_>>,
    settings: &PersonalTraining,
    rng: &mut impl Rng,
    memory: StepMemory<'_>,
) -> Result<TrainReport, TrainError> {
    let expected = model.parameter_count();
    let importance = anchor.and_then(|anchor| anchor.importance);
    let lengths = [
        anchor.map(|anchor| anchor.at.len()),
        importance.map(<[f32]>::len),
    ];
    if let Some(found) = lengths.into_iter().flatten().find(|n| *n != expected) {
        return Err(TrainError::Workspace { expected, found });
    }
    let adjust = penalties(anchor, settings);
    steps(model, samples, local, settings, rng, memory, adjust)
}

/// The local steps of DPFedMTL as in the paper: in each step, `release` replaces the gradient of
/// the shared parameters, which come first (clipped, with noise: [`NoisySteps`]), and both parts
/// take their step from the same forward pass (papers.md D1, D8).
///
/// Weight decay is not applied, because it would move the shared part without a release.
///
/// # Errors
/// [`TrainError`], as [`descend`].
#[inline(always)]
pub fn descend_released<M: Model, S: Samples<Target = M::Target>>(
    model: &M,
    samples: &S,
    local: &mut [f32],
    settings: &PersonalTraining,
    rng: &mut impl Rng,
    memory: StepMemory<'_>,
    mut release: impl FnMut(&mut [f32]) -> Result<(), TrainError>,
) -> Result<TrainReport, TrainError> {
    let adjust = |_, _: &[f32], gradient: &mut [f32]| release(gradient);
    steps(model, samples, local, settings, rng, memory, adjust)
}

/// Runs all steps. `adjust` changes some entries of the gradient, given those of the model, before
/// a step.
#[inline(always)]
fn steps<M: Model, S: Samples<Target = M::Target>>(
    model: &M,
    samples: &S,
    local: &mut [f32],
    settings: &PersonalTraining,
    rng: &mut impl Rng,
    mut memory: StepMemory<'_>,
    mut adjust: impl FnMut(Range<usize>, &[f32], &mut [f32]) -> Result<(), TrainError>,
) -> Result<TrainReport, TrainError> {
    // Not split, because a release needs the whole gradient.
    let steps: Steps<'_, _, _, false> = Steps {
        model,
        samples,
        settings,
    };
    let mut cursor = steps.begin(local, &mut memory)?;
    let mut report = Report::default();
    while !steps.is_complete(&cursor) {
        let shuffle = |order: &mut [u32]| stream::shuffle(order, rng);
        let (memory, adjust, report) = (&mut memory, &mut adjust, &mut report);
        steps.advance(
            &mut cursor,
            shuffle,
            local,
            memory,
            usize::MAX,
            adjust,
            report,
        )?;
    }
    steps.finish(&cursor, local, report)
}

/// Returns a function that adds the pull of an anchor and the weight decay to some entries of a
/// gradient.
#[inline(always)]
fn penalties<'a>(
    anchor: Option<&'a Anchor<'_>>,
    settings: &PersonalTraining,
) -> impl Fn(Range<usize>, &[f32], &mut [f32]) -> Result<(), TrainError> + use<'a> {
    let decay = settings.weight_decay.get();
    move |range, local, gradient| {
        if let Some(anchor) = anchor {
            pull(anchor, range, local, gradient);
        }
        for (g, w) in gradient.iter_mut().zip(local) {
            *g += decay * w;
        }
        Ok(())
    }
}

/// Adds `λF(w − a)` to some entries of a gradient.
#[inline(always)]
fn pull(anchor: &Anchor<'_>, range: Range<usize>, local: &[f32], gradient: &mut [f32]) {
    let strength = anchor.strength.get();
    let at = anchor.at.get(range.clone()).unwrap_or_default();
    let moved = local.iter().zip(at).map(|(w, a)| w - a);
    match anchor.importance {
        None => {
            for (g, moved) in gradient.iter_mut().zip(moved) {
                *g += strength * moved;
            }
        }
        Some(importance) => {
            let importance = importance.get(range).unwrap_or_default();
            for ((g, moved), f) in gradient.iter_mut().zip(moved).zip(importance) {
                *g += strength * (f * moved);
            }
        }
    }
}

/// The update of a PMTL device before clipping. The privacy is the same for all variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PmtlUpdate {
    /// `w_k_new − w̃`, as in the authors' code. The best of the three overall.
    #[default]
    FromGlobal,
    /// `w_k_new − w_k_old` over the cohort, as printed (line 8). It telescopes, so the mean
    /// overshoots by devices/cohort (papers.md P1).
    AsPrinted,
    /// `w_k_new − w_k_old` over all devices: the mean of all personal models, without overshoot.
    MeanOverAll,
}

/// Computes `to[i] ← local[i] − from[i]`: a device's difference before clipping.
#[inline]
pub fn difference(local: &[f32], from: &[f32], to: &mut [f32]) {
    for ((to, local), from) in to.iter_mut().zip(local).zip(from) {
        *to = local - from;
    }
}

/// Splits the joint movement of PP-SGD from `shared + offset` to `local`: the offset moved `ratio`
/// times as far as the shared part. Writes the shared part's difference, before clipping, to
/// `update`, and the new offset to `offset`.
///
/// For this, [`descend`] takes steps of `1 + ratio` times the learning rate from `shared + offset`.
#[inline]
pub fn split_step(
    local: &[f32],
    shared: &[f32],
    offset: &mut [f32],
    ratio: f32,
    update: &mut [f32],
) {
    for (((update, local), shared), offset) in update.iter_mut().zip(local).zip(shared).zip(offset)
    {
        (*update, *offset) = split(*local, *shared, *offset, ratio);
    }
}

/// Like [`split_step`] with one vector less, for boards: writes the new offset to `local`, and the
/// difference to `update`, which holds the old offset.
fn split_in_place(local: &mut [f32], shared: &[f32], ratio: f32, update: &mut [f32]) {
    for ((update, local), shared) in update.iter_mut().zip(local).zip(shared) {
        (*update, *local) = split(*local, *shared, *update, ratio);
    }
}

/// Returns the difference and the new offset of one entry.
#[inline(always)]
fn split(local: f32, shared: f32, offset: f32, ratio: f32) -> (f32, f32) {
    let part = 1.0 / (1.0 + ratio);
    let update = (local - (shared + offset)) * part;
    (update, offset + ratio * update)
}

#[cfg(test)]
mod tests;
