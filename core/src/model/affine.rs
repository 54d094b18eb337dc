//! What linear scores share: scores `Wx + b` of a batch, and the gradient from their residuals.

use core::ops::Range;

use super::{error::ModelError, tensors::Tensors};
use crate::{
    lanes::{LANES, SPAN, WIDE, axpys, dot, dots, each_lane},
    samples::Samples,
};

/// Samples whose scores are kept at once when `scratch` has room for them.
pub const BATCH_GROUP: usize = 16;

/// Samples and rows of W side by side in [`dots`] with vectors: ten sums of eight lanes.
const TILE_SAMPLES: usize = 2;
const TILE_ROWS: usize = 5;

/// Features of a block, at most, when a gradient is summed up; a multiple of [`SPAN`].
const BLOCK: usize = 5 * SPAN;

/// Samples side by side when a gradient is summed up with vectors.
const TILE_SUM: usize = 10;

/// The sizes of an affine layer.
#[derive(Clone, Copy)]
pub(super) struct Affine {
    features: usize,
    outputs: usize,
}

/// The parameters of an affine layer.
#[derive(Clone, Copy)]
pub(super) struct Layer<'a> {
    pub(super) weights: &'a [f32],
    pub(super) biases: &'a [f32],
}

impl Affine {
    #[inline(always)]
    pub(super) const fn of(features: usize, outputs: usize) -> Self {
        Self { features, outputs }
    }

    /// The parameters as weights and biases, once all lengths are known to fit.
    #[inline(always)]
    fn split(self, parameters: &[f32]) -> Result<Layer<'_>, ModelError> {
        let Self { features, outputs } = self;
        if features == 0 || outputs == 0 {
            return Err(ModelError::Empty);
        }
        let expected = Tensors::affine(features, outputs).total();
        let wrong = ModelError::Parameters {
            expected,
            found: parameters.len(),
        };
        if parameters.len() != expected {
            return Err(wrong);
        }
        let (weights, biases) = parameters
            .split_at_checked(features.saturating_mul(outputs))
            .ok_or(wrong)?;
        Ok(Layer { weights, biases })
    }

    /// Mean loss and mean gradient of a batch, for any loss on top of `Wx + b`: `loss` gives that
    /// of a sample from its scores, which become the derivatives of the loss by them.
    #[inline(always)]
    pub(super) fn loss_and_gradient<S: Samples>(
        self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scratch: &mut [f32],
        gradient: &mut [f32],
        loss: impl Fn(&mut [f32], S::Target) -> f32,
    ) -> Result<f32, ModelError> {
        let layer = self.split(parameters)?;
        let outputs = self.outputs;
        if gradient.len() != parameters.len() {
            let (expected, found) = (parameters.len(), gradient.len());
            return Err(ModelError::Parameters { expected, found });
        }
        let group = (scratch.len() / outputs).min(BATCH_GROUP);
        if group == 0 {
            return Err(ModelError::Scratch {
                expected: outputs,
                found: scratch.len(),
            });
        }
        check_batch(self.features, samples, batch)?;

        let (weight_gradient, bias_gradient) = gradient.split_at_mut(layer.weights.len());
        bias_gradient.fill(0.0);
        let mean = 1.0 / batch.len() as f32;
        let mut sum_of_losses = 0.0;
        // The first sample's part is written, not added: there is one at least.
        let mut fresh = true;
        for indices in batch.chunks(group) {
            let Some(scores) = scratch.get_mut(..indices.len() * outputs) else {
                return Err(ModelError::Scratch {
                    expected: outputs,
                    found: 0,
                });
            };
            batch_scores(layer, samples, indices, scores);
            for (row, index) in scores.chunks_exact_mut(outputs).zip(indices) {
                sum_of_losses += loss(row, samples.target(*index as usize));
                for (residual, sum) in row.iter_mut().zip(bias_gradient.iter_mut()) {
                    *residual *= mean;
                    *sum += *residual;
                }
            }
            add_outer_products(scores, samples, indices, outputs, weight_gradient, fresh);
            fresh = false;
        }
        Ok(sum_of_losses * mean)
    }

    /// Scores of a batch, after checking that all lengths fit.
    #[inline(always)]
    pub(super) fn scores<S: Samples>(
        self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        let layer = self.split(parameters)?;
        check_batch(self.features, samples, batch)?;
        let (expected, found) = (batch.len() * self.outputs, scores.len());
        if found != expected {
            return Err(ModelError::Scratch { expected, found });
        }
        batch_scores(layer, samples, batch, scores);
        Ok(())
    }
}

