//! The kinds of layers of a network, such as convolution, dense or LSTM: their largest number,
//! sizes, output shapes and parameters.

use super::{
    misfit::LayerError,
    shape::{Shape, product},
};

/// Maximum number of layers of a network.
pub const MAX_LAYERS: usize = 12;

/// A layer of a [`Sequential`](super::Sequential). Weights are laid out as in PyTorch. Pairs are
/// height, width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Cross-correlation with zeros around the image (`torch.nn.Conv2d`). Parameters: weights
    /// `[channels, channels of the image, height, width of the kernel]`, biases `[channels]`.
    Convolution {
        /// Channels of the result.
        channels: u16,
        /// Size of the kernel.
        kernel: [u16; 2],
        /// Distance between neighbouring windows.
        stride: [u16; 2],
        /// Zeros on either side of the image: fewer than the size of the kernel.
        padding: [u16; 2],
    },
    /// max(x, 0), of any shape. Its derivative at 0 is 0. NaN stays NaN.
    Relu,
    /// The largest entry of each window (`torch.nn.MaxPool2d`). The derivative goes to the first of
    /// the largest. Rows and columns after the last whole window are ignored.
    MaxPool {
        /// Size of a window.
        size: [u16; 2],
        /// Distance between neighbouring windows.
        stride: [u16; 2],
    },
    /// The mean of each channel: an image becomes a vector.
    GlobalAverage,
    /// `Wx + b` of the entries of any shape in order (`torch.nn.Linear`). Parameters: weights
    /// `[outputs, entries]`, biases `[outputs]`.
    Dense {
        /// Entries of the result.
        outputs: u16,
    },
    /// A row of a table for each symbol (`torch.nn.Embedding`): the first layer, on a sequence of
    /// width 1 whose features are whole numbers below `vocabulary`. Parameters: the table
    /// `[vocabulary, width]`.
    Embedding {
        /// Rows of the table.
        vocabulary: u16,
        /// Entries of a row.
        width: u16,
    },
    /// A long short-term memory that starts from zeros (`torch.nn.LSTM`). Its output is the hidden
    /// state after each step. Parameters: input weights `[4 hidden, width]`, recurrent weights
    /// `[4 hidden, hidden]`, biases `[4 hidden]` (the sum of PyTorch's two). Gates are in the order
    /// input, forget, cell, output.
    Lstm {
        /// Entries of the hidden state.
        hidden: u16,
    },
    /// The last step of a sequence, as a vector.
    Last,
}

/// Maximum number of parameter tensors of a layer.
pub(super) const MAX_TENSORS: usize = 3;

impl Layer {
    /// Returns the output shape for `input`.
    pub(super) const fn output(self, input: Shape, is_first: bool) -> Result<Shape, LayerError> {
        match (self, input) {
            (
                Self::Convolution {
                    channels,
                    kernel,
                    stride,
                    padding,
                },
                Shape::Image { height, width, .. },
            ) => {
                if padding[0] >= kernel[0] && kernel[0] > 0
                    || padding[1] >= kernel[1] && kernel[1] > 0
                {
                    return Err(LayerError::Padding { kernel, padding });
                }
                windows(channels, [height, width], kernel, stride, padding)
            }
            (
                Self::MaxPool { size, stride },
                Shape::Image {
                    channels,
                    height,
                    width,
                },
            ) => windows(channels, [height, width], size, stride, [0, 0]),
            (Self::GlobalAverage, Shape::Image { channels, .. }) => {
                Ok(Shape::Vector { length: channels })
            }
            (Self::Convolution { .. } | Self::MaxPool { .. } | Self::GlobalAverage, found) => {
                Err(LayerError::ExpectsImage { found })
            }
            (Self::Relu, shape) => Ok(shape),
            (Self::Dense { outputs: 0 }, _) | (Self::Lstm { hidden: 0 }, _) => {
                Err(LayerError::Zero)
            }
            (Self::Dense { outputs }, _) => Ok(Shape::Vector { length: outputs }),
            (Self::Embedding { vocabulary, width }, Shape::Sequence { length, width: 1 })
                if is_first =>
            {
                if vocabulary == 0 || width == 0 {
                    return Err(LayerError::Zero);
                }
                Ok(Shape::Sequence { length, width })
            }
            (Self::Embedding { .. }, found) => Err(LayerError::ExpectsSymbols { found }),
            (Self::Lstm { hidden }, Shape::Sequence { length, .. }) => Ok(Shape::Sequence {
                length,
                width: hidden,
            }),
            (Self::Last, Shape::Sequence { width, .. }) => Ok(Shape::Vector { length: width }),
            (Self::Lstm { .. } | Self::Last, found) => Err(LayerError::ExpectsSequence { found }),
        }
    }

    /// Returns the lengths of the parameter tensors for this input, 0 for missing ones.
    pub(super) const fn tensors(self, input: Shape) -> [usize; MAX_TENSORS] {
        match (self, input) {
            (
                Self::Convolution {
                    channels, kernel, ..
                },
                Shape::Image {
                    channels: below, ..
                },
            ) => [
                product(&[channels, below, kernel[0], kernel[1]]),
                channels as usize,
                0,
            ],
            (Self::Dense { outputs }, _) => [
                (outputs as usize).saturating_mul(input.count()),
                outputs as usize,
                0,
            ],
            (Self::Embedding { vocabulary, width }, _) => [product(&[vocabulary, width]), 0, 0],
            (Self::Lstm { hidden }, Shape::Sequence { width, .. }) => [
                product(&[4, hidden, width]),
                product(&[4, hidden, hidden]),
                product(&[4, hidden]),
            ],
            _ => [0; MAX_TENSORS],
        }
    }

    /// Returns the number of parameters for this input.
    pub(super) const fn parameter_count(self, input: Shape) -> usize {
        let [a, b, c] = self.tensors(input);
        a.saturating_add(b).saturating_add(c)
    }
}

/// Returns the shape of all whole windows of an image.
const fn windows(
    channels: u16,
    image: [u16; 2],
    size: [u16; 2],
    stride: [u16; 2],
    padding: [u16; 2],
) -> Result<Shape, LayerError> {
    let [height, width] = size;
    if channels == 0 || height == 0 || width == 0 || stride[0] == 0 || stride[1] == 0 {
        return Err(LayerError::Zero);
    }
    let padded = [
        image[0] as u32 + 2 * padding[0] as u32,
        image[1] as u32 + 2 * padding[1] as u32,
    ];
    if height as u32 > padded[0] || width as u32 > padded[1] {
        return Err(LayerError::Window { size, padded });
    }
    let rows = (padded[0] - height as u32) / stride[0] as u32 + 1;
    let columns = (padded[1] - width as u32) / stride[1] as u32 + 1;
    if rows > u16::MAX as u32 || columns > u16::MAX as u32 {
        return Err(LayerError::TooLarge);
    }
    Ok(Shape::Image {
        channels,
        height: rows as u16,
        width: columns as u16,
    })
}
