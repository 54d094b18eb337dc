//! Local training of models with linear scores in the span of a device's samples: fast, but with
//! other bits than a board.
//!
//! Every iterate of local training is `w = w₀ + t·w₀ + p·δ + X'A`, with numbers t and p, and A with
//! one row per sample (here stored by class). X are the samples, each with a 1 for the bias, and
//! δ = w₀ − a is nonzero if a model a other than w₀ pulls. With S₀ = X w₀', D = X δ', G = XX' and
//! U = G A, no step touches the features or the parameters:
//!
//! | | |
//! | --- | --- |
//! | scores of a batch | (1 + t) S₀ + p D + U |
//! | a step: the numbers | t ← k t − ηλ, p ← k p − ημ, with k = 1 − η(λ + μ) |
//! | the matrices | A ← k A − (η/b) P on the batch's rows, U ← k U − (η/b) G[:, batch] P |
//! | the squared norm of the update, p = 0 | t²‖w₀‖² + 2 t ⟨A, S₀⟩ + ⟨A, U⟩ |
//! | projection by a factor f | t ← f t, A ← f A, U ← f U |
//!
//! η is the learning rate, λ the weight decay, μ the strength of the pull, and P are the
//! derivatives of the losses with respect to the scores of a batch of b samples.
//!
//! At the end, the update is `t·w₀ + p·δ + X'A`. In exact arithmetic, this equals the results of
//! [`train::local_update`](smolfed_core::train::local_update) and
//! [`personal::descend`](smolfed_core::personal::descend). Here, multiplications and additions are
//! fused, sums have as many lanes as the machine's vectors, and the exponential function is
//! vectorised. The bits therefore depend on the instruction set, but not on threads, nor on whether
//! a [`Gram`] matrix was cached or recomputed.
//!
//! Privacy does not depend on this arithmetic. The complete update is clipped once more, and its
//! bound is enforced by the integer check after rounding to the grid ([`smolfed_core::quantize`]),
//! the same for every arithmetic.

mod cost;
mod exp;
mod gram;
mod products;
mod residuals;
mod steps;

use pulp::{Arch, Simd, WithSimd};
use smolfed_core::clip::clip_l2;
use smolfed_core::lanes::{norm, squared_norm};
use smolfed_core::model::{Linear, Logistic, Model, ModelError, Parametric, Softmax};
use smolfed_core::params::Penalty;
use smolfed_core::personal::{Anchor, Effort, PersonalTraining};
use smolfed_core::samples::Samples;
use smolfed_core::stream::Stream;
use smolfed_core::train::{Clipping, LocalTraining, TrainError, TrainReport};

use crate::aligned::Aligned;
use crate::kernels::Kernels;
use crate::rows::Rows;
use gram::PADDING;
use products::{Combination, combine};
use residuals::Residuals;
use steps::{Batch, Descent, Iterate};

pub use cost::{Work, is_cheaper};
pub use gram::Gram;

/// Samples with their Gram matrix.
#[derive(Debug)]
pub struct WithGram<'a, T> {
    /// The samples.
    pub rows: &'a Rows<'a, T>,
    /// Their Gram matrix.
    pub gram: &'a Gram,
}

/// A model with linear scores in the features, which can therefore train in the span of a device's
/// samples. Each model is a line at the end of this file.
pub trait InSpan: Kernels {
    /// Computes [`train::local_update`](smolfed_core::train::local_update) up to rounding, from
    /// `global`. Writes the update to `update`.
    ///
    /// * Shape: both have as many entries as the model.
    /// * Randomness: `stream` is used as in that function.
    /// * Cost: see [`is_cheaper`].
    /// * Privacy: the update is clipped but carries no noise. It is private until the noise is
    ///   added.
    /// * Bits: they depend on this machine's instruction set. Gradient smoothing leaves the span,
    ///   so `settings.gradient_smoothing` is ignored.
    ///
    /// # Errors
    /// [`TrainError`], as for that function, and [`TrainError::Diverged`] also if the square of a
    /// norm leaves the range of `f32`.
    fn update_in_span(
        &self,
        samples: WithGram<'_, Self::Target>,
        global: &[f32],
        update: &mut [f32],
        settings: &LocalTraining,
        stream: &mut Stream,
        buffers: &mut SpanBuffers,
    ) -> Result<TrainReport, TrainError>;

