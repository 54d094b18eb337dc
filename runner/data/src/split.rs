//! Splits rows into training, validation and test parts, over all rows or device by device.

use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, Groups};
use super::draw;

/// The amount of training rows to hold out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum HoldOut {
    /// This many rows, the last ones in file order. 0 means none.
    Rows(u32),
    /// This share of the rows, in [0, 1), drawn at random. If devices are natural, of each device's
    /// rows.
    Fraction(f64),
    /// This share of the rows, in [0, 1), the last ones in file order. If devices are natural, of
    /// each device's rows.
    LastFraction(f64),
}

/// The rows of the three parts, each ascending. No row is in two of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Rows for training.
    pub train: Vec<u32>,
    /// Rows for choosing settings.
    pub validation: Vec<u32>,
    /// Rows for reporting.
    pub test: Vec<u32>,
}

/// The reason why rows cannot be split.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// Nothing is left to train on.
    #[error("has {rows} rows to split; holding out {held_out} leaves none to train on")]
    NothingLeft {
        /// Number of rows before the split.
        rows: usize,
        /// Number of rows to hold out.
        held_out: u64,
    },
}

/// The purpose of the draw: first index of the stream's name.
const PART_SPLIT: u32 = 0;

impl HoldOut {
    /// Nothing.
    pub const NONE: Self = Self::Rows(0);

    /// Returns the number of rows to hold out of `rows`, to the nearest.
    pub(super) fn count(self, rows: usize) -> u64 {
        match self {
            Self::Rows(count) => u64::from(count),
            Self::Fraction(fraction) | Self::LastFraction(fraction) => {
                libm::round(fraction * rows as f64) as u64
            }
        }
    }

    /// Holds out the same number of rows from the end.
    pub(super) const fn of_last(self) -> Self {
        match self {
            Self::Fraction(fraction) => Self::LastFraction(fraction),
            other => other,
        }
    }
}

impl<'de> Deserialize<'de> for HoldOut {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Number {
            Whole(i64),
            Real(f64),
        }
        let expected = "a number of rows from 0, or a share from 0.0 to below 1.0";
        let number = Number::deserialize(deserializer)
            .map_err(|_| serde::de::Error::custom(format!("expected {expected}")))?;
        let found = match number {
            Number::Whole(rows) => match u32::try_from(rows) {
                Ok(rows) => return Ok(Self::Rows(rows)),
                Err(_) => rows.to_string(),
            },
            Number::Real(share) if (0.0..1.0).contains(&share) => return Ok(Self::Fraction(share)),
            Number::Real(share) => share.to_string(),
        };
        Err(serde::de::Error::custom(format!(
            "is {found}, but must be {expected}"
        )))
    }
}

impl Split {
    /// Splits all rows of `data`, of which the last `given_test` are a separate test part.
    ///
    /// With `by_device`, shares are taken of each natural device's rows, and every device keeps at
    /// least one row to train on. Both shares refer to the rows without the given test part.
    ///
    /// # Errors
    /// [`SplitError::NothingLeft`] if no row is left to train on.
    pub fn new(
        data: &Dataset,
        given_test: usize,
        validation: HoldOut,
        test: HoldOut,
        by_device: bool,
        seed: u64,
    ) -> Result<Self, SplitError> {
        let given_test = given_test.min(data.len());
        let own = data.len() - given_test;
        let mut split = match data.groups() {
            Some(groups) if by_device => device_by_device(groups, own, validation, test, seed),
            _ => over_all(own, validation, test, seed)?,
        };
        split.test.extend(own as u32..data.len() as u32);
        if split.train.is_empty() {
            let held_out = (split.validation.len() + split.test.len()) as u64;
            return Err(SplitError::NothingLeft {
                rows: data.len(),
                held_out,
            });
        }
        Ok(split)
    }
}

fn over_all(
    rows: usize,
    validation: HoldOut,
    test: HoldOut,
    seed: u64,
) -> Result<Split, SplitError> {
    let (validation_count, test_count) = (validation.count(rows), test.count(rows));
    let held_out = validation_count + test_count;
    if held_out >= rows as u64 {
        return Err(SplitError::NothingLeft { rows, held_out });
    }
    let mut rng = draw::partition_stream(seed, PART_SPLIT, 0);
    let mut left: Vec<u32> = (0..rows as u32).collect();
    // It fits, as `held_out` is below `rows`.
    let mut take = |hold_out: HoldOut, count: u64| {
        if let HoldOut::Fraction(_) = hold_out {
            draw::shuffle(&mut rng, &mut left);
        }
        let mut part = left.split_off(left.len() - count as usize);
        left.sort_unstable();
        part.sort_unstable();
        part
    };
    let test = take(test, test_count);
    let validation = take(validation, validation_count);
    Ok(Split {
        train: left,
        validation,
        test,
    })
}

