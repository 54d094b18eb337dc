//! Deals training rows to devices: evenly (`iid`), by label shards, by Dirichlet draws, or
//! unchanged (natural devices, or a device for each row).

mod dirichlet;
mod error;

use rand_core::Rng;
use serde::Serialize;

use super::dataset::{Dataset, Groups, Targets};
use super::draw;

pub use error::PartitionError;

/// The method of dealing rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "partition", rename_all = "lowercase")]
pub enum Dealing {
    /// At random, the same number to each device. Leftover rows are not used.
    Iid {
        /// Number of devices N.
        devices: u32,
        /// Number of samples per device. `None` for as many as possible.
        samples_per_device: Option<u32>,
    },
    /// Rows sorted by label are cut into shards of equal length, and each device gets some at
    /// random. Source: McMahan et al. 2017, arXiv:1602.05629, section 3.
    Shards {
        /// Number of devices N.
        devices: u32,
        /// Number of shards per device.
        shards_per_device: u32,
    },
    /// Class shares from a symmetric Dirichlet distribution: the smaller `alpha`, the more they
    /// differ.
    ///
    /// Without `samples_per_device`, each class is divided among the devices by a draw over
    /// devices, so that sizes differ, too (Yurochkin et al. 2019, arXiv:1905.12022, section 4). The
    /// draw is repeated until every device has `min_samples`. With it, each device draws shares of
    /// classes and then that many rows (Hsu et al. 2019, arXiv:1909.06335, section 3).
    Dirichlet {
        /// Number of devices N.
        devices: u32,
        /// Number of samples per device, if all have the same number.
        samples_per_device: Option<u32>,
        /// Concentration α, finite and above 0.
        alpha: f64,
        /// Minimum number of samples of a device, at least 1.
        #[serde(skip)]
        min_samples: u32,
    },
    /// One device for each natural one.
    Natural,
    /// One device for each training row.
    Rows,
}

/// The rows of each device. Every device has at least one, and no row belongs to two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Start of each device in `rows`, and the end of the last.
    offsets: Vec<u32>,
    rows: Vec<u32>,
}

/// The purpose of the dealing draw: first index of the stream's name.
const PART_DEALING: u32 = 1;

impl Partition {
    /// Deals the rows `training` of `data`.
    ///
    /// * Each device's rows are ascending.
    /// * Cost: O(rows · log rows), or O(rows · classes) for Dirichlet with a fixed size.
    ///
    /// # Errors
    /// [`PartitionError`] if there are too few rows, a device would be empty, or the data lack
    /// something that the method needs.
    pub fn new(
        data: &Dataset,
        training: &[u32],
        dealing: Dealing,
        seed: u64,
    ) -> Result<Self, PartitionError> {
        let mut rng = draw::partition_stream(seed, PART_DEALING, 0);
        let mut rows = training.to_vec();
        match dealing {
            Dealing::Natural => {
                let groups = data.groups().ok_or(PartitionError::NotNatural)?;
                let partition = Self::natural(groups, training);
                partition.refuse_smaller_than(1, groups.names())?;
                Ok(partition)
            }
            Dealing::Rows => Ok(Self::from_devices(rows.into_iter().map(|row| vec![row]))),
            Dealing::Iid {
                devices,
                samples_per_device,
            } => {
                let samples = even_share(devices, samples_per_device, rows.len())?;
                draw::shuffle(&mut rng, &mut rows);
                Ok(Self::even(devices, samples, &rows))
            }
            Dealing::Shards {
                devices,
                shards_per_device,
            } => Self::by_shards(data, rows, devices, shards_per_device, &mut rng),
            Dealing::Dirichlet {
                devices,
                alpha,
                samples_per_device,
                min_samples,
            } => {
                let classes = by_class(data, &mut rows, &mut rng)?;
                let dealt = if samples_per_device.is_some() {
                    let samples = even_share(devices, samples_per_device, rows.len())?;
                    dirichlet::even(&classes, devices, samples, alpha, &mut rng)
                } else {
                    let min_samples = min_samples.max(1);
                    even_share(devices, Some(min_samples), rows.len())?;
                    dirichlet::uneven(&classes, devices, min_samples, alpha, &mut rng)?
                };
                Ok(Self::from_devices(dealt.into_iter()))
            }
        }
    }

    fn by_shards(
        data: &Dataset,
        mut rows: Vec<u32>,
        devices: u32,
        shards_per_device: u32,
        rng: &mut impl Rng,
    ) -> Result<Self, PartitionError> {
        let shards = devices.saturating_mul(shards_per_device);
        let length = even_share(shards, None, rows.len()).map_err(|error| match error {
            PartitionError::NoDevices => error,
            _ => PartitionError::TooFewRows {
                devices,
                samples: shards_per_device,
                rows: rows.len(),
            },
        })?;
        draw::shuffle(rng, &mut rows);
        sort_by_target(data, &mut rows);
        let mut order: Vec<u32> = (0..shards).collect();
        draw::shuffle(rng, &mut order);
        let rows = in_order(&order, length, &rows);
        Ok(Self::even(devices, length * shards_per_device, &rows))
    }