    /// Computes [`personal::descend`](smolfed_core::personal::descend) up to rounding, on `local`,
    /// with an optional anchor.
    ///
    /// * As [`Self::update_in_span`]. An anchor's importance is ignored.
    ///
    /// # Errors
    /// [`TrainError`], as for that function.
    fn descend_in_span(
        &self,
        samples: WithGram<'_, Self::Target>,
        local: &mut [f32],
        anchor: Option<&Anchor<'_>>,
        settings: &PersonalTraining,
        stream: &mut Stream,
        buffers: &mut SpanBuffers,
    ) -> Result<TrainReport, TrainError>;

    /// Computes [`Model::batch_scores`] up to rounding.
    ///
    /// # Errors
    /// [`ModelError`], as for that function.
    fn fused_scores(
        &self,
        parameters: &[f32],
        samples: &Rows<'_, Self::Target>,
        batch: &[u32],
        scores: &mut [f32],
    ) -> Result<(), ModelError>;

    /// Returns the sum of the losses of samples, up to rounding, from scores computed by
    /// [`Self::fused_scores`].
    ///
    /// * Shape: for each of `targets`, `scores` has as many entries as the model has outputs.
    fn fused_loss(
        &self,
        scores: &[f32],
        targets: &[Self::Target],
        buffers: &mut SpanBuffers,
    ) -> f32;
}

/// Returns the lanes of a vector of this machine, which determine the order of sums and the bits.
#[must_use]
pub fn lanes() -> usize {
    struct Lanes;

    impl WithSimd for Lanes {
        type Output = usize;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            S::F32_LANES
        }
    }

    Arch::new().dispatch(Lanes)
}

/// One thread's working memory.
#[derive(Default)]
pub struct SpanBuffers {
    order: Vec<u32>,
    values: Aligned,
    /// The displacement of a personal model, and its difference from the anchor.
    moved: Vec<f32>,
    pulled: Vec<f32>,
}

/// Prints no values: device data never reach a log.
impl std::fmt::Debug for SpanBuffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SpanBuffers")
    }
}

/// Compiles the kernels of a model: see [`Kernels`].
macro_rules! in_span {
    ($model:ty) => {
        impl InSpan for $model {
            #[inline(never)]
            fn update_in_span(
                &self,
                samples: WithGram<'_, Self::Target>,
                global: &[f32],
                update: &mut [f32],
                settings: &LocalTraining,
                stream: &mut Stream,
                buffers: &mut SpanBuffers,
            ) -> Result<TrainReport, TrainError> {
                let SpanBuffers { order, values, .. } = buffers;
                let job = Job {
                    model: self,
                    samples: samples.rows,
                    gram: samples.gram,
                    start: global,
                    pulled: None,
                    descent: of_update(settings),
                };
                let mut report = run(job, stream, order, values, update)?;
                finish(settings, update, &mut report)?;
                Ok(report)
            }

            #[inline(never)]
            fn descend_in_span(
                &self,
                samples: WithGram<'_, Self::Target>,
                local: &mut [f32],
                anchor: Option<&Anchor<'_>>,
                settings: &PersonalTraining,
                stream: &mut Stream,
                buffers: &mut SpanBuffers,
            ) -> Result<TrainReport, TrainError> {
                let SpanBuffers {
                    order,
                    values,
                    moved,
                    pulled,
                } = buffers;
                moved.clear();
                moved.resize(local.len(), 0.0);
                pulled.clear();
                if let Some(anchor) = anchor {
                    pulled.extend(local.iter().zip(anchor.at).map(|(w, a)| w - a));
                }
                let job = Job {
                    model: self,
                    samples: samples.rows,
                    gram: samples.gram,
                    start: local,
                    pulled: anchor.map(|_| pulled.as_slice()),
                    descent: of_descent(settings, anchor),
                };
                let report = run(job, stream, order, values, moved)?;
                for (w, moved) in local.iter_mut().zip(moved) {
                    *w += *moved;
                }
                match norm(local).is_finite() {
                    true => Ok(report),
                    false => Err(TrainError::Diverged),
                }
            }

            #[inline(never)]
            fn fused_scores(
                &self,
                parameters: &[f32],
                samples: &Rows<'_, Self::Target>,
                batch: &[u32],
                scores: &mut [f32],
            ) -> Result<(), ModelError> {
                score(self, parameters, samples, batch, scores)
            }

            #[inline(never)]
            fn fused_loss(
                &self,
                scores: &[f32],
                targets: &[Self::Target],
                buffers: &mut SpanBuffers,
            ) -> f32 {
                Arch::new().dispatch(Losses::<Self> {
                    outputs: self.output_count(),
                    scores,
                    targets,
                    values: &mut buffers.values,
                })
            }
        }
    };
}

