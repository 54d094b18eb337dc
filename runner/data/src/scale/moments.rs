//! Moments of features that devices release together, for a scale that is private.
//!
//! A device clips its features to the configured bounds, maps these to [−1, 1], and sends for each
//! feature (or once for all of them) the mean m₁ of its values u and the mean m₂ of their squares:
//!
//! ```text
//! (m₁, m₂ − 1/2) / R,   R = √(5/4 · F)        F features, or 1 for all together
//! ```
//!
//! **Sensitivity.** m₁² ≤ m₂ ≤ 1 by Jensen's inequality, whatever the device holds and however many
//! rows it has, so that m₁² + (m₂ − 1/2)² ≤ m₂² + 1/4 ≤ 5/4: the vector of a device has norm at
//! most 1. A device that is not there adds nothing to the sum, so that this is the sensitivity
//! under add-remove; under replace-one it is 2. The release path checks the norm once more, in
//! integers.
//!
//! The sum of N devices with noise gives the means over devices of m₁ and m₂, and from them the
//! scale: u ↦ (u − m₁) / √(m₂ − m₁²). Each device counts the same, however many rows it has.

use serde::Serialize;

use super::error::ScaleError;
use crate::constants::{Affine, Bounds, FeatureMap};
use crate::dataset::Dataset;

/// R² of one pair of moments.
const LARGEST_SQUARE: f64 = 1.25;

/// The least variance of a feature, in units of half the range of its bounds, that is told from 0.
const MIN_VARIANCE: f64 = 1e-6;

/// A scale from moments that are released under noise.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivateScale {
    /// Whether each feature has its own mean and deviation.
    pub is_per_feature: bool,
    /// To what values are clipped; `None` for those of the format.
    pub bounds: Option<Bounds>,
    /// How much noise there is.
    pub noise: ScaleNoise,
}

/// How much noise the moments have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum ScaleNoise {
    /// As much as makes them cost, alone, this share of the target ε.
    #[serde(rename = "scale_share")]
    Share(f64),
    /// Noise std over the largest norm of one device's vector.
    #[serde(rename = "scale_noise_multiplier")]
    Multiplier(f64),
}

impl PrivateScale {
    /// The maps of the features from their bounds to [−1, 1].
    ///
    /// # Errors
    /// [`ScaleError::NoBounds`], [`ScaleError::Constants`].
    pub fn maps(&self, width: usize, maximum: Option<f32>) -> Result<Vec<FeatureMap>, ScaleError> {
        let of_key = |reason| ScaleError::Constants {
            key: "bounds",
            reason,
        };
        let bounds = match (&self.bounds, maximum) {
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
        let bounds = bounds.expand(width).map_err(of_key)?;
        bounds.into_iter().map(map).collect()
    }

    /// Pairs of moments that a device of `width` features sends.
    fn pairs(&self, width: usize) -> usize {
        if self.is_per_feature { width } else { 1 }
    }

    /// Numbers that a device of `width` features sends.
    #[must_use]
    pub fn length(&self, width: usize) -> usize {
        2 * self.pairs(width)
    }

    /// R of the module's text.
    fn radius(&self, width: usize) -> f64 {
        (LARGEST_SQUARE * self.pairs(width) as f64).sqrt()
    }

    /// Writes the vector of a device with these rows of `data`, whose features are in [−1, 1]:
    /// first all m₁, then all m₂. Missing values do not count; a feature of which the device has no
    /// value counts as 0 in both.
    ///
    /// # Panics
    /// If `moments` has another length than [`Self::length`].
    pub fn write(&self, data: &Dataset, rows: &[u32], moments: &mut [f32]) {
        let width = data.feature_count();
        let pairs = self.pairs(width);
        let mut sums = vec![(0.0f64, 0.0f64, 0u64); pairs];
        for &row in rows {
            for (at, value) in data.row(row as usize).enumerate() {
                if data.is_missing(row as usize * width + at) {
                    continue;
                }
                let (first, second, count) = &mut sums[at % pairs];
                let value = f64::from(value);
                *first += value;
                *second += value * value;
                *count += 1;
            }
        }
        let radius = self.radius(width);
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

    /// The maps from [−1, 1] to features of about mean 0 and deviation 1, from the means over
    /// devices of what they sent and the noise std of these means: no variance below what the noise
    /// can tell from 0 is believed.
    #[must_use]
    pub fn scales(&self, width: usize, means: &[f32], noise_std: f64) -> Vec<Affine> {
        let (pairs, radius) = (self.pairs(width), self.radius(width));
        let (firsts, seconds) = means.split_at(pairs);
        let least = (noise_std * radius).max(MIN_VARIANCE);
        let scale = |at: usize| {
            let mean = (f64::from(firsts[at]) * radius).clamp(-1.0, 1.0);
            let variance = f64::from(seconds[at]) * radius + 0.5 - mean * mean;
            // Finite and above 0.
            Affine::new(mean, variance.clamp(least, 1.0f64.max(least)).sqrt())
                .unwrap_or(Affine::IDENTITY)
        };
        (0..width).map(|at| scale(at % pairs)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::dataset::Targets;

    fn scale(is_per_feature: bool) -> PrivateScale {
        PrivateScale {
            is_per_feature,
            bounds: Some(Bounds::new(-3.0, 5.0).unwrap()),
            noise: ScaleNoise::Multiplier(1.0),
        }
    }

    /// Rows of three features, clipped and mapped as before a release.
    fn data(features: &[f32], missing: Vec<usize>) -> Dataset {
        let targets = Targets::Values(vec![0.0; features.len() / 3]);
        let maps = scale(true).maps(3, None).unwrap();
        let mapped = features.iter().enumerate();
        let mapped = mapped.map(|(at, value)| maps[at % 3].apply(*value).0);
        Dataset::new(mapped.collect::<Vec<_>>(), 3, targets)
            .unwrap()
            .with_missing(missing)
    }

    fn sent(scale: &PrivateScale, data: &Dataset) -> Vec<f32> {
        let rows: Vec<u32> = (0..data.len() as u32).collect();
        let mut moments = vec![7.0; scale.length(3)];
        scale.write(data, &rows, &mut moments);
        moments
    }

    proptest! {
        /// The claim of the module's text: norm at most 1, for any rows, before any rounding of
        /// the release path.
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
        let maps = scale.scales(3, &sent(&scale, &set), 0.0);
        let scaled =
            |row: usize, at: usize| f64::from(maps[at].apply(set.row(row).nth(at).unwrap()));
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
        let maps = of_format.maps(2, Some(16.0)).unwrap();
        assert_eq!(maps[1].apply(99.0), (1.0, true));
        assert_eq!(of_format.maps(2, None), Err(ScaleError::NoBounds));
        assert_eq!(of_format.length(64), 2);
    }
}
