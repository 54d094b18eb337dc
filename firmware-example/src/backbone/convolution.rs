//! A convolution in integers of 8 bits, with what follows it.
//!
//! It is quantised as TensorFlow Lite quantises. A value is S (q − Z) with a scale S and a zero
//! point Z; weights have Z = 0 and a scale for each output channel; biases have 32 bits and the
//! scale of the products. A sum becomes an integer of the next layer by a multiplier
//! m · 2⁻ⁿ with 1/2 ≤ m < 1. Sources: Jacob et al. 2018, "Quantization and Training of Neural
//! Networks for Efficient Integer-Arithmetic-Only Inference", arXiv:1712.05877, sections 2.1 to
//! 2.4; "TensorFlow Lite 8-bit quantization specification"; for rounding gemmlowp,
//! `fixedpoint/fixedpoint.h`.

/// A convolution of 3 × 3 on an image of `SIDE` × `SIDE` pixels of `INPUTS` channels, a rectifier,
/// and the largest value of each square of 2 × 2 pixels: `CONV_2D` with padding `SAME`, `RELU` and
/// `MAX_POOL_2D`.
pub struct Convolution<const SIDE: usize, const INPUTS: usize, const OUTPUTS: usize> {
    /// For each output its kernel, row after row, of the inputs.
    pub kernels: [[[i8; INPUTS]; 9]; OUTPUTS],
    /// The outputs' scales and biases.
    pub outputs: [Output; OUTPUTS],
    /// The zero point of the image.
    pub input_zero: i8,
    /// The zero point of what comes out, which is its least value.
    pub output_zero: i8,
}

/// Bias and multiplier of an output channel.
#[derive(Clone, Copy)]
pub struct Output {
    /// In units of the products: below 2²⁴ in magnitude.
    pub bias: i32,
    /// m in units of 2⁻³¹: from 2³⁰ on.
    pub mantissa: i32,
    /// n, below 31.
    pub shift: u8,
}

impl<const SIDE: usize, const INPUTS: usize, const OUTPUTS: usize>
    Convolution<SIDE, INPUTS, OUTPUTS>
{
    /// Computes a quarter as many pixels as the image has, row after row.
    pub fn apply(&self, image: &[[i8; INPUTS]], pooled: &mut [[i8; OUTPUTS]]) {
        let rows = (0..SIDE).step_by(2);
        let squares = rows.flat_map(|row| (0..SIDE).step_by(2).map(move |column| (row, column)));
        for (pixel, (row, column)) in pooled.iter_mut().zip(squares) {
            for ((value, output), kernel) in pixel.iter_mut().zip(&self.outputs).zip(&self.kernels)
            {
                let square = [(0, 0), (0, 1), (1, 0), (1, 1)];
                let sums =
                    square.map(|(down, right)| self.sum(kernel, image, row + down, column + right));
                // Multiplying and rounding keep the order: the largest result is that of the
                // largest sum.
                let largest = sums.into_iter().fold(i32::MIN, i32::max);
                let zero = i32::from(self.output_zero);
                let scaled = output.scaled(largest + output.bias) + zero;
                *value = scaled.clamp(zero, 127) as i8;
            }
        }
    }

    /// The products of a kernel at a pixel: below 2²² in magnitude, for up to 14 inputs.
    fn sum(
        &self,
        kernel: &[[i8; INPUTS]; 9],
        image: &[[i8; INPUTS]],
        row: usize,
        column: usize,
    ) -> i32 {
        let zero = i32::from(self.input_zero);
        let mut sum = 0;
        // Rows of three: a quotient of the place takes long on processors that do not divide.
        for (down, weights) in kernel.as_chunks::<3>().0.iter().enumerate() {
            for (right, weights) in weights.iter().enumerate() {
                // Beside the image are zeros, which add nothing.
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

/// A pixel, of which rows and columns are counted from 1; none beside the image.
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
    /// `sum · m · 2⁻ⁿ`, rounded twice, half away from zero: to units of 2ⁿ⁻³¹ of a result, and to
    /// whole results.
    const fn scaled(self, sum: i32) -> i32 {
        let product = sum as i64 * self.mantissa as i64;
        let half = if product < 0 { 1 - (1 << 30) } else { 1 << 30 };
        // The quotient is rounded toward zero.
        let high = ((product + half) / (1 << 31)) as i32;
        let rest = high & ((1 << self.shift) - 1);
        let threshold = (((1 << self.shift) - 1) >> 1) + (high < 0) as i32;
        (high >> self.shift) + (rest > threshold) as i32
    }
}
