//! A convolution in 8-bit integers, with rectifier and pooling.
//!
//! Quantisation follows TensorFlow Lite. A value is S (q − Z) with a scale S and a zero point Z.
//! Weights have Z = 0 and a scale for each output channel. Biases have 32 bits and the scale of the
//! products. A sum becomes an integer of the next layer by a multiplier m · 2⁻ⁿ with 1/2 ≤ m < 1.
//! Sources: Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient
//! Integer-Arithmetic-Only Inference", arXiv:1712.05877, sections 2.1 to 2.4; "TensorFlow Lite
//! 8-bit quantization specification"; for rounding gemmlowp, `fixedpoint/fixedpoint.h`.

/// A 3 × 3 convolution on an image of `SIDE` × `SIDE` pixels with `INPUTS` channels, a rectifier,
/// and the maximum of each 2 × 2 square: `CONV_2D` with padding `SAME`, `RELU` and `MAX_POOL_2D`.
pub struct Convolution<const SIDE: usize, const INPUTS: usize, const OUTPUTS: usize> {
    /// Kernel of each output, in row order, with one weight per input.
    pub kernels: [[[i8; INPUTS]; 9]; OUTPUTS],
    /// Scales and biases of the outputs.
    pub outputs: [Output; OUTPUTS],
    /// Zero point of the image.
    pub input_zero: i8,
    /// Zero point of the outputs, which is their minimum.
    pub output_zero: i8,
}

/// Bias and multiplier of an output channel.
#[derive(Clone, Copy)]
pub struct Output {
    /// Bias in units of the products, below 2²⁴ in magnitude.
    pub bias: i32,
    /// m in units of 2⁻³¹: at least 2³⁰.
    pub mantissa: i32,
    /// n, below 31.
    pub shift: u8,
}

impl<const SIDE: usize, const INPUTS: usize, const OUTPUTS: usize>
    Convolution<SIDE, INPUTS, OUTPUTS>
{
    /// Computes the pooled pixels, a quarter of the image's, in row order.
    pub fn apply(&self, image: &[[i8; INPUTS]], pooled: &mut [[i8; OUTPUTS]]) {
        let rows = (0..SIDE).step_by(2);
        let squares = rows.flat_map(|row| (0..SIDE).step_by(2).map(move |column| (row, column)));
        for (pixel, (row, column)) in pooled.iter_mut().zip(squares) {
            for ((value, output), kernel) in pixel.iter_mut().zip(&self.outputs).zip(&self.kernels)
            {
                let square = [(0, 0), (0, 1), (1, 0), (1, 1)];
                let sums =
                    square.map(|(down, right)| self.sum(kernel, image, row + down, column + right));
                // Multiplying and rounding are monotonic: the largest sum gives the largest result.
                let largest = sums.into_iter().fold(i32::MIN, i32::max);
                let zero = i32::from(self.output_zero);
                let scaled = output.scaled(largest + output.bias) + zero;
                *value = scaled.clamp(zero, 127) as i8;
            }
        }
    }

    /// Sums the products of a kernel at a pixel: below 2²² in magnitude, for up to 14 inputs.
    fn sum(
        &self,
        kernel: &[[i8; INPUTS]; 9],
        image: &[[i8; INPUTS]],
        row: usize,
        column: usize,
    ) -> i32 {
        let zero = i32::from(self.input_zero);
        let mut sum = 0;
        // Rows of three: dividing an index is slow on processors without a divider.
        for (down, weights) in kernel.as_chunks::<3>().0.iter().enumerate() {
            for (right, weights) in weights.iter().enumerate() {
                // Pixels outside the image are zero and add nothing.
                let Some(pixel) = pixel::<SIDE, INPUTS>(image, row + down, column + right) else {
                    continue;
                };
                for (weight, value) in weights.iter().zip(pixel) {
                    sum += i32::from(*weight) * (i32::from(*value) - zero);
                }
            }
        }
        sum
    }
}

/// Returns a pixel, with rows and columns counted from 1, or `None` outside the image.
fn pixel<const SIDE: usize, const INPUTS: usize>(
    image: &[[i8; INPUTS]],
    row: usize,
    column: usize,
) -> Option<&[i8; INPUTS]> {
    let (row, column) = (row.checked_sub(1)?, column.checked_sub(1)?);
    let inside = column < SIDE;
    inside.then(|| image.get(row * SIDE + column)).flatten()
}

impl Output {
    /// Returns `sum · m · 2⁻ⁿ`, rounded half away from zero twice: to units of 2ⁿ⁻³¹ of a result,
    /// and to whole results.
    const fn scaled(self, sum: i32) -> i32 {
        let product = sum as i64 * self.mantissa as i64;
        let half = if product < 0 { 1 - (1 << 30) } else { 1 << 30 };
        // The division rounds toward zero.
        let high = ((product + half) / (1 << 31)) as i32;
        let rest = high & ((1 << self.shift) - 1);
        let threshold = (((1 << self.shift) - 1) >> 1) + (high < 0) as i32;
        (high >> self.shift) + (rest > threshold) as i32
    }
}
