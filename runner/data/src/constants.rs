//! Constants of the configuration that replace statistics of the devices' rows: numbers for all
//! features or one for each, bounds, and the maps that they define.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::large;

/// x ↦ (x − mean) / std, where std is finite and above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    mean: f64,
    std: f64,
}

/// One number for all features, or one for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PerFeature {
    /// The same for all.
    All(f64),
    /// In the order of the features.
    Each(Vec<f64>),
}

/// The smallest and the largest value of features, as they are in the file: min < max.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawBounds", into = "RawBounds")]
pub struct Bounds {
    min: PerFeature,
    max: PerFeature,
}

/// The constants of a scale: bounds, to which values are clipped, a mean and a standard deviation,
/// or both. Without the latter, values become (x − min) / (max − min).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawConstants", into = "RawConstants")]
pub struct Constants {
    bounds: Option<Bounds>,
    moments: Option<(PerFeature, PerFeature)>,
}

/// Errors in constants.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstantError {
    /// A mean or deviation cannot be used for scaling.
    #[error("cannot scale by mean = {mean} and std = {std}: both must be finite and std above 0")]
    BadMoments {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        std: f64,
    },
    /// The bounds contain no range.
    #[error("cannot clip to min = {min} and max = {max}: both must be finite and min below max")]
    BadBounds {
        /// The smallest value.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// Only one of two related keys is present.
    #[error("constants are {{ min = .., max = .. }}, {{ mean = .., std = .. }} or all four")]
    Incomplete,
    /// The number of constants is neither one nor the number of features.
    #[error("`{key}` lists {found} numbers, but there are {expected} features")]
    Length {
        /// The key.
        key: &'static str,
        /// Number of features.
        expected: usize,
        /// Number of constants.
        found: usize,
    },
}

