//! The correlation matrix of a device, clipped, on the integer grid, with noise (Algorithm 2,
//! DP-CalR).
//!
//! **Packed.** A symmetric matrix of width H is its upper triangle, row by row, with the
//! off-diagonal entries times √2: H(H + 1)/2 numbers whose L2 norm is the matrix's Frobenius norm.
//! Noise of std σ on each of them is noise of std σ on the diagonal and σ/√2 off it, the law of
//! symmetrised noise of std σ on all H² entries (papers.md F2). Half of the entries are drawn and
//! sent. The norm is the same, and so are the sensitivity and the guarantee.
//!
//! **Sensitivity.** A sample with 2V views adds the mean of `z zᵀ` over its views, z clipped to
//! norm √μ: a positive semi-definite matrix of norm at most μ. Replacing a sample removes one such
//! matrix A and adds another one B. As Tr(AB) ≥ 0, `‖A − B‖² ≤ ‖A‖² + ‖B‖² ≤ 2μ²`. So the **sum**
//! moves by at most √2·μ, and the mean by √2·μ/n (papers.md F1, where the paper has μ/n). n is
//! public. A sample whose matrix is not finite adds nothing, which does not move the sum further.
//! If the whole sum were discarded instead, one sample could remove all others.
//!
//! **On the grid.** Each sample's matrix is rounded toward zero onto the grid of μ before it is
//! added, so the sum is exact, and no order or rounding of a sum can move it further. Rounding
//! moves each of the d = H(H + 1)/2 entries of a matrix by less than a step, and `f32` by at most
//! (2V + 4) · 2⁻²⁴ μ, so the sum of integers moves by at most √2·2^b + 2√d (1 + (2V + 4) · 2^(b −
//! 24)) steps: [`sensitivity_in_steps`].

use rand_core::CryptoRng;

use crate::{
    lanes, math, model::ModelError, noise::DiscreteGaussian, quantize::Grid, train::TrainError,
};

use super::{Representation, Views};

/// √2, the factor of off-diagonal entries.
const ROOT_2: f32 = core::f32::consts::SQRT_2;

/// Returns the number of entries of a packed matrix of width `width`.
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

/// Returns Σ AᵢⱼBᵢⱼ of two packed matrices: their plain dot product.
#[inline(always)]
#[must_use]
pub fn inner_product(a: &[f32], b: &[f32]) -> f32 {
    lanes::dot(a, b)
}

/// Computes `to = A z`, A packed.
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

/// Returns a bound on the change of the sum of [`sum_into`] when one sample, with 2 · `pairs`
/// views, is replaced, in steps of a grid of `bits` bits.
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
    /// A representation: H.
    pub representation: &'a mut [f32],
    /// A packed matrix.
    pub matrix: &'a mut [f32],
}

/// Computes the sum of the samples' clipped matrices, in steps of `grid`, with the device's noise.
/// The grid's clip norm is μ. For n samples the correlation matrix is `sum · step / n`.
///
/// A sample whose representations are not finite adds nothing. With noise, this cannot be detected.
///
/// # Errors
/// Those of [`sum_samples`], and [`TrainError::Diverged`] if, without noise, a representation is
/// not finite. Nothing may then be sent.
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

/// Like [`sum_into`] without the noise, which must be added before anything is sent. Calls `add`
/// with the place of an entry and the steps that a sample adds to it. Returns whether all samples
/// are in the sum. This result is private, too.
///
/// # Errors
/// [`TrainError::NoSamples`] without samples or views, [`TrainError::Workspace`] if a length does
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
    // the clipping, less than one for each added view, and an eighth of one for each number (a norm
    // has eight lanes). Subtracting this leaves the quantizer nothing to repair.
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
                // A sample that the encoder cannot read is not reported.
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

/// Computes R̄ of all other devices from R̄ of all devices and the device's own R:
/// `(R̄ − q R) / (1 − q)`, with q the device's share of all samples. All zero if there are no other
/// devices.
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