in_span!(Linear<usize>);
in_span!(Logistic<usize>);
in_span!(Softmax<usize, usize>);

const fn of_update(settings: &LocalTraining) -> Descent {
    Descent {
        effort: Effort::Epochs(settings.epochs),
        batch_size: settings.batch_size.get() as usize,
        rate: settings.learning_rate.get(),
        decay: settings.weight_decay.get(),
        pull: settings.proximal.get(),
        bound: match (settings.clipping, settings.clip_norm) {
            (Clipping::EveryStep, Some(bound)) => Some(bound.get()),
            _ => None,
        },
    }
}

fn of_descent(settings: &PersonalTraining, anchor: Option<&Anchor<'_>>) -> Descent {
    Descent {
        effort: settings.effort,
        batch_size: settings.batch_size.get() as usize,
        rate: settings.learning_rate.get(),
        decay: settings.weight_decay.get(),
        pull: anchor.map_or(Penalty::NONE, |anchor| anchor.strength).get(),
        bound: None,
    }
}

/// Clips the complete update. After a projection in every step, only rounding remains to be
/// clipped: the norms of the steps come from the Gram matrix.
fn finish(
    settings: &LocalTraining,
    update: &mut [f32],
    report: &mut TrainReport,
) -> Result<(), TrainError> {
    let length = match settings.clip_norm {
        Some(bound) => clip_l2(update, bound.get()).map_err(|_| TrainError::Diverged)?,
        None => norm(update),
    };
    if !length.is_finite() {
        return Err(TrainError::Diverged);
    }
    match (settings.clipping, settings.clip_norm) {
        (Clipping::EveryStep, Some(_)) => {}
        (Clipping::EveryStep, None) => report.norm = length,
        (Clipping::Final, bound) => {
            report.norm = length;
            report.clipped_steps = u32::from(bound.is_some_and(|bound| length > bound.get()));
            report.clipping_chances = u32::from(bound.is_some());
        }
    }
    Ok(())
}

/// Model, data, start and settings of a training run.
struct Job<'a, M: Kernels> {
    model: &'a M,
    samples: &'a Rows<'a, M::Target>,
    gram: &'a Gram,
    /// w₀.
    start: &'a [f32],
    /// δ.
    pulled: Option<&'a [f32]>,
    descent: Descent,
}

