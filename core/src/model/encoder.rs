//! A small network: one hidden layer with tanh or ReLU, shared or not, below a softmax head, and
//! its initial parameters.
//!
//! Parameters, in this order: the encoder (W class-major, one row a hidden unit, then its biases)
//! and the head (V class-major, one row a class over the hidden units, then its biases). All
//! devices can share the first two tensors while each keeps the last two (DPFedMTL, Wu, Chen, Wang
//! 2020, arXiv:2011.07179, equations 1 and 2).

use rand_core::Rng;

use super::{
    BATCH_GROUP, BatchPart, Const, Dim, FixedModel, Model, ModelError, ModelKind, Parametric, Sums,
    Tensors, Then,
    affine::{self, Layer},
    softmax,
};
use crate::{lanes, math, samples::Samples, stream};

/// The activation function of hidden units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Activation {
    /// tanh x, by `libm`.
    #[default]
    Tanh,
    /// max(x, 0).
    Relu,
}

impl Activation {
    #[inline(always)]
    fn apply(self, x: f32) -> f32 {
        match self {
            Self::Tanh => math::tanh(x),
            Self::Relu if x > 0.0 => x,
            // NaN must stay visible.
            Self::Relu if x.is_nan() => x,
            Self::Relu => 0.0,
        }
    }

    /// Returns the derivative from the value.
    #[inline(always)]
    fn slope(self, value: f32) -> f32 {
        match self {
            Self::Tanh => 1.0 - value * value,
            Self::Relu if value > 0.0 => 1.0,
            Self::Relu => 0.0,
        }
    }
}

/// One hidden layer of `H` units below a softmax over `C` classes.
///
/// Both layers are trained from the same forward pass (papers.md D8).
#[derive(Clone, Copy, Debug)]
pub struct Encoder<D: Dim, H: Dim, C: Dim> {
    features: D,
    hidden: H,
    classes: C,
    activation: Activation,
}

/// The parameters of both layers.
struct Layers<'a> {
    encoder: Layer<'a>,
    head: Layer<'a>,
}

impl<D: Dim, H: Dim, C: Dim> Encoder<D, H, C> {
    /// Creates a network of `features` features, `hidden` units and `classes` classes.
    pub const fn new(features: D, hidden: H, classes: C, activation: Activation) -> Self {
        Self {
            features,
            hidden,
            classes,
            activation,
        }
    }

    /// Returns the activation function of hidden units.
    pub const fn activation(&self) -> Activation {
        self.activation
    }

    /// Returns the number of hidden units.
    pub fn hidden_count(&self) -> usize {
        self.hidden.get()
    }

    /// Returns the number of parameters of the encoder. They come first, then those of the head.
    pub fn encoder_count(&self) -> usize {
        self.features
            .get()
            .saturating_add(1)
            .saturating_mul(self.hidden.get())
    }

    /// Draws the encoder's weights from the uniform distribution of variance 1/features, and sets
    /// all other parameters to zero. The start does not depend on data.
    ///
    /// # Errors
    /// [`ModelError::Parameters`] if the length of `parameters` differs from the model's.
    pub fn initialise(&self, parameters: &mut [f32], rng: &mut impl Rng) -> Result<(), ModelError> {
        let (expected, found) = (self.parameter_count(), parameters.len());
        if found != expected {
            return Err(ModelError::Parameters { expected, found });
        }
        let reach = math::sqrt(3.0 / self.features.get() as f32);
        let (weights, rest) = parameters.split_at_mut(self.features.get() * self.hidden.get());
        for weight in weights {
            *weight = reach * stream::symmetric(rng);
        }
        rest.fill(0.0);
        Ok(())
    }

