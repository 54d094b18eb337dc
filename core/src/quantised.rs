//! Predictions of a trained network in integers of 8 bits.
//!
//! The desktop quantises a network of `f32` after training: `smolfed export --arithmetic integer`
//! writes its tables. This module computes its scores from them with the same bits on every
//! machine, without floating point and without allocating memory.
//!
//! It follows TensorFlow Lite's 8-bit specification. A value is S (q − Z) with a scale S and a zero
//! point Z. Weights have Z = 0 and a scale for each output. Biases have 32 bits and the scale of
//! the products. [`Output::scaled`] turns a sum into an integer of the next layer. Images are
//! stored pixel by pixel (NHWC), and kernels row by row, pixel by pixel (OHWI). A rectifier is a
//! lower limit on the results of a layer. There is one difference: the last layer returns scores of
//! 32 bits instead of 8, for computing probabilities.
//!
//! ```
//! use smolfed_core::quantised::{Dense, Image, Layer, Output, Quantised, Windows};
//!
//! // The larger of two pixels decides: class 1 above 0.
//! static LAYERS: [Layer<'_>; 1] = [Layer::MaxPool(Windows { size: [1, 2], stride: [1, 2] })];
//! static OUTPUTS: [Output; 2] = [Output { bias: 0, mantissa: 1 << 30, shift: -9 }; 2];
//! static HEAD: Dense<'_> = Dense { weights: &[-1, 1], outputs: &OUTPUTS, input_zero: 0 };
//! const INPUT: Image = Image { height: 1, width: 2, channels: 1 };
//! // Wrong tables do not compile.
//! static NETWORK: Quantised<'_> = match Quantised::new(INPUT, &LAYERS, &HEAD) {
//!     Ok(network) => network,
//!     Err(_) => panic!("the tables do not fit"),
//! };
//! let mut scratch = [0; NETWORK.scratch_bytes()];
//! let mut scores = [0; 2];
//! assert_eq!(NETWORK.predict(&[-7, 5], &mut scratch, &mut scores), Ok(1));
//! // In units of 2⁻¹⁶.
//! assert_eq!(scores, [-1_280, 1_280]);
//! ```
//!
//! Sources: Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient
//! Integer-Arithmetic-Only Inference", arXiv:1712.05877, sections 2.1 to 2.4. "TensorFlow Lite
//! 8-bit quantization specification".

mod convolution;
mod dense;
mod error;
mod image;
mod output;
mod pool;
mod value;

use crate::{fixed_point::FixedPointModel, model::Softmax};

pub use convolution::Convolution;
pub use dense::{Dense, Hidden};
pub use error::{Fault, QuantisedError};
pub use image::{Image, Windows};
pub use output::Output;
pub use pool::GlobalAverage;
pub use value::Scale;

/// A layer between the input and the scores.
#[derive(Clone, Copy, Debug)]
pub enum Layer<'a> {
    /// A convolution, possibly with a rectifier and the largest value of each window.
    Convolution(Convolution<'a>),
    /// A dense layer, possibly with a rectifier.
    Dense(Hidden<'a>),
    /// The largest value of each window of each channel.
    MaxPool(Windows),
    /// The mean of each channel.
    GlobalAverage(GlobalAverage),
    /// max(x, 0), with this zero point.
    Relu(i8),
}

/// A quantised network with consistent tables.
#[derive(Clone, Copy, Debug)]
pub struct Quantised<'a> {
    input: Image,
    layers: &'a [Layer<'a>],
    head: &'a Dense<'a>,
    scratch: usize,
}

