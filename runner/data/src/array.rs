//! Arrays of numbers: features with one sample along the first dimension, labels, devices.
//!
//! The formats are [`idx`](super::idx) and [`npy`](super::npy).

use serde::Serialize;

use super::dataset::Features;
use super::large;

/// The formats of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ArrayFormat {
    /// Files of MNIST.
    Idx,
    /// Files of NumPy: .npy, and arrays in .npz archives.
    Npy,
}

impl ArrayFormat {
    /// Returns the name in configurations, which is also the extension of members of archives.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idx => "idx",
            Self::Npy => "npy",
        }
    }
}

/// Errors in the use of an array.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The array has the wrong number of dimensions.
    #[error("has {found} dimension(s), but {expected}")]
    Dimensions {
        /// The required dimensions, in words.
        expected: &'static str,
        /// Dimensions of the file.
        found: usize,
    },
    /// A label or device is not an integer of at least 0.
    #[error(
        "entry {index} is {value}, but must be a whole number from 0 to {largest}; numbers to \
         predict need `data.task = \"regression\"`"
    )]
    NotAnIndex {
        /// Position in the file, from 0.
        index: usize,
        /// The entry.
        value: f64,
        /// Largest value allowed.
        largest: u32,
    },
}

/// An array whose dimensions agree with its values.
pub trait Array {
    /// Returns the sizes of the dimensions. The first is the number of samples. Never empty, and
    /// none is 0.
    fn dimensions(&self) -> &[usize];

    /// Returns the values, last dimension fastest, if they are unsigned bytes, such as pixels.
    fn bytes(&self) -> Option<&[u8]>;

    /// Iterates over the values, last dimension fastest.
    fn numbers(&self) -> Box<dyn Iterator<Item = f64> + '_>;

    /// Returns the number of samples: the first dimension.
    fn sample_count(&self) -> usize {
        self.dimensions()[0]
    }

    /// Returns all values as features. Bytes stay bytes. Floats may be non-finite: a data set
    /// checks them.
    fn features(&self) -> Features {
        match self.bytes() {
            Some(bytes) => Features::of_bytes(bytes.to_vec()),
            None => Features::from(self.numbers().map(|value| value as f32).collect::<Vec<_>>()),
        }
    }

    /// Returns the digits of large numbers that [`features`](Self::features) loses: place and rest,
    /// in the order of the places.
    fn rests(&self) -> Vec<(usize, f64)> {
        if self.bytes().is_some() {
            return Vec::new();
        }
        let rests = self.numbers().map(|value| large::split(value).1);
        // Non-finite values have none.
        let rests = rests
            .enumerate()
            .filter(|(_, rest)| rest.is_finite() && *rest != 0.0);
        rests.collect()
    }

    /// Returns the values of a one-dimensional array: targets.
    ///
    /// # Errors
    /// [`ArrayError::Dimensions`] unless there is one dimension.
    fn entries(&self) -> Result<Vec<f64>, ArrayError> {
        // A column of a matrix has a second dimension of length one.
        if self.dimensions()[1..].iter().any(|length| *length != 1) {
            let found = self.dimensions().len();
            return Err(ArrayError::Dimensions {
                expected: "one entry per sample is needed",
                found,
            });
        }
        Ok(self.numbers().collect())
    }

    /// Returns [`entries`](Self::entries) as indices: labels or devices.
    ///
    /// # Errors
    /// Also [`ArrayError::NotAnIndex`] unless every value is an integer from 0 to `largest`.
    fn indices(&self, largest: u32) -> Result<Vec<u32>, ArrayError> {
        let entries = self.entries()?.into_iter().enumerate();
        let index = |(index, value): (usize, f64)| {
            let whole = value as u32;
            let is_index = f64::from(whole).to_bits() == value.to_bits() && whole <= largest;
            is_index.then_some(whole).ok_or(ArrayError::NotAnIndex {
                index,
                value,
                largest,
            })
        };
        entries.map(index).collect()
    }
}
