//! Local training in integers: [`crate::train`] for processors without a floating-point unit.
//!
//! The algorithm, its settings and its random stream are the same as in
//! [`crate::train::local_update`]. Gradients are not smoothed.

use core::num::NonZeroU32;

use super::{
    gradient::{Gradients, Saturations, Scratch, residual_places},
    loss::FixedPointModel,
    multiplier::Multiplier,
    samples::FixedPointSamples,
    step::{Ball, Rates, advance, norm, shorten},
};
use crate::format::{FeatureScale, MAX_WEIGHT, SCORE_FRACTION, WEIGHT_FRACTION, value};
use crate::{
    integer::divide,
    model::BatchPart,
    train::{Clipping, Cursor, LocalTraining, TrainError, TrainReport},
};

/// Working memory of local training, owned by the caller.
pub struct FixedPointWork<'a> {
    /// Local weights, as long as the model.
    pub local: &'a mut [i32],
    /// Gradient, and at the end the update Δ. As long as the model.
    pub update: &'a mut [i32],
    /// Order of the local samples, with at least one entry for each sample.
    pub order: &'a mut [u32],
    /// Scores, with at least one entry for each output of the model.
    pub scores: &'a mut [i32],
    /// Features of one sample, with at least one entry for each feature of the model.
    pub row: &'a mut [i32],
}

/// Statistics of local training. They describe private data and must not leave the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedPointReport {
    /// Number of local steps.
    pub steps: u32,
    /// Number of clipped steps, or 1 if the final update was clipped.
    pub clipped_steps: u32,
    /// Number of steps that could have been clipped, or 1 if only the final update is clipped.
    pub clipping_chances: u32,
    /// Mean loss of the first epoch's samples, each before its step, in units of 2⁻¹⁶.
    pub first_loss: u64,
    /// Mean loss of the last epoch's samples.
    pub last_loss: u64,
    /// L2 norm of the difference before the last clipping, in units of weights, rounded up.
    pub norm: u64,
    /// Saturated values.
    pub saturations: Saturations,
}

impl From<FixedPointReport> for TrainReport {
    // Inlined, so that a device that only reads the norm has no code for the rest.
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

/// Trains on a device's samples, starting from `global`, and leaves the update in `work.update`.
///
/// * Shape: `global`, `work.local` and `work.update` are as long as the model.
/// * Units: those of weights. `global` is within [`MAX_WEIGHT`](super::MAX_WEIGHT).
/// * Randomness: the order of the samples, from `rng` (purpose
///   [`BatchShuffle`](crate::stream::Purpose::BatchShuffle)).
/// * Privacy: with a clip norm, Σ(update)² is at most the square of the norm, exactly. The update
///   is private until the noise is added.
///
/// # Errors
/// [`TrainError`]. The contents of `work` are then meaningless and nothing may be sent.
#[cfg(any(test, feature = "hazmat"))]
#[inline(always)]
pub fn local_update<M, S>(
    model: &M,
    samples: &S,
    scale: FeatureScale,
    global: &[i32],
    settings: &LocalTraining,
    rng: &mut impl rand_core::Rng,
    mut work: FixedPointWork<'_>,
) -> Result<FixedPointReport, TrainError>
where
    M: FixedPointModel,
    S: FixedPointSamples<Target = M::FixedPointTarget>,
{
    let local = FixedPointLocal {
        model,
        samples,
        scale,
        global,
        settings,
    };
    let mut descent = local.begin(&mut work)?;
    let mut tally = FixedPointTally::default();
    while !descent.is_complete(settings) {
        let shuffle = |order: &mut [u32]| crate::stream::shuffle(order, rng);
        local.advance(&mut descent, shuffle, &mut work, usize::MAX, &mut tally)?;
    }
    local.finish(&descent, &mut work, &mut tally.report)?;
    Ok(tally.report)
}

/// The constant part of a device's training in a round.
pub(crate) struct FixedPointLocal<'a, M, S> {
    pub(crate) model: &'a M,
    pub(crate) samples: &'a S,
    pub(crate) scale: FeatureScale,
    pub(crate) global: &'a [i32],
    pub(crate) settings: &'a LocalTraining,
}

