//! Networks: one layer after the other below a softmax, sizes known at run time or when the
//! program is compiled.
//!
//! ```
//! use smolfed_core::model::{Layer, Model, Sequential, Shape};
//!
//! const DIGITS: Sequential = match Sequential::new(
//!     Shape::Image { channels: 1, height: 8, width: 8 },
//!     &[
//!         Layer::Convolution { channels: 4, kernel: [3, 3], stride: [1, 1], padding: [1, 1] },
//!         Layer::Relu,
//!         Layer::MaxPool { size: [2, 2], stride: [2, 2] },
//!         Layer::Dense { outputs: 10 },
//!     ],
//! ) {
//!     Ok(network) => network,
//!     Err(_) => panic!("the layers do not fit"),
//! };
//! assert_eq!(DIGITS.tensors().as_slice(), [36, 4, 640, 10]);
//! ```
//!
//! A batch is worked off sample by sample: forward through the layers, whose results stay in
//! scratch memory, and backward, adding to the gradient. Every sum has one order, which the layers
//! say; none depends on vectors, the batch's other samples or the length of the scratch memory.

mod convolution;
mod dense;
mod embedding;
mod error;
mod gates;
mod layer;
mod misfit;
mod panels;
mod pass;
mod place;
mod pool;
mod products;
mod recurrent;
mod rows;
mod shape;
mod sweep;
mod vectors;

use rand_core::Rng;

use super::{Model, ModelError, ModelKind, Tensors, Then, affine, softmax};
use crate::{math, samples::Samples, stream};
use pass::{Backward, Forward, last, last_mut, split_last_mut};
use place::Place;

pub use error::SequentialError;
pub use layer::{Layer, MAX_LAYERS};
pub use misfit::LayerError;
pub use shape::Shape;

/// The most parameters, and scratch entries, of a network: 2 GiB, on any machine.
const MAX_ENTRIES: usize = i32::MAX as usize / size_of::<f32>();

/// Layers one after the other; the result of the last are the logits of a softmax.
///
/// The loss is the cross-entropy, as that of [`Softmax`](super::Softmax). Parameters: the tensors
/// of each [`Layer`], in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequential {
    input: Shape,
    layers: [Layer; MAX_LAYERS],
    /// What each layer gives.
    outputs: [Shape; MAX_LAYERS],
    count: usize,
    parameters: usize,
    memory: Memory,
}

/// Scratch entries of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    /// What is computed from the parameters, once for all samples.
    prepared: usize,
    /// Sums over all samples.
    sums: usize,
    /// What a layer needs while it works.
    work: usize,
    /// Results of all layers.
    tape: usize,
    /// Derivatives by the result of a layer: the longest.
    derivatives: usize,
}

/// Scratch memory, taken apart.
struct Parts<'a> {
    prepared: &'a mut [f32],
    sums: &'a mut [f32],
    work: &'a mut [f32],
    tape: &'a mut [f32],
    derivatives: [&'a mut [f32]; 2],
}

impl Sequential {
    /// A network of these layers on samples of this shape.
    ///
    /// # Errors
    /// [`SequentialError`] if there are no layers or too many, a layer does not fit what it is
    /// given, or the last one does not give a vector.
    pub const fn new(input: Shape, layers: &[Layer]) -> Result<Self, SequentialError> {
        if layers.is_empty() {
            return Err(SequentialError::NoLayers);
        }
        if layers.len() > MAX_LAYERS {
            let found = layers.len();
            return Err(SequentialError::TooManyLayers { found });
        }
        if input.count() == 0 {
            return Err(SequentialError::EmptyInput { found: input });
        }
        let mut network = Self {
            input,
            layers: [Layer::Relu; MAX_LAYERS],
            outputs: [input; MAX_LAYERS],
            count: layers.len(),
            parameters: 0,
            memory: Memory {
                prepared: 0,
                sums: 0,
                work: 0,
                tape: 0,
                derivatives: 0,
            },
        };
        let (mut i, mut shape) = (0, input);
        while i < layers.len() {
            let output = match layers[i].output(shape, i == 0) {
                Ok(output) => output,
                Err(error) => {
                    let number = i + 1;
                    return Err(SequentialError::Layer { number, error });
                }
            };
            network.layers[i] = layers[i];
            network.outputs[i] = output;
            network.add(&Place {
                layer: layers[i],
                below: if i == 0 { None } else { Some(layers[i - 1]) },
                input: shape,
                output,
            });
            if network.parameters > MAX_ENTRIES || network.sample_scratch_count() > MAX_ENTRIES {
                let (number, error) = (i + 1, LayerError::TooLarge);
                return Err(SequentialError::Layer { number, error });
            }
            shape = output;
            i += 1;
        }
        match shape {
            Shape::Vector { .. } => Ok(network),
            found => Err(SequentialError::NoScores { found }),
        }
    }

