//! Scaling of features and regression targets: x ↦ (x − mean) / std, or x / maximum.
//!
//! Statistics come from the **training part only**. Means and deviations without noise read the
//! devices' data, and no ε covers them ([`Scale::reads_rows`]). Constants ([`Scale::Constants`])
//! and noisy releases ([`Scale::Private`]) do not.
//!
//! The 0 and 1 of a category are never standardised: in units of its deviation, a category of one
//! row in 18,000 is 136 away from its mean, and dominates the device that has it.

pub mod error;
pub mod moments;

use std::ops::Range;

use super::constants::{Affine, ConstantError, Constants, FeatureMap};
use super::dataset::{Dataset, Targets};
use moments::PrivateScale;

pub use error::ScaleError;

/// The scale of features.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Unchanged.
    None,
    /// Clipped to the largest magnitude of their format and divided by it: pixels in [0, 1].
    Unit,
    /// One mean and one standard deviation over all features of the training part.
    StandardiseSet,
    /// A mean and a standard deviation for each channel of images or windows, over the training
    /// part.
    StandardiseChannels,
    /// A mean and a standard deviation for each feature, over the training part.
    StandardiseFeatures,
    /// Constants: means and deviations in units of the largest value if it is known (pixels in [0,
    /// 1]), and bounds as in the file.
    Constants(Constants),
    /// Means and deviations that devices release together, under noise.
    Private(PrivateScale),
}

/// The scale of regression targets.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetScale {
    /// Unchanged.
    None,
    /// To mean 0 and standard deviation 1 over the training part.
    Standardise,
    /// Scaled by constants, the same for all.
    Constants(Constants),
}

impl Scale {
    /// Returns whether statistics of the devices' rows are used without noise.
    #[must_use]
    pub const fn reads_rows(&self) -> bool {
        matches!(
            self,
            Self::StandardiseSet | Self::StandardiseChannels | Self::StandardiseFeatures
        )
    }
}

/// Returns a function for `map_err` that creates the error with the key.
fn of_key(key: &'static str) -> impl Fn(ConstantError) -> ScaleError {
    move |reason| ScaleError::Constants { key, reason }
}

/// The result of scaling features.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaledFeatures {
    /// The map of each feature. `None` for a feature that became 0 everywhere.
    pub maps: Vec<Option<FeatureMap>>,
    /// Number of values of each feature that were clipped to bounds. Empty without bounds.
    pub beyond: Vec<u64>,
}

/// Scales the features of all rows in place, with means and deviations over `training`, and counts
/// the values of each feature that are clipped to bounds, if there are bounds. With
/// [`Scale::Private`], the bounds become −1 and 1, the range required for the release of moments.
///
/// A feature that is constant over `training` becomes 0 everywhere if means are computed.
///
/// # Errors
/// [`ScaleError`] if the required maximum is unknown, constants do not fit, or a result is not
/// finite. The features must then not be used.
pub fn scale_features(
    data: &mut Dataset,
    training: &[u32],
    scale: &Scale,
) -> Result<ScaledFeatures, ScaleError> {
    let maximum = data.maximum();
    let width = data.feature_count();
    let indicators = data.indicators();
    let scaled = match scale {
        // The model reads 32-bit numbers.
        Scale::None => ScaledFeatures::of(vec![Some(Affine::IDENTITY); width]),
        Scale::Unit => {
            let maximum = f64::from(maximum.ok_or(ScaleError::NoMaximum)?);
            let affine = Affine::new(0.0, maximum).map_err(of_key("maximum"))?;
            let bounds = Some([-maximum, maximum]);
            apply(data, vec![FeatureMap { bounds, affine }; width])
        }
        Scale::Constants(constants) => {
            let unit = maximum.map_or(1.0, f64::from);
            let maps = constants.maps_by_channel(width, data.channels(), unit);
            apply(data, maps.map_err(of_key("scale"))?)
        }
        Scale::Private(private) => apply(data, private.maps(data)?),
        Scale::StandardiseSet => {
            let values = |row: &u32| numbers(data, *row, &indicators, 0..width);
            let map = moments(training.iter().flat_map(values));
            standardise(data, vec![map; width], &indicators)
        }
        Scale::StandardiseChannels => {
            let maps = channel_moments(data, training, &indicators);
            standardise(data, maps, &indicators)
        }
        Scale::StandardiseFeatures => {
            let maps = feature_moments(data, training);
            standardise(data, maps, &indicators)
        }
    };
    match data.features.first_not_finite() {
        Some(place) => Err(ScaleError::Overflow {
            row: place / width,
            feature: place % width,
        }),
        None => Ok(scaled),
    }
}