/// Progress of local training. The rest of its state is in the [`FixedPointWork`].
#[derive(Clone, Copy, Debug)]
pub struct FixedPointDescent {
    cursor: Cursor,
    /// Largest magnitude of the global weights.
    largest: i32,
    /// Sum of squares of the displacement before the last clipping.
    squares: u64,
}

/// A report with its sum of losses. The compiler removes unused reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedPointTally {
    pub(crate) report: FixedPointReport,
    /// Sum of losses of the epoch.
    loss: u64,
}

impl FixedPointDescent {
    /// Returns whether all epochs are complete.
    #[inline(always)]
    pub(crate) const fn is_complete(&self, settings: &LocalTraining) -> bool {
        self.cursor.is_complete(settings)
    }
}

impl<M, S> FixedPointLocal<'_, M, S>
where
    M: FixedPointModel,
    S: FixedPointSamples<Target = M::FixedPointTarget>,
{
    /// Checks all lengths, the global weights and the settings, and starts there with the samples
    /// in order.
    ///
    /// # Errors
    /// [`TrainError`].
    #[inline(always)]
    pub(crate) fn begin(
        &self,
        work: &mut FixedPointWork<'_>,
    ) -> Result<FixedPointDescent, TrainError> {
        self.check_lengths(work)?;
        let cursor = Cursor::begin(self.samples.len(), work.order)?;
        let count = cursor.count();
        let largest = largest(self.global);
        if self.global.len() as u64 > MAX_PARAMETERS || largest > MAX_WEIGHT {
            return Err(TrainError::Range);
        }
        // Batches have two lengths, because the last one of an epoch may be short.
        let size = self.settings.batch_size.min(count);
        let rest = NonZeroU32::new(count.get() % size).unwrap_or(size);
        for length in [size, rest] {
            self.rates(length)?;
        }
        self.ball()?;
        for (w, start) in work.local.iter_mut().zip(self.global) {
            *w = *start;
        }
        work.update.fill(0);
        Ok(FixedPointDescent {
            cursor,
            largest,
            squares: 0,
        })
    }

    /// Sums up the gradients of up to `most` samples of a batch, and takes the step with the last
    /// one. `shuffle` puts the samples into the order of an epoch at its start.
    ///
    /// # Errors
    /// [`TrainError`]. The training is then over.
    #[inline(always)]
    pub(crate) fn advance(
        &self,
        descent: &mut FixedPointDescent,
        shuffle: impl FnOnce(&mut [u32]),
        work: &mut FixedPointWork<'_>,
        most: usize,
        FixedPointTally { report, loss }: &mut FixedPointTally,
    ) -> Result<(), TrainError> {
        self.check_lengths(work)?;
        let FixedPointWork {
            local,
            update,
            order,
            scores,
            row,
        } = work;
        let (count, size) = (self.samples.len(), self.settings.batch_size);
        let indices = (descent.cursor).batch(count, size, order, shuffle)?;
        let part = BatchPart::of(indices, descent.cursor.done as usize, most);
        let gradients = Gradients {
            model: self.model,
            samples: self.samples,
            scale: self.scale,
        };
        let memory = &mut Scratch { scores, row };
        let counts = &mut report.saturations;
        let places = residual_places::<S::Feature>(indices.len()).ok_or(TrainError::Range)?;
        let summed = gradients.add_to(update, local, part.indices, places, memory, counts)?;
        *loss += summed;
        if !part.is_last() {
            descent.cursor.done += part.len() as u32;
            return Ok(());
        }
        let length = NonZeroU32::new(indices.len() as u32).unwrap_or(NonZeroU32::MIN);
        let (rates, largest) = (self.rates(length)?, descent.largest);
        let (squares, saturated) = rates.descend(self.global, largest, local, update);
        counts.weights = counts.weights.saturating_add(saturated);
        let is_each = self.settings.clipping == Clipping::EveryStep;
        let ball = self.ball()?.filter(|_| is_each);
        let factor = ball.and_then(|ball| ball.factor(squares));
        advance(factor, self.global, update, local);
        report.steps = report.steps.saturating_add(1);
        let clipped = u32::from(factor.is_some());
        report.clipped_steps = report.clipped_steps.saturating_add(clipped);
        report.clipping_chances = ball.map_or(0, |_| report.steps);
        descent.squares = squares;
        if let Some(ended) = descent.cursor.step(indices.len()) {
            report.last_loss = divide(*loss, 0, descent.cursor.count().get().into()).0;
            if ended == 0 {
                report.first_loss = report.last_loss;
            }
            *loss = 0;
        }
        Ok(())
    }

    /// Computes the difference and applies its last clipping.
    ///
    /// # Errors
    /// [`TrainError::Range`], already excluded by [`Self::begin`].
    #[inline(always)]
    pub(crate) fn finish(
        &self,
        descent: &FixedPointDescent,
        work: &mut FixedPointWork<'_>,
        report: &mut FixedPointReport,
    ) -> Result<(), TrainError> {
        report.norm = norm(descent.squares);
        for ((d, w), start) in (work.update.iter_mut().zip(work.local.iter())).zip(self.global) {
            *d = w - start;
        }
        if let (Clipping::Final, Some(ball)) = (self.settings.clipping, self.ball()?) {
            // The sum of squares of the last step belongs to the whole update.
            let factor = ball.factor(descent.squares);
            if let Some(factor) = factor {
                shorten(factor, work.update);
            }
            report.clipped_steps = u32::from(factor.is_some());
            report.clipping_chances = 1;
        }
        Ok(())
    }

    #[inline(always)]
    fn check_lengths(&self, work: &FixedPointWork<'_>) -> Result<(), TrainError> {
        let expected = self.model.parameter_count();
        for found in [self.global.len(), work.local.len(), work.update.len()] {
            if found != expected {
                return Err(TrainError::Workspace { expected, found });
            }
        }
        Ok(())
    }

    /// Returns the ball for the projection of updates, if any.
    #[inline(always)]
    fn ball(&self) -> Result<Option<Ball>, TrainError> {
        let ball = |clip_norm| Ball::new(clip_norm).ok_or(TrainError::Range);
        self.settings.clip_norm.map(ball).transpose()
    }

    /// Returns the step sizes of a batch of `length` samples.
    ///
    /// The factor of a summed gradient is η/n · 2^(18 − R − F), with R fraction bits of a residual
    /// and F of a feature.
    #[inline(never)]
    fn rates(&self, length: NonZeroU32) -> Result<Rates, TrainError> {
        let settings = self.settings;
        let places = residual_places::<S::Feature>(length.get() as usize);
        let places = places.ok_or(TrainError::Range)?;
        let features = self.scale.fraction().cast_signed();
        let fraction = M::RESIDUAL_FRACTION.cast_signed() + places + features;
        let exponent = WEIGHT_FRACTION.cast_signed() - fraction;
        let rate = settings.learning_rate.get();
        let of = |factor, exponent, divisor| {
            Multiplier::new(rate, factor, exponent, divisor).ok_or(TrainError::Range)
        };
        Ok(Rates {
            gradient: of(1.0, exponent, length.get())?,
            decay: of(settings.weight_decay.get(), 0, 1)?,
            proximal: of(settings.proximal.get(), 0, 1)?,
        })
    }
}

/// Maximum number of parameters of a model: squares of 44 bits then add up to 64.
const MAX_PARAMETERS: u64 = 1 << 20;

/// Returns the largest magnitude, saturated.
#[inline(always)]
fn largest(weights: &[i32]) -> i32 {
    let magnitudes = weights.iter().map(|w| w.saturating_abs());
    magnitudes.fold(0, i32::max)
}