    /// Counts the parameters and the memory of a layer.
    const fn add(&mut self, place: &Place) {
        const fn larger(a: usize, b: usize) -> usize {
            if a > b { a } else { b }
        }
        let Memory {
            prepared,
            sums,
            work,
            tape,
            derivatives,
        } = self.memory;
        self.parameters = self.parameters.saturating_add(place.parameter_count());
        self.memory = Memory {
            prepared: prepared.saturating_add(place.prepared_count()),
            sums: sums.saturating_add(place.sums_count()),
            work: larger(work, place.work_count()),
            tape: tape.saturating_add(place.tape_count()),
            derivatives: larger(derivatives, place.output.count()),
        };
    }

    /// The shape of a sample.
    pub const fn input(&self) -> Shape {
        self.input
    }

    /// The layers.
    pub fn layers(&self) -> &[Layer] {
        self.layers.get(..self.count).unwrap_or_default()
    }

    /// What each layer gives.
    pub fn outputs(&self) -> &[Shape] {
        self.outputs.get(..self.count).unwrap_or_default()
    }

    /// Number of parameters; [`Model::parameter_count`] for constants.
    pub const fn parameter_count(&self) -> usize {
        self.parameters
    }

    /// Scratch entries that training needs, for any batch; [`Model::scratch_count`] for constants.
    pub const fn sample_scratch_count(&self) -> usize {
        let Memory {
            sums, derivatives, ..
        } = self.memory;
        let backward = derivatives.saturating_mul(2).saturating_add(sums);
        self.forward_count().saturating_add(backward)
    }

    /// Scratch entries that scores need.
    const fn forward_count(&self) -> usize {
        let Memory {
            prepared,
            work,
            tape,
            ..
        } = self.memory;
        prepared.saturating_add(work).saturating_add(tape)
    }

    /// Scores of a sample.
    const fn score_count(&self) -> usize {
        match self.count {
            1..=MAX_LAYERS => self.outputs[self.count - 1].count(),
            _ => 0,
        }
    }

    /// Draws initial parameters, which depend on no data: from the uniform law on ±b, tensor by
    /// tensor in the order of the parameters.
    ///
    /// As PyTorch does by default, b = 1/√(weights of an output) for weights and biases of
    /// convolutions and dense layers, and b = 1/√hidden for all parameters of an LSTM. The table of
    /// an embedding has variance 1, as there, but is uniform, not normal: b = √3.
    ///
    /// # Errors
    /// [`ModelError::Parameters`] if `parameters` has another length than the model.
    pub fn initialise(&self, parameters: &mut [f32], rng: &mut impl Rng) -> Result<(), ModelError> {
        self.check_parameters(parameters)?;
        let mut rest = parameters;
        for place in self.places() {
            let inverse_square = match place.layer {
                Layer::Embedding { .. } => 1.0 / 3.0,
                Layer::Lstm { hidden } => f32::from(hidden),
                _ => {
                    let [weights, biases, _] = place.layer.tensors(place.input);
                    weights as f32 / biases as f32
                }
            };
            let reach = math::sqrt(1.0 / inverse_square);
            let Some((own, after)) = rest.split_at_mut_checked(place.parameter_count()) else {
                break;
            };
            for parameter in own {
                *parameter = reach * stream::symmetric(rng);
            }
            rest = after;
        }
        Ok(())
    }

    /// The layers in their places.
    #[inline(always)]
    fn places(&self) -> impl Iterator<Item = Place> {
        let layers = self.layers().iter().zip(self.outputs());
        layers.scan((None, self.input), |(below, input), (layer, output)| {
            let place = Place {
                layer: *layer,
                below: *below,
                input: *input,
                output: *output,
            };
            (*below, *input) = (Some(*layer), *output);
            Some(place)
        })
    }

    /// The layer with this index, in its place.
    #[inline(always)]
    fn place(&self, index: usize) -> Option<Place> {
        let below = index.checked_sub(1);
        Some(Place {
            layer: *self.layers.get(index)?,
            below: below.and_then(|i| self.layers.get(i)).copied(),
            input: below.map_or(Some(self.input), |i| self.outputs.get(i).copied())?,
            output: *self.outputs.get(index)?,
        })
    }

