//! Why a layer does not fit what it is given.

use super::shape::Shape;

/// Why a layer does not fit what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum LayerError {
    /// A convolution or a pool is given something else than an image.
    ExpectsImage {
        /// What it is given.
        found: Shape,
    },
    /// An LSTM or the choice of the last step is given something else than a sequence.
    ExpectsSequence {
        /// What it is given.
        found: Shape,
    },
    /// An embedding is given something else than the symbols of a sample.
    ExpectsSymbols {
        /// What it is given.
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
    /// There is so much padding that a window can lie in it.
    Padding {
        /// Height and width of the kernel.
        kernel: [u16; 2],
        /// Zeros above and below, left and right.
        padding: [u16; 2],
    },
    /// It brings the parameters or the scratch memory of the network above 2 GiB, or gives a side
    /// above 65,535.
    TooLarge,
}

impl LayerError {
    /// The text without shapes, also while compiling.
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
