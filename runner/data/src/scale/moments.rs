//! Moments of features that devices release together, for a private scale.
//!
//! A device clips its features to the configured bounds, maps these to [−1, 1], and sends for each
//! feature (or once for all of them) the mean m₁ of its values u and the mean m₂ of their squares:
//!
//! ```text
//! (m₁, m₂ − 1/2) / R,   R = √(5/4 · F)        F numbers of a sample, or 1 for all together
//! ```
//!
//! The 0 and 1 of categories are not standardised: they have no moments and do not count in F.
//! These features follow from the columns and their lists of categories. The lists are public, or
//! the statement names them as not covered by ε, and they are the same for all devices. So R is a
//! constant of the configuration and independent of a device's rows.
//!
//! **Sensitivity.** m₁² ≤ m₂ ≤ 1 by Jensen's inequality, for any data and any number of rows of the
//! device, so m₁² + (m₂ − 1/2)² ≤ m₂² + 1/4 ≤ 5/4: the vector of a device has norm at most 1. An
//! absent device adds nothing to the sum, so this is the sensitivity under add-remove. Under
//! replace-one, it is 2. The release path checks the norm again, in integers.
//!
//! The noisy sum of N devices gives the means over devices of m₁ and m₂, and from them the scale: u
//! ↦ (u − m₁) / √(m₂ − m₁²). Each device has the same weight, for any number of rows.

use serde::Serialize;

use super::error::ScaleError;
use crate::constants::{Affine, Bounds, FeatureMap};
use crate::dataset::Dataset;

/// R² of one pair of moments.
const LARGEST_SQUARE: f64 = 1.25;

/// The smallest variance of a feature that is distinguished from 0, in units of half the range of
/// its bounds.
const MIN_VARIANCE: f64 = 1e-6;

/// The map of the 0 and 1 of a category before and after a release: the identity.
const CATEGORY: FeatureMap = FeatureMap {
    bounds: Some([0.0, 1.0]),
    affine: Affine::IDENTITY,
};

/// A scale from moments released under noise.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivateScale {
    /// Whether each feature has its own mean and deviation.
    pub is_per_feature: bool,
    /// The bounds to which values are clipped. `None` for those of the format.
    pub bounds: Option<Bounds>,
    /// The amount of noise.
    pub noise: ScaleNoise,
}

/// The amount of noise on the moments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum ScaleNoise {
    /// The moments alone cost this share of the target ε.
    #[serde(rename = "scale_share")]
    Share(f64),
    /// Noise std over the largest norm of one device's vector.
    #[serde(rename = "scale_noise_multiplier")]
    Multiplier(f64),
}

impl PrivateScale {
    /// Returns the maps of the features of `data` from their bounds to [−1, 1]. The 0 and 1 of
    /// categories keep their values.
    ///
    /// # Errors
    /// [`ScaleError::NoBounds`], [`ScaleError::NoNumbers`], [`ScaleError::Constants`].
    pub fn maps(&self, data: &Dataset) -> Result<Vec<FeatureMap>, ScaleError> {
        if numbers(data).next().is_none() {
            return Err(ScaleError::NoNumbers);
        }
        let of_key = |reason| ScaleError::Constants {
            key: "bounds",
            reason,
        };
        let bounds = match (&self.bounds, data.maximum()) {
            (Some(bounds), _) => bounds.clone(),
            (None, Some(maximum)) => Bounds::new(0.0, f64::from(maximum)).map_err(of_key)?,
            (None, None) => return Err(ScaleError::NoBounds),
        };
        let map = |[min, max]: [f64; 2]| {
            Ok(FeatureMap {
                bounds: Some([min, max]),
                affine: Affine::new((min + max) / 2.0, (max - min) / 2.0).map_err(of_key)?,
            })
        };
        let bounds = bounds.expand(data.feature_count()).map_err(of_key)?;
        let maps = bounds.into_iter().map(map);
        let mut maps = maps.collect::<Result<Vec<_>, ScaleError>>()?;
        for (map, is_indicator) in maps.iter_mut().zip(data.indicators()) {
            if is_indicator {
                *map = CATEGORY;
            }
        }
        Ok(maps)
    }