/// The map of one feature. Values are first clipped to the bounds, if there are any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeatureMap {
    /// The smallest and the largest value.
    pub bounds: Option<[f64; 2]>,
    /// The map after clipping.
    pub affine: Affine,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawBounds {
    min: PerFeature,
    max: PerFeature,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawConstants {
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<PerFeature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<PerFeature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<PerFeature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    std: Option<PerFeature>,
}

impl Affine {
    /// The identity map.
    pub const IDENTITY: Self = Self {
        mean: 0.0,
        std: 1.0,
    };

    /// Creates a map that subtracts `mean`, then divides by `std`.
    ///
    /// # Errors
    /// [`ConstantError::BadMoments`] unless both are finite and `std` is above 0.
    pub fn new(mean: f64, std: f64) -> Result<Self, ConstantError> {
        if mean.is_finite() && std.is_finite() && std > 0.0 {
            Ok(Self { mean, std })
        } else {
            Err(ConstantError::BadMoments { mean, std })
        }
    }

    /// Returns the subtracted mean.
    pub fn mean(self) -> f64 {
        self.mean
    }

    /// Returns the divisor: an error of the scaled target times this is an error in its own unit.
    pub fn std(self) -> f64 {
        self.std
    }

    /// Converts a value from the new unit to the old one.
    pub fn undo(self, value: f32) -> f64 {
        f64::from(value) * self.std + self.mean
    }

    /// Converts a value to the new unit.
    pub fn apply(self, value: f32) -> f32 {
        self.apply_exact(f64::from(value))
    }

    /// Applies [`Self::apply`] to a number with more digits, which is rounded last.
    pub fn apply_exact(self, value: f64) -> f32 {
        ((value - self.mean) / self.std) as f32
    }
}

impl PerFeature {
    /// Returns the number for feature `at`, which must be below the width checked by
    /// [`Self::fits`].
    fn at(&self, at: usize) -> f64 {
        match self {
            Self::All(value) => *value,
            Self::Each(values) => values[at],
        }
    }

    /// Returns the number of values.
    fn count(&self) -> usize {
        match self {
            Self::All(_) => 1,
            Self::Each(values) => values.len(),
        }
    }

    /// Returns one number for each of `width` features.
    ///
    /// # Errors
    /// [`ConstantError::Length`] unless there is one number, or one for each.
    pub fn expand(&self, key: &'static str, width: usize) -> Result<Vec<f64>, ConstantError> {
        self.fits(key, width)?;
        Ok((0..width).map(|at| self.at(at)).collect())
    }

    fn fits(&self, key: &'static str, width: usize) -> Result<(), ConstantError> {
        match self {
            Self::Each(values) if values.len() != width => Err(ConstantError::Length {
                key,
                expected: width,
                found: values.len(),
            }),
            _ => Ok(()),
        }
    }
}

/// Returns the number of pairs of two entries, each a number or a list. Lists must have equal
/// lengths.
fn pairs(
    keys: [&'static str; 2],
    first: &PerFeature,
    second: &PerFeature,
) -> Result<usize, ConstantError> {
    let [first_key, second_key] = keys;
    let count = first.count().max(second.count());
    first.fits(first_key, count)?;
    second.fits(second_key, count)?;
    Ok(count)
}

impl Bounds {
    /// Creates the same bounds for all features.
    ///
    /// # Errors
    /// [`ConstantError::BadBounds`] unless both are finite and `min` is below `max`.
    pub fn new(min: f64, max: f64) -> Result<Self, ConstantError> {
        let (min, max) = (PerFeature::All(min), PerFeature::All(max));
        Self::try_from(RawBounds { min, max })
    }

    /// Returns the bounds of each of `width` features.
    ///
    /// # Errors
    /// [`ConstantError::Length`] if they are lists of another length.
    pub fn expand(&self, width: usize) -> Result<Vec<[f64; 2]>, ConstantError> {
        self.min.fits("min", width)?;
        self.max.fits("max", width)?;
        let at = |at| [self.min.at(at), self.max.at(at)];
        Ok((0..width).map(at).collect())
    }
}

impl TryFrom<RawBounds> for Bounds {
    type Error = ConstantError;

    fn try_from(raw: RawBounds) -> Result<Self, ConstantError> {
        let RawBounds { min, max } = raw;
        for at in 0..pairs(["min", "max"], &min, &max)? {
            let (min, max) = (min.at(at), max.at(at));
            // Scaled features are f32.
            let is_finite = (min as f32).is_finite() && (max as f32).is_finite();
            if !(is_finite && min < max) {
                return Err(ConstantError::BadBounds { min, max });
            }
        }
        Ok(Self { min, max })
    }
}

impl From<Bounds> for RawBounds {
    fn from(bounds: Bounds) -> Self {
        let Bounds { min, max } = bounds;
        Self { min, max }
    }
}

impl Constants {
    /// Creates a mean and a standard deviation for all features.
    #[must_use]
    pub fn of_moments(map: Affine) -> Self {
        Self {
            bounds: None,
            moments: Some((PerFeature::All(map.mean), PerFeature::All(map.std))),
        }
    }

    /// Returns whether values are clipped.
    #[must_use]
    pub const fn has_bounds(&self) -> bool {
        self.bounds.is_some()
    }

    /// Returns the maps of `width` features. Mean and standard deviation are in units of `unit`,
    /// and bounds are values as in the file.
    ///
    /// # Errors
    /// [`ConstantError::Length`] if a list has another length.
    pub fn maps(&self, width: usize, unit: f64) -> Result<Vec<FeatureMap>, ConstantError> {
        let bounds = match &self.bounds {
            Some(bounds) => bounds.expand(width)?.into_iter().map(Some).collect(),
            None => vec![None; width],
        };
        if let Some((mean, std)) = &self.moments {
            mean.fits("mean", width)?;
            std.fits("std", width)?;
        }
        let map = |(at, bounds): (usize, Option<[f64; 2]>)| {
            let affine = match (&self.moments, bounds) {
                (Some((mean, std)), _) => Affine::new(mean.at(at) * unit, std.at(at) * unit)?,
                (None, Some([min, max])) => Affine::new(min, max - min)?,
                (None, None) => Affine::IDENTITY,
            };
            Ok(FeatureMap { bounds, affine })
        };
        bounds.into_iter().enumerate().map(map).collect()
    }
}

impl Constants {
    /// Returns [`Self::maps`] for features grouped by `channels`. Lists may also have one number
    /// for each channel.
    ///
    /// # Errors
    /// The errors of [`Self::maps`].
    pub fn maps_by_channel(
        &self,
        width: usize,
        channels: Option<usize>,
        unit: f64,
    ) -> Result<Vec<FeatureMap>, ConstantError> {
        match channels.filter(|channels| self.lists().any(|count| count == *channels)) {
            None => self.maps(width, unit),
            Some(channels) => {
                let maps = self.maps(channels, unit)?.into_iter();
                let of_channel = |map| std::iter::repeat_n(map, width / channels);
                Ok(maps.flat_map(of_channel).collect())
            }
        }
    }

    /// Iterates over the lengths of the lists.
    fn lists(&self) -> impl Iterator<Item = usize> {
        let bounds = self
            .bounds
            .iter()
            .flat_map(|bounds| [&bounds.min, &bounds.max]);
        let moments = self.moments.iter().flat_map(|(mean, std)| [mean, std]);
        bounds.chain(moments).filter_map(|numbers| match numbers {
            PerFeature::All(_) => None,
            PerFeature::Each(values) => Some(values.len()),
        })
    }
}

impl TryFrom<RawConstants> for Constants {
    type Error = ConstantError;

    fn try_from(raw: RawConstants) -> Result<Self, ConstantError> {
        let bounds = match (raw.min, raw.max) {
            (Some(min), Some(max)) => Some(Bounds::try_from(RawBounds { min, max })?),
            (None, None) => None,
            _ => return Err(ConstantError::Incomplete),
        };
        let moments = match (raw.mean, raw.std) {
            (Some(mean), Some(std)) => Some((mean, std)),
            (None, None) if bounds.is_some() => None,
            _ => return Err(ConstantError::Incomplete),
        };
        if let Some((mean, std)) = &moments {
            for at in 0..pairs(["mean", "std"], mean, std)? {
                Affine::new(mean.at(at), std.at(at))?;
            }
        }
        Ok(Self { bounds, moments })
    }
}

impl From<Constants> for RawConstants {
    fn from(constants: Constants) -> Self {
        let (min, max) = constants.bounds.map(|b| (b.min, b.max)).unzip();
        let (mean, std) = constants.moments.unzip();
        Self {
            min,
            max,
            mean,
            std,
        }
    }
}

impl FeatureMap {
    /// Clips the value, and returns whether it was beyond the bounds.
    pub fn clip(&self, value: f32) -> (f32, bool) {
        let (clipped, is_beyond) = self.clip_exact(f64::from(value));
        (clipped as f32, is_beyond)
    }

    /// Clips and maps the value, and returns whether it was beyond the bounds.
    pub fn apply(&self, value: f32) -> (f32, bool) {
        self.apply_exact(f64::from(value))
    }

    /// Applies [`Self::apply`] to a number with more digits, which is rounded last.
    pub fn apply_exact(&self, value: f64) -> (f32, bool) {
        let (clipped, is_beyond) = self.clip_exact(value);
        (self.affine.apply_exact(clipped), is_beyond)
    }

    fn clip_exact(&self, value: f64) -> (f64, bool) {
        let Some(bounds) = self.bounds else {
            return (value, false);
        };
        // Bounds are rounded like values: `0.1` is not beyond 0.1.
        let [min, max] = bounds.map(large::kept);
        (value.clamp(min, max), !(min..=max).contains(&value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constants(text: &str) -> Result<Constants, String> {
        #[derive(Deserialize)]
        struct Table {
            scale: Constants,
        }
        let table: Result<Table, _> = toml::from_str(&format!("scale = {text}"));
        table.map(|table| table.scale).map_err(|e| e.to_string())
    }

    #[test]
    fn values_beyond_the_bounds_are_clipped_and_noticed() {
        let scale = constants("{ min = [0, -10], max = [16, 10] }").unwrap();
        let maps = scale.maps(2, 99.0).unwrap();
        let found = |at: usize, value| maps[at].apply(value);
        assert_eq!(found(0, 16.0), (1.0, false));
        assert_eq!(found(0, 1e12), (1.0, true));
        assert_eq!(found(0, -0.5), (0.0, true));
        assert_eq!(found(1, 0.0), (0.5, false));
        assert_eq!(found(1, f32::MIN), (0.0, true));
    }

    #[test]
    fn all_four_constants_clip_first_and_then_scale() {
        let scale = constants("{ min = 0, max = 16, mean = 0.5, std = 0.25 }").unwrap();
        let maps = scale.maps(1, 16.0).unwrap();
        assert_eq!(maps[0].apply(0.0), (-2.0, false));
        assert_eq!(maps[0].apply(20.0), (2.0, true));
    }

    #[test]
    fn large_numbers_are_rounded_last() {
        let scale = constants("{ min = 1700000000000, max = 1700000400000 }").unwrap();
        let map = scale.maps(1, 1.0).unwrap()[0];
        assert_eq!(map.apply_exact(1_700_000_100_000.0), (0.25, false));
        assert_eq!(map.apply_exact(1_700_000_400_001.0), (1.0, true));
        // The nearest 32-bit number is 1,700,000,038,912.
        assert_eq!(map.apply(1_700_000_000_000.0), (0.097_28, false));
        // Smaller numbers are compared in their stored precision.
        let scale = constants("{ min = 0, max = 0.1 }").unwrap();
        assert!(!scale.maps(1, 1.0).unwrap()[0].apply(0.1).1);
    }

    #[test]
    fn constants_that_cannot_scale_are_refused() {
        for (text, words) in [
            ("{ min = 1, max = 1 }", "min below max"),
            ("{ min = [0, 3], max = [1, 2] }", "min = 3 and max = 2"),
            ("{ min = 0, max = 1e300 }", "finite"),
            ("{ min = [0, 0], max = [1, 2, 3] }", "lists 2 numbers"),
            ("{ min = 0 }", "all four"),
            ("{ mean = 0 }", "all four"),
            ("{ min = 0, max = 1, std = 1 }", "all four"),
            ("{ mean = [0, 0], std = [1, 0] }", "std above 0"),
            ("{ mean = [0, 0], std = [1] }", "`std` lists 1 numbers"),
            ("{ mean = 0, std = 1, median = 3 }", "median"),
        ] {
            let message = constants(text).unwrap_err();
            assert!(message.contains(words), "{text}: {message}");
        }
        assert!(constants("{ min = [0, 0, 0], max = 1 }").is_ok());
    }

    #[test]
    fn lists_have_a_number_for_each_feature() {
        let scale = constants("{ mean = [0, 1], std = 2 }").unwrap();
        assert_eq!(scale.maps(2, 1.0).unwrap()[1].affine.apply(5.0), 2.0);
        let error = scale.maps(3, 1.0).unwrap_err().to_string();
        assert!(error.contains("`mean` lists 2 numbers"), "{error}");
    }
}