impl ScaledFeatures {
    /// Creates the result for features without bounds.
    fn of(maps: Vec<Option<Affine>>) -> Self {
        let map = |affine| FeatureMap {
            bounds: None,
            affine,
        };
        Self {
            maps: maps.into_iter().map(|affine| affine.map(map)).collect(),
            beyond: Vec::new(),
        }
    }
}

/// Clips and maps all rows. Missing values stay open and are not counted.
fn apply(data: &mut Dataset, maps: Vec<FeatureMap>) -> ScaledFeatures {
    let has_bounds = maps.iter().any(|map| map.bounds.is_some());
    let beyond = match has_bounds {
        true => count_beyond(data, &maps),
        false => Vec::new(),
    };
    map_exactly(data, &maps, |map, value| map.apply_exact(value).0);
    ScaledFeatures {
        maps: maps.into_iter().map(Some).collect(),
        beyond,
    }
}

/// Returns the number of values of each feature beyond its bounds.
fn count_beyond(data: &Dataset, maps: &[FeatureMap]) -> Vec<u64> {
    let mut counts = data.features.count(maps, |map, value| map.clip(value).1);
    for (place, _) in &data.rests {
        let (column, map) = (place % maps.len(), &maps[place % maps.len()]);
        // It was counted once without its rest.
        counts[column] += u64::from(map.apply_exact(data.exact(*place)).1);
        counts[column] -= u64::from(map.clip(data.features.get(*place)).1);
    }
    counts
}

/// Maps all rows except for indicators, which stay 0 or 1. A feature without a map becomes 0.
fn standardise(
    data: &mut Dataset,
    mut maps: Vec<Option<Affine>>,
    indicators: &[bool],
) -> ScaledFeatures {
    for (map, is_indicator) in maps.iter_mut().zip(indicators) {
        if *is_indicator {
            *map = Some(Affine::IDENTITY);
        }
    }
    map_exactly(data, &maps, |map, value| {
        map.map_or(0.0, |map| map.apply_exact(value))
    });
    ScaledFeatures::of(maps)
}

/// Maps the features of all rows, large numbers with all their digits, and removes their rests.
fn map_exactly<M: PartialEq>(data: &mut Dataset, maps: &[M], apply: impl Fn(&M, f64) -> f32) {
    let rests = std::mem::take(&mut data.rests);
    let exact = |(place, rest): (usize, f64)| (place, f64::from(data.features.get(place)) + rest);
    let large: Vec<(usize, f64)> = rests.into_iter().map(exact).collect();
    data.features
        .map(maps, |map, value| apply(map, f64::from(value)));
    if !large.is_empty() {
        data.features.edit(|numbers| {
            for (place, value) in large {
                numbers[place] = apply(&maps[place % maps.len()], value);
            }
        });
    }
}

/// Maps each feature of all rows, and replaces missing values by 0, the mean.
pub(super) fn apply_each(data: &mut Dataset, maps: &[Option<Affine>]) {
    let apply = |map: &Option<Affine>, value| map.map_or(value, |map| map.apply(value));
    data.features.map(maps, apply);
    let missing = std::mem::take(&mut data.missing);
    data.features.fill(&missing, |_| 0.0);
}

