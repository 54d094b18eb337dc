//! Shapes of samples and of what layers give.

/// The shape of a sample, or of what a layer gives. Entries are row-major: the last size runs
/// fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