/// Trains, and writes the displacement from the start to `out`.
fn run<M: Residuals<Target: Copy + Default> + Kernels>(
    job: Job<'_, M>,
    stream: &mut Stream,
    order: &mut Vec<u32>,
    values: &mut Aligned,
    out: &mut [f32],
) -> Result<TrainReport, TrainError> {
    let rows = checked_rows(&job, out.len())?;
    order.clear();
    order.extend((0..).take(rows.len()));

    let Job {
        model,
        samples,
        gram,
        start,
        pulled,
        descent,
    } = job;
    let outputs = model.output_count();
    let stride = rows.len().next_multiple_of(PADDING);
    let batch_stride = descent.batch_size.min(rows.len()).next_multiple_of(PADDING);
    let matrix = outputs * stride;
    let of_pull = if pulled.is_some() { matrix } else { 0 };
    values.resize(3 * matrix + of_pull + (outputs + 2) * batch_stride);
    values.fill(0.0);
    let (base, rest) = values.split_at_mut(matrix);
    let (pulled_scores, rest) = rest.split_at_mut(of_pull);
    let (coefficients, rest) = rest.split_at_mut(matrix);
    let (products, rest) = rest.split_at_mut(matrix);
    let (scores, spare) = rest.split_at_mut(outputs * batch_stride);

    linear_scores(&rows, start, [stride, 1], base);
    if let Some(pulled) = pulled {
        linear_scores(&rows, pulled, [stride, 1], pulled_scores);
    }
    let iterate = Iterate {
        t: 0.0,
        p: 0.0,
        scale: 1.0,
        coefficients,
        products,
        base,
        pulled: pulled_scores,
        stride,
        squares: 0.0,
        batch: Batch {
            scores,
            spare,
            stride: batch_stride,
        },
    };
    let (report, iterate) = Arch::new().dispatch(SpanTraining::<M> {
        samples,
        gram,
        descent,
        start,
        iterate,
        stream,
        order,
    })?;
    displace(Displacement {
        rows: &rows,
        iterate: &iterate,
        start,
        pulled,
        out,
    });
    Ok(report)
}

/// Returns the rows of the samples, if they and the vector lengths fit the model.
fn checked_rows<'a, M: Kernels<Target: Copy + Default>>(
    job: &Job<'a, M>,
    out_length: usize,
) -> Result<Vec<&'a [f32]>, TrainError> {
    let expected = job.model.parameter_count();
    let pulled = job.pulled.unwrap_or(job.start);
    for found in [job.start.len(), pulled.len(), out_length] {
        if found != expected {
            return Err(TrainError::Workspace { expected, found });
        }
    }
    let rows: Vec<_> = (0..job.samples.len())
        .map(|s| job.samples.features(s))
        .collect();
    if rows.is_empty() {
        return Err(TrainError::NoSamples);
    }
    if job.gram.len() != rows.len() {
        let (expected, found) = (rows.len(), job.gram.len());
        return Err(TrainError::Workspace { expected, found });
    }
    check_features(job.model, &rows)?;
    Ok(rows)
}

/// Checks that the model is valid, and that each row has its features.
fn check_features<M: Kernels>(model: &M, rows: &[&[f32]]) -> Result<(), ModelError> {
    let expected = model.feature_count();
    if expected == 0 || model.output_count() == 0 {
        return Err(ModelError::Empty);
    }
    match rows.iter().map(|row| row.len()).find(|l| *l != expected) {
        Some(found) => Err(ModelError::Features { expected, found }),
        None => Ok(()),
    }
}

/// Implements [`InSpan::fused_scores`].
fn score<M: Kernels<Target: Copy + Default>>(
    model: &M,
    parameters: &[f32],
    samples: &Rows<'_, M::Target>,
    batch: &[u32],
    scores: &mut [f32],
) -> Result<(), ModelError> {
    if batch.is_empty() || batch.iter().any(|s| *s as usize >= samples.len()) {
        return Err(ModelError::Batch);
    }
    let rows: Vec<_> = batch
        .iter()
        .map(|s| samples.features(*s as usize))
        .collect();
    check_features(model, &rows)?;
    let (expected, found) = (model.parameter_count(), parameters.len());
    if found != expected {
        return Err(ModelError::Parameters { expected, found });
    }
    let classes = model.output_count();
    let (expected, found) = (rows.len() * classes, scores.len());
    if found != expected {
        return Err(ModelError::Scratch { expected, found });
    }
    linear_scores(&rows, parameters, [1, classes], scores);
    Ok(())
}

