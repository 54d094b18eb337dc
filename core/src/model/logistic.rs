//! Logistic regression for two classes.

use super::{Const, Dim, FixedModel, Model, ModelKind, Parametric, Tensors};
use crate::math::{sigmoid, softplus};

/// Logistic regression: P(class 1) = 1 / (1 + e^−(w·x + b)), with the loss −ln P(class).
///
/// Every target other than 0 counts as class 1.
#[derive(Clone, Copy, Debug)]
pub struct Logistic<D: Dim> {
    features: D,
}

impl<D: Dim> Logistic<D> {
    /// Creates a model of `features` features and one bias.
    pub const fn new(features: D) -> Self {
        Self { features }
    }
}

impl<D: Dim> Parametric for Logistic<D> {
    #[inline(always)]
    fn feature_count(&self) -> usize {
        self.features.get()
    }

    #[inline(always)]
    fn output_count(&self) -> usize {
        1
    }

    #[inline(always)]
    fn parameter_count(&self) -> usize {
        Tensors::affine_total(self.features.get(), 1)
    }
}

impl<D: Dim> Model for Logistic<D> {
    type Target = u16;
    type Tensors = Tensors<2>;
    const KIND: ModelKind = ModelKind::Logistic;
    const LARGEST_TENSOR: usize = D::LARGEST;
    const HAS_HALVES: bool = true;

    fn tensors(&self) -> Tensors<2> {
        Tensors::affine(self.features.get(), 1)
    }

    #[inline(always)]
    fn loss_in_place(&self, scores: &mut [f32], target: u16) -> f32 {
        let mut loss = 0.0;
        for score in scores {
            let z = *score;
            // −ln σ(z) = softplus(−z), −ln(1 − σ(z)) = softplus(z).
            let (signed, label) = if target == 0 { (z, 0.0) } else { (-z, 1.0) };
            *score = sigmoid(z) - label;
            loss += softplus(signed);
        }
        loss
    }

    #[inline]
    fn predict(&self, scores: &[f32]) -> u16 {
        u16::from(scores.first().is_some_and(|z| *z > 0.0))
    }

    #[inline]
    fn probabilities_in_place(&self, scores: &mut [f32]) {
        scores.iter_mut().for_each(|z| *z = sigmoid(*z));
    }

    #[inline(always)]
    fn has_target(&self, target: u16) -> bool {
        target < 2
    }
}

impl<const N: usize> FixedModel for Logistic<Const<N>> {
    const PARAMETERS: usize = N + 1;
    const OUTPUTS: usize = 1;
}
