//! Shapes of samples and of what layers give.

/// The shape of a sample, or of what a layer gives. Entries of a sample are row-major, as in
/// PyTorch: the last size runs fastest. Between layers, the entries of an image lie pixel by pixel,
/// which changes no parameter.
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
    /// Length x width: one row a step. Symbols are a sequence of width 1.
    Sequence {
        /// Steps.
        length: u16,
        /// Entries of a step.
        width: u16,
    },
    /// Entries without an order, as scores are.
    Vector {
        /// Entries.
        length: u16,
    },
}

impl Shape {
    /// Number of entries.
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

    /// Channels of an image; 1 of anything else.
    pub(super) const fn channels(self) -> usize {
        match self {
            Self::Image { channels, .. } => channels as usize,
            _ => 1,
        }
    }

    /// Height and width of an image.
    pub(super) const fn sides(self) -> [usize; 2] {
        match self {
            Self::Image { height, width, .. } => [height as usize, width as usize],
            _ => [1, self.count()],
        }
    }

    /// Whether the order of entries, channel by channel or pixel by pixel, makes a difference.
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

/// The product, or the largest number if that is less.
pub(super) const fn product(factors: &[u16]) -> usize {
    let mut product = 1_usize;
    let mut rest = factors;
    while let [factor, after @ ..] = rest {
        product = product.saturating_mul(*factor as usize);
        rest = after;
    }
    product
}