    /// Returns the number of pairs of moments that a device with samples like those of `data`
    /// sends.
    fn pairs(&self, data: &Dataset) -> usize {
        match self.is_per_feature {
            true => numbers(data).count(),
            false => 1,
        }
    }

    /// Returns the number of values that a device with samples like those of `data` sends.
    #[must_use]
    pub fn length(&self, data: &Dataset) -> usize {
        2 * self.pairs(data)
    }

    /// Writes the vector of a device with these rows of `data`, whose features are in [−1, 1]:
    /// first all m₁, then all m₂. Missing values do not count. If the device has no value of a
    /// feature, both are 0.
    ///
    /// # Panics
    /// If `moments` has another length than [`Self::length`].
    pub fn write(&self, data: &Dataset, rows: &[u32], moments: &mut [f32]) {
        let width = data.feature_count();
        let pairs = self.pairs(data);
        // The pair of each feature, if it has one.
        let mut pair_of = vec![None; width];
        for (number, at) in numbers(data).enumerate() {
            pair_of[at] = Some(number % pairs);
        }
        let mut sums = vec![(0.0f64, 0.0f64, 0u64); pairs];
        for &row in rows {
            for (at, (value, pair)) in data.row(row as usize).zip(&pair_of).enumerate() {
                let Some(pair) = pair else { continue };
                if data.is_missing(row as usize * width + at) {
                    continue;
                }
                let (first, second, count) = &mut sums[*pair];
                let value = f64::from(value);
                *first += value;
                *second += value * value;
                *count += 1;
            }
        }
        let radius = radius(pairs);
        let (firsts, seconds) = moments.split_at_mut(pairs);
        for ((first, second, count), (m1, m2)) in sums.iter().zip(firsts.iter_mut().zip(seconds)) {
            (*m1, *m2) = match *count {
                0 => (0.0, 0.0),
                count => {
                    let mean = |sum: f64| sum / count as f64;
                    let m2 = mean(*second) - 0.5;
                    ((mean(*first) / radius) as f32, (m2 / radius) as f32)
                }
            };
        }
    }

    /// Returns the maps from [−1, 1] to features of about mean 0 and deviation 1, from the means
    /// over the devices' messages and the noise std of these means. Variances are limited below by
    /// the smallest one that the noise can distinguish from 0. `None` for the 0 and 1 of a
    /// category.
    #[must_use]
    pub fn scales(&self, data: &Dataset, means: &[f32], noise_std: f64) -> Vec<Option<Affine>> {
        let pairs = self.pairs(data);
        let radius = radius(pairs);
        let (firsts, seconds) = means.split_at(pairs);
        let least = (noise_std * radius).max(MIN_VARIANCE);
        let scale = |at: usize| {
            let mean = (f64::from(firsts[at]) * radius).clamp(-1.0, 1.0);
            let variance = f64::from(seconds[at]) * radius + 0.5 - mean * mean;
            // It is finite and above 0.
            Affine::new(mean, variance.clamp(least, 1.0f64.max(least)).sqrt())
                .unwrap_or(Affine::IDENTITY)
        };
        let mut scales = vec![None; data.feature_count()];
        for (number, at) in numbers(data).enumerate() {
            scales[at] = Some(scale(number % pairs));
        }
        scales
    }
}

/// Returns R of the module documentation, for `pairs` of moments.
fn radius(pairs: usize) -> f64 {
    (LARGEST_SQUARE * pairs as f64).sqrt()
}

