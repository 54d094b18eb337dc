//! Scaling of features and regression targets: x ↦ (x − mean) / std, or x / maximum.
//!
//! Means and deviations come from the **training part only**. They read the devices' data without
//! noise, so no ε covers them; give constants ([`Scale::Constants`]) where that matters.

use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, Targets};

/// How features are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// As they are.
    None,
    /// Divided by the largest value that their format knows: pixels in [0, 1].
    Unit,
    /// One mean and one standard deviation over all features of the training part.
    StandardiseSet,
    /// A mean and a standard deviation for each feature, over the training part.
    StandardiseFeatures,
    /// These constants, in units of the largest value where one is known (pixels in [0, 1]).
    #[serde(untagged)]
    Constants(Affine),
}

/// x ↦ (x − mean) / std; std is finite and above 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawAffine")]
pub struct Affine {
    mean: f64,
    std: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAffine {
    mean: f64,
    std: f64,
}

/// What can be wrong with scaling.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// `unit` needs a largest value.
    #[error("`scale` is \"unit\", but these data have no known largest value; give `maximum`")]
    NoMaximum,
    /// A mean or deviation that cannot scale.
    #[error("cannot scale by mean = {mean} and std = {std}: both must be finite and std above 0")]
    BadConstants {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        std: f64,
    },
    /// Scaled features pass the range of `f32`.
    #[error("after scaling, feature {feature} of row {row} exceeds the range of f32")]
    Overflow {
        /// Row, from 0.
        row: usize,
        /// Feature, from 0.
        feature: usize,
    },
}

impl Affine {
    /// The map that changes nothing.
    pub const IDENTITY: Self = Self {
        mean: 0.0,
        std: 1.0,
    };

    /// Subtracts `mean`, then divides by `std`.
    ///
    /// # Errors
    /// [`ScaleError::BadConstants`] unless both are finite and `std` is above 0.
    pub fn new(mean: f64, std: f64) -> Result<Self, ScaleError> {
        if mean.is_finite() && std.is_finite() && std > 0.0 {
            Ok(Self { mean, std })
        } else {
            Err(ScaleError::BadConstants { mean, std })
        }
    }

    /// What is subtracted.
    pub fn mean(self) -> f64 {
        self.mean
    }

    /// What is divided by: an error on the scaled target times this is one in its own unit.
    pub fn std(self) -> f64 {
        self.std
    }

    fn apply(self, value: f32) -> f32 {
        ((f64::from(value) - self.mean) / self.std) as f32
    }
}

impl TryFrom<RawAffine> for Affine {
    type Error = ScaleError;

    fn try_from(raw: RawAffine) -> Result<Self, ScaleError> {
        Self::new(raw.mean, raw.std)
    }
}

/// Scales the features of all rows in place, with means and deviations over `training`.
///
/// A feature that is constant over `training` becomes 0 everywhere.
///
/// # Errors
/// [`ScaleError`] if the maximum is unknown where it is needed, or a result is not finite; the
/// features are then not to be used.
pub fn scale_features(
    data: &mut Dataset,
    training: &[u32],
    scale: Scale,
) -> Result<(), ScaleError> {
    let maximum = data.maximum();
    match scale {
        Scale::None => {}
        Scale::Unit => {
            let std = f64::from(maximum.ok_or(ScaleError::NoMaximum)?);
            let map = Affine::new(0.0, std)?;
            data.features
                .iter_mut()
                .for_each(|value| *value = map.apply(*value));
        }
        Scale::Constants(map) => {
            let unit = maximum.map_or(1.0, f64::from);
            let map = Affine::new(map.mean * unit, map.std * unit)?;
            data.features
                .iter_mut()
                .for_each(|value| *value = map.apply(*value));
        }
        Scale::StandardiseSet => {
            let map = moments(
                training
                    .iter()
                    .flat_map(|&row| data.row(row as usize))
                    .copied(),
            );
            data.features
                .iter_mut()
                .for_each(|value| *value = apply_or_zero(map, *value));
        }
        Scale::StandardiseFeatures => {
            let width = data.feature_count();
            let maps = feature_moments(data, training);
            for row in data.features.chunks_exact_mut(width) {
                for (value, map) in row.iter_mut().zip(&maps) {
                    *value = apply_or_zero(*map, *value);
                }
            }
        }
    }
    match data.features.iter().position(|value| !value.is_finite()) {
        Some(place) => {
            let width = data.feature_count();
            Err(ScaleError::Overflow {
                row: place / width,
                feature: place % width,
            })
        }
        None => Ok(()),
    }
}

