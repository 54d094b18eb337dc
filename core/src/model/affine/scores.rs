//! The scores `Wx + b` of a batch, row by row or with vector registers.

use super::batch::{Batch, Layer, next_rows};
use crate::{
    lanes::{REGISTERS, WIDE, dot, dots, dots_of_pair, two_dots_by_blocks},
    samples::Samples,
};

/// Computes `scores[s][c] = b_c + w_c·x_s` for the samples in `indices`.
///
/// Rows of W are the outer loop: a tile of them stays in the first-level cache for all samples.
#[inline(always)]
pub(in super::super) fn batch_scores<S: Samples>(
    Layer { weights, biases }: Layer<'_>,
    batch: &Batch<'_, S>,
    scores: &mut [f32],
) {
    let outputs = biases.len();
    let features = weights.len() / outputs.max(1);
    if !WIDE {
        for (index, scores) in (batch.indices.iter()).zip(scores.chunks_exact_mut(outputs.max(1))) {
            // The length of every sample, known to the compiler if the model's sizes are.
            let x = batch.samples.features(*index as usize).get(..features);
            let layer = Layer { weights, biases };
            match x {
                Some(x) if REGISTERS => scores_by_pairs(layer, x, scores),
                Some(x) => scores_by_rows(layer, x, scores),
                None => {}
            }
        }
        return;
    }
    let mut first = 0;
    while first < outputs {
        let width = next_rows(outputs - first);
        let tile = Tile {
            rows: weights.get(first * features..).unwrap_or_default(),
            biases: biases.get(first..first + width).unwrap_or_default(),
            features,
            first,
            outputs,
        };
        match width {
            5 => tile.scores::<5, S>(batch, scores),
            2 => tile.scores::<2, S>(batch, scores),
            _ => tile.scores::<1, S>(batch, scores),
        }
        first += width;
    }
}

/// Computes the scores of one sample, row by row.
#[inline(always)]
fn scores_by_rows(Layer { weights, biases }: Layer<'_>, x: &[f32], scores: &mut [f32]) {
    let rows = weights.chunks_exact(x.len().max(1)).zip(biases);
    for (score, (row, bias)) in scores.iter_mut().zip(rows) {
        *score = dot(x, row) + bias;
    }
}

/// Computes the scores of one sample with vector registers: two rows at a time share the loads of
/// x.
#[inline(always)]
fn scores_by_pairs(Layer { weights, biases }: Layer<'_>, x: &[f32], scores: &mut [f32]) {
    let features = x.len().max(1);
    let mut rows = weights.chunks_exact(2 * features);
    let (score_pairs, last_score) = scores.as_chunks_mut::<2>();
    let (bias_pairs, biases) = biases.as_chunks::<2>();
    for ((scores, biases), rows) in score_pairs.iter_mut().zip(bias_pairs).zip(&mut rows) {
        let [first, second] = two_dots_by_blocks(x, rows.split_at(features).into());
        *scores = [first + biases[0], second + biases[1]];
    }
    let weights = rows.remainder();
    scores_by_rows(Layer { weights, biases }, x, last_score);
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
    /// Computes the scores of `R` rows for all samples, two at a time: with five rows, ten sums of
    /// lanes.
    #[inline(always)]
    fn scores<const R: usize, S: Samples>(&self, batch: &Batch<'_, S>, scores: &mut [f32]) {
        let Batch { samples, indices } = batch;
        let rows: [&[f32]; R] = core::array::from_fn(|r| {
            self.rows
                .get(r * self.features..(r + 1) * self.features)
                .unwrap_or_default()
        });
        let row = |index: &u32| samples.features(*index as usize);
        let (pairs, rest) = indices.as_chunks::<2>();
        // The lengths are equal. The minimum only tells the compiler so.
        let middle = (2 * pairs.len() * self.outputs).min(scores.len());
        let (paired, last) = scores.split_at_mut(middle);
        for (pair, scores) in (pairs.iter()).zip(paired.chunks_exact_mut(2 * self.outputs)) {
            self.write(dots_of_pair(pair.each_ref().map(row), rows), scores);
        }
        for (index, scores) in rest.iter().zip(last.chunks_exact_mut(self.outputs)) {
            self.write([dots(row(index), rows)], scores);
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
