//! A trained network in 64-bit numbers, on intervals. A sample is a row of points.

use smolfed_core::model::{Layer, Sequential, Shape};
use smolfed_core::quantised::{Image, Windows};
use smolfed_engine::tables::model::{ActivationName, LayerConfig};
use smolfed_engine::task::Task;

use crate::inference::error::InferenceError;
use crate::inference::model::{Outputs, TrainedModel};

/// The numbers from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Weights by output, for values pixel by pixel, and biases.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    pub(super) weights: Vec<f64>,
    pub(super) biases: Vec<f64>,
}

/// A layer.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Convolution {
        weights: Weights,
        kernel: Windows,
        padding: [u16; 2],
    },
    Dense(Weights),
    MaxPool(Windows),
    GlobalAverage,
    Relu,
}

/// Layers with their input images.
#[derive(Clone, Debug)]
pub(super) struct Network {
    steps: Vec<(Step, Image)>,
    /// The feature index of each value of the input.
    order: Vec<usize>,
}

impl Interval {
    pub(super) const fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    pub(super) const fn point(x: f64) -> Self {
        Self::new(x, x)
    }

    /// Returns the smallest interval that contains both.
    pub(super) const fn hull(self, other: Self) -> Self {
        Self::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// Returns the intersection with another interval that meets it.
    pub(super) const fn clip(self, other: Self) -> Self {
        Self::new(self.low.max(other.low), self.high.min(other.high))
    }

    fn add(&mut self, weight: f64, x: Self) {
        let (a, b) = (weight * x.low, weight * x.high);
        self.low += a.min(b);
        self.high += a.max(b);
    }
}

impl Network {
    /// Returns the layers of a model of classes.
    ///
    /// # Errors
    /// [`InferenceError::NotFinite`], [`InferenceError::NoIntegerLayer`],
    /// [`InferenceError::Arithmetic`].
    pub(super) fn of(model: &TrainedModel) -> Result<Self, InferenceError> {
        let parameters = model.finite_parameters()?;
        match (model.task(), model.outputs()) {
            (Task::Sequential(network), Outputs::Logits(_)) => of_layers(network, parameters),
            (Task::Encoder(_), Outputs::Logits(_)) => of_encoder(model),
            _ => Err(InferenceError::Arithmetic),
        }
    }

    /// Returns the layers, and their input images.
    pub(super) fn steps(&self) -> &[(Step, Image)] {
        &self.steps
    }

    pub(super) fn input(&self) -> Image {
        let vector = |count: usize| Image {
            height: 1,
            width: 1,
            channels: count as u16,
        };
        let first = self.steps.first();
        first.map_or_else(|| vector(self.order.len()), |(_, image)| *image)
    }

    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns a network on features in the order of the input.
    #[cfg(test)]
    pub(super) fn from_steps(steps: Vec<(Step, Image)>) -> Self {
        let count = steps.first().map_or(0, |(_, image)| image.count());
        let order = (0..count).collect();
        Self { steps, order }
    }

    /// Returns the outputs of the last layer.
    #[cfg(test)]
    pub(super) fn values(&self, features: &[Interval]) -> Vec<Interval> {
        let steps = self.steps.iter();
        steps.fold(features.to_vec(), |values, (step, image)| {
            step.apply(*image, &values)
        })
    }

