//! Softmax regression for C classes.

use super::{BATCH_GROUP, Const, Dim, FixedModel, Model, ModelKind, Parametric, Tensors};
use crate::{
    lanes::WIDE,
    math::{exp_below_one, exp_each, ln},
};

/// Softmax regression: P(class c) ∝ e^(w_c·x + b_c), with the loss −ln P(class).
///
/// The model never predicts a target that is not a class: training pushes away from all classes.
#[derive(Clone, Copy, Debug)]
pub struct Softmax<D: Dim, C: Dim> {
    features: D,
    classes: C,
}

impl<D: Dim, C: Dim> Softmax<D, C> {
    /// Creates a model of `features` features for `classes` classes, with one bias for each class.
    pub const fn new(features: D, classes: C) -> Self {
        Self { features, classes }
    }
}

impl<D: Dim, C: Dim> Parametric for Softmax<D, C> {
    #[inline(always)]
    fn feature_count(&self) -> usize {
        self.features.get()
    }

    #[inline(always)]
    fn output_count(&self) -> usize {
        self.classes.get()
    }

    #[inline(always)]
    fn parameter_count(&self) -> usize {
        Tensors::affine_total(self.features.get(), self.classes.get())
    }
}

impl<D: Dim, C: Dim> Model for Softmax<D, C> {
    type Target = u16;
    type Tensors = Tensors<2>;
    const KIND: ModelKind = ModelKind::Softmax;
    const LARGEST_TENSOR: usize = D::LARGEST.saturating_mul(C::LARGEST);
    const HAS_HALVES: bool = true;

    fn tensors(&self) -> Tensors<2> {
        Tensors::affine(self.features.get(), self.classes.get())
    }

    #[inline(always)]
    fn loss_in_place(&self, scores: &mut [f32], target: u16) -> f32 {
        cross_entropy(scores, target)
    }

    /// Computes the exponentials of all samples side by side on machines with vectors.
    #[inline(always)]
    fn losses_in_place(
        &self,
        scores: &mut [f32],
        mut targets: impl Iterator<Item = u16>,
        mut each: impl FnMut(f32),
    ) {
        let classes = self.classes.get().max(1);
        if !WIDE {
            for (row, target) in scores.chunks_exact_mut(classes).zip(targets) {
                each(cross_entropy(row, target));
            }
            return;
        }
        for scores in scores.chunks_mut(classes * BATCH_GROUP) {
            let mut own = [(0, 0.0); BATCH_GROUP];
            let rows = scores.chunks_exact_mut(classes).zip(&mut own);
            for ((row, own), target) in rows.zip(&mut targets) {
                let largest = largest(row);
                *own = (target, relative(row, target, largest));
                for score in row {
                    *score -= largest;
                }
            }
            exp_each(scores);
            for (row, (target, own)) in scores.chunks_exact_mut(classes).zip(own) {
                let mut exponentials = 0.0;
                for score in row.iter() {
                    exponentials += score;
                }
                differentiate(row, target, exponentials);
                each(ln(exponentials) - own);
            }
        }
    }

    #[inline]
    fn predict(&self, scores: &[f32]) -> u16 {
        most_likely(scores)
    }

    #[inline]
    fn probabilities_in_place(&self, scores: &mut [f32]) {
        probabilities_in_place(scores);
    }

    #[inline(always)]
    fn has_target(&self, target: u16) -> bool {
        usize::from(target) < self.classes.get()
    }
}

/// Turns the logits into the probabilities of all classes: the derivatives of the loss for a target
/// that is not a class.
#[inline(always)]
pub(super) fn probabilities_in_place(scores: &mut [f32]) {
    // Models have at most 65,535 classes.
    cross_entropy(scores, u16::MAX);
}

/// Returns −ln P(target) from the logits, and replaces them by the derivatives of the loss.
#[inline(always)]
pub(super) fn cross_entropy(scores: &mut [f32], target: u16) -> f32 {
    let largest = largest(scores);
    let own = relative(scores, target, largest);
    // log-sum-exp: shifted by the largest score, so nothing overflows. The sum runs over the
    // classes in order.
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = exp_below_one(*score - largest);
        sum += *score;
    }
    differentiate(scores, target, sum);
    ln(sum) - own
}

#[inline(always)]
fn largest(scores: &[f32]) -> f32 {
    // Comparisons with NaN are false. NaN reappears in the sum.
    scores.iter().fold(f32::NEG_INFINITY, |largest, score| {
        if *score > largest { *score } else { largest }
    })
}

/// Returns the score of the target relative to the largest, or 0 if the target is not a class.
#[inline(always)]
fn relative(scores: &[f32], target: u16, largest: f32) -> f32 {
    scores
        .get(usize::from(target))
        .map_or(0.0, |score| score - largest)
}

/// Computes the derivatives of the loss from exponentials with this sum.
#[inline(always)]
fn differentiate(scores: &mut [f32], target: u16, sum: f32) {
    let factor = 1.0 / sum;
    for score in scores.iter_mut() {
        *score *= factor;
    }
    if let Some(probability) = scores.get_mut(usize::from(target)) {
        *probability -= 1.0;
    }
}

/// Returns the first class with the largest score.
#[inline]
pub(super) fn most_likely(scores: &[f32]) -> u16 {
    let mut best = (0, f32::NEG_INFINITY);
    for (class, score) in (0..).zip(scores) {
        if *score > best.1 {
            best = (class, *score);
        }
    }
    best.0
}

impl<const N: usize, const C: usize> FixedModel for Softmax<Const<N>, Const<C>> {
    const PARAMETERS: usize = (N + 1) * C;
    const OUTPUTS: usize = C;
}
