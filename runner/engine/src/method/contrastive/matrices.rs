//! The server's correlation matrices: the last one of each device, and the combination of the
//! others.
//!
//! Matrices are kept as the integers that devices send: the sum of their samples' matrices, in
//! steps of the grid, with the device's noise. Weighted by its samples, a device's matrix is this
//! sum times the step over the number of all samples. The sum over devices is therefore exact in
//! any order: nothing drifts when one device's matrix is replaced (docs/papers.md, F9).

use std::collections::BTreeMap;

use smolfed_core::contrast::correlation::packed_length;
use smolfed_core::quantize::Grid;

use crate::method::state::StateError;
use crate::representation::eigen::project_to_psd;
use smolfed_release::saved::{Dtype, Saved, SavedTensor};
use smolfed_release::{Message, Messages};

/// In a checkpoint, one row per device: its number, its samples, its releases.
const SENDERS: &str = "matrix_senders";
/// In a checkpoint, one row per device: its packed sum.
const MATRICES: &str = "matrices";

/// Last message of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The packed sum over the device's samples, in steps of the grid, with its noise.
    pub sum: Message,
    /// Number of samples of the device.
    pub samples: u32,
    /// Number of matrices that it has sent so far, including this one.
    pub releases: u32,
}

/// Why a matrix is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// Wrong size.
    #[error("correlation matrix: {found} numbers, but the encoder's width needs {expected}")]
    Length {
        /// Expected numbers of a packed matrix.
        expected: usize,
        /// Received numbers.
        found: usize,
    },
    /// No samples of norm at most μ with the agreed noise could produce it.
    #[error("correlation matrix: a value exceeds what its samples and their noise allow")]
    OutOfBound,
}

/// The last matrix of each device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrices {
    width: usize,
    sent: BTreeMap<u32, Sent>,
}

impl Matrices {
    /// Creates an empty set of matrices of this width.
    #[must_use]
    pub const fn new(width: usize) -> Self {
        Self {
            width,
            sent: BTreeMap::new(),
        }
    }

    /// Returns H.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Returns the last message of each device, by device number.
    #[must_use]
    #[cfg(test)]
    pub const fn sent(&self) -> &BTreeMap<u32, Sent> {
        &self.sent
    }

    /// Returns the number of matrices that a device has sent so far, including omitted ones.
    #[must_use]
    pub fn releases(&self, device: u32) -> u32 {
        self.sent.get(&device).map_or(0, |sent| sent.releases)
    }

    /// Returns the last matrix of a device, as sent, or `None` if it has sent none.
    #[must_use]
    pub fn last(&self, device: u32) -> Option<&Message> {
        self.sent.get(&device).map(|sent| &sent.sum)
    }

    /// Returns the smallest and largest number of matrices among the devices that have sent some.
    #[must_use]
    #[cfg(test)]
    pub fn range_of_releases(&self) -> Option<(u32, u32)> {
        let all = || self.sent.values().map(|sent| sent.releases);
        Some((all().min()?, all().max()?))
    }

    /// Counts a lost matrix of each of these devices, which may have been sent.
    pub fn count_lost(&mut self, devices: impl IntoIterator<Item = u32>) {
        for device in devices {
            self.entry(device).releases += 1;
        }
    }

    fn entry(&mut self, device: u32) -> &mut Sent {
        let length = packed_length(self.width);
        self.sent.entry(device).or_insert_with(|| Sent {
            sum: Message::received(vec![0; length]),
            samples: 0,
            releases: 0,
        })
    }

    /// Returns the number of samples that a device has reported, or 0 if it has sent no matrix.
    #[must_use]
    pub fn samples(&self, device: u32) -> u32 {
        self.sent.get(&device).map_or(0, |sent| sent.samples)
    }

    /// Replaces the last message of a device. It counts as a release, whatever the result.
    ///
    /// # Errors
    /// [`MatrixError`]: the matrix is left out, and the previous one stays.
    pub fn accept(
        &mut self,
        device: u32,
        samples: u32,
        sum: Message,
        messages: &Messages,
    ) -> Result<(), MatrixError> {
        let checked = self.check(samples, &sum, messages);
        let entry = self.entry(device);
        entry.releases += 1;
        checked?;
        (entry.sum, entry.samples) = (sum, samples);
        Ok(())
    }