/// Iterates over the features of `data` that are numbers, in order, without the 0 and 1 of
/// categories.
fn numbers(data: &Dataset) -> impl Iterator<Item = usize> + use<> {
    let indicators = data.indicators();
    let is_number = move |at: &usize| !indicators.get(*at).is_some_and(|is| *is);
    (0..data.feature_count()).filter(is_number)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::column::{Encoding, FeatureColumn};
    use crate::dataset::{Names, Targets};

    fn scale(is_per_feature: bool) -> PrivateScale {
        PrivateScale {
            is_per_feature,
            bounds: Some(Bounds::new(-3.0, 5.0).unwrap()),
            noise: ScaleNoise::Multiplier(1.0),
        }
    }

    /// Returns rows of three features, clipped and mapped as before a release.
    fn data(features: &[f32], missing: Vec<usize>) -> Dataset {
        let data = raw(features, 3);
        let maps = scale(true).maps(&data).unwrap();
        mapped(features, &maps, data.names().clone()).with_missing(missing)
    }

    fn raw(features: &[f32], width: usize) -> Dataset {
        let targets = Targets::Values(vec![0.0; features.len() / width]);
        Dataset::new(features.to_vec(), width, targets).unwrap()
    }

    /// Clips and maps the features.
    fn mapped(features: &[f32], maps: &[FeatureMap], names: Names) -> Dataset {
        let values = features.iter().enumerate();
        let values = values.map(|(at, value)| maps[at % maps.len()].apply(*value).0);
        raw(&values.collect::<Vec<_>>(), maps.len()).with_names(names)
    }

    /// Returns the names of a number, two categories and a number.
    fn names() -> Names {
        let categories = Encoding::Categories(vec!["red".into(), "blue".into()]);
        let encodings = [Encoding::Number, categories, Encoding::Number];
        let columns = encodings.map(|encoding| FeatureColumn {
            name: "column".to_owned(),
            encoding,
        });
        Names {
            columns: columns.into(),
            ..Names::default()
        }
    }

    /// Returns rows of the two numbers, each with the category of its first number.
    fn with_categories(numbers: &[f32]) -> Dataset {
        let row = |pair: &[f32]| {
            let is_red = f32::from(u8::from(pair[0] > 0.0));
            [pair[0], is_red, 1.0 - is_red, pair[1]]
        };
        let rows: Vec<f32> = numbers.chunks_exact(2).flat_map(row).collect();
        let data = raw(&rows, 4).with_names(names());
        mapped(&rows, &scale(true).maps(&data).unwrap(), names())
    }

    /// Returns the same rows without their categories.
    fn without_categories(numbers: &[f32]) -> Dataset {
        let maps = scale(true).maps(&raw(numbers, 2)).unwrap();
        mapped(numbers, &maps, Names::default())
    }

    fn sent(scale: &PrivateScale, data: &Dataset) -> Vec<f32> {
        let rows: Vec<u32> = (0..data.len() as u32).collect();
        let mut moments = vec![7.0; scale.length(data)];
        scale.write(data, &rows, &mut moments);
        moments
    }

    proptest! {
        /// The claim of the module documentation: norm at most 1, for any rows, before any rounding
        /// of the release path.
        #[test]
        fn no_device_sends_more_than_norm_one(
            rows in vec(prop_oneof![Just(1e12f32), Just(-1e12), -4f32..6.0], 1..40),
            is_per_feature in any::<bool>(),
            open in any::<bool>(),
        ) {
            let values = &[&rows[..], &rows, &rows].concat();
            let missing = if open { vec![0, 1] } else { Vec::new() };
            let sent = sent(&scale(is_per_feature), &data(values, missing));
            let squares: f64 = sent.iter().map(|x| f64::from(*x).powi(2)).sum();
            prop_assert!(squares <= 1.0 + 1e-6, "{squares}");
        }

        /// Categories have no effect: for any rows, a device sends the same bits as without them,
        /// and a norm of at most 1.
        #[test]
        fn categories_change_no_moment(
            pairs in vec(prop_oneof![Just([1e12f32; 2]), [-4f32..6.0, -4f32..6.0]], 1..40),
            is_per_feature in any::<bool>(),
        ) {
            let (numbers, scale) = (pairs.concat(), scale(is_per_feature));
            let with = sent(&scale, &with_categories(&numbers));
            prop_assert_eq!(&with, &sent(&scale, &without_categories(&numbers)));
            let squares: f64 = with.iter().map(|x| f64::from(*x).powi(2)).sum();
            prop_assert!(squares <= 1.0 + 1e-6, "{}", squares);
        }
    }

    #[test]
    fn categories_stay_0_or_1() {
        let set = with_categories(&[-3.0, 1.0, 5.0, 4.0]);
        let scale = scale(true);
        // Two pairs, one for each number, with both numbers at a bound: norm below 1.
        assert_eq!(scale.length(&set), 4);
        let maps = scale.scales(&set, &sent(&scale, &set), 0.0);
        assert!(maps[0].is_some() && maps[3].is_some());
        assert_eq!(maps[1..3], [None, None]);
        assert_eq!(set.row(0).collect::<Vec<_>>()[1..3], [0.0, 1.0]);
        assert_eq!(set.row(1).collect::<Vec<_>>()[1..3], [1.0, 0.0]);
        // The scale of a number is the same without categories.
        let alone = without_categories(&[-3.0, 1.0, 5.0, 4.0]);
        let alone_maps = scale.scales(&alone, &sent(&scale, &alone), 0.0);
        assert_eq!([maps[0], maps[3]], alone_maps[..]);
    }

    #[test]
    fn categories_alone_have_no_private_scale() {
        let names = Names {
            columns: names().columns[1..2].to_vec(),
            ..Names::default()
        };
        let data = raw(&[1.0, 0.0], 2).with_names(names);
        assert_eq!(scale(true).maps(&data), Err(ScaleError::NoNumbers));
    }

    #[test]
    fn one_device_at_the_bound_sends_norm_one() {
        // Every feature at its largest value: m₁ = m₂ = 1.
        let sent = sent(&scale(true), &data(&[1e30; 6], Vec::new()));
        let squares: f64 = sent.iter().map(|x| f64::from(*x).powi(2)).sum();
        assert!((squares - 1.0).abs() < 1e-6, "{squares}");
    }

    #[test]
    fn without_noise_one_device_is_standardised() {
        let set = data(&[-3.0, 1.0, 2.0, 1.0, 1.0, 4.0], Vec::new());
        let scale = scale(true);
        let maps = scale.scales(&set, &sent(&scale, &set), 0.0);
        let scaled = |row: usize, at: usize| {
            f64::from(maps[at].unwrap().apply(set.row(row).nth(at).unwrap()))
        };
        for (at, expected) in [(0, 1.0), (2, 1.0)] {
            assert!((scaled(0, at) + expected).abs() < 1e-5);
            assert!((scaled(1, at) - expected).abs() < 1e-5);
        }
        // A constant feature is close to 0, and not divided by 0.
        assert!(scaled(0, 1).abs() < 1e-2 && scaled(1, 1).abs() < 1e-2);
    }

    #[test]
    fn missing_values_do_not_count() {
        let scale = scale(true);
        let whole = sent(&scale, &data(&[0.0, 1.0, 2.0], Vec::new()));
        let gaps = data(&[0.0, 1.0, 2.0, 5.0, -3.0, 5.0], vec![3, 4, 5]);
        assert_eq!(sent(&scale, &gaps), whole);
        let nothing = sent(&scale, &data(&[0.0, 1.0, 2.0], vec![0, 1, 2]));
        assert_eq!(nothing, [0.0; 6]);
    }

    #[test]
    fn bounds_are_those_of_the_format_or_asked_for() {
        let of_format = PrivateScale {
            bounds: None,
            ..scale(false)
        };
        let pixels = raw(&[1.0; 64], 2).with_maximum(Some(16.0));
        let maps = of_format.maps(&pixels).unwrap();
        assert_eq!(maps[1].apply(99.0), (1.0, true));
        let unbounded = raw(&[1.0; 64], 2);
        assert_eq!(of_format.maps(&unbounded), Err(ScaleError::NoBounds));
        assert_eq!(of_format.length(&raw(&[1.0; 64], 64)), 2);
    }
}