    fn layers<'a>(&self, parameters: &'a [f32]) -> Result<Layers<'a>, ModelError> {
        let (features, hidden) = (self.features.get(), self.hidden.get());
        if features == 0 || hidden == 0 || self.classes.get() == 0 {
            return Err(ModelError::Empty);
        }
        let wrong = ModelError::Parameters {
            expected: self.parameter_count(),
            found: parameters.len(),
        };
        if parameters.len() != self.parameter_count() {
            return Err(wrong);
        }
        let split = |slice: &'a [f32], at| slice.split_at_checked(at).ok_or(wrong);
        let layer = |slice, at| {
            let (weights, biases) = split(slice, at)?;
            Ok(Layer { weights, biases })
        };
        let (encoder, head) = split(parameters, self.encoder_count())?;
        Ok(Layers {
            encoder: layer(encoder, features.saturating_mul(hidden))?,
            head: layer(head, hidden.saturating_mul(self.classes.get()))?,
        })
    }

    /// Computes the scores of one sample, and stores the values of the hidden units in `hidden`.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit.
    #[inline(always)]
    pub(crate) fn forward_one(
        &self,
        parameters: &[f32],
        features: &[f32],
        hidden: &mut [f32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        let Layers { encoder, head } = self.layers(parameters)?;
        let (expected, found) = (self.features.get(), features.len());
        if found != expected {
            return Err(ModelError::Features { expected, found });
        }
        if scores.len() != head.biases.len() || hidden.len() != encoder.biases.len() {
            return Err(ModelError::Scratch {
                expected: head.biases.len() + encoder.biases.len(),
                found: scores.len() + hidden.len(),
            });
        }
        scores.copy_from_slice(head.biases);
        let rows = encoder.weights.chunks_exact(expected).zip(encoder.biases);
        for (unit, ((row, bias), value)) in rows.zip(hidden.iter_mut()).enumerate() {
            *value = self.activation.apply(lanes::dot(features, row) + bias);
            self.add_unit(head.weights, unit, *value, scores);
        }
        Ok(())
    }

    /// Adds the gradient of one sample, from the derivatives with respect to its scores. `hidden`
    /// holds the values of the hidden units, and receives the derivatives with respect to their
    /// sums.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit.
    #[inline(always)]
    pub(crate) fn backward_one(
        &self,
        parameters: &[f32],
        features: &[f32],
        hidden: &mut [f32],
        derivatives: &[f32],
        gradient: &mut [f32],
    ) -> Result<(), ModelError> {
        let Layers { encoder, head } = self.layers(parameters)?;
        let (expected, found) = (parameters.len(), gradient.len());
        let wrong = ModelError::Parameters { expected, found };
        let count = self.features.get();
        let (weights, rest) = gradient
            .split_at_mut_checked(encoder.weights.len())
            .ok_or(wrong)?;
        let (biases, rest) = rest
            .split_at_mut_checked(encoder.biases.len())
            .ok_or(wrong)?;
        let (head_weights, head_biases) =
            rest.split_at_mut_checked(head.weights.len()).ok_or(wrong)?;
        let units = self.hidden.get();
        for (row, derivative) in head_weights.chunks_exact_mut(units).zip(derivatives) {
            lanes::axpy(*derivative, hidden, row);
        }
        for (sum, derivative) in head_biases.iter_mut().zip(derivatives) {
            *sum += derivative;
        }
        let sums = weights.chunks_exact_mut(count).zip(biases);
        for (unit, ((row, sum), value)) in sums.zip(hidden).enumerate() {
            let mut derivative = 0.0;
            let column = head.weights.iter().skip(unit).step_by(units);
            for (d, weight) in derivatives.iter().zip(column) {
                derivative += weight * d;
            }
            *value = derivative * self.activation.slope(*value);
            *sum += *value;
            lanes::axpy(*value, features, row);
        }
        Ok(())
    }

    /// Adds the contribution of a hidden unit with this value to the scores.
    #[inline(always)]
    fn add_unit(&self, weights: &[f32], unit: usize, value: f32, scores: &mut [f32]) {
        let column = weights.iter().skip(unit).step_by(self.hidden.get());
        for (score, weight) in scores.iter_mut().zip(column) {
            *score += weight * value;
        }
    }
}

impl<D: Dim, H: Dim, C: Dim> Parametric for Encoder<D, H, C> {
    #[inline(always)]
    fn feature_count(&self) -> usize {
        self.features.get()
    }

    #[inline(always)]
    fn output_count(&self) -> usize {
        self.classes.get()
    }

    fn parameter_count(&self) -> usize {
        self.tensors().total()
    }
}

impl<D: Dim, H: Dim, C: Dim> Model for Encoder<D, H, C> {
    type Target = u16;
    type Tensors = Tensors<4>;

    const KIND: ModelKind = ModelKind::Encoder;
    const LARGEST_TENSOR: usize = {
        let below = D::LARGEST.saturating_mul(H::LARGEST);
        let above = H::LARGEST.saturating_mul(C::LARGEST);
        if below > above { below } else { above }
    };

    fn tensors(&self) -> Tensors<4> {
        Tensors::two_layers(self.features.get(), self.hidden.get(), self.classes.get())
    }

    /// Returns the entries for the scores of one sample and the hidden values of all.
    #[inline(always)]
    fn scratch_count(&self, samples: usize) -> usize {
        self.classes
            .get()
            .saturating_add(samples.saturating_mul(self.hidden.get()))
    }

