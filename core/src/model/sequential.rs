//! Neural networks: a sequence of layers below a softmax, with sizes known at run time or compile
//! time, their largest size, and their initial parameters.
//!
//! ```
//! use smolfed_core::model::{Layer, Model, Sequential, Shape};
//!
//! let digits = Sequential::new(
//!     Shape::Image { channels: 1, height: 8, width: 8 },
//!     &[
//!         Layer::Convolution { channels: 4, kernel: [3, 3], stride: [1, 1], padding: [1, 1] },
//!         Layer::Relu,
//!         Layer::MaxPool { size: [2, 2], stride: [2, 2] },
//!         Layer::Dense { outputs: 10 },
//!     ],
//! )?;
//! assert_eq!(digits.tensors().as_slice(), [36, 4, 640, 10]);
//! # Ok::<(), smolfed_core::model::SequentialError>(())
//! ```
//!
//! On a device the same layers are a type, [`Fixed`], with array lengths as sizes.
//!
//! A batch is processed sample by sample: forward through the layers, whose results stay in scratch
//! memory, and backward, adding to the gradient. The layers define the order of every sum. It does
//! not depend on vectors, the batch's other samples or the length of the scratch memory.

mod convolution;
mod dense;
mod embedding;
mod encoding;
mod error;
mod fixed;
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
mod sample;
mod shape;
mod sweep;
mod text;
mod training;
mod vectors;
mod walk;

use rand_core::Rng;

use super::ModelError;
use crate::{math, stream};
use place::Place;

pub use encoding::DIGEST_BYTES;
pub use error::SequentialError;
pub use fixed::{Architecture, Fixed};
pub use layer::{Layer, MAX_LAYERS};
pub use misfit::LayerError;
pub use shape::Shape;

/// Maximum number of parameters, and of scratch entries, of a network: 2 GiB, on any machine.
const MAX_ENTRIES: usize = i32::MAX as usize / size_of::<f32>();

/// A sequence of layers. The results of the last one are the logits of a softmax.
///
/// The loss is the cross-entropy, as for [`Softmax`](super::Softmax). Parameters: the tensors of
/// each [`Layer`], in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequential {
    input: Shape,
    layers: [Layer; MAX_LAYERS],
    /// Output shape of each layer.
    outputs: [Shape; MAX_LAYERS],
    count: usize,
    parameters: usize,
    memory: Memory,
}

/// Scratch entries of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    /// Values computed from the parameters, once for all samples.
    prepared: usize,
    /// Sums over all samples.
    sums: usize,
    /// Working memory of a layer.
    work: usize,
    /// Results of all layers.
    tape: usize,
    /// Derivatives with respect to the longest result of a layer.
    derivatives: usize,
}

impl Sequential {
    /// Creates a network of these layers on samples of this shape.
    ///
    /// # Errors
    /// [`SequentialError`] if there are no layers or too many, a layer does not fit its input, or
    /// the last one does not return a vector.
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

    /// Adds the parameters and the memory of a layer.
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

    /// Returns the shape of a sample.
    pub const fn input(&self) -> Shape {
        self.input
    }

    /// Returns the layers.
    pub fn layers(&self) -> &[Layer] {
        self.layers.get(..self.count).unwrap_or_default()
    }

    /// Returns the output shape of each layer.
    pub fn outputs(&self) -> &[Shape] {
        self.outputs.get(..self.count).unwrap_or_default()
    }

    /// Returns the number of parameters, also in constants.
    pub const fn parameter_count(&self) -> usize {
        self.parameters
    }

    /// Returns the number of activations of a sample, also in constants: its features and the
    /// outputs of all layers.
    pub const fn activation_count(&self) -> usize {
        let (mut i, mut count) = (0, self.input.count());
        while i < self.count && i < MAX_LAYERS {
            count = count.saturating_add(self.outputs[i].count());
            i += 1;
        }
        count
    }

    /// Returns the scratch entries of training for any batch, also in constants.
    pub const fn sample_scratch_count(&self) -> usize {
        let Memory {
            sums, derivatives, ..
        } = self.memory;
        let backward = derivatives.saturating_mul(2).saturating_add(sums);
        self.forward_count().saturating_add(backward)
    }

    /// Returns the scratch entries of scores.
    const fn forward_count(&self) -> usize {
        let Memory {
            prepared,
            work,
            tape,
            ..
        } = self.memory;
        prepared.saturating_add(work).saturating_add(tape)
    }

    /// Returns the number of entries of the largest parameter tensor.
    const fn largest_tensor(&self) -> usize {
        let (mut i, mut largest, mut input) = (0, 0, self.input);
        while i < self.count && i < MAX_LAYERS {
            let (lengths, mut j) = (self.layers[i].tensors(input), 0);
            while j < lengths.len() {
                if lengths[j] > largest {
                    largest = lengths[j];
                }
                j += 1;
            }
            input = self.outputs[i];
            i += 1;
        }
        largest
    }

    /// Returns the number of scores of a sample.
    const fn score_count(&self) -> usize {
        match self.count {
            1..=MAX_LAYERS => self.outputs[self.count - 1].count(),
            _ => 0,
        }
    }

    /// Draws initial parameters, which do not depend on data, from the uniform distribution on ±b,
    /// tensor by tensor in the order of the parameters.
    ///
    /// As PyTorch does by default, b = 1/√(weights of an output) for weights and biases of
    /// convolutions and dense layers, and b = 1/√hidden for all parameters of an LSTM. The table of
    /// an embedding has variance 1, as in PyTorch, but is uniform, not normal: b = √3.
    ///
    /// # Errors
    /// [`ModelError::Parameters`] if the length of `parameters` differs from the model's.
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

    /// Returns the layers in their places.
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

    /// Returns the layer with this index, in its place.
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
}

#[cfg(test)]
mod tests;
