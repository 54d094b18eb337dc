//! The correlation matrix of a device, clipped, on the integer grid, with noise (Algorithm 2,
//! DP-CalR).
//!
//! **Packed.** A symmetric matrix of width H is its upper triangle, row by row, with the
//! off-diagonal entries times √2: H(H + 1)/2 numbers whose L2 norm is the matrix's Frobenius norm.
//! Noise of std σ on each of them is noise of std σ on the diagonal and σ/√2 off it, the law of
//! noise of std σ on all H² entries that is then made symmetric (papers.md F2). Half is sent and
//! half is drawn, and as the norm is the same, so is the sensitivity, and with it the guarantee.
//!
//! **Sensitivity.** A sample with 2V views adds the mean of `z zᵀ` over its views, z clipped to
//! norm √μ: a positive semi-definite matrix of norm at most μ. Replacing a sample takes one such
//! matrix A away and adds another one B; as Tr(AB) ≥ 0, `‖A − B‖² ≤ ‖A‖² + ‖B‖² ≤ 2μ²`. So the
//! **sum** moves by at most √2·μ, and the mean by √2·μ/n (papers.md F1; the paper has μ/n). n is
//! public. A sample whose matrix is not finite adds nothing, which moves the sum by no more: were
//! the whole sum given up for it, one sample could take all others away.
//!
//! **On the grid.** Each sample's matrix is rounded toward zero onto the grid of μ before it is
//! added, so that the sum is exact and no order or rounding of a sum can make it move further.
//! Rounding moves each of the d = H(H + 1)/2 entries of a matrix by less than a step, and `f32` by
//! at most (2V + 4) · 2⁻²⁴ μ, so the sum of integers moves by at most √2·2^b + 2√d (1 + (2V + 4) ·
//! 2^(b − 24)) steps: [`sensitivity_in_steps`].

use rand_core::CryptoRng;

use crate::{
    lanes, math, model::ModelError, noise::DiscreteGaussian, quantize::Grid, train::TrainError,
};

use super::{Representation, Views};

/// √2, to what an off-diagonal entry is multiplied by.
const ROOT_2: f32 = core::f32::consts::SQRT_2;

/// Numbers of a packed matrix of width `width`.
#[must_use]
pub const fn packed_length(width: usize) -> usize {
    width * (width + 1) / 2
}

/// Adds `scale · z zᵀ` to a packed matrix.
#[inline(always)]
pub fn add_outer(z: &[f32], scale: f32, packed: &mut [f32]) {
    let mut rest = packed;
    for (index, a) in z.iter().enumerate() {
        let row = z.get(index..).unwrap_or_default();
        let Some((entries, after)) = rest.split_at_mut_checked(row.len()) else {
            return;
        };
        let (diagonal, beside) = (scale * a, scale * a * ROOT_2);
        let mut factor = diagonal;
        for (entry, b) in entries.iter_mut().zip(row) {
            *entry += factor * b;
            factor = beside;
        }
        rest = after;
    }
}

/// Σ AᵢⱼBᵢⱼ of two packed matrices: their plain dot product.
#[inline(always)]
#[must_use]
pub fn inner_product(a: &[f32], b: &[f32]) -> f32 {
    lanes::dot(a, b)
}

/// `to = A z`, A packed.
#[inline(always)]
pub fn times(packed: &[f32], z: &[f32], to: &mut [f32]) {
    const HALF_ROOT: f32 = core::f32::consts::FRAC_1_SQRT_2;
    to.fill(0.0);
    let mut rest = packed;
    for index in 0..z.len() {
        let Some((row, after)) = rest.split_at_checked(z.len() - index) else {
            return;
        };
        rest = after;
        for (offset, entry) in row.iter().enumerate() {
            let other = index + offset;
            let entry = if offset == 0 {
                *entry
            } else {
                entry * HALF_ROOT
            };
            let at = |place: usize| z.get(place).copied().unwrap_or(0.0);
            if let Some(to) = to.get_mut(index) {
                *to += entry * at(other);
            }
            if offset > 0
                && let Some(to) = to.get_mut(other)
            {
                *to += entry * at(index);
            }
        }
    }
}

/// Clips a representation to norm √bound.
#[inline(always)]
pub fn clip_to_root(z: &mut [f32], bound: f32) {
    let squares = lanes::squared_norm(z);
    if squares > bound {
        lanes::scale(z, math::sqrt(bound / squares));
    }
}

/// What replacing one sample, with 2 · `pairs` views, moves the sum of [`sum_into`] by, in steps of
/// a grid of `bits` bits: at most this.
#[must_use]
pub fn sensitivity_in_steps(bits: u32, width: usize, pairs: usize) -> f64 {
    let largest = (1u64 << bits) as f64;
    let root = libm::sqrt(packed_length(width) as f64);
    let rounding = 1.0 + (2 * pairs + 4) as f64 * largest / (1u64 << 24) as f64;
    core::f64::consts::SQRT_2 * largest + 2.0 * root * rounding
}