    /// Groups the given rows by natural device. A device may be empty, for example in test parts.
    pub(super) fn natural(groups: &Groups, rows: &[u32]) -> Self {
        let device_of_row = groups.device_of_row();
        let mut offsets = vec![0u32; groups.names().len() + 1];
        for &row in rows {
            offsets[device_of_row[row as usize] as usize + 1] += 1;
        }
        for device in 1..offsets.len() {
            offsets[device] += offsets[device - 1];
        }
        let mut next = offsets.clone();
        let mut dealt = vec![0; rows.len()];
        for &row in rows {
            let place = &mut next[device_of_row[row as usize] as usize];
            dealt[*place as usize] = row;
            *place += 1;
        }
        Self {
            offsets,
            rows: dealt,
        }
    }

    /// Creates consecutive runs of `samples` rows.
    fn even(devices: u32, samples: u32, rows: &[u32]) -> Self {
        let samples = samples as usize;
        Self::from_devices(
            rows.chunks_exact(samples)
                .take(devices as usize)
                .map(<[u32]>::to_vec),
        )
    }

    fn from_devices(devices: impl Iterator<Item = Vec<u32>>) -> Self {
        let mut partition = Self {
            offsets: vec![0],
            rows: Vec::new(),
        };
        for mut rows in devices {
            rows.sort_unstable();
            partition.rows.extend(rows);
            // There are at most as many rows as u32 numbers.
            partition.offsets.push(partition.rows.len() as u32);
        }
        partition
    }

    fn refuse_smaller_than(&self, needed: u32, names: &[String]) -> Result<(), PartitionError> {
        let starved =
            (0..self.device_count()).find(|&device| self.rows(device).len() < needed as usize);
        match starved {
            Some(device) => {
                let found = self.rows(device).len();
                let device = format!("`{}`", names[device as usize]);
                Err(PartitionError::EmptyDevice {
                    device,
                    found,
                    needed,
                })
            }
            None => Ok(()),
        }
    }

    /// Removes a share of each device's rows, to the nearest, drawn at random. Every device keeps a
    /// row. `part` names the draw.
    pub(super) fn hold_out(&mut self, share: f64, part: u32, seed: u64) -> Self {
        let (mut kept, mut held_out) = (Vec::new(), Vec::new());
        for device in 0..self.device_count() {
            let mut rows = self.rows(device).to_vec();
            let max_count = rows.len().saturating_sub(1);
            let count = (libm::round(share * rows.len() as f64) as usize).min(max_count);
            draw::shuffle(&mut draw::partition_stream(seed, part, device), &mut rows);
            held_out.push(rows.split_off(rows.len() - count));
            kept.push(rows);
        }
        *self = Self::from_devices(kept.into_iter());
        Self::from_devices(held_out.into_iter())
    }

    /// Updates the partition after row i has moved to `places[i]`.
    pub(super) fn follow(&mut self, places: &[u32]) {
        follow(&mut self.rows, places);
    }

    /// Returns the number of devices N.
    pub fn device_count(&self) -> u32 {
        (self.offsets.len() - 1) as u32
    }

    /// Returns the rows of device `device`, ascending.
    ///
    /// # Panics
    /// If `device` is not below [`device_count`](Self::device_count).
    #[inline]
    pub fn rows(&self, device: u32) -> &[u32] {
        let device = device as usize;
        &self.rows[self.offsets[device] as usize..self.offsets[device + 1] as usize]
    }

    /// Returns all dealt rows, device after device.
    pub fn all_rows(&self) -> &[u32] {
        &self.rows
    }
}

/// Updates the numbers of rows after row i has moved to `places[i]`.
pub(super) fn follow(rows: &mut [u32], places: &[u32]) {
    for row in rows {
        *row = places[*row as usize];
    }
}

/// Returns the number of samples for each of `devices`, if there are enough rows for at least one
/// each.
fn even_share(
    devices: u32,
    samples_per_device: Option<u32>,
    rows: usize,
) -> Result<u32, PartitionError> {
    if devices == 0 {
        return Err(PartitionError::NoDevices);
    }
    let samples = samples_per_device
        .unwrap_or((rows / devices as usize) as u32)
        .max(1);
    if u64::from(devices) * u64::from(samples) > rows as u64 {
        return Err(PartitionError::TooFewRows {
            devices,
            samples,
            rows,
        });
    }
    Ok(samples)
}

/// Sorts rows by label, or by value for regression. Rows of one label keep their order.
fn sort_by_target(data: &Dataset, rows: &mut [u32]) {
    match data.targets() {
        Targets::Classes { labels, .. } => rows.sort_by_key(|&row| labels[row as usize]),
        Targets::Values(values) => {
            rows.sort_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
        }
    }
}

/// Returns the shards of `length` rows in this order.
fn in_order(order: &[u32], length: u32, rows: &[u32]) -> Vec<u32> {
    let length = length as usize;
    order
        .iter()
        .flat_map(|&shard| &rows[shard as usize * length..][..length])
        .copied()
        .collect()
}

/// Groups training rows by class, and shuffles them within each.
fn by_class(
    data: &Dataset,
    training: &mut [u32],
    rng: &mut impl Rng,
) -> Result<Vec<Vec<u32>>, PartitionError> {
    let Targets::Classes {
        labels,
        class_count,
    } = data.targets()
    else {
        return Err(PartitionError::NotClasses);
    };
    draw::shuffle(rng, training);
    let mut rows = vec![Vec::new(); *class_count];
    for &row in training.iter() {
        rows[usize::from(labels[row as usize])].push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
