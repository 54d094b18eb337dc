//! The gradient of a batch in integers: Σ r x over its samples, in 32 bits, and the largest batch.
//!
//! A batch of n samples uses residuals in units of 2^−R, with the largest R such that
//! `n · 2^R · 2^BITS ≤ 2³⁰`, so the sums have magnitude at most 2³⁰ and fit. The feature of a bias
//! is 1.

use super::{dot, loss::FixedPointModel, samples::FixedPointSamples};
use crate::format::{Feature, FeatureScale};
use crate::{model::ModelError, train::TrainError};

/// Binary logarithm of the largest summed gradient.
const MAX_BITS: u32 = 30;

/// Numbers of values that saturated in their format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saturations {
    /// Scores beyond ±2¹⁵.
    pub scores: u32,
    /// Residuals of values beyond ±16.
    pub residuals: u32,
    /// Weights beyond ±8, after a step.
    pub weights: u32,
}

/// Returns the sum of the losses of the samples in `batch`, in units of 2⁻¹⁶, and adds their
/// gradients to `gradient`.
///
/// * Shape: `parameters` and `gradient` are as long as the model.
/// * Units: the units of residuals times the units of features. Residuals are shifted to the left
///   as far as a batch of this length fits 32 bits.
/// * Cost: two products of 32 bits for each weight of each sample.
///
/// # Errors
/// [`TrainError`] if a length does not fit, or the batch is too long.
#[inline(always)]
pub fn loss_and_gradient<M, S>(
    model: &M,
    samples: &S,
    scale: FeatureScale,
    parameters: &[i32],
    batch: &[u32],
    mut scratch: Scratch<'_>,
    gradient: &mut [i32],
) -> Result<u64, TrainError>
where
    M: FixedPointModel,
    S: FixedPointSamples<Target = M::FixedPointTarget>,
{
    let places = residual_places::<S::Feature>(batch.len()).ok_or(TrainError::Range)?;
    let gradients = Gradients {
        model,
        samples,
        scale,
    };
    let (scratch, counts) = (&mut scratch, &mut Saturations::default());
    gradients.add_to(gradient, parameters, batch, places, scratch, counts)
}

/// Returns R − 16 for batches of `length` samples, or `None` if R would be below 4.
pub(super) fn residual_places<X: Feature>(length: usize) -> Option<i32> {
    // length ≤ 2^log.
    let log = usize::BITS - length.saturating_sub(1).leading_zeros();
    let places = MAX_BITS.cast_signed() - (X::BITS + log + 16).cast_signed();
    (places >= -12).then_some(places)
}

impl Saturations {
    /// Returns the total number.
    pub const fn total(&self) -> u32 {
        let some = self.scores.saturating_add(self.residuals);
        some.saturating_add(self.weights)
    }
}

/// Memory for one sample.
pub struct Scratch<'a> {
    /// Scores, with at least one entry for each output of the model.
    pub scores: &'a mut [i32],
    /// Features, with at least one entry for each feature of the model.
    pub row: &'a mut [i32],
}

/// The gradients of a model on a device's samples.
pub(super) struct Gradients<'a, M, S> {
    pub(super) model: &'a M,
    pub(super) samples: &'a S,
    pub(super) scale: FeatureScale,
}

impl<M, S> Gradients<'_, M, S>
where
    M: FixedPointModel,
    S: FixedPointSamples<Target = M::FixedPointTarget>,
{
    /// Adds Σ r x over a batch to `gradient`, and returns the sum of the losses. Residuals are
    /// shifted by `places` to the left.
    #[inline(always)]
    pub(super) fn add_to(
        &self,
        gradient: &mut [i32],
        local: &[i32],
        batch: &[u32],
        places: i32,
        scratch: &mut Scratch<'_>,
        counts: &mut Saturations,
    ) -> Result<u64, TrainError> {
        let (features, outputs) = (self.model.feature_count(), self.model.output_count());
        let misfit = |expected, found| ModelError::Scratch { expected, found };
        let found = scratch.scores.len();
        let scores = scratch.scores.get_mut(..outputs);
        let scores = scores.ok_or(misfit(outputs, found))?;
        let found = scratch.row.len();
        let row = scratch.row.get_mut(..features);
        let row = row.ok_or(misfit(features, found))?;
        let weight_count = features * outputs;
        let (Some((weights, biases)), Some((gradient, bias_gradient))) = (
            local.split_at_checked(weight_count),
            gradient.split_at_mut_checked(weight_count),
        ) else {
            return Err(ModelError::Empty.into());
        };
        let mut loss = 0;
        for index in batch {
            let index = *index as usize;
            let found = self.samples.read(index, row);
            if found != features {
                let expected = features;
                return Err(ModelError::Features { expected, found }.into());
            }
            let saturated = dot::scores::<S::Feature>(weights, biases, row, self.scale, scores);
            counts.scores = counts.scores.saturating_add(saturated);
            let target = self.samples.target(index);
            let (sample_loss, saturated) = self.model.residuals_in_place(scores, target);
            counts.residuals = counts.residuals.saturating_add(saturated);
            loss += u64::from(sample_loss);
            let rows = gradient.chunks_exact_mut(features.max(1));
            let one = 1 << self.scale.fraction();
            for ((sums, bias_sum), residual) in rows.zip(&mut *bias_gradient).zip(&*scores) {
                let residual = in_units(*residual, places);
                add_products(sums, residual, row);
                *bias_sum += residual * one;
            }
        }
        Ok(loss)
    }
}

/// Converts a residual to the units of its batch: shifts it to the left, or rounds it.
#[inline(always)]
const fn in_units(residual: i32, places: i32) -> i32 {
    if places >= 0 {
        residual << places
    } else {
        (residual + (1 << (-places - 1))) >> -places
    }
}

/// Unrolled products: limited by the short offsets from a base on a Cortex-M0, and by the number of
/// registers on RISC-V.
const UNROLLED: usize = if cfg!(target_arch = "riscv32") { 8 } else { 32 };

/// Adds r x.
///
/// A separate function on boards, so that the compiler does not unroll a row of known length into
/// code that spills registers.
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(always))]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    inline(never)
)]
fn add_products(sums: &mut [i32], residual: i32, x: &[i32]) {
    let (sums, last_sums) = sums.as_chunks_mut::<UNROLLED>();
    let (x, last_x) = dot::of_any_length(x).as_chunks::<UNROLLED>();
    for (sums, x) in sums.iter_mut().zip(x) {
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum += residual * x;
        }
    }
    for (sum, x) in last_sums.iter_mut().zip(last_x) {
        *sum += residual * x;
    }
}