impl<'a> Quantised<'a> {
    /// Creates a network for images of this size. The head returns a score for each class.
    ///
    /// # Errors
    /// [`QuantisedError::Layer`] names the first layer whose tables do not fit. Layers count from
    /// 1, and the head is the last.
    pub const fn new(
        input: Image,
        layers: &'a [Layer<'a>],
        head: &'a Dense<'a>,
    ) -> Result<Self, QuantisedError> {
        // The caller owns the input of the first layer.
        let (mut i, mut image, mut before, mut scratch) = (0, input, 0_usize, 0);
        while i < layers.len() {
            image = match layers[i].output(image) {
                Ok(image) => image,
                Err(fault) => {
                    let number = i + 1;
                    return Err(QuantisedError::Layer { number, fault });
                }
            };
            let count = image.count();
            if before.saturating_add(count) > scratch {
                scratch = before.saturating_add(count);
            }
            before = count;
            i += 1;
        }
        match head.check(image.count()) {
            Ok(()) => Ok(Self {
                input,
                layers,
                head,
                scratch,
            }),
            Err(fault) => {
                let number = layers.len() + 1;
                Err(QuantisedError::Layer { number, fault })
            }
        }
    }

    /// Returns the size of a sample.
    pub const fn input(&self) -> Image {
        self.input
    }

    /// Returns the layers below the head.
    pub const fn layers(&self) -> &'a [Layer<'a>] {
        self.layers
    }

    /// Returns the size of the result of each layer.
    pub fn images(&self) -> impl Iterator<Item = Image> {
        self.layers.iter().scan(self.input, |image, layer| {
            *image = layer.output(*image).ok()?;
            Some(*image)
        })
    }

    /// Returns the last layer.
    pub const fn head(&self) -> &'a Dense<'a> {
        self.head
    }

    /// Returns the bytes of scratch memory of a prediction, also in constants: the results of two
    /// successive layers.
    pub const fn scratch_bytes(&self) -> usize {
        self.scratch
    }

    /// Returns the number of scores of a sample.
    pub const fn score_count(&self) -> usize {
        self.head.outputs.len()
    }

    /// Writes the score of each class.
    ///
    /// * Shape: `input` is stored pixel by pixel. `scratch` has at least [`Self::scratch_bytes`],
    ///   with any contents. `scores` has [`Self::score_count`] entries.
    /// * Units: scores are in units of 2⁻¹⁶, rounded. A score beyond ±16,384 may saturate, at a
    ///   value that depends on the multiplier of its class.
    /// * Cost: a product for each weight of a dense layer, and for each weight of a kernel and each
    ///   pixel of its result.
    ///
    /// # Errors
    /// [`QuantisedError`] if a length does not fit. `scores` are then unchanged.
    pub fn scores(
        &self,
        input: &[i8],
        scratch: &mut [i8],
        scores: &mut [i32],
    ) -> Result<(), QuantisedError> {
        let (expected, found) = (self.input.count(), input.len());
        if found != expected {
            return Err(QuantisedError::Input { expected, found });
        }
        let (expected, found) = (self.score_count(), scores.len());
        if found != expected {
            return Err(QuantisedError::Scores { expected, found });
        }
        let (expected, found) = (self.scratch, scratch.len());
        let Some(scratch) = scratch.get_mut(..expected) else {
            return Err(QuantisedError::Scratch { expected, found });
        };
        let features = self.features(input, scratch).unwrap_or_default();
        self.head.scores(features, scores);
        Ok(())
    }

    /// Writes [`Self::scores`], and returns the class with the largest one (the first among
    /// equals).
    ///
    /// # Errors
    /// As [`Self::scores`].
    pub fn predict(
        &self,
        input: &[i8],
        scratch: &mut [i8],
        scores: &mut [i32],
    ) -> Result<u16, QuantisedError> {
        self.scores(input, scratch, scores)?;
        let model = Softmax::new(1_usize, scores.len());
        Ok(model.predict_in_integers(scores))
    }

    /// Returns the input of the head. Results alternate between the start and the end of the
    /// scratch memory. Its length has been checked, so they always fit.
    fn features<'s>(&self, input: &'s [i8], scratch: &'s mut [i8]) -> Option<&'s [i8]> {
        let (mut image, mut at) = (self.input, At::Input);
        for layer in self.layers {
            let output = layer.output(image).ok()?;
            let (before, after) = (image.count(), output.count());
            at = match at {
                At::Input => {
                    layer.apply(image, input, scratch.get_mut(..after)?);
                    At::Beginning
                }
                At::Beginning => {
                    let end = scratch.len().checked_sub(after)?;
                    let (values, results) = scratch.split_at_mut_checked(end)?;
                    layer.apply(image, values.get(..before)?, results);
                    At::End
                }
                At::End => {
                    let end = scratch.len().checked_sub(before)?;
                    let (results, values) = scratch.split_at_mut_checked(end)?;
                    layer.apply(image, values, results.get_mut(..after)?);
                    At::Beginning
                }
            };
            image = output;
        }
        match at {
            At::Input => Some(input),
            At::Beginning => scratch.get(..image.count()),
            At::End => scratch.get(scratch.len().checked_sub(image.count())?..),
        }
    }
}

/// Location of the result of a layer.
#[derive(Clone, Copy)]
enum At {
    Input,
    Beginning,
    End,
}

impl Layer<'_> {
    /// Returns the size of the result.
    const fn output(&self, image: Image) -> Result<Image, Fault> {
        if image.count() > image::MAX_COUNT {
            return Err(Fault::TooLarge);
        }
        match self {
            Self::Convolution(layer) => layer.output(image),
            Self::Dense(layer) => layer.output(image),
            Self::MaxPool(windows) => match windows.of(image, [0, 0]) {
                Some(image) => Ok(image),
                None => Err(Fault::Window),
            },
            Self::GlobalAverage(layer) => layer.output(image),
            Self::Relu(_) => Ok(image),
        }
    }

    /// Computes the results. Missing values are skipped.
    fn apply(&self, image: Image, input: &[i8], output: &mut [i8]) {
        match self {
            Self::Convolution(layer) => layer.apply(image, input, output),
            Self::Dense(layer) => layer.apply(input, output),
            Self::MaxPool(windows) => pool::largest(*windows, image, input, output),
            Self::GlobalAverage(layer) => layer.apply(image, input, output),
            Self::Relu(zero) => {
                for (result, x) in output.iter_mut().zip(input) {
                    *result = (*x).max(*zero);
                }
            }
        }
    }
}

/// Turns the scores of a sample into the probability of each class, in units of 2⁻¹⁶: 65,536 is
/// certain.
pub fn probabilities_in_place(scores: &mut [i32]) {
    let model = Softmax::new(1_usize, scores.len());
    model.probabilities_in_integers(scores);
}

#[cfg(test)]
mod tests;