/// How regression targets are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "lowercase",
    expecting = "expected \"none\", \"standardise\" or { mean = .., std = .. } with std above 0"
)]
pub enum TargetScale {
    /// As they are.
    None,
    /// To mean 0 and standard deviation 1 over the training part.
    Standardise,
    /// By these constants.
    #[serde(untagged)]
    Constants(Affine),
}

/// Scales regression targets in place and returns the map that was used; classes stay as they are.
pub fn scale_targets(data: &mut Dataset, training: &[u32], scale: TargetScale) -> Affine {
    let Targets::Values(values) = &mut data.targets else {
        return Affine::IDENTITY;
    };
    let map = match scale {
        TargetScale::None => return Affine::IDENTITY,
        TargetScale::Constants(map) => map,
        TargetScale::Standardise => {
            moments(training.iter().map(|&row| values[row as usize])).unwrap_or(Affine::IDENTITY)
        }
    };
    values
        .iter_mut()
        .for_each(|value| *value = map.apply(*value));
    map
}

/// Mean and standard deviation (with 1/n) in one fixed order and two passes, in `f64`; `None` if
/// all values are equal or there is none.
fn moments(values: impl Iterator<Item = f32> + Clone) -> Option<Affine> {
    let (mut sum, mut count) = (0.0f64, 0u64);
    for value in values.clone() {
        sum += f64::from(value);
        count += 1;
    }
    let mean = sum / count as f64;
    let mut squares = 0.0f64;
    let mut first = None;
    let mut constant = true;
    for value in values {
        let difference = f64::from(value) - mean;
        squares += difference * difference;
        constant &= *first.get_or_insert(value.to_bits()) == value.to_bits();
    }
    if constant {
        return None;
    }
    Affine::new(mean, libm::sqrt(squares / count as f64)).ok()
}

/// As [`moments`], for every feature at once, so that rows are read in the order of memory.
fn feature_moments(data: &Dataset, training: &[u32]) -> Vec<Option<Affine>> {
    let width = data.feature_count();
    let rows = || training.iter().map(|&row| data.row(row as usize));
    let count = training.len() as f64;
    let mut means = vec![0.0f64; width];
    for row in rows() {
        for (sum, &value) in means.iter_mut().zip(row) {
            *sum += f64::from(value);
        }
    }
    means.iter_mut().for_each(|sum| *sum /= count);
    let mut squares = vec![0.0f64; width];
    let mut constant = vec![true; width];
    let mut first: Option<&[f32]> = None;
    for row in rows() {
        let first = *first.get_or_insert(row);
        for (at, &value) in row.iter().enumerate() {
            let difference = f64::from(value) - means[at];
            squares[at] += difference * difference;
            constant[at] &= value.to_bits() == first[at].to_bits();
        }
    }
    let map = |at: usize| Affine::new(means[at], libm::sqrt(squares[at] / count)).ok();
    (0..width)
        .map(|at| if constant[at] { None } else { map(at) })
        .collect()
}

