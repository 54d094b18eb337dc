//! Encoders for learning without labels: from a sample to its representation, and back with
//! derivatives, by a linear map or a network.

use rand_core::Rng;

use crate::{
    lanes, math,
    model::{Dim, Encoder, ModelError, ModelKind, Parametric, Sequential},
    stream,
};

/// A map from D features to H numbers.
///
/// Call [`Self::begin`] before the samples of a batch, and [`Self::end`] after their derivatives.
pub trait Representation: Parametric {
    /// Returns the kind of the encoder, as in messages.
    fn kind(&self) -> ModelKind;

    /// Returns the number of entries of working memory: the hidden values between the two passes,
    /// and the memory of layers.
    fn hidden_count(&self) -> usize;

    /// Prepares `hidden` for samples with these parameters, if necessary.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit.
    #[inline(always)]
    fn begin(&self, parameters: &[f32], hidden: &mut [f32]) -> Result<(), ModelError> {
        let _ = (parameters, hidden);
        Ok(())
    }

    /// Completes the gradient of all samples since [`Self::begin`]. It must have been 0 then.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit.
    #[inline(always)]
    fn end(&self, hidden: &mut [f32], gradient: &mut [f32]) -> Result<(), ModelError> {
        let _ = (hidden, gradient);
        Ok(())
    }

    /// Computes the representation of a sample, and keeps `hidden` for [`Self::backward`].
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit, or the encoder cannot read a feature.
    fn forward(
        &self,
        parameters: &[f32],
        features: &[f32],
        hidden: &mut [f32],
        representation: &mut [f32],
    ) -> Result<(), ModelError>;

    /// Adds the derivative with respect to the parameters, from the derivative with respect to the
    /// representation. `hidden` comes unchanged from [`Self::forward`], and is overwritten.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit.
    fn backward(
        &self,
        parameters: &[f32],
        features: &[f32],
        hidden: &mut [f32],
        derivative: &[f32],
        gradient: &mut [f32],
    ) -> Result<(), ModelError>;
}

/// A linear map without biases: z = Wx, W class-major (one row for each number of z).
#[derive(Clone, Copy, Debug)]
pub struct Projection<D: Dim, H: Dim> {
    features: D,
    width: H,
}

impl<D: Dim, H: Dim> Projection<D, H> {
    /// Creates a map from `features` to `width` numbers.
    pub const fn new(features: D, width: H) -> Self {
        Self { features, width }
    }

    /// Draws the parameters from the uniform distribution of variance 1/features. They do not
    /// depend on data.
    pub fn initialise(&self, parameters: &mut [f32], rng: &mut impl Rng) {
        let reach = math::sqrt(3.0 / self.features.get() as f32);
        for weight in parameters {
            *weight = reach * stream::symmetric(rng);
        }
    }
}

impl<D: Dim, H: Dim> Parametric for Projection<D, H> {
    #[inline(always)]
    fn feature_count(&self) -> usize {
        self.features.get()
    }

    #[inline(always)]
    fn output_count(&self) -> usize {
        self.width.get()
    }

    fn parameter_count(&self) -> usize {
        self.features.get().saturating_mul(self.width.get())
    }
}

impl<D: Dim, H: Dim> Representation for Projection<D, H> {
    fn kind(&self) -> ModelKind {
        ModelKind::Projection
    }

    fn hidden_count(&self) -> usize {
        0
    }

    #[inline(always)]
    fn forward(
        &self,
        parameters: &[f32],
        features: &[f32],
        _: &mut [f32],
        representation: &mut [f32],
    ) -> Result<(), ModelError> {
        let count = self.features.get();
        if count == 0 || features.len() != count {
            return Err(ModelError::Features {
                expected: count,
                found: features.len(),
            });
        }
        for (z, row) in representation
            .iter_mut()
            .zip(parameters.chunks_exact(count))
        {
            *z = lanes::dot(features, row);
        }
        Ok(())
    }

    #[inline(always)]
    fn backward(
        &self,
        _: &[f32],
        features: &[f32],
        _: &mut [f32],
        derivative: &[f32],
        gradient: &mut [f32],
    ) -> Result<(), ModelError> {
        let count = self.features.get().max(1);
        for (row, derivative) in gradient.chunks_exact_mut(count).zip(derivative) {
            lanes::axpy(*derivative, features, row);
        }
        Ok(())
    }
}

/// The scores of the network are the representation.
impl<D: Dim, U: Dim, H: Dim> Representation for Encoder<D, U, H> {
    fn kind(&self) -> ModelKind {
        ModelKind::Encoder
    }

    fn hidden_count(&self) -> usize {
        Self::hidden_count(self)
    }

    #[inline(always)]
    fn forward(
        &self,
        parameters: &[f32],
        features: &[f32],
        hidden: &mut [f32],
        representation: &mut [f32],
    ) -> Result<(), ModelError> {
        self.forward_one(parameters, features, hidden, representation)
    }

    #[inline(always)]
    fn backward(
        &self,
        parameters: &[f32],
        features: &[f32],
        hidden: &mut [f32],
        derivative: &[f32],
        gradient: &mut [f32],
    ) -> Result<(), ModelError> {
        self.backward_one(parameters, features, hidden, derivative, gradient)
    }
}

/// The results of the last layer are the representation.
impl Representation for Sequential {
    fn kind(&self) -> ModelKind {
        ModelKind::Representation
    }

    /// See [`Sequential::sample_scratch_count`].
    fn hidden_count(&self) -> usize {
        self.sample_scratch_count()
    }

    #[inline(always)]
    fn begin(&self, parameters: &[f32], hidden: &mut [f32]) -> Result<(), ModelError> {
        Self::begin(self, parameters, hidden)
    }

    #[inline(always)]
    fn end(&self, hidden: &mut [f32], gradient: &mut [f32]) -> Result<(), ModelError> {
        Self::end(self, hidden, gradient)
    }

    #[inline(always)]
    fn forward(
        &self,
        parameters: &[f32],
        features: &[f32],
        hidden: &mut [f32],
        representation: &mut [f32],
    ) -> Result<(), ModelError> {
        self.forward_one(parameters, features, hidden, representation)
    }

    #[inline(always)]
    fn backward(
        &self,
        parameters: &[f32],
        features: &[f32],
        hidden: &mut [f32],
        derivative: &[f32],
        gradient: &mut [f32],
    ) -> Result<(), ModelError> {
        self.backward_one(parameters, features, hidden, derivative, gradient)
    }
}
