//! Convolutions of images in integers of 8 bits, with a rectifier and the largest value of each
//! window.

use core::ops::Range;

use super::{Fault, Image, Output, Windows, image::MAX_COUNT, output::dot};

/// A convolution, a rectifier, and the largest value of each window: `CONV_2D`, `RELU` and
/// `MAX_POOL_2D`, without memory for intermediate results.
///
/// Multiplication, rounding and the rectifier are monotonic, so the largest result is the result of
/// the largest sum.
#[derive(Clone, Copy, Debug)]
pub struct Convolution<'a> {
    /// The kernel of each output, row by row, pixel by pixel, over the inputs.
    pub weights: &'a [i8],
    /// Biases and multipliers.
    pub outputs: &'a [Output],
    /// The windows of the image for the kernel.
    pub kernel: Windows,
    /// Pixels of zeros on either side of the image.
    pub padding: [u16; 2],
    /// The windows that keep only their largest value: [`Windows::PIXELS`] for all values.
    pub pool: Windows,
    /// The zero point of the image.
    pub input_zero: i8,
    /// The zero point of the results.
    pub output_zero: i8,
    /// The smallest result: the zero point with a rectifier, else −128.
    pub least: i8,
}

/// Number of outputs computed together, so that the part of the image under a window is located
/// once.
const TOGETHER: usize = 4;

impl Convolution<'_> {
    pub(super) const fn output(&self, image: Image) -> Result<Image, Fault> {
        if let Err(fault) = Output::check(self.outputs) {
            return Err(fault);
        }
        let Some(convolved) = self.kernel.of(image, self.padding) else {
            return Err(Fault::Window);
        };
        let Some(pooled) = self.pool.of(convolved, [0, 0]) else {
            return Err(Fault::Window);
        };
        let patch = Image {
            height: self.kernel.size[0],
            width: self.kernel.size[1],
            channels: image.channels,
        };
        let expected = self.outputs.len().saturating_mul(patch.count());
        let found = self.weights.len();
        if found != expected {
            return Err(Fault::Weights { expected, found });
        }
        let result = Image {
            // `check` limits their number.
            channels: self.outputs.len() as u16,
            ..pooled
        };
        if result.count() > MAX_COUNT || image.count() > MAX_COUNT {
            return Err(Fault::TooLarge);
        }
        Ok(result)
    }

    /// Computes the pixels of the result, row by row.
    ///
    /// * Shape: `input` is an image of this size. A row under a kernel with missing values counts
    ///   as zeros, and results that do not fit are not computed.
    /// * Cost: a product for each weight and each pixel before pooling.
    pub(super) fn apply(&self, image: Image, input: &[i8], results: &mut [i8]) {
        let Ok(output) = self.output(image) else {
            return;
        };
        let channels = usize::from(output.channels).max(1);
        let line = (usize::from(output.width) * channels).max(1);
        for (y, line) in results.chunks_mut(line).enumerate() {
            for (x, pixel) in line.chunks_exact_mut(channels).enumerate() {
                self.pixel(image, input, [y, x], pixel);
            }
        }
    }

    /// Computes the results of one pooling window.
    #[inline(always)]
    fn pixel(&self, image: Image, input: &[i8], at: [usize; 2], results: &mut [i8]) {
        let patch = self.patch(image);
        let kernels = self.weights.chunks((TOGETHER * patch).max(1));
        let outputs = self.outputs.chunks(TOGETHER).zip(kernels);
        let first = [0, 1].map(|axis| at[axis] * usize::from(self.pool.stride[axis]));
        for (results, (outputs, kernels)) in results.chunks_mut(TOGETHER).zip(outputs) {
            let mut largest = [i32::MIN; TOGETHER];
            for down in 0..usize::from(self.pool.size[0]) {
                for right in 0..usize::from(self.pool.size[1]) {
                    let window = self.window(image, [first[0] + down, first[1] + right]);
                    let kernels = kernels.chunks_exact(patch.max(1));
                    for (largest, kernel) in largest.iter_mut().zip(kernels) {
                        *largest = (*largest).max(self.sum(&window, kernel, input));
                    }
                }
            }
            for ((result, output), sum) in results.iter_mut().zip(outputs).zip(largest) {
                *result = output.activation(sum, self.output_zero, self.least);
            }
        }
    }

    /// Returns the number of weights of an output.
    #[inline(always)]
    fn patch(&self, image: Image) -> usize {
        let [height, width] = self.kernel.size.map(usize::from);
        height * width * usize::from(image.channels)
    }

    /// Returns the part of the image under the kernel.
    #[inline(always)]
    fn window(&self, image: Image, at: [usize; 2]) -> Window {
        let channels = usize::from(image.channels);
        let [rows, columns] = [0, 1].map(|axis| self.inside(image, at[axis], axis));
        let [y, x] = [(0, &rows), (1, &columns)].map(|(axis, range)| {
            let start = at[axis] * usize::from(self.kernel.stride[axis]) + range.start;
            start.saturating_sub(usize::from(self.padding[axis]))
        });
        let [image_row, kernel_row] =
            [image.width, self.kernel.size[1]].map(|width| usize::from(width) * channels);
        Window {
            length: columns.len() * channels,
            image: (y * image_row + x * channels, image_row),
            kernel: (
                rows.start * kernel_row + columns.start * channels,
                kernel_row,
            ),
            rows: rows.len(),
        }
    }

    /// Returns the sum of products of a kernel with the values in a window. Zeros around the image
    /// add nothing.
    #[inline(always)]
    fn sum(&self, window: &Window, kernel: &[i8], input: &[i8]) -> i32 {
        let zero = i32::from(self.input_zero);
        let mut weights = kernel.get(window.kernel.0..).unwrap_or_default();
        let mut at = window.image.0;
        let mut sum = 0_i32;
        for _ in 0..window.rows {
            // The pixels of a row are contiguous in both.
            let values = input.get(at..at + window.length).unwrap_or_default();
            sum = sum.wrapping_add(dot(weights, values, zero));
            weights = weights.get(window.kernel.1..).unwrap_or_default();
            at += window.image.1;
        }
        sum
    }

    /// Returns the places of the kernel along an axis that overlap the image in this window.
    #[inline(always)]
    fn inside(&self, image: Image, window: usize, axis: usize) -> Range<usize> {
        let start = window * usize::from(self.kernel.stride[axis]);
        let padding = usize::from(self.padding[axis]);
        let end = (image.sides()[axis] + padding).saturating_sub(start);
        let end = end.min(usize::from(self.kernel.size[axis]));
        padding.saturating_sub(start).min(end)..end
    }
}

/// A part of an image, and the same part of the kernel.
struct Window {
    rows: usize,
    /// Number of values in a row.
    length: usize,
    /// Start of the first row in the image, and distance between rows.
    image: (usize, usize),
    /// Start of the first row in the kernel, and distance between rows.
    kernel: (usize, usize),
}