    fn check(&self, samples: u32, sum: &Message, messages: &Messages) -> Result<(), MatrixError> {
        let (expected, found) = (packed_length(self.width), sum.integers().len());
        if found != expected {
            return Err(MatrixError::Length { expected, found });
        }
        match messages.is_plausible(sum, samples) {
            true => Ok(()),
            false => Err(MatrixError::OutOfBound),
        }
    }

    /// Returns R̄ of all devices but one, packed: the mean over their samples, each device's at its
    /// last release. With noise it is made positive semi-definite, like the mean of zzᵀ: along a
    /// negative eigenvector, the loss would reward ever longer representations (docs/papers.md,
    /// F10). Also returns their number of samples. Returns `None` if no other device has sent a
    /// matrix.
    #[must_use]
    pub fn of_others(
        &self,
        total: &Total,
        device: u32,
        has_noise: bool,
    ) -> Option<(Vec<f32>, u64)> {
        let own = self.sent.get(&device);
        let samples = total.samples - own.map_or(0, |own| u64::from(own.samples));
        if samples == 0 {
            return None;
        }
        let scale = total.step / samples as f64;
        let own = own.map_or(&[][..], |own| own.sum.integers());
        let own = own.iter().copied().chain(std::iter::repeat(0));
        let entries = total.sum.iter().zip(own);
        let mut others: Vec<f32> = entries
            .map(|(all, own)| ((all - own) as f64 * scale) as f32)
            .collect();
        if has_noise {
            project_to_psd(&mut others, self.width);
        }
        Some((others, samples))
    }

    /// Returns the sum over all devices.
    #[must_use]
    pub fn total(&self, grid: &Grid) -> Total {
        let mut sum = vec![0; packed_length(self.width)];
        let mut samples = 0;
        for sent in self.sent.values() {
            samples += u64::from(sent.samples);
            for (total, entry) in sum.iter_mut().zip(sent.sum.integers()) {
                *total += entry;
            }
        }
        Total {
            sum,
            samples,
            step: grid.step(),
        }
    }

    /// Returns the matrices for a checkpoint.
    #[must_use]
    pub fn saved(&self) -> Saved {
        if self.sent.is_empty() {
            return Saved::default();
        }
        let count = self.sent.len();
        let senders = self.sent.iter().flat_map(|(device, sent)| {
            let row = [*device, sent.samples, sent.releases];
            row.map(u32::to_le_bytes).into_iter().flatten()
        });
        let sums = self.sent.values().flat_map(|sent| sent.sum.integers());
        let senders = SavedTensor {
            dtype: Dtype::U32,
            shape: vec![count, 3],
            bytes: senders.collect(),
        };
        let sums = SavedTensor {
            dtype: Dtype::I64,
            shape: vec![count, packed_length(self.width)],
            bytes: sums.flat_map(|entry| entry.to_le_bytes()).collect(),
        };
        Saved {
            tensors: [(SENDERS.to_owned(), senders), (MATRICES.to_owned(), sums)].into(),
            ..Saved::default()
        }
    }

    /// Restores the matrices from a checkpoint.
    ///
    /// # Errors
    /// [`StateError::Checkpoint`] if it does not hold matrices of this width.
    pub fn restored(width: usize, saved: &Saved) -> Result<Self, StateError> {
        let sent = sent(saved, packed_length(width)).map_err(|reason| StateError::Checkpoint {
            reason: reason.to_string(),
        })?;
        Ok(Self { width, sent })
    }
}

/// Returns the last message of each device from a checkpoint, or none for the checkpoint of another
/// method.
fn sent(saved: &Saved, expected: usize) -> Result<BTreeMap<u32, Sent>, String> {
    let tensors = [SENDERS, MATRICES].map(|name| saved.tensors.get(name));
    let (senders, sums) = match tensors {
        [Some(senders), Some(sums)] => (senders, sums),
        [None, None] => return Ok(BTreeMap::new()),
        _ => return Err("its matrices have no senders, or its senders no matrices".to_owned()),
    };
    let (&[count, 3], &[rows, length]) = (&senders.shape[..], &sums.shape[..]) else {
        return Err("its matrices have no rows".to_owned());
    };
    if count != rows || length == 0 || senders.dtype != Dtype::U32 || sums.dtype != Dtype::I64 {
        return Err("its matrices do not fit their senders".to_owned());
    }
    if length != expected {
        let found = length;
        return Err(MatrixError::Length { expected, found }.to_string());
    }
    let (words, _) = senders.bytes.as_chunks::<4>();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let (entries, _) = sums.bytes.as_chunks::<8>();
    let entries = entries.iter().map(|entry| i64::from_le_bytes(*entry));
    let entries: Vec<i64> = entries.collect();
    let (rows, _) = words.as_chunks::<3>();
    let sent = rows.iter().zip(entries.chunks_exact(length));
    let sent = sent.map(|(&[device, samples, releases], sum)| {
        let sum = Message::received(sum.to_vec());
        (
            device,
            Sent {
                sum,
                samples,
                releases,
            },
        )
    });
    Ok(sent.collect())
}

