//! Shapes of samples and of layer outputs (image, sequence, vector), the order of their entries,
//! and their texts.

/// The shape of a sample or of a layer's output. Entries of a sample are row-major, as in PyTorch:
/// the last dimension varies fastest. Between layers, images are stored pixel by pixel, which does
/// not change parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Shape {
    /// Channels x height x width. A window of sensor channels has height 1.
    Image {
        /// Channels.
        channels: u16,
        /// Rows of a channel.
        height: u16,
        /// Columns of a channel.
        width: u16,
    },
    /// Length x width: one row for each step. Symbols are a sequence of width 1.
    Sequence {
        /// Steps.
        length: u16,
        /// Entries of a step.
        width: u16,
    },
    /// Entries without spatial order, such as scores.
    Vector {
        /// Entries.
        length: u16,
    },
}

impl Shape {
    /// Returns the number of entries.
    pub const fn count(self) -> usize {
        match self {
            Self::Image {
                channels,
                height,
                width,
            } => product(&[channels, height, width]),
            Self::Sequence { length, width } => product(&[length, width]),
            Self::Vector { length } => length as usize,
        }
    }

    /// Returns the channels of an image, or 1 for other shapes.
    pub(super) const fn channels(self) -> usize {
        match self {
            Self::Image { channels, .. } => channels as usize,
            _ => 1,
        }
    }

    /// Returns the height and width of an image.
    pub(super) const fn sides(self) -> [usize; 2] {
        match self {
            Self::Image { height, width, .. } => [height as usize, width as usize],
            _ => [1, self.count()],
        }
    }

    /// Returns whether channel-by-channel and pixel-by-pixel order differ.
    pub(super) const fn is_interleaved(self) -> bool {
        let [height, width] = self.sides();
        self.channels() > 1 && height.saturating_mul(width) > 1
    }
}

impl core::fmt::Display for Shape {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Image {
                channels,
                height,
                width,
            } => write!(f, "an image of {channels} x {height} x {width}"),
            Self::Sequence { length, width } => write!(f, "a sequence of {length} x {width}"),
            Self::Vector { length } => write!(f, "a vector of {length}"),
        }
    }
}

/// Returns the saturated product.
pub(super) const fn product(factors: &[u16]) -> usize {
    let mut product = 1_usize;
    let mut rest = factors;
    while let [factor, after @ ..] = rest {
        product = product.saturating_mul(*factor as usize);
        rest = after;
    }
    product
}