/// The result of scaling regression targets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaledTargets {
    /// The applied map.
    pub map: Affine,
    /// Number of training targets that were clipped to bounds.
    pub beyond: u64,
}

/// Scales regression targets in place. Classes are unchanged. Bounds clip only training targets:
/// errors on held-out ones refer to the values of the file.
///
/// # Errors
/// [`ScaleError::Constants`] if there is more than one constant of a kind.
pub fn scale_targets(
    data: &mut Dataset,
    training: &[u32],
    scale: &TargetScale,
) -> Result<ScaledTargets, ScaleError> {
    let mut scaled = ScaledTargets {
        map: Affine::IDENTITY,
        beyond: 0,
    };
    let Targets::Values(values) = &mut data.targets else {
        return Ok(scaled);
    };
    scaled.map = match scale {
        TargetScale::None => return Ok(scaled),
        TargetScale::Constants(constants) => {
            let maps = constants.maps(1, 1.0).map_err(of_key("target_scale"))?;
            for &row in training {
                let value = &mut values[row as usize];
                let (clipped, is_beyond) = maps[0].clip(*value);
                *value = clipped;
                scaled.beyond += u64::from(is_beyond);
            }
            maps[0].affine
        }
        TargetScale::Standardise => {
            let values = training.iter().map(|&row| f64::from(values[row as usize]));
            moments(values).unwrap_or(Affine::IDENTITY)
        }
    };
    for value in values {
        *value = scaled.map.apply(*value);
    }
    Ok(scaled)
}

/// Returns the mean and standard deviation (with 1/n) in one fixed order and two passes, in `f64`.
/// `None` if all values are equal or there is none.
fn moments(values: impl Iterator<Item = f64> + Clone) -> Option<Affine> {
    let (mut sum, mut count) = (0.0f64, 0u64);
    for value in values.clone() {
        sum += value;
        count += 1;
    }
    let mean = sum / count as f64;
    let mut squares = 0.0f64;
    let mut first = None;
    let mut constant = true;
    for value in values {
        let difference = value - mean;
        squares += difference * difference;
        constant &= *first.get_or_insert(value.to_bits()) == value.to_bits();
    }
    if constant {
        return None;
    }
    Affine::new(mean, libm::sqrt(squares / count as f64)).ok()
}

/// Iterates over the numbers of a row among the features `range`, without indicators.
fn numbers<'a>(
    data: &'a Dataset,
    row: u32,
    indicators: &'a [bool],
    range: Range<usize>,
) -> impl Iterator<Item = f64> + Clone + 'a {
    let is_number = |at: usize| !indicators.get(at).is_some_and(|is_indicator| *is_indicator);
    let values = data.exact_row(row as usize).enumerate();
    let values = values.skip(range.start).take(range.len());
    values
        .filter(move |(at, _)| is_number(*at))
        .map(|(_, value)| value)
}

/// Returns [`moments`] for every channel. Data without channels have one.
fn channel_moments(data: &Dataset, training: &[u32], indicators: &[bool]) -> Vec<Option<Affine>> {
    let width = data.feature_count();
    let size = width / data.channels().unwrap_or(1);
    let channel = |start: usize| {
        let values = move |row: &u32| numbers(data, *row, indicators, start..start + size);
        moments(training.iter().flat_map(values))
    };
    let maps = (0..width).step_by(size).map(channel);
    maps.flat_map(|map| std::iter::repeat_n(map, size))
        .collect()
}