    /// Returns the ranges of the features and of the outputs of each layer.
    pub(super) fn ranges(&self, features: &[Interval]) -> Vec<Interval> {
        let mut values: Vec<Interval> = self.order.iter().map(|at| features[*at]).collect();
        let mut ranges = vec![range(&values)];
        for (step, image) in &self.steps {
            values = step.apply(*image, &values);
            ranges.push(range(&values));
        }
        ranges
    }
}

/// Returns the hull of all values.
fn range(values: &[Interval]) -> Interval {
    let empty = Interval::new(f64::INFINITY, f64::NEG_INFINITY);
    values.iter().fold(empty, |hull, x| hull.hull(*x))
}

/// Returns an image or a sequence pixel by pixel, and the index of each of its values in samples.
fn layout(shape: Shape) -> (Image, Vec<usize>) {
    let (image, is_planar) = match shape {
        Shape::Image {
            channels,
            height,
            width,
        } => (
            Image {
                height,
                width,
                channels,
            },
            true,
        ),
        Shape::Sequence { length, width } => (
            Image {
                height: 1,
                width: length,
                channels: width,
            },
            false,
        ),
        Shape::Vector { length } => (
            Image {
                height: 1,
                width: 1,
                channels: length,
            },
            false,
        ),
    };
    let channels = usize::from(image.channels);
    let pixels = image.count() / channels.max(1);
    let place = |at: usize| match is_planar {
        true => at % channels * pixels + at / channels,
        false => at,
    };
    (image, (0..image.count()).map(place).collect())
}

fn of_layers(network: &Sequential, parameters: &[f32]) -> Result<Network, InferenceError> {
    let mut rest = parameters;
    let mut take = |count: usize| -> Vec<f64> {
        let (own, after) = rest.split_at(count.min(rest.len()));
        rest = after;
        own.iter().map(|x| f64::from(*x)).collect()
    };
    let mut steps = Vec::new();
    let mut shape = network.input();
    for (at, (layer, output)) in network.layers().iter().zip(network.outputs()).enumerate() {
        let (image, order) = layout(shape);
        let step = match *layer {
            Layer::Convolution {
                channels,
                kernel: size,
                stride,
                padding,
            } => {
                let [height, width] = size;
                let inputs = image.channels;
                let (_, order) = layout(Shape::Image {
                    channels: inputs,
                    height,
                    width,
                });
                let weights = take(usize::from(channels) * order.len());
                Step::Convolution {
                    weights: Weights {
                        weights: ordered(&weights, &order),
                        biases: take(channels.into()),
                    },
                    kernel: Windows { size, stride },
                    padding,
                }
            }
            Layer::Dense { outputs } => {
                let weights = take(usize::from(outputs) * order.len());
                Step::Dense(Weights {
                    weights: ordered(&weights, &order),
                    biases: take(outputs.into()),
                })
            }
            Layer::MaxPool { size, stride } => Step::MaxPool(Windows { size, stride }),
            Layer::GlobalAverage => Step::GlobalAverage,
            Layer::Relu => Step::Relu,
            other => return Err(refused(at, other)),
        };
        steps.push((step, image));
        shape = *output;
    }
    let (_, order) = layout(network.input());
    match steps.last() {
        Some((Step::Dense(_), _)) => Ok(Network { steps, order }),
        _ => Err(InferenceError::Arithmetic),
    }
}

/// Refuses a layer by its name in experiment files.
fn refused(at: usize, layer: Layer) -> InferenceError {
    let config = serde_json::to_value(LayerConfig::from(layer)).unwrap_or_default();
    let kind = config["type"].as_str().unwrap_or_default();
    InferenceError::NoIntegerLayer {
        layer: format!("layer {} ({kind})", at + 1),
    }
}

/// Returns rows of weights in the order of the values.
fn ordered(weights: &[f64], order: &[usize]) -> Vec<f64> {
    let rows = weights.chunks_exact(order.len().max(1));
    rows.flat_map(|row| order.iter().map(|at| row[*at]))
        .collect()
}

/// Returns a hidden layer below a softmax.
fn of_encoder(model: &TrainedModel) -> Result<Network, InferenceError> {
    let layers = model.layers();
    let numbers = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect();
    let mut steps = Vec::new();
    for layer in &layers {
        let channels = u16::try_from(layer.inputs()).map_err(|_| InferenceError::Arithmetic)?;
        let image = |channels| Image {
            height: 1,
            width: 1,
            channels,
        };
        let weights = Weights {
            weights: numbers(layer.weights),
            biases: numbers(layer.biases),
        };
        steps.push((Step::Dense(weights), image(channels)));
        match layer.activation {
            None => {}
            Some(ActivationName::Relu) => {
                let outputs = u16::try_from(layer.outputs());
                let outputs = outputs.map_err(|_| InferenceError::Arithmetic)?;
                steps.push((Step::Relu, image(outputs)));
            }
            Some(ActivationName::Tanh) => {
                let layer = "the hidden layer with `model.activation = \"tanh\"`".to_owned();
                return Err(InferenceError::NoIntegerLayer { layer });
            }
        }
    }
    let features = layers.first().map_or(0, |layer| layer.inputs());
    let order = (0..features).collect();
    Ok(Network { steps, order })
}

impl Step {
    fn apply(&self, image: Image, values: &[Interval]) -> Vec<Interval> {
        match self {
            Self::Convolution {
                weights,
                kernel,
                padding,
            } => weights.convolve(image, *kernel, *padding, values),
            Self::Dense(weights) => weights.apply(values),
            Self::MaxPool(windows) => {
                let channels = usize::from(image.channels);
                let lowest = Interval::point(f64::NEG_INFINITY);
                each_window(image, *windows, [0, 0], |places| {
                    let mut largest = vec![lowest; channels];
                    for (_, place) in places {
                        for (largest, x) in largest.iter_mut().zip(&values[*place..]) {
                            largest.low = largest.low.max(x.low);
                            largest.high = largest.high.max(x.high);
                        }
                    }
                    largest
                })
            }
            Self::GlobalAverage => {
                let channels = usize::from(image.channels);
                let mut means = vec![Interval::point(0.0); channels];
                let part = channels as f64 / values.len() as f64;
                for pixel in values.chunks_exact(channels.max(1)) {
                    for (mean, x) in means.iter_mut().zip(pixel) {
                        mean.add(part, *x);
                    }
                }
                means
            }
            Self::Relu => {
                let rectified = |x: &Interval| Interval::new(x.low.max(0.0), x.high.max(0.0));
                values.iter().map(rectified).collect()
            }
        }
    }
}

impl Weights {
    fn apply(&self, values: &[Interval]) -> Vec<Interval> {
        let rows = self.weights.chunks_exact(values.len().max(1));
        let sums = rows.zip(&self.biases).map(|(row, bias)| {
            let mut sum = Interval::point(*bias);
            row.iter().zip(values).for_each(|(w, x)| sum.add(*w, *x));
            sum
        });
        sums.collect()
    }