/// Working memory of [`sum_into`].
pub struct SumMemory<'a> {
    /// One view: D.
    pub view: &'a mut [f32],
    /// [`Representation::hidden_count`].
    pub hidden: &'a mut [f32],
    /// H.
    pub representation: &'a mut [f32],
    /// A packed matrix.
    pub matrix: &'a mut [f32],
}

/// The sum of each sample's clipped matrix, in steps of `grid`, and the device's noise. The grid's
/// clip norm is μ; over n samples the correlation matrix is `sum · step / n`.
///
/// A sample whose representations are not finite adds nothing; with noise, this cannot be detected.
///
/// # Errors
/// Those of [`sum_samples`]; [`TrainError::Diverged`] if, without noise, a representation is not
/// finite. Nothing may be sent then.
pub fn sum_into<R: Representation, V: Views, G: CryptoRng>(
    encoder: &R,
    parameters: &[f32],
    views: &V,
    grid: &Grid,
    noise: Option<(&DiscreteGaussian, &mut G)>,
    memory: &mut SumMemory<'_>,
    sum: &mut [i64],
) -> Result<(), TrainError> {
    let (expected, found) = (packed_length(encoder.output_count()), sum.len());
    if found != expected {
        return Err(TrainError::Workspace { expected, found });
    }
    sum.fill(0);
    let is_whole = sum_samples(encoder, parameters, views, grid, memory, |place, steps| {
        if let Some(sum) = sum.get_mut(place) {
            *sum += steps;
        }
    })?;
    match noise {
        Some((noise, stream)) => noise.add_to(sum, stream),
        None if !is_whole => return Err(TrainError::Diverged),
        None => {}
    }
    Ok(())
}

/// [`sum_into`] before the noise, which must be added before anything is sent: calls `add` with the
/// place of an entry and the steps that a sample adds to it. Returns whether all samples are in the
/// sum; that is private, too.
///
/// # Errors
/// [`TrainError::NoSamples`] without samples or views; [`TrainError::Workspace`] if a length does
/// not fit.
pub fn sum_samples<R: Representation, V: Views>(
    encoder: &R,
    parameters: &[f32],
    views: &V,
    grid: &Grid,
    memory: &mut SumMemory<'_>,
    mut add: impl FnMut(usize, i64),
) -> Result<bool, TrainError> {
    let numbers = 2 * views.pair_count();
    if views.sample_count() == 0 || numbers == 0 {
        return Err(TrainError::NoSamples);
    }
    let (expected, found) = (packed_length(encoder.output_count()), memory.matrix.len());
    if found != expected {
        return Err(TrainError::Workspace { expected, found });
    }
    let mean = 1.0 / numbers as f32;
    // A mean of matrices of norm μ, in f32, may exceed μ by its last bits: by a few epsilons from
    // the clipping, less than one for each view that is added, and an eighth of one for each number
    // (a norm has eight lanes). So much is taken off, and the quantizer has nothing to repair.
    let hair = (12 + numbers + encoder.output_count() / 8) as f32 * f32::EPSILON;
    let bound = grid.clip_norm().get() * (1.0 - hair);
    let mut is_whole = true;
    encoder.begin(parameters, memory.hidden)?;
    for sample in 0..views.sample_count() {
        memory.matrix.fill(0.0);
        for number in 0..numbers {
            views.write(sample as u32, number, memory.view);
            let z = &mut *memory.representation;
            match encoder.forward(parameters, memory.view, memory.hidden, z) {
                // A sample that the encoder cannot read says so to nobody.
                Err(ModelError::Symbol { .. }) => z.fill(f32::NAN),
                other => other?,
            }
            clip_to_root(z, bound);
            add_outer(z, mean, memory.matrix);
        }
        let Ok(quantizer) = grid.quantizer(memory.matrix) else {
            is_whole = false;
            continue;
        };
        for (place, entry) in memory.matrix.iter().enumerate() {
            add(place, i64::from(quantizer.get(*entry)));
        }
    }
    Ok(is_whole)
}

/// R̄ of all other devices, from that of all and the device's own: `(R̄ − q R) / (1 − q)`, q the
/// device's share of all samples. All zero if there is no other device.
pub fn without_own(all: &[f32], own: &[f32], share: f32, others: &mut [f32]) {
    let rest = 1.0 - share;
    for ((others, all), own) in others.iter_mut().zip(all).zip(own) {
        *others = if rest > 0.0 {
            (all - share * own) / rest
        } else {
            0.0
        };
    }
}
