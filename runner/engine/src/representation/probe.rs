//! A linear probe: how well a linear model predicts the classes from a representation.
//!
//! A softmax is trained on the bank by the code for devices, with many steps of decreasing size.
//! First, the representations are standardised by the bank's mean and covariance: along its
//! principal axes, each coordinate has variance 1. This does not change what a linear model can
//! express, but SGD needs no more steps for a representation with correlated or uneven coordinates,
//! and the figure does not depend on the encoder's basis.

use std::num::NonZeroU32;

use smolfed_core::model::{BATCH_GROUP, Model, Parametric, Softmax};
use smolfed_core::params::{LearningRate, Penalty};
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};
use smolfed_core::train::{Clipping, LocalTraining, Workspace};
use smolfed_simd::{Kernels, Rows};

use super::Labelled;
use super::moments::Axes;

/// Step sizes in order, each for equally many passes: the first goes far, the last settles.
const RATES: [f32; 4] = [0.5, 0.2, 0.05, 0.01];
/// Samples per step: 32.
const BATCH: NonZeroU32 = NonZeroU32::MIN.saturating_add(31);
/// Passes over the bank with each step size, and minimum number of steps.
const PASSES: usize = 6;
const STEPS: usize = 2_000;
/// Keeps the weights finite if classes can be separated.
const WEIGHT_DECAY: f32 = 1e-4;

/// Returns the share of `queries` whose class a softmax, trained on `bank`, predicts, or `None` if
/// there are no samples or no classes, or if the widths differ.
///
/// * Classes from `class_count` on are never predicted.
/// * Non-finite numbers count as zero. Directions along which the bank does not vary are left out.
/// * Cost: about `24 · bank · width · class_count · 4` flop, more for fewer than 10,000 samples.
///   The result is deterministic.
#[must_use]
pub fn probe_accuracy(bank: &Labelled, queries: &Labelled, class_count: usize) -> Option<f64> {
    let too_many = class_count > usize::from(u16::MAX) + 1;
    if bank.width != queries.width || bank.is_empty() || queries.is_empty() || too_many {
        return None;
    }
    let axes = Axes::new(bank);
    let (bank, queries) = (standardised(&axes, bank), standardised(&axes, queries));
    let model = Softmax::new(bank.width, class_count);
    let parameters = train(&model, &bank)?;

    let indices: Vec<u32> = (0..queries.len() as u32).collect();
    let mut scores = vec![0.0; queries.len() * class_count];
    model
        .row_scores(
            &parameters,
            &rows(&queries, &indices),
            &indices,
            &mut [],
            &mut scores,
        )
        .ok()?;
    let pairs = scores.chunks_exact(class_count).zip(&queries.classes);
    let correct = pairs
        .filter(|(scores, class)| model.predict(scores) == **class)
        .count();
    Some(correct as f64 / queries.len() as f64)
}

fn rows<'a>(samples: &'a Labelled, indices: &'a [u32]) -> Rows<'a, u16> {
    Rows::new(&samples.values, samples.width, &samples.classes, indices)
}

/// Returns coordinates of variance 1 along the axes, and a last one that is always 0, so that a
/// model has a feature even if nothing varies.
fn standardised(axes: &Axes, samples: &Labelled) -> Labelled {
    let values = samples.rows().flat_map(|row| {
        let coordinates = axes.coordinates(row).zip(&axes.variances);
        let scaled = coordinates.map(|(x, variance)| {
            let value = x / variance.sqrt();
            value.clamp(f64::from(-f32::MAX), f64::from(f32::MAX)) as f32
        });
        scaled.chain([0.0])
    });
    Labelled {
        width: axes.variances.len() + 1,
        values: values.collect(),
        classes: samples.classes[..samples.len()].to_vec(),
    }
}

/// Returns the parameters after all steps, or `None` if the model has no classes.
fn train(model: &Softmax<usize, usize>, bank: &Labelled) -> Option<Vec<f32>> {
    let count = model.parameter_count();
    let order: Vec<u32> = (0..bank.len() as u32).collect();
    let steps_a_pass = bank.len().div_ceil(BATCH.get() as usize);
    let passes = PASSES.max(STEPS.div_ceil(steps_a_pass));
    let (mut parameters, mut local) = (vec![0.0; count], vec![0.0; count]);
    let (mut update, mut shuffled) = (vec![0.0; count], vec![0; bank.len()]);
    let mut scratch = vec![0.0; model.scratch_count(BATCH_GROUP)];
    for (stage, rate) in (0..).zip(RATES) {
        let settings = LocalTraining {
            epochs: u32::try_from(passes).ok()?,
            batch_size: BATCH,
            learning_rate: LearningRate::new(rate).ok()?,
            weight_decay: Penalty::new(WEIGHT_DECAY).ok()?,
            proximal: Penalty::NONE,
            clip_norm: None,
            clipping: Clipping::EveryStep,
            gradient_smoothing: None,
        };
        let work = Workspace {
            local: &mut local,
            update: &mut update,
            order: &mut shuffled,
            scratch: &mut scratch,
        };
        let stream = &mut order_of_samples(stage);
        model
            .local_update(&rows(bank, &order), &parameters, &settings, stream, work)
            .ok()?;
        parameters.clone_from(&local);
    }
    Some(parameters)
}

/// Returns the order of samples in a stage. It is the same for every run, as nothing here is
/// random.
fn order_of_samples(stage: u32) -> Stream {
    Root::from_seed(0).stream(StreamId {
        purpose: Purpose::BatchShuffle,
        round: stage,
        device: 0,
    })
}
