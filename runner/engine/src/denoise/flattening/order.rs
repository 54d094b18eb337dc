//! `server.smooth_along`: the order of a kernel's axes on one line, or no line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Axes for smoothing the weights of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SmoothAlong {
    /// One line through each tensor, in this order of a kernel's axes.
    Line(KernelOrder),
    /// The rows and columns of the image that each output weighs.
    Image,
}

impl SmoothAlong {
    /// Returns whether it is one line through each tensor in memory order.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for SmoothAlong {
    fn default() -> Self {
        Self::Line(KernelOrder::default())
    }
}

impl fmt::Display for SmoothAlong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(order) => order.fmt(f),
            Self::Image => f.write_str(IMAGE),
        }
    }
}

impl From<SmoothAlong> for String {
    fn from(along: SmoothAlong) -> Self {
        along.to_string()
    }
}

impl TryFrom<String> for SmoothAlong {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            IMAGE => Ok(Self::Image),
            order => order.parse().map(Self::Line),
        }
    }
}

/// The name of [`SmoothAlong::Image`].
const IMAGE: &str = "image";
/// The axes of a kernel in memory order, outermost first: outputs, inputs, rows, columns. The
/// letters are from Liang et al. 2020, Table 5.
const KERNEL_AXES: [u8; 4] = *b"BCHW";

/// An order of the axes of a convolution's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelOrder([usize; 4]);

impl KernelOrder {
    /// Returns the order of outputs (0), inputs (1), rows (2) and columns (3), from the outermost.
    #[must_use]
    pub const fn axes(self) -> [usize; 4] {
        self.0
    }
}

impl Default for KernelOrder {
    /// Returns the memory order.
    fn default() -> Self {
        Self([0, 1, 2, 3])
    }
}

impl fmt::Display for KernelOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = self.0.iter().map(|axis| char::from(KERNEL_AXES[*axis]));
        f.write_str(&letters.collect::<String>())
    }
}

impl FromStr for KernelOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let axes = text
            .bytes()
            .map(|letter| KERNEL_AXES.iter().position(|axis| *axis == letter));
        let axes: Option<Vec<usize>> = axes.collect();
        let axes = axes.and_then(|axes| <[usize; 4]>::try_from(axes).ok());
        let is_order = |axes: &[usize; 4]| (0..4).all(|axis| axes.contains(&axis));
        axes.filter(is_order).map(Self).ok_or_else(|| {
            format!(
                "{text:?} must be \"image\", or an order of a kernel's outputs, inputs, rows and \
                 columns: the letters B, C, H and W, for example \"BHWC\""
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn along(text: &str) -> Result<SmoothAlong, String> {
        SmoothAlong::try_from(text.to_owned())
    }

    #[test]
    fn orders_are_written_as_they_are_read() {
        for text in ["BCHW", "BHWC", "WHCB", "image"] {
            assert_eq!(along(text).unwrap().to_string(), text);
        }
        assert_eq!(along("BCHW").unwrap(), SmoothAlong::default());
        for text in ["", "BCH", "BCHH", "BCHWW", "bchw", "NCHW", "images"] {
            let error = along(text).unwrap_err();
            assert!(error.contains("for example \"BHWC\""), "{error}");
        }
    }
}
