//! Layers without weights in integers of 8 bits: the largest value of each window, and the mean of
//! each channel.

use super::{Fault, Image, Output, Windows};

/// The mean of each channel. The scale and zero point of its results may differ from its input.
#[derive(Clone, Copy, Debug)]
pub struct GlobalAverage {
    /// The multiplier of a sum over all pixels, with a bias of 0.
    pub output: Output,
    /// The zero point of the input.
    pub input_zero: i8,
    /// The zero point of the results.
    pub output_zero: i8,
    /// The smallest result: the zero point with a rectifier, else −128.
    pub least: i8,
}

/// Maximum number of pixels of an average: sums of that many differences, of at most 255, fit 32
/// bits.
const MAX_PIXELS: usize = i32::MAX as usize / 255;

impl GlobalAverage {
    pub(super) const fn output(&self, image: Image) -> Result<Image, Fault> {
        if image.sides()[0].saturating_mul(image.sides()[1]) > MAX_PIXELS {
            return Err(Fault::TooLarge);
        }
        match Output::check(&[self.output]) {
            Err(fault) => Err(fault),
            Ok(()) => Ok(Image {
                height: 1,
                width: 1,
                channels: image.channels,
            }),
        }
    }

    pub(super) fn apply(&self, image: Image, input: &[i8], results: &mut [i8]) {
        let zero = i32::from(self.input_zero);
        let channels = usize::from(image.channels).max(1);
        for (channel, result) in results.iter_mut().enumerate() {
            let values = input.iter().skip(channel).step_by(channels);
            let sum = values.map(|x| i32::from(*x) - zero).sum();
            *result = self.output.activation(sum, self.output_zero, self.least);
        }
    }
}

/// Computes the largest value of each channel in each window.
pub(super) fn largest(windows: Windows, image: Image, input: &[i8], results: &mut [i8]) {
    let Some(output) = windows.of(image, [0, 0]) else {
        return;
    };
    let channels = usize::from(image.channels).max(1);
    let width = usize::from(image.width);
    let [rows, columns] = windows.size.map(usize::from);
    let [down, right] = windows.stride.map(usize::from);
    let line = (usize::from(output.width) * channels).max(1);
    for (y, line) in results.chunks_exact_mut(line).enumerate() {
        for (x, pixel) in line.chunks_exact_mut(channels).enumerate() {
            pixel.fill(i8::MIN);
            for row in 0..rows {
                let start = ((y * down + row) * width + x * right) * channels;
                let values = input.get(start..).unwrap_or_default();
                for values in values.chunks_exact(channels).take(columns) {
                    for (result, value) in pixel.iter_mut().zip(values) {
                        *result = (*result).max(*value);
                    }
                }
            }
        }
    }
}