    fn convolve(
        &self,
        image: Image,
        kernel: Windows,
        padding: [u16; 2],
        values: &[Interval],
    ) -> Vec<Interval> {
        let channels = usize::from(image.channels);
        let patch = usize::from(kernel.size[0]) * usize::from(kernel.size[1]) * channels;
        each_window(image, kernel, padding, |places| {
            let kernels = self.weights.chunks_exact(patch.max(1)).zip(&self.biases);
            let sums = kernels.map(|(kernel, bias)| {
                let mut sum = Interval::point(*bias);
                for (at, place) in places {
                    let weights = &kernel[at * channels..][..channels];
                    let pixel = &values[*place..];
                    weights.iter().zip(pixel).for_each(|(w, x)| sum.add(*w, *x));
                }
                sum
            });
            sums.collect()
        })
    }
}

/// Calls a function for each window of a padded image, with its pixels: the number of each in the
/// window, and the index of its first value.
fn each_window(
    image: Image,
    windows: Windows,
    padding: [u16; 2],
    mut of: impl FnMut(&[(usize, usize)]) -> Vec<Interval>,
) -> Vec<Interval> {
    let sides = [image.height, image.width].map(usize::from);
    let [size, stride, padding] =
        [windows.size, windows.stride, padding].map(|p| p.map(usize::from));
    let starts = [0, 1].map(|axis| {
        let last = sides[axis] + 2 * padding[axis] - size[axis];
        (0..=last).step_by(stride[axis])
    });
    let [rows, columns] = starts;
    let mut results = Vec::new();
    let mut places = Vec::new();
    for top in rows {
        for left in columns.clone() {
            places.clear();
            for at in 0..size[0] * size[1] {
                let row = (top + at / size[1]).wrapping_sub(padding[0]);
                let column = (left + at % size[1]).wrapping_sub(padding[1]);
                if row < sides[0] && column < sides[1] {
                    places.push((at, (row * sides[1] + column) * usize::from(image.channels)));
                }
            }
            results.extend(of(&places));
        }
    }
    results
}