/// Splits like [`over_all`], for each natural device separately.
fn device_by_device(
    groups: &Groups,
    rows: usize,
    validation: HoldOut,
    test: HoldOut,
    seed: u64,
) -> Split {
    let mut rows_of = vec![Vec::new(); groups.names().len()];
    for (row, &device) in groups.device_of_row()[..rows].iter().enumerate() {
        rows_of[device as usize].push(row as u32);
    }
    let mut split = Split::default();
    for (device, mut own) in rows_of.into_iter().enumerate() {
        let max_count = own.len().saturating_sub(1);
        let test_count = (test.count(own.len()) as usize).min(max_count);
        let validation_count = (validation.count(own.len()) as usize).min(max_count - test_count);
        let mut rng = draw::partition_stream(seed, PART_SPLIT, device as u32);
        if let (HoldOut::Fraction(_), _) | (_, HoldOut::Fraction(_)) = (validation, test) {
            draw::shuffle(&mut rng, &mut own);
        }
        split.test.extend(own.split_off(own.len() - test_count));
        split
            .validation
            .extend(own.split_off(own.len() - validation_count));
        split.train.extend(own);
    }
    split.train.sort_unstable();
    split.validation.sort_unstable();
    split.test.sort_unstable();
    split
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::dataset::Targets;

    fn rows(count: usize) -> Dataset {
        Dataset::new(vec![0.0; count], 1, Targets::Values(vec![0.0; count])).unwrap()
    }

    fn grouped(devices: &[u32]) -> Dataset {
        let names = (0..4).map(|device| device.to_string()).collect();
        rows(devices.len())
            .with_groups(Groups::new(devices.to_vec(), names).unwrap())
            .unwrap()
    }

    #[test]
    fn counted_rows_are_the_last_before_the_given_test_part() {
        let split = Split::new(&rows(10), 3, HoldOut::Rows(2), HoldOut::NONE, false, 0).unwrap();
        assert_eq!(split.train, [0, 1, 2, 3, 4]);
        assert_eq!(split.validation, [5, 6]);
        assert_eq!(split.test, [7, 8, 9]);
    }

    #[test]
    fn shares_are_drawn_by_the_seed() {
        let part = |seed| {
            let share = HoldOut::Fraction(0.2);
            Split::new(&rows(100), 0, HoldOut::Fraction(0.1), share, false, seed).unwrap()
        };
        assert_eq!(
            (
                part(1).train.len(),
                part(1).validation.len(),
                part(1).test.len()
            ),
            (70, 10, 20)
        );
        assert_eq!(part(1), part(1));
        assert_ne!(part(1), part(2));
        assert_ne!(part(1).test, (80..100).collect::<Vec<_>>());
    }

    #[test]
    fn every_device_keeps_its_share_and_a_row_to_train_on() {
        let data = grouped(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2]);
        let half = HoldOut::Fraction(0.4);
        let split = Split::new(&data, 0, half, half, true, 3).unwrap();
        let of = |rows: &[u32], device| {
            rows.iter()
                .filter(|&&row| data.groups().unwrap().device_of_row()[row as usize] == device)
                .count()
        };
        assert_eq!(
            (
                of(&split.train, 0),
                of(&split.validation, 0),
                of(&split.test, 0)
            ),
            (2, 4, 4)
        );
        assert_eq!((of(&split.train, 1), of(&split.test, 1)), (1, 0));
        assert_eq!((of(&split.train, 2), of(&split.test, 2)), (1, 1));
    }

    #[test]
    fn the_last_rows_of_each_device_are_held_out() {
        let data = grouped(&[0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
        let (tenth, fifth) = (HoldOut::LastFraction(0.2), HoldOut::LastFraction(0.4));
        let split = Split::new(&data, 0, tenth, fifth, true, 3).unwrap();
        assert_eq!(split.train, [0, 1, 2, 3]);
        assert_eq!(split.validation, [4, 5]);
        assert_eq!(split.test, [6, 7, 8, 9]);
        let split = Split::new(&data, 0, tenth, fifth, false, 3).unwrap();
        assert_eq!(
            (split.validation, split.test),
            (vec![4, 5], vec![6, 7, 8, 9])
        );
    }

    #[test]
    fn nothing_left_to_train_on_is_refused() {
        for (validation, test, given) in [
            (HoldOut::Rows(4), HoldOut::NONE, 0),
            (HoldOut::Rows(u32::MAX), HoldOut::Rows(u32::MAX), 0),
            (HoldOut::NONE, HoldOut::NONE, 4),
        ] {
            let error = Split::new(&rows(4), given, validation, test, false, 0).unwrap_err();
            assert!(matches!(error, SplitError::NothingLeft { .. }), "{error}");
        }
    }

    #[test]
    fn hold_out_reads_rows_or_shares() {
        let read = |text: &str| serde_json::from_str::<HoldOut>(text);
        assert_eq!(read("10000").unwrap(), HoldOut::Rows(10_000));
        assert_eq!(read("0.25").unwrap(), HoldOut::Fraction(0.25));
        for wrong in ["-1", "1.0", "-0.5", "5000000000", "\"half\"", "true"] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("share from 0.0 to below 1.0"), "{error}");
        }
    }

    proptest! {
        /// Every row is in exactly one part.
        #[test]
        fn parts_cover_all_rows_once(
            devices in vec(0u32..4, 2..60), given in 0usize..20, by_device: bool, seed: u64,
            validation in 0.0f64..0.5, test in 0.0f64..0.4,
        ) {
            let data = grouped(&devices);
            let (validation, test) = (HoldOut::Fraction(validation), HoldOut::Fraction(test));
            if let Ok(split) = Split::new(&data, given, validation, test, by_device, seed) {
                let mut all = [split.train, split.validation, split.test].concat();
                all.sort_unstable();
                prop_assert_eq!(all, (0..devices.len() as u32).collect::<Vec<_>>());
            }
        }
    }
}