fn apply_or_zero(map: Option<Affine>, value: f32) -> f32 {
    map.map_or(0.0, |map| map.apply(value))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn data(features: &[f32], width: usize) -> Dataset {
        let targets = Targets::Values(vec![0.0; features.len() / width]);
        Dataset::new(features.to_vec(), width, targets).unwrap()
    }

    #[test]
    fn none_keeps_the_bits() {
        let mut set = data(&[0.1, -7.5], 1);
        scale_features(&mut set, &[0], Scale::None).unwrap();
        assert_eq!(set.features(), [0.1, -7.5]);
    }

    #[test]
    fn unit_divides_by_the_known_maximum() {
        let mut set = data(&[0.0, 51.0, 255.0], 1).with_maximum(Some(255.0));
        scale_features(&mut set, &[0], Scale::Unit).unwrap();
        assert_eq!(set.features(), [0.0, 0.2, 1.0]);
        let error = scale_features(&mut data(&[1.0], 1), &[0], Scale::Unit).unwrap_err();
        assert_eq!(error, ScaleError::NoMaximum);
    }

    #[test]
    fn constants_are_in_units_of_the_maximum() {
        let map = Affine::new(0.5, 0.25).unwrap();
        let mut pixels = data(&[0.0, 16.0], 1).with_maximum(Some(16.0));
        scale_features(&mut pixels, &[], Scale::Constants(map)).unwrap();
        assert_eq!(pixels.features(), [-2.0, 2.0]);
        let mut numbers = data(&[0.0, 1.0], 1);
        scale_features(&mut numbers, &[], Scale::Constants(map)).unwrap();
        assert_eq!(numbers.features(), [-2.0, 2.0]);
    }

    #[test]
    fn one_mean_and_deviation_for_the_set() {
        // Training values 1, 3, 3, 1: mean 2, deviation 1. The third row is not looked at.
        let mut set = data(&[1.0, 3.0, 3.0, 1.0, 102.0, 2.0], 2);
        scale_features(&mut set, &[0, 1], Scale::StandardiseSet).unwrap();
        assert_eq!(set.features(), [-1.0, 1.0, 1.0, -1.0, 100.0, 0.0]);
    }

    #[test]
    fn a_mean_and_deviation_for_each_feature() {
        let mut set = data(&[1.0, 10.0, 3.0, 30.0, 4.0, 0.0], 2);
        scale_features(&mut set, &[0, 1], Scale::StandardiseFeatures).unwrap();
        assert_eq!(set.features(), [-1.0, -1.0, 1.0, 1.0, 2.0, -2.0]);
    }

    #[test]
    fn constant_feature_becomes_zero_in_every_row() {
        // 0.1 three times has a mean that is not 0.1: the test must not rest on rounding.
        let mut set = data(&[0.1, 0.1, 0.1, 9.0], 1);
        scale_features(&mut set, &[0, 1, 2], Scale::StandardiseFeatures).unwrap();
        assert_eq!(set.features(), [0.0; 4]);
    }

    #[test]
    fn results_out_of_range_are_refused() {
        let map = Affine::new(0.0, 1e-30).unwrap();
        let error = scale_features(&mut data(&[0.0, 1e20], 2), &[0], Scale::Constants(map));
        assert_eq!(
            error.unwrap_err(),
            ScaleError::Overflow { row: 0, feature: 1 }
        );
    }

    #[test]
    fn bad_constants_are_refused() {
        for (mean, std) in [
            (f64::NAN, 1.0),
            (0.0, 0.0),
            (0.0, -1.0),
            (0.0, f64::INFINITY),
        ] {
            assert!(matches!(
                Affine::new(mean, std),
                Err(ScaleError::BadConstants { .. })
            ));
        }
    }

    #[test]
    fn targets_are_standardised_and_the_map_returned() {
        let targets = Targets::Values(vec![10.0, 30.0, 40.0]);
        let mut set = Dataset::new(vec![0.0; 3], 1, targets).unwrap();
        let map = scale_targets(&mut set, &[0, 1], TargetScale::Standardise);
        assert_eq!((map.mean(), map.std()), (20.0, 10.0));
        assert!(set.targets() == &Targets::Values(vec![-1.0, 1.0, 2.0]));
        let map = scale_targets(&mut set, &[0, 1], TargetScale::None);
        assert_eq!(map, Affine::IDENTITY);
    }

    #[test]
    fn classes_are_never_scaled() {
        let targets = Targets::classes(&[0, 1], 2).unwrap();
        let mut set = Dataset::new(vec![0.0; 2], 1, targets.clone()).unwrap();
        let map = scale_targets(&mut set, &[0, 1], TargetScale::Standardise);
        assert_eq!(map, Affine::IDENTITY);
        assert!(set.targets() == &targets);
    }

    proptest! {
        /// The standardised training part has mean 0 and deviation 1, or is 0.
        #[test]
        fn standardised_features_have_unit_moments(values in vec(-1e3f32..1e3, 2..50)) {
            let mut set = data(&values, 1);
            let rows: Vec<u32> = (0..values.len() as u32).collect();
            scale_features(&mut set, &rows, Scale::StandardiseFeatures).unwrap();
            if set.features().iter().all(|&value| value.abs() == 0.0) {
                return Ok(());
            }
            let n = values.len() as f64;
            let mean = set.features().iter().map(|&x| f64::from(x)).sum::<f64>() / n;
            let square = set.features().iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / n;
            prop_assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-5, "{} {}", mean, square);
        }
    }
}
