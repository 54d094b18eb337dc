//! Local training in integers: [`crate::train`] for processors without a floating-point unit.
//!
//! The algorithm, its settings and its random stream are those of [`crate::train::local_update`];
//! gradients are not smoothed.

use core::num::NonZeroU32;

use rand_core::Rng;

use super::{
    format::{Feature, FeatureScale, MAX_WEIGHT, SCORE_FRACTION, WEIGHT_FRACTION, value},
    gradient::{Gradients, Saturations, Scratch, residual_places},
    loss::FixedPointModel,
    multiplier::Multiplier,
    samples::FixedPointSamples,
    step::{Ball, Rates, advance, norm, shorten},
};
use crate::{
    integer::divide,
    stream,
    train::{Clipping, LocalTraining, TrainError, TrainReport},
};

/// Working memory of local training, owned by the caller.
pub struct FixedPointWork<'a> {
    /// Local weights; as long as the model.
    pub local: &'a mut [i32],
    /// Gradient, and at the end the update Δ; as long as the model.
    pub update: &'a mut [i32],
    /// Order of the local samples; at least as many entries as samples.
    pub order: &'a mut [u32],
    /// Scores: at least as many entries as the model has outputs.
    pub scores: &'a mut [i32],
    /// Features of one sample: at least as many entries as the model has features.
    pub row: &'a mut [i32],
}

/// What happened in local training. It describes private data: it must not leave the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedPointReport {
    /// Local steps taken.
    pub steps: u32,
    /// Steps that were clipped, or 1 if the final update was.
    pub clipped_steps: u32,
    /// Steps that could have been clipped, or 1 if only the final update is clipped.
    pub clipping_chances: u32,
    /// Mean loss of the first epoch's samples, each before its step, in units of 2⁻¹⁶.
    pub first_loss: u64,
    /// The same over the last epoch.
    pub last_loss: u64,
    /// L2 norm of the difference before the last clipping, in units of weights, rounded up.
    pub norm: u64,
    /// What was saturated.
    pub saturations: Saturations,
}

impl From<FixedPointReport> for TrainReport {
    // Inlined, so that a device that looks at the norm alone has no code for the rest.
    #[inline(always)]
    fn from(report: FixedPointReport) -> Self {
        Self {
            steps: report.steps,
            clipped_steps: report.clipped_steps,
            clipping_chances: report.clipping_chances,
            first_loss: value(report.first_loss, SCORE_FRACTION, false),
            last_loss: value(report.last_loss, SCORE_FRACTION, false),
            norm: value(report.norm, WEIGHT_FRACTION, false),
            saturated: report.saturations.total(),
        }
    }
}

/// Trains on a device's samples, starting from `global`; the update is left in `work.update`.
///
/// * Shape: `global`, `work.local` and `work.update` have as many entries as the model.
/// * Units: those of weights; `global` is within [`MAX_WEIGHT`](super::MAX_WEIGHT).
/// * Randomness: the order of the samples, from `rng` (purpose
///   [`BatchShuffle`](crate::stream::Purpose::BatchShuffle)).
/// * Privacy: with a clip norm, Σ(update)² is at most that of the norm, exactly; the update is
///   private until the noise is added.
///
/// # Errors
/// [`TrainError`]; `work` is then meaningless and nothing may be sent.
#[inline(always)]
pub fn local_update<M, S>(
    model: &M,
    samples: &S,
    scale: FeatureScale,
    global: &[i32],
    settings: &LocalTraining,
    rng: &mut impl Rng,
    work: FixedPointWork<'_>,
) -> Result<FixedPointReport, TrainError>
where
    M: FixedPointModel,
    S: FixedPointSamples<Target = M::FixedPointTarget>,
{
    let FixedPointWork {
        local,
        update,
        order,
        scores,
        row,
    } = begin(model.parameter_count(), samples.len(), global, work)?;
    let gradients = Gradients {
        model,
        samples,
        scale,
    };
    let largest = largest(global);
    let (mut report, mut squares) = (FixedPointReport::default(), 0);
    let memory = &mut Scratch { scores, row };
    let count = NonZeroU32::new(order.len() as u32).unwrap_or(NonZeroU32::MIN);
    let size = settings.batch_size.min(count);
    // Batches of two lengths: the last one of an epoch may be short.
    let whole = Batch::new::<M, S::Feature>(scale, settings, size)?;
    let rest = NonZeroU32::new(count.get() % size).unwrap_or(size);
    let rest = Batch::new::<M, S::Feature>(scale, settings, rest)?;
    let ball = |clip_norm| Ball::new(clip_norm).ok_or(TrainError::Range);
    let ball = settings.clip_norm.map(ball).transpose()?;
    let step_ball = ball.filter(|_| settings.clipping == Clipping::EveryStep);
    for epoch in 0..settings.epochs {
        stream::shuffle(order, rng);
        let mut loss = 0;
        for indices in order.chunks(size.get() as usize) {
            let is_whole = indices.len() == size.get() as usize;
            let batch = if is_whole { &whole } else { &rest };
            let counts = &mut report.saturations;
            loss += gradients.add_to(update, local, indices, batch.places, memory, counts)?;
            let saturated;
            (squares, saturated) = batch.rates.descend((global, largest), local, update);
            counts.weights = counts.weights.saturating_add(saturated);
            let factor = step_ball.and_then(|ball| ball.factor(squares));
            advance(factor, global, update, local);
            report.steps = report.steps.saturating_add(1);
            let clipped = u32::from(factor.is_some());
            report.clipped_steps = report.clipped_steps.saturating_add(clipped);
        }
        report.last_loss = divide(loss, 0, count.get().into()).0;
        if epoch == 0 {
            report.first_loss = report.last_loss;
        }
    }
    report.norm = norm(squares);
    report.clipping_chances = step_ball.map_or(0, |_| report.steps);
    for ((d, w), start) in update.iter_mut().zip(local.iter()).zip(global) {
        *d = w - start;
    }
    if let (Clipping::Final, Some(ball)) = (settings.clipping, ball) {
        // The squares of the last step are those of the whole update.
        clip_at_the_end(ball.factor(squares), update, &mut report);
    }
    Ok(report)
}