/// The exact sum of all devices' matrices.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    sum: Vec<i64>,
    samples: u64,
    step: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_core::contrast::correlation::without_own;
    use smolfed_core::params::ClipNorm;

    fn grid() -> Grid {
        Grid::new(ClipNorm::new(1.0).unwrap(), 20).unwrap()
    }

    fn messages(noise_std: f64) -> Messages {
        Messages {
            grid: grid(),
            noise: None,
            noise_std,
        }
    }

    fn matrices() -> Matrices {
        let mut matrices = Matrices::new(2);
        let unit = 1 << 18;
        for (device, samples, sum) in [
            (0, 2, vec![unit, -unit, 2 * unit]),
            (3, 1, vec![unit, 0, unit / 2]),
            (7, 5, vec![3 * unit, unit, unit]),
        ] {
            matrices
                .accept(device, samples, Message::received(sum), &messages(0.0))
                .unwrap();
        }
        matrices
    }

    /// The server computes the same as a device would from the matrix of all and its own.
    #[test]
    fn the_others_are_all_without_the_own_one() {
        let matrices = matrices();
        let total = matrices.total(&grid());
        let all: Vec<f32> = total
            .sum
            .iter()
            .map(|s| (*s as f64 * grid().step() / 8.0) as f32)
            .collect();
        for (device, sent) in matrices.sent() {
            let (found, _) = matrices.of_others(&total, *device, false).unwrap();
            let share = sent.samples as f32 / 8.0;
            let scale = grid().step() / f64::from(sent.samples);
            let own: Vec<f32> = sent
                .sum
                .integers()
                .iter()
                .map(|s| (*s as f64 * scale) as f32)
                .collect();
            let mut expected = [0.0; 3];
            without_own(&all, &own, share, &mut expected);
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-6, "{found} {expected}");
            }
        }
        let of_nobody = matrices.of_others(&total, 99, false).unwrap();
        assert_eq!(of_nobody, (all, 8));
        let alone = Matrices::new(2);
        assert_eq!(alone.of_others(&alone.total(&grid()), 0, true), None);
    }

    #[test]
    fn what_noise_made_indefinite_is_made_positive() {
        let mut matrices = Matrices::new(2);
        let sum = vec![1 << 20, 1 << 20, -(1 << 20)];
        matrices
            .accept(0, 2, Message::received(sum), &messages(1e6))
            .unwrap();
        let total = matrices.total(&grid());
        let (raw, _) = matrices.of_others(&total, 1, false).unwrap();
        let (positive, _) = matrices.of_others(&total, 1, true).unwrap();
        // The off-diagonal entry is multiplied by √2 in the packed form.
        let determinant = |m: &[f32]| m[0] * m[2] - 0.5 * m[1] * m[1];
        assert!(determinant(&raw) < -0.1 && determinant(&positive) > -1e-5);
        assert!(positive[0] >= 0.0 && positive[2] >= 0.0);
    }

    #[test]
    fn an_implausible_matrix_is_left_out_and_counted() {
        let mut matrices = matrices();
        let before = matrices.total(&grid());
        let found = 2;
        let short = matrices.accept(3, 1, Message::received(vec![1; 2]), &messages(0.0));
        assert_eq!(short, Err(MatrixError::Length { expected: 3, found }));
        for lie in [1 << 21, i64::MAX, i64::MIN] {
            let refused = matrices.accept(3, 1, Message::received(vec![0, lie, 0]), &messages(0.0));
            assert_eq!(refused, Err(MatrixError::OutOfBound));
        }
        assert_eq!(matrices.total(&grid()), before);
        assert_eq!(matrices.releases(3), 5);
        assert_eq!(matrices.range_of_releases(), Some((1, 5)));
    }
}