    fn check_parameters(&self, parameters: &[f32]) -> Result<(), ModelError> {
        let (expected, found) = (self.parameters, parameters.len());
        if found == expected {
            Ok(())
        } else {
            Err(ModelError::Parameters { expected, found })
        }
    }

    /// Takes scratch memory apart; without what the way back needs if there is to be none.
    #[inline(always)]
    fn parts<'a>(&self, scratch: &'a mut [f32], is_training: bool) -> Option<Parts<'a>> {
        let (sums, derivatives) = match is_training {
            true => (self.memory.sums, self.memory.derivatives),
            false => (0, 0),
        };
        let (prepared, rest) = scratch.split_at_mut_checked(self.memory.prepared)?;
        let (work, rest) = rest.split_at_mut_checked(self.memory.work)?;
        let (tape, rest) = rest.split_at_mut_checked(self.memory.tape)?;
        let (sums, rest) = rest.split_at_mut_checked(sums)?;
        let (a, rest) = rest.split_at_mut_checked(derivatives)?;
        let (b, _) = rest.split_at_mut_checked(derivatives)?;
        Some(Parts {
            prepared,
            sums,
            work,
            tape,
            derivatives: [a, b],
        })
    }

    /// What layers compute from the parameters, once for all samples.
    #[inline(always)]
    fn prepare(&self, parameters: &[f32], prepared: &mut [f32]) {
        let (mut parameters, mut prepared) = (parameters, prepared);
        for place in self.places() {
            let own = parameters.split_at_checked(place.parameter_count());
            let room = prepared.split_at_mut_checked(place.prepared_count());
            let (Some((own, after)), Some((room, free))) = (own, room) else {
                return;
            };
            place.prepare(own, room);
            (parameters, prepared) = (after, free);
        }
    }

    /// Writes what was summed up over all samples to the gradient.
    #[inline(always)]
    fn finish(&self, sums: &[f32], gradient: &mut [f32]) {
        let (mut sums, mut gradient) = (sums, gradient);
        for place in self.places() {
            let own = sums.split_at_checked(place.sums_count());
            let room = gradient.split_at_mut_checked(place.parameter_count());
            let (Some((own, others)), Some((room, after))) = (own, room) else {
                return;
            };
            place.finish(own, room);
            (sums, gradient) = (others, after);
        }
    }

    /// The results of all layers for one sample; the scores are the last entries of the tape.
    ///
    /// # Errors
    /// [`ModelError::Symbol`].
    #[inline(always)]
    fn forward(
        &self,
        parameters: &[f32],
        features: &[f32],
        parts: &mut Parts<'_>,
    ) -> Result<(), ModelError> {
        let (mut parameters, mut prepared) = (parameters, &*parts.prepared);
        let mut end = 0;
        for place in self.places() {
            let own = parameters.split_at_checked(place.parameter_count());
            let ready = prepared.split_at_checked(place.prepared_count());
            let tape = parts.tape.split_at_mut_checked(end);
            let (Some((own, after)), Some((ready, others)), Some((before, tape))) =
                (own, ready, tape)
            else {
                break;
            };
            let region = tape.get_mut(..place.tape_count()).unwrap_or_default();
            if place.is_in_place() {
                pool::rectify(last_mut(before, place.output.count()));
            } else {
                let input = match place.below {
                    None => features,
                    Some(_) => last(before, place.input.count()),
                };
                place.forward(Forward {
                    parameters: own,
                    prepared: ready,
                    input,
                    work: parts.work,
                    region,
                })?;
            }
            end += place.tape_count();
            (parameters, prepared) = (after, others);
        }
        Ok(())
    }

    /// Adds the gradient of one sample, from the derivatives by its scores, which are the first
    /// entries of the first of `parts.derivatives`.
    #[inline(always)]
    fn backward(
        &self,
        parameters: &[f32],
        features: &[f32],
        parts: Parts<'_>,
        gradient: &mut [f32],
    ) {
        let Parts {
            prepared,
            sums,
            work,
            mut tape,
            derivatives: [mut above, mut below],
        } = parts;
        let (mut prepared, mut sums) = (&*prepared, sums);
        let mut end = self.parameters;
        for index in (0..self.count).rev() {
            let Some(place) = self.place(index) else {
                return;
            };
            let start = end.saturating_sub(place.parameter_count());
            let tapes = split_last_mut(tape, place.tape_count());
            let (Some(own), Some(own_gradient), Some((before, region))) = (
                parameters.get(start..end),
                gradient.get_mut(start..end),
                tapes,
            ) else {
                return;
            };
            let ready = last(prepared, place.prepared_count());
            prepared = prepared
                .get(..prepared.len() - ready.len())
                .unwrap_or_default();
            let Some((other_sums, own_sums)) = split_last_mut(sums, place.sums_count()) else {
                return;
            };
            sums = other_sums;
            end = start;
            let (count, room) = (place.output.count(), place.input.count());
            let derivatives = above.get_mut(..count).unwrap_or_default();
            if place.is_in_place() {
                pool::rectify_backward(last(before, count), derivatives);
            } else {
                let is_first = place.below.is_none();
                let input_derivatives =
                    (!is_first).then(|| below.get_mut(..room).unwrap_or_default());
                place.backward(Backward {
                    parameters: own,
                    prepared: ready,
                    input: if is_first {
                        features
                    } else {
                        last(before, room)
                    },
                    region,
                    derivatives,
                    work,
                    gradient: own_gradient,
                    sums: own_sums,
                    input_derivatives,
                });
                (above, below) = (below, above);
            }
            tape = before;
        }
    }
}