/// Whether `batch` names samples that exist and have this many features.
pub(super) fn check_batch<S: Samples>(
    expected: usize,
    samples: &S,
    batch: &[u32],
) -> Result<(), ModelError> {
    let count = samples.len();
    if batch.is_empty() {
        return Err(ModelError::Batch);
    }
    for index in batch {
        let index = *index as usize;
        if index >= count {
            return Err(ModelError::Batch);
        }
        let found = samples.features(index).len();
        if found != expected {
            return Err(ModelError::Features { expected, found });
        }
    }
    Ok(())
}

/// `scores[s][c] = b_c + w_c·x_s` for the samples that `indices` names.
///
/// Rows of W are the outer loop: a tile of them stays in the first-level cache for all samples.
#[inline(always)]
pub(super) fn batch_scores<S: Samples>(
    Layer { weights, biases }: Layer<'_>,
    samples: &S,
    indices: &[u32],
    scores: &mut [f32],
) {
    let outputs = biases.len();
    let features = weights.len() / outputs.max(1);
    if !WIDE {
        for (index, scores) in indices.iter().zip(scores.chunks_exact_mut(outputs.max(1))) {
            let x = samples.features(*index as usize);
            let rows = weights.chunks_exact(features.max(1)).zip(biases);
            for (score, (row, bias)) in scores.iter_mut().zip(rows) {
                *score = dot(x, row) + bias;
            }
        }
        return;
    }
    let mut first = 0;
    while first < outputs {
        // Few widths, because each is compiled once a model: most rows come in full tiles.
        let width = match outputs - first {
            left if left >= TILE_ROWS => TILE_ROWS,
            left if left >= 2 => 2,
            _ => 1,
        };
        let tile = Tile {
            rows: weights.get(first * features..).unwrap_or_default(),
            biases: biases.get(first..first + width).unwrap_or_default(),
            features,
            first,
            outputs,
        };
        match width {
            TILE_ROWS => tile.scores::<TILE_ROWS, S>(samples, indices, scores),
            2 => tile.scores::<2, S>(samples, indices, scores),
            _ => tile.scores::<1, S>(samples, indices, scores),
        }
        first += width;
    }
}

/// Some consecutive rows of W with their biases.
struct Tile<'a> {
    rows: &'a [f32],
    biases: &'a [f32],
    features: usize,
    first: usize,
    outputs: usize,
}

impl Tile<'_> {
    /// The scores of `R` rows for all samples, [`TILE_SAMPLES`] at a time.
    #[inline(always)]
    fn scores<const R: usize, S: Samples>(&self, samples: &S, indices: &[u32], scores: &mut [f32]) {
        let rows: [&[f32]; R] = core::array::from_fn(|r| {
            self.rows
                .get(r * self.features..(r + 1) * self.features)
                .unwrap_or_default()
        });
        let (pairs, rest) = indices.as_chunks::<TILE_SAMPLES>();
        // There are as many scores: the smaller length only tells the compiler so.
        let middle = (pairs.len() * TILE_SAMPLES * self.outputs).min(scores.len());
        let (paired, last) = scores.split_at_mut(middle);
        for (pair, scores) in pairs
            .iter()
            .zip(paired.chunks_exact_mut(TILE_SAMPLES * self.outputs))
        {
            self.write(
                dots(pair.map(|i| samples.features(i as usize)), rows),
                scores,
            );
        }
        for (index, scores) in rest.iter().zip(last.chunks_exact_mut(self.outputs)) {
            self.write(dots([samples.features(*index as usize)], rows), scores);
        }
    }

    #[inline(always)]
    fn write<const S: usize, const R: usize>(&self, products: [[f32; R]; S], scores: &mut [f32]) {
        for (products, scores) in products.iter().zip(scores.chunks_exact_mut(self.outputs)) {
            let scores = scores.get_mut(self.first..).unwrap_or_default();
            for ((score, product), bias) in scores.iter_mut().zip(products).zip(self.biases) {
                *score = product + bias;
            }
        }
    }
}

