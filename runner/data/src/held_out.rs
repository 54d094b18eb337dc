//! Held-out samples (test, validation) that are read piece by piece: bytes such as pixels stay
//! bytes, which need less memory than numbers.

use std::ops::Range;

use smolfed_simd::bytes::Line;

use super::dataset::{Dataset, DatasetView, DeviceBuffer};

/// Samples of all devices, or of one. Bytes stay bytes, a quarter of the memory that every
/// evaluation reads, and become numbers piece by piece.
#[derive(Clone, Copy, Debug)]
pub enum HeldOut<'a> {
    /// Rows of numbers.
    Numbers(DatasetView<'a>),
    /// Rows of data whose features are bytes.
    Bytes {
        /// The data.
        data: &'a Dataset,
        /// The rows, by number.
        rows: &'a [u32],
    },
}

impl<'a> From<DatasetView<'a>> for HeldOut<'a> {
    fn from(samples: DatasetView<'a>) -> Self {
        Self::Numbers(samples)
    }
}

impl<'a> HeldOut<'a> {
    /// Creates samples from the given rows of `data`.
    #[must_use]
    pub fn new(data: &'a Dataset, rows: &'a [u32]) -> Self {
        match data.shared_view(rows) {
            Some(samples) => Self::Numbers(samples),
            None => Self::Bytes { data, rows },
        }
    }

    /// Returns the number of samples, which may be 0.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(samples) => samples.len(),
            Self::Bytes { rows, .. } => rows.len(),
        }
    }

    /// Returns whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns some of the samples, unpacked into `buffer` if they are bytes.
    ///
    /// # Panics
    /// If `range` ends beyond [`len`](Self::len).
    #[must_use]
    pub fn piece(&self, range: Range<usize>, buffer: &'a mut DeviceBuffer) -> DatasetView<'a> {
        match self {
            Self::Numbers(samples) => samples.piece(range),
            Self::Bytes { data, rows } => data.view(&rows[range], buffer),
        }
    }

    /// Returns the linear map of the bytes to their numbers, if there is one.
    #[must_use]
    pub fn line(&self) -> Option<Line> {
        match self {
            Self::Numbers(_) => None,
            Self::Bytes { data, .. } => data.features().line(),
        }
    }

    /// Returns [`Self::piece`] with bytes instead of the numbers that they represent.
    ///
    /// # Panics
    /// If `range` ends beyond [`len`](Self::len).
    #[must_use]
    pub fn piece_of_bytes(
        &self,
        range: Range<usize>,
        buffer: &'a mut DeviceBuffer,
    ) -> DatasetView<'a> {
        match self {
            Self::Numbers(samples) => samples.piece(range),
            Self::Bytes { data, rows } => data.view_bytes(&rows[range], buffer),
        }
    }

    /// Returns all samples, unpacked into `buffer` if they are bytes.
    #[must_use]
    pub fn all(&self, buffer: &'a mut DeviceBuffer) -> DatasetView<'a> {
        self.piece(0..self.len(), buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Features, Targets};

    /// Pieces of bytes equal the numbers that they represent.
    #[test]
    fn a_piece_of_bytes_is_that_of_numbers() {
        let bytes: Vec<u8> = (0..21).map(|i| i * 11).collect();
        let numbers: Vec<f32> = bytes.iter().map(|byte| f32::from(*byte)).collect();
        let data = |features| {
            let targets = Targets::classes(&[0, 1, 2, 0, 1, 2, 0], 3).unwrap();
            Dataset::new(features, 3, targets).unwrap()
        };
        let [packed, plain] = [Features::of_bytes(bytes), numbers.into()].map(data);
        let rows = [6, 0, 3, 5];
        let held_out = [&packed, &plain].map(|data| HeldOut::new(data, &rows));
        assert!(matches!(held_out[0], HeldOut::Bytes { .. }));
        assert!(matches!(held_out[1], HeldOut::Numbers(_)));
        for range in [0..4, 1..3, 2..2] {
            let seen = held_out.map(|samples| {
                let mut buffer = DeviceBuffer::default();
                let piece = samples.piece(range.clone(), &mut buffer);
                let sample = |i| (piece.features(i).to_vec(), piece.label(i));
                (0..piece.len()).map(sample).collect::<Vec<_>>()
            });
            assert_eq!(seen[0], seen[1]);
            assert_eq!(seen[0].len(), range.len());
        }
        assert_eq!((held_out[0].len(), held_out[0].is_empty()), (4, false));
    }
}