impl Model for Sequential {
    type Target = u16;
    type Tensors = Tensors;

    const KIND: ModelKind = ModelKind::Sequential;
    /// Sizes are values, not types: any tensor may be long.
    const LARGEST_TENSOR: usize = usize::MAX;

    #[inline(always)]
    fn feature_count(&self) -> usize {
        self.input.count()
    }

    #[inline(always)]
    fn output_count(&self) -> usize {
        self.score_count()
    }

    /// The tensors of each layer.
    fn tensors(&self) -> Tensors {
        let lengths = self
            .places()
            .flat_map(|place| place.layer.tensors(place.input));
        Tensors::of(lengths.filter(|length| *length > 0))
    }

    #[inline(always)]
    fn parameter_count(&self) -> usize {
        self.parameters
    }

    /// The results of all layers for one sample, twice the longest of them, and what layers need
    /// while they work: the same for any number of samples.
    #[inline(always)]
    fn scratch_count(&self, _: usize) -> usize {
        self.sample_scratch_count()
    }

    #[inline(always)]
    fn score_scratch_count(&self) -> usize {
        self.forward_count()
    }

    #[inline(always)]
    fn loss_and_gradient_then<S: Samples<Target = u16>>(
        &self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scratch: &mut [f32],
        gradient: &mut [f32],
        then: &mut impl Then,
    ) -> Result<f32, ModelError> {
        self.check_parameters(parameters)?;
        self.check_parameters(gradient)?;
        affine::check_batch(self.feature_count(), samples, batch)?;
        let short = ModelError::Scratch {
            expected: self.sample_scratch_count(),
            found: scratch.len(),
        };
        let parts = self.parts(scratch, true).ok_or(short)?;
        self.prepare(parameters, parts.prepared);
        parts.sums.fill(0.0);

        gradient.fill(0.0);
        let mean = 1.0 / batch.len() as f32;
        let mut loss = 0.0;
        for index in batch {
            let mut parts = self.parts(scratch, true).ok_or(short)?;
            let features = samples.features(*index as usize);
            self.forward(parameters, features, &mut parts)?;
            let scores = last(parts.tape, self.score_count());
            let [above, _] = &mut parts.derivatives;
            let residuals = above.get_mut(..scores.len()).unwrap_or_default();
            for (residual, score) in residuals.iter_mut().zip(scores) {
                *residual = *score;
            }
            loss += self.loss_in_place(residuals, samples.target(*index as usize));
            for residual in residuals {
                *residual *= mean;
            }
            self.backward(parameters, features, parts, gradient);
        }
        let parts = self.parts(scratch, true).ok_or(short)?;
        self.finish(parts.sums, gradient);
        then.complete(gradient, 0..parameters.len(), parameters.len());
        Ok(loss * mean)
    }

    #[inline(always)]
    fn batch_scores<S: Samples>(
        &self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scratch: &mut [f32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        self.check_parameters(parameters)?;
        affine::check_batch(self.feature_count(), samples, batch)?;
        let count = self.score_count();
        let (expected, found) = (batch.len() * count, scores.len());
        if found != expected {
            return Err(ModelError::Scratch { expected, found });
        }
        let short = ModelError::Scratch {
            expected: self.forward_count(),
            found: scratch.len(),
        };
        let mut parts = self.parts(scratch, false).ok_or(short)?;
        self.prepare(parameters, parts.prepared);
        for (scores, index) in scores.chunks_exact_mut(count.max(1)).zip(batch) {
            let features = samples.features(*index as usize);
            self.forward(parameters, features, &mut parts)?;
            for (score, result) in scores.iter_mut().zip(last(parts.tape, count)) {
                *score = *result;
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
}

#[cfg(test)]
mod tests;