/// `gradient[c] += Σ_s residuals[s][c] · x_s`, one sample after the other; if `fresh` in the place
/// of what was there.
///
/// Features are the outer loop: the samples' and the gradient's parts of one block of features fit
/// into the first-level cache together.
#[inline(always)]
pub(super) fn add_outer_products<S: Samples>(
    residuals: &[f32],
    samples: &S,
    indices: &[u32],
    outputs: usize,
    gradient: &mut [f32],
    mut fresh: bool,
) {
    let features = gradient.len() / outputs;
    if !WIDE {
        for (index, residuals) in indices.iter().zip(residuals.chunks_exact(outputs)) {
            add_outer_product(
                residuals,
                samples.features(*index as usize),
                gradient,
                fresh,
            );
            fresh = false;
        }
        return;
    }
    let blocks = features.div_ceil(BLOCK).max(1);
    let block = features.div_ceil(blocks).next_multiple_of(SPAN);
    let (tiles, rest) = indices.as_chunks::<TILE_SUM>();
    // There are as many residuals: the smaller length only tells the compiler so.
    let middle = (tiles.len() * TILE_SUM * outputs).min(residuals.len());
    let (tiled, last) = residuals.split_at(middle);
    for start in (0..features).step_by(block) {
        let block = start..features.min(start + block);
        let mut fresh = fresh;
        for (tile, residuals) in tiles.iter().zip(tiled.chunks_exact(TILE_SUM * outputs)) {
            add_tile(
                residuals,
                samples,
                tile,
                outputs,
                gradient,
                block.clone(),
                fresh,
            );
            fresh = false;
        }
        for (index, residuals) in rest.iter().zip(last.chunks_exact(outputs)) {
            let tile = &[*index];
            add_tile(
                residuals,
                samples,
                tile,
                outputs,
                gradient,
                block.clone(),
                fresh,
            );
            fresh = false;
        }
    }
}

/// [`add_outer_products`] of one sample without vectors: eight of its values at a time stay in
/// registers for all rows.
#[inline(always)]
fn add_outer_product(residuals: &[f32], x: &[f32], gradient: &mut [f32], fresh: bool) {
    let features = x.len().max(1);
    let (blocks, rest) = x.as_chunks::<LANES>();
    for (block, x) in blocks.iter().enumerate() {
        for (row, a) in gradient.chunks_exact_mut(features).zip(residuals) {
            let (row, _) = row.as_chunks_mut::<LANES>();
            match row.get_mut(block) {
                // Not the product itself: 0 + −0 is 0.
                Some(row) if fresh => each_lane!(l, { row[l] = 0.0 + a * x[l] }),
                Some(row) => each_lane!(l, { row[l] += a * x[l] }),
                None => {}
            }
        }
    }
    for (row, a) in gradient.chunks_exact_mut(features).zip(residuals) {
        let (_, row) = row.as_chunks_mut::<LANES>();
        for (y, x) in row.iter_mut().zip(rest) {
            *y = if fresh { 0.0 } else { *y } + a * x;
        }
    }
}

#[inline(always)]
fn add_tile<const T: usize, S: Samples>(
    residuals: &[f32],
    samples: &S,
    indices: &[u32; T],
    outputs: usize,
    gradient: &mut [f32],
    block: Range<usize>,
    fresh: bool,
) {
    let x = indices.map(|index| {
        samples
            .features(index as usize)
            .get(block.clone())
            .unwrap_or_default()
    });
    let features = gradient.len() / outputs;
    for (c, row) in gradient.chunks_exact_mut(features).enumerate() {
        let a = core::array::from_fn(|s| residuals.get(s * outputs + c).copied().unwrap_or(0.0));
        let row = row.get_mut(block.clone()).unwrap_or_default();
        if fresh {
            axpys::<T, true>(a, x, row);
        } else {
            axpys::<T, false>(a, x, row);
        }
    }
}
