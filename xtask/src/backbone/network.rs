//! The trained network in `model.safetensors`: two blocks of convolution, rectifier and maximum
//! pooling, in 64 bits.

use std::error::Error;
use std::path::Path;

use serde_json::Value;

/// A 3 × 3 convolution.
pub struct Block {
    /// `[outputs][inputs][3][3]`.
    weights: Vec<f64>,
    pub biases: Vec<f64>,
    pub inputs: usize,
}

/// Blocks below the head.
pub struct Network(pub Vec<Block>);

impl Network {
    /// Reads a file in this format: <https://github.com/huggingface/safetensors>.
    pub fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let bytes = std::fs::read(path)?;
        let (length, rest) = bytes.split_first_chunk().ok_or("no length")?;
        let length = usize::try_from(u64::from_le_bytes(*length))?;
        let (header, data) = rest.split_at_checked(length).ok_or("no header")?;
        let header: Value = serde_json::from_slice(header)?;
        let mut blocks = vec![];
        for layer in ["layer_1", "layer_4"] {
            let (weights, shape) = tensor(&header, data, &format!("{layer}.weights"))?;
            let [_, inputs, 3, 3] = shape.as_slice() else {
                return Err(format!("{layer} is no convolution of 3 x 3: {shape:?}").into());
            };
            blocks.push(Block {
                weights,
                biases: tensor(&header, data, &format!("{layer}.biases"))?.0,
                inputs: *inputs,
            });
        }
        Ok(Self(blocks))
    }
}

/// Returns the values of a tensor, and its shape.
fn tensor(
    header: &Value,
    data: &[u8],
    name: &str,
) -> Result<(Vec<f64>, Vec<usize>), Box<dyn Error>> {
    let numbers = |key| {
        let values = header[name][key].as_array();
        let values: Option<Vec<usize>> = values.and_then(|values| {
            let sizes = values.iter().map(|x| usize::try_from(x.as_u64()?).ok());
            sizes.collect()
        });
        values.ok_or_else(|| format!("{name} has no {key}"))
    };
    let offsets = numbers("data_offsets")?;
    let [start, end] = offsets.as_slice() else {
        return Err(format!("{name} has other offsets").into());
    };
    let bytes = data.get(*start..*end).ok_or("the file is cut short")?;
    let values = bytes.as_chunks().0.iter();
    let values = values
        .map(|word| f32::from_le_bytes(*word).into())
        .collect();
    Ok((values, numbers("shape")?))
}

impl Block {
    /// Returns the kernel of an output: for each of its nine places, in row order, the inputs.
    pub fn kernel(&self, output: usize) -> [Vec<f64>; 9] {
        std::array::from_fn(|place| {
            let inputs = (0..self.inputs).map(|input| (output * self.inputs + input) * 9 + place);
            inputs.map(|index| self.weights[index]).collect()
        })
    }

    /// Returns the pooled pixels, a quarter of a `side` × `side` image, each with its channels.
    pub fn apply(&self, image: &[Vec<f64>], side: usize) -> Vec<Vec<f64>> {
        let kernels: Vec<_> = (0..self.biases.len()).map(|o| self.kernel(o)).collect();
        let rows = (0..side).step_by(2);
        let corners = rows.flat_map(|row| (row * side..(row + 1) * side).step_by(2));
        let squares = corners.map(|at| [at, at + 1, at + side, at + side + 1]);
        let value = |(kernel, bias): (&[Vec<f64>; 9], &f64), square: [usize; 4]| {
            let sums = square.map(|at| bias + sum(kernel, image, side, at));
            sums.into_iter().fold(0.0, f64::max)
        };
        let pixel = |square| {
            let outputs = kernels.iter().zip(&self.biases);
            outputs.map(|output| value(output, square)).collect()
        };
        squares.map(pixel).collect()
    }
}

/// Sums the products of a kernel at a pixel, with zeros outside the image.
fn sum(kernel: &[Vec<f64>; 9], image: &[Vec<f64>], side: usize, at: usize) -> f64 {
    let mut sum = 0.0;
    for (place, weights) in kernel.iter().enumerate() {
        let (row, column) = (at / side + place / 3, at % side + place % 3);
        if (1..=side).contains(&row) && (1..=side).contains(&column) {
            let pixel = &image[(row - 1) * side + column - 1];
            sum += weights.iter().zip(pixel).map(|(w, x)| w * x).sum::<f64>();
        }
    }
    sum
}