/// Computes the scores of rows, at distances `strides` between classes and between samples.
/// Compiled once, since it does not depend on the model.
#[inline(never)]
fn linear_scores(rows: &[&[f32]], parameters: &[f32], strides: [usize; 2], scores: &mut [f32]) {
    Arch::new().dispatch(Scores {
        rows,
        parameters,
        strides,
        scores,
    });
}

/// The arguments of [`linear_scores`].
struct Scores<'a> {
    rows: &'a [&'a [f32]],
    parameters: &'a [f32],
    strides: [usize; 2],
    scores: &'a mut [f32],
}

impl WithSimd for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let [of_class, of_sample] = self.strides;
        let place = |class, sample| class * of_class + sample * of_sample;
        products::scores(simd, self.rows, self.parameters, place, self.scores);
    }
}

/// The arguments of [`InSpan::fused_loss`].
struct Losses<'a, M: Model> {
    outputs: usize,
    scores: &'a [f32],
    targets: &'a [M::Target],
    values: &'a mut Aligned,
}

impl<M: Residuals> WithSimd for Losses<'_, M> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f32 {
        let Self {
            outputs,
            scores,
            targets,
            values,
        } = self;
        let stride = targets.len().next_multiple_of(PADDING);
        values.resize((outputs + 2) * stride);
        let (of_class, spare) = values.split_at_mut(outputs * stride);
        for (s, scores) in scores.chunks_exact(outputs).enumerate() {
            for (c, score) in scores.iter().enumerate() {
                of_class[c * stride + s] = *score;
            }
        }
        M::residuals(simd, of_class, stride, targets, spare, true)
    }
}

/// The arguments of [`Iterate::descend`].
struct SpanTraining<'a, 'i, M: Kernels> {
    samples: &'a Rows<'a, M::Target>,
    gram: &'a Gram,
    descent: Descent,
    start: &'a [f32],
    iterate: Iterate<'i>,
    stream: &'a mut Stream,
    order: &'a mut [u32],
}

impl<'i, M: Residuals<Target: Copy + Default> + Kernels> WithSimd for SpanTraining<'_, 'i, M> {
    type Output = Result<(TrainReport, Iterate<'i>), TrainError>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self {
            samples,
            gram,
            descent,
            start,
            mut iterate,
            stream,
            order,
        } = self;
        iterate.squares = f64::from(squared_norm(start));
        let report = iterate.descend::<S, M>(simd, samples, gram, &descent, stream, order)?;
        Ok((report, iterate))
    }
}

/// Computes `out = t·w₀ + p·δ + X'A`. Compiled once, since it does not depend on the model.
#[inline(never)]
fn displace(displacement: Displacement<'_, '_>) {
    Arch::new().dispatch(displacement);
}

/// The arguments of [`displace`].
struct Displacement<'a, 'i> {
    rows: &'a [&'a [f32]],
    iterate: &'a Iterate<'i>,
    start: &'a [f32],
    pulled: Option<&'a [f32]>,
    out: &'a mut [f32],
}

impl WithSimd for Displacement<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            rows,
            iterate,
            start,
            pulled,
            out,
        } = self;
        let Iterate {
            t,
            p,
            scale,
            stride,
            ..
        } = *iterate;
        let factors = &*iterate.coefficients;
        let biases_from = out.len() - factors.len() / stride;
        let (weights, biases) = out.split_at_mut(biases_from);
        let (start_weights, start_biases) = start.split_at(biases_from);
        let sum = Combination {
            base: (t, start_weights),
            factors,
            stride,
            scale,
        };
        combine(simd, rows, sum, weights);
        let of_class = factors.chunks_exact(stride);
        for ((bias, start), of_class) in biases.iter_mut().zip(start_biases).zip(of_class) {
            *bias = t * start + scale * of_class.iter().sum::<f32>();
        }
        for (moved, pulled) in out.iter_mut().zip(pulled.unwrap_or_default()) {
            *moved += p * pulled;
        }
    }
}

#[cfg(test)]
mod tests;
