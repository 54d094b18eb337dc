//! Reasons why a layer does not fit its input, with their texts: its shape, a size of 0, the
//! window, the padding, or too much memory.

use super::shape::Shape;

/// Reason why a layer does not fit its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum LayerError {
    /// The input of a convolution or a pool is not an image.
    ExpectsImage {
        /// Shape of the input.
        found: Shape,
    },
    /// The input of an LSTM or of the last step is not a sequence.
    ExpectsSequence {
        /// Shape of the input.
        found: Shape,
    },
    /// The input of an embedding is not the symbols of a sample.
    ExpectsSymbols {
        /// Shape of the input.
        found: Shape,
    },
    /// A size or a stride is 0.
    Zero,
    /// A window is larger than the image with its padding.
    Window {
        /// Height and width of the window.
        size: [u16; 2],
        /// Height and width of the image with its padding.
        padded: [u32; 2],
    },
    /// A window fits within the padding.
    Padding {
        /// Height and width of the kernel.
        kernel: [u16; 2],
        /// Zeros above and below, left and right.
        padding: [u16; 2],
    },
    /// The parameters or the scratch memory of the network exceed 2 GiB, or a side exceeds 65,535.
    TooLarge,
}

impl LayerError {
    /// Returns the text without shapes, also at compile time.
    pub(super) const fn in_short(self) -> &'static str {
        match self {
            Self::ExpectsImage { .. } => "expects an image",
            Self::ExpectsSequence { .. } => "expects a sequence",
            Self::ExpectsSymbols { .. } => "expects symbols, as the first layer",
            Self::Zero => "has a size or a stride of 0",
            Self::Window { .. } => "has a window larger than its input with padding",
            Self::Padding { .. } => "has as much padding as its kernel has entries",
            Self::TooLarge => "is too large",
        }
    }
}

impl core::fmt::Display for LayerError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::ExpectsImage { found } => write!(f, "expects an image, gets {found}"),
            Self::ExpectsSequence { found } => write!(f, "expects a sequence, gets {found}"),
            Self::ExpectsSymbols { found } => write!(
                f,
                "expects symbols (the features of a sample, a sequence of width 1), gets {found}"
            ),
            Self::Zero => f.write_str("has a size or a stride of 0"),
            Self::Window { size, padded } => write!(
                f,
                "has windows of {} x {}, larger than its input of {} x {} with padding",
                size[0], size[1], padded[0], padded[1]
            ),
            Self::Padding { kernel, padding } => write!(
                f,
                "has padding of {} x {}, which must be less than its kernel of {} x {}",
                padding[0], padding[1], kernel[0], kernel[1]
            ),
            Self::TooLarge => f.write_str("is too large"),
        }
    }
}

impl core::error::Error for LayerError {}