/// Shortens an update that is outside the ball.
#[inline(always)]
fn clip_at_the_end(factor: Option<i32>, update: &mut [i32], report: &mut FixedPointReport) {
    if let Some(factor) = factor {
        shorten(factor, update);
    }
    report.clipped_steps = u32::from(factor.is_some());
    report.clipping_chances = 1;
}

/// Parameters of a model, at most: squares of 44 bits then add up to 64.
const MAX_PARAMETERS: usize = 1 << 20;

/// Checks all lengths and the global weights, and begins there with the samples in order.
#[inline(always)]
fn begin<'a>(
    expected: usize,
    count: usize,
    global: &[i32],
    work: FixedPointWork<'a>,
) -> Result<FixedPointWork<'a>, TrainError> {
    let FixedPointWork {
        local,
        update,
        order,
        scores,
        row,
    } = work;
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
        let expected = count;
        return Err(TrainError::Workspace { expected, found });
    };
    if expected > MAX_PARAMETERS || largest(global) > MAX_WEIGHT {
        return Err(TrainError::Range);
    }
    for (w, start) in local.iter_mut().zip(global) {
        *w = *start;
    }
    update.fill(0);
    for (slot, index) in order.iter_mut().zip(0..) {
        *slot = index;
    }
    Ok(FixedPointWork {
        local,
        update,
        order,
        scores,
        row,
    })
}

/// The largest magnitude, saturated.
#[inline(always)]
fn largest(weights: &[i32]) -> i32 {
    let magnitudes = weights.iter().map(|w| w.saturating_abs());
    magnitudes.fold(0, i32::max)
}

/// What depends on the length of a batch.
struct Batch {
    /// R − 16 for classes: places that residuals are shifted to the left.
    places: i32,
    rates: Rates,
}

impl Batch {
    /// For batches of `length` samples.
    ///
    /// The factor of a summed gradient is η/n · 2^(18 − R − F), R places of a residual and F of a
    /// feature behind the point.
    fn new<M: FixedPointModel, X: Feature>(
        scale: FeatureScale,
        settings: &LocalTraining,
        length: NonZeroU32,
    ) -> Result<Self, TrainError> {
        let places = residual_places::<X>(length.get() as usize).ok_or(TrainError::Range)?;
        let fraction = M::RESIDUAL_FRACTION.cast_signed() + places + scale.fraction().cast_signed();
        let exponent = WEIGHT_FRACTION.cast_signed() - fraction;
        let rate = settings.learning_rate.get();
        let of = |factor, exponent, divisor| {
            Multiplier::new(rate, factor, exponent, divisor).ok_or(TrainError::Range)
        };
        Ok(Self {
            places,
            rates: Rates {
                gradient: of(1.0, exponent, length.get())?,
                decay: of(settings.weight_decay.get(), 0, 1)?,
                proximal: of(settings.proximal.get(), 0, 1)?,
            },
        })
    }
}