    #[inline(always)]
    fn add_part<S: Samples<Target = u16>>(
        &self,
        parameters: &[f32],
        samples: &S,
        part: BatchPart<'_>,
        scratch: &mut [f32],
        Sums { gradient, loss }: Sums<'_>,
        then: &mut impl Then,
    ) -> Result<(), ModelError> {
        let Layers { encoder, head } = self.layers(parameters)?;
        if gradient.len() != parameters.len() {
            let (expected, found) = (parameters.len(), gradient.len());
            return Err(ModelError::Parameters { expected, found });
        }
        affine::check_batch(self.features.get(), samples, part.indices)?;
        let short = ModelError::Scratch {
            expected: self.scratch_count(1),
            found: scratch.len(),
        };
        let (scores, units) = scratch
            .split_at_mut_checked(self.classes.get())
            .ok_or(short)?;
        let hidden = self.hidden.get();
        let group = (units.len() / hidden).min(BATCH_GROUP);
        if group == 0 {
            return Err(short);
        }

        if part.is_first {
            gradient.fill(0.0);
        }
        let (encoder_gradient, head_gradient) = gradient.split_at_mut(self.encoder_count());
        let (weight_gradient, bias_gradient) = encoder_gradient.split_at_mut(encoder.weights.len());
        let (head_gradient, head_bias_gradient) = head_gradient.split_at_mut(head.weights.len());
        let mean = part.mean();
        for indices in part.indices.chunks(group) {
            let units = units.get_mut(..indices.len() * hidden).ok_or(short)?;
            let batch = affine::Batch { samples, indices };
            affine::batch_scores(encoder, &batch, units);
            for (units, index) in units.chunks_exact_mut(hidden).zip(indices) {
                scores.copy_from_slice(head.biases);
                for (unit, value) in units.iter_mut().enumerate() {
                    *value = self.activation.apply(*value);
                    self.add_unit(head.weights, unit, *value, scores);
                }
                *loss += self.loss_in_place(scores, samples.target(*index as usize));
                for (residual, sum) in scores.iter_mut().zip(head_bias_gradient.iter_mut()) {
                    *residual *= mean;
                    *sum += *residual;
                }
                for (row, residual) in head_gradient.chunks_exact_mut(hidden).zip(scores.iter()) {
                    lanes::axpy(*residual, units, row);
                }
                // Replaces the values by the derivatives of the loss with respect to the units'
                // sums.
                for (unit, (value, sum)) in
                    units.iter_mut().zip(bias_gradient.iter_mut()).enumerate()
                {
                    let mut derivative = 0.0;
                    let column = head.weights.iter().skip(unit).step_by(hidden);
                    for (residual, weight) in scores.iter().zip(column) {
                        derivative += weight * residual;
                    }
                    *value = derivative * self.activation.slope(*value);
                    *sum += *value;
                }
            }
            let products = affine::OuterProducts {
                residuals: units,
                outputs: hidden,
                batch: &batch,
                fresh: false,
            };
            products.add_to(weight_gradient, encoder.weights.len(), None::<&mut ()>);
        }
        if part.is_last() {
            then.complete(gradient, 0..parameters.len(), parameters.len());
        }
        Ok(())
    }

    #[inline(always)]
    fn batch_scores<S: Samples>(
        &self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        _scratch: &mut [f32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        let Layers { encoder, head } = self.layers(parameters)?;
        affine::check_batch(self.features.get(), samples, batch)?;
        let classes = self.classes.get();
        let (expected, found) = (batch.len() * classes, scores.len());
        if found != expected {
            return Err(ModelError::Scratch { expected, found });
        }
        // Unit by unit, in the order of training, without memory for the hidden values.
        let features = self.features.get();
        for (scores, index) in scores.chunks_exact_mut(classes).zip(batch) {
            scores.copy_from_slice(head.biases);
            let sample = samples.features(*index as usize);
            let rows = encoder.weights.chunks_exact(features).zip(encoder.biases);
            for (unit, (row, bias)) in rows.enumerate() {
                let value = self.activation.apply(lanes::dot(sample, row) + bias);
                self.add_unit(head.weights, unit, value, scores);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn loss_in_place(&self, scores: &mut [f32], target: u16) -> f32 {
        softmax::cross_entropy(scores, target)
    }

    #[inline]
    fn predict(&self, scores: &[f32]) -> u16 {
        softmax::most_likely(scores)
    }

    #[inline]
    fn probabilities_in_place(&self, scores: &mut [f32]) {
        softmax::probabilities_in_place(scores);
    }

    #[inline(always)]
    fn has_target(&self, target: u16) -> bool {
        usize::from(target) < self.output_count()
    }
}

impl<const N: usize, const H: usize, const C: usize> FixedModel
    for Encoder<Const<N>, Const<H>, Const<C>>
{
    const PARAMETERS: usize = (N + 1) * H + (H + 1) * C;
    const OUTPUTS: usize = C;
    const SCRATCH: usize = C + H;
}