/// Returns [`moments`] for every feature at once, so that rows are read in the order of memory.
fn feature_moments(data: &Dataset, training: &[u32]) -> Vec<Option<Affine>> {
    let width = data.feature_count();
    let rows = || training.iter().map(|&row| data.exact_row(row as usize));
    let count = training.len() as f64;
    let mut means = vec![0.0f64; width];
    for row in rows() {
        for (sum, value) in means.iter_mut().zip(row) {
            *sum += value;
        }
    }
    means.iter_mut().for_each(|sum| *sum /= count);
    let mut squares = vec![0.0f64; width];
    let mut constant = vec![true; width];
    let first: Vec<f64> = rows().next().into_iter().flatten().collect();
    for row in rows() {
        for (at, value) in row.enumerate() {
            let difference = value - means[at];
            squares[at] += difference * difference;
            constant[at] &= value.to_bits() == first[at].to_bits();
        }
    }
    let map = |at: usize| Affine::new(means[at], libm::sqrt(squares[at] / count)).ok();
    (0..width)
        .map(|at| if constant[at] { None } else { map(at) })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::column::{Encoding, FeatureColumn};
    use crate::dataset::Names;
    use crate::large;

    fn constants(mean: f64, std: f64) -> Scale {
        Scale::Constants(Constants::of_moments(Affine::new(mean, std).unwrap()))
    }

    fn data(features: &[f32], width: usize) -> Dataset {
        let targets = Targets::Values(vec![0.0; features.len() / width]);
        Dataset::new(features.to_vec(), width, targets).unwrap()
    }

    #[test]
    fn none_keeps_the_bits() {
        let mut set = data(&[0.1, -7.5], 1);
        scale_features(&mut set, &[0], &Scale::None).unwrap();
        assert_eq!(set.features().to_vec(), [0.1, -7.5]);
    }

    #[test]
    fn unit_divides_by_the_known_maximum() {
        let mut set = data(&[0.0, 51.0, 255.0], 1).with_maximum(Some(255.0));
        scale_features(&mut set, &[0], &Scale::Unit).unwrap();
        assert_eq!(set.features().to_vec(), [0.0, 0.2, 1.0]);
        let error = scale_features(&mut data(&[1.0], 1), &[0], &Scale::Unit).unwrap_err();
        assert_eq!(error, ScaleError::NoMaximum);
    }

    #[test]
    fn constants_are_in_units_of_the_maximum() {
        let scale = constants(0.5, 0.25);
        let mut pixels = data(&[0.0, 16.0], 1).with_maximum(Some(16.0));
        scale_features(&mut pixels, &[], &scale).unwrap();
        assert_eq!(pixels.features().to_vec(), [-2.0, 2.0]);
        let mut numbers = data(&[0.0, 1.0], 1);
        scale_features(&mut numbers, &[], &scale).unwrap();
        assert_eq!(numbers.features().to_vec(), [-2.0, 2.0]);
    }

    #[test]
    fn one_mean_and_deviation_for_the_set() {
        // Training values 1, 3, 3, 1: mean 2, deviation 1. The third row is ignored.
        let mut set = data(&[1.0, 3.0, 3.0, 1.0, 102.0, 2.0], 2);
        scale_features(&mut set, &[0, 1], &Scale::StandardiseSet).unwrap();
        assert_eq!(set.features().to_vec(), [-1.0, 1.0, 1.0, -1.0, 100.0, 0.0]);
    }

    #[test]
    fn a_mean_and_deviation_for_each_feature() {
        let mut set = data(&[1.0, 10.0, 3.0, 30.0, 4.0, 0.0], 2);
        scale_features(&mut set, &[0, 1], &Scale::StandardiseFeatures).unwrap();
        assert_eq!(set.features().to_vec(), [-1.0, -1.0, 1.0, 1.0, 2.0, -2.0]);
    }

    /// A rare category is 99 deviations from its mean, and a constant one has none.
    #[test]
    fn categories_stay_0_or_1() {
        let column = |name: &str, encoding| FeatureColumn {
            name: name.to_owned(),
            encoding,
        };
        let categories = Encoding::Categories(vec!["rare".into(), "common".into()]);
        let names = Names {
            columns: vec![
                column("length", Encoding::Number),
                column("kind", categories),
            ],
            ..Names::default()
        };
        let mut rows = vec![10.0, 1.0, 0.0];
        (1..100).for_each(|at| rows.extend([at as f32 % 7.0, 0.0, 1.0]));
        let training: Vec<u32> = (0..100).collect();
        for scale in [
            Scale::StandardiseFeatures,
            Scale::StandardiseSet,
            Scale::StandardiseChannels,
        ] {
            let mut set = data(&rows, 3).with_names(names.clone());
            let scaled = scale_features(&mut set, &training, &scale).unwrap();
            for (row, before) in rows.chunks(3).enumerate() {
                let after: Vec<f32> = set.row(row).collect();
                assert_eq!(after[1..], before[1..], "{scale:?}");
            }
            let lengths = |set: &Dataset| -> Vec<f32> {
                (0..100).map(|row| set.row(row).next().unwrap()).collect()
            };
            // The numbers are scaled as without categories.
            let numbers: Vec<f32> = rows.iter().step_by(3).copied().collect();
            let mut alone = data(&numbers, 1);
            scale_features(&mut alone, &training, &Scale::StandardiseFeatures).unwrap();
            assert_eq!(lengths(&set), lengths(&alone), "{scale:?}");
            assert_eq!(scaled.maps.len(), 3);
        }
        // If all rows have the same category, the means of numbers are still computed.
        let mut set = data(&[1.0, 0.0, 1.0, 3.0, 0.0, 1.0], 3);
        set = set.with_names(names);
        scale_features(&mut set, &[0, 1], &Scale::StandardiseFeatures).unwrap();
        assert_eq!(set.features().to_vec(), [-1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn a_mean_and_deviation_for_each_channel() {
        let windows = || {
            let rows = data(&[1.0, 3.0, 10.0, 30.0, 3.0, 1.0, 30.0, 50.0], 4);
            rows.with_axes(vec![2, 1, 2]).unwrap()
        };
        let mut set = windows();
        scale_features(&mut set, &[0], &Scale::StandardiseChannels).unwrap();
        let expected = [-1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 3.0];
        assert_eq!(set.features().to_vec(), expected);
        let mut set = windows();
        let constants: Constants = toml::from_str("mean = 0\nstd = [1, 10]").unwrap();
        scale_features(&mut set, &[], &Scale::Constants(constants)).unwrap();
        let expected = [1.0, 3.0, 1.0, 3.0, 3.0, 1.0, 3.0, 5.0];
        assert_eq!(set.features().to_vec(), expected);
        let constants: Constants = toml::from_str("mean = 0\nstd = [1, 10, 2]").unwrap();
        let error = scale_features(&mut set, &[], &Scale::Constants(constants));
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("`std` lists 3 numbers")
        );
    }

    #[test]
    fn large_numbers_are_scaled_with_all_digits() {
        // Epochs in milliseconds: 1,700,000,000,000 + 0, 100, 200 and 300, and a small number.
        let epochs = [0.0, 100.0, 200.0, 300.0].map(|x| large::split(1.7e12 + x));
        let features: Vec<f32> = epochs.iter().flat_map(|x| [x.0, 1.0]).collect();
        let rests: Vec<_> = (0..).step_by(2).zip(epochs.map(|x| x.1)).collect();
        let scaled = |scale: &Scale| {
            let mut set = data(&features, 2).with_rests(rests.clone());
            let scaled = scale_features(&mut set, &[0, 1, 2], scale).unwrap();
            assert!(set.rests.is_empty());
            let column = (0..4).map(|row| set.row(row).next().unwrap());
            (column.collect::<Vec<f32>>(), scaled.beyond)
        };
        let std = libm::sqrt(20_000.0 / 3.0);
        let expected = [-100.0, 0.0, 100.0, 200.0].map(|x| (x / std) as f32);
        assert_eq!(scaled(&Scale::StandardiseFeatures).0, expected);
        let bounds = "min = [1700000000000, 0]\nmax = [1700000000200, 2]";
        let bounds = Scale::Constants(toml::from_str(bounds).unwrap());
        assert_eq!(scaled(&bounds), (vec![0.0, 0.5, 1.0, 1.0], vec![1, 0]));
    }

    #[test]
    fn constant_feature_becomes_zero_in_every_row() {
        // The mean of 0.1 three times is not 0.1: the test must not rely on rounding.
        let mut set = data(&[0.1, 0.1, 0.1, 9.0], 1);
        scale_features(&mut set, &[0, 1, 2], &Scale::StandardiseFeatures).unwrap();
        assert_eq!(set.features().to_vec(), [0.0; 4]);
    }

    #[test]
    fn results_out_of_range_are_refused() {
        let scale = constants(0.0, 1e-30);
        let error = scale_features(&mut data(&[0.0, 1e20], 2), &[0], &scale);
        assert_eq!(
            error.unwrap_err(),
            ScaleError::Overflow { row: 0, feature: 1 }
        );
    }

    #[test]
    fn what_is_beyond_constant_bounds_is_clipped_and_counted() {
        let mut set = data(&[-20.0, 1.0, 4.0, 16.0, 17.0, 3.0], 2).with_maximum(Some(16.0));
        let beyond = scale_features(&mut set, &[], &Scale::Unit).unwrap().beyond;
        assert_eq!(beyond, [2, 0]);
        assert_eq!(
            set.features().to_vec(),
            [-1.0, 0.0625, 0.25, 1.0, 1.0, 0.1875]
        );
        // Held-out targets keep their values: errors refer to the values of the file.
        let targets = Targets::Values(vec![5.0, 1e9, 30.0]);
        let mut set = Dataset::new(vec![0.0; 3], 1, targets).unwrap();
        let bounds: Constants = toml::from_str("min = 0\nmax = 20").unwrap();
        let scaled = scale_targets(&mut set, &[0, 1], &TargetScale::Constants(bounds)).unwrap();
        assert_eq!((scaled.beyond, scaled.map.std()), (1, 20.0));
        assert!(set.targets() == &Targets::Values(vec![0.25, 1.0, 1.5]));
    }

    #[test]
    fn targets_are_standardised_and_the_map_returned() {
        let targets = Targets::Values(vec![10.0, 30.0, 40.0]);
        let mut set = Dataset::new(vec![0.0; 3], 1, targets).unwrap();
        let scaled = scale_targets(&mut set, &[0, 1], &TargetScale::Standardise);
        let map = scaled.unwrap().map;
        assert_eq!((map.mean(), map.std()), (20.0, 10.0));
        assert!(set.targets() == &Targets::Values(vec![-1.0, 1.0, 2.0]));
        let scaled = scale_targets(&mut set, &[0, 1], &TargetScale::None);
        assert_eq!(scaled.unwrap().map, Affine::IDENTITY);
    }

    #[test]
    fn classes_are_never_scaled() {
        let targets = Targets::classes(&[0, 1], 2).unwrap();
        let mut set = Dataset::new(vec![0.0; 2], 1, targets.clone()).unwrap();
        let scaled = scale_targets(&mut set, &[0, 1], &TargetScale::Standardise);
        assert_eq!(scaled.unwrap().map, Affine::IDENTITY);
        assert!(set.targets() == &targets);
    }

    proptest! {
        /// The standardised training part has mean 0 and deviation 1, or is 0.
        #[test]
        fn standardised_features_have_unit_moments(values in vec(-1e3f32..1e3, 2..50)) {
            let mut set = data(&values, 1);
            let rows: Vec<u32> = (0..values.len() as u32).collect();
            scale_features(&mut set, &rows, &Scale::StandardiseFeatures).unwrap();
            if set.features().to_vec().iter().all(|&value| value.abs() == 0.0) {
                return Ok(());
            }
            let n = values.len() as f64;
            let scaled: Vec<f64> = set.features().to_vec().into_iter().map(f64::from).collect();
            let mean = scaled.iter().sum::<f64>() / n;
            let square = scaled.iter().map(|x| x * x).sum::<f64>() / n;
            prop_assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-5, "{} {}", mean, square);
        }
    }
}
