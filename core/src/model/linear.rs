//! Linear regression with the squared loss.

use super::{Const, Dim, FixedModel, Model, ModelKind, Parametric, Tensors};

/// Linear regression. Predicts `w·x + b`, with the loss (w·x + b − y)² / 2.
#[derive(Clone, Copy, Debug)]
pub struct Linear<D: Dim> {
    features: D,
}

impl<D: Dim> Linear<D> {
    /// Creates a model of `features` features and one bias.
    pub const fn new(features: D) -> Self {
        Self { features }
    }
}

impl<D: Dim> Parametric for Linear<D> {
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

impl<D: Dim> Model for Linear<D> {
    type Target = f32;
    type Tensors = Tensors<2>;
    const KIND: ModelKind = ModelKind::Linear;
    const LARGEST_TENSOR: usize = D::LARGEST;
    const HAS_HALVES: bool = true;

    fn tensors(&self) -> Tensors<2> {
        Tensors::affine(self.features.get(), 1)
    }

    #[inline(always)]
    fn loss_in_place(&self, scores: &mut [f32], target: f32) -> f32 {
        let mut loss = 0.0;
        for score in scores {
            *score -= target;
            loss += 0.5 * *score * *score;
        }
        loss
    }

    #[inline]
    fn predict(&self, scores: &[f32]) -> f32 {
        scores.first().copied().unwrap_or(0.0)
    }

    fn probabilities_in_place(&self, _: &mut [f32]) {}

    #[inline(always)]
    fn has_target(&self, target: f32) -> bool {
        target.is_finite()
    }
}

impl<const N: usize> FixedModel for Linear<Const<N>> {
    const PARAMETERS: usize = N + 1;
    const OUTPUTS: usize = 1;
}
