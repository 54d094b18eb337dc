//! Missing values: each becomes a constant, or the mean of its feature over the training part.
//!
//! Test and validation rows are also filled with the means of the training part, never with their
//! own. The means are computed from the devices' data without noise, and no ε covers them
//! (`docs/data.md`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::constants::{ConstantError, PerFeature};
use super::dataset::Dataset;
use super::large;

/// Replacements for missing values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "lowercase",
    expecting = "`missing` must be \"mean\", a number, or a list with one for each feature"
)]
pub enum Missing {
    /// The mean of the feature over the training part.
    #[default]
    Mean,
    /// Constants, in the unit of the file.
    #[serde(untagged)]
    Constants(PerFeature),
}

/// The reason why missing values cannot be filled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ImputeError {
    /// A feature has no value in the training part.
    #[error("the column `{feature}` has no value in any training row; add it to `ignore`")]
    NoValue {
        /// Name of the feature, or its number from 0.
        feature: String,
    },
    /// The constants do not fit.
    #[error("`missing`: {0}")]
    Constants(ConstantError),
    /// A constant is not finite.
    #[error("`missing` is {value}, but must be finite")]
    NotFinite {
        /// The constant.
        value: f64,
    },
}

/// The replacements of missing values.
#[derive(Clone, Debug, PartialEq)]
pub struct Imputed {
    /// The value of each feature, or `None` for a feature without gaps and without a constant.
    pub values: Vec<Option<f64>>,
    /// Whether rows were read to compute them.
    pub reads_rows: bool,
}

/// Fills every missing feature of `data` in place. [`Dataset::missing`] is then empty.
///
/// Without missing values, nothing is read. This fact reveals no secret of a single device either:
/// if one device held other data, only its own rows could have gaps, and be filled from those of
/// others.
///
/// * Cost: two passes over the missing places and one over the rows of `training`.
///
/// # Errors
/// [`ImputeError`] if a feature to be filled has no value in `training`, or constants do not fit.
/// `data` is then unchanged.
pub fn impute(
    data: &mut Dataset,
    training: &[u32],
    missing: &Missing,
) -> Result<Imputed, ImputeError> {
    let values = match missing {
        Missing::Constants(constants) => constants_of(constants, data.feature_count())?,
        Missing::Mean => means(data, training)?,
    };
    let reads_rows = *missing == Missing::Mean && !data.missing().is_empty();
    fill(data, |feature| values[feature]);
    data.missing.clear();
    Ok(Imputed { values, reads_rows })
}

/// Fills the gaps of each feature with its value, if it has one. They remain marked as gaps.
pub(super) fn fill(data: &mut Dataset, value: impl Fn(usize) -> Option<f64>) {
    let width = data.feature_count();
    // Every feature with gaps has a value.
    let value = |place: usize| large::split(value(place % width).unwrap_or(0.0));
    data.features.fill(&data.missing, |place| value(place).0);
    let rests = data.missing.iter().map(|place| (*place, value(*place).1));
    data.rests.extend(rests.filter(|(_, rest)| *rest != 0.0));
    data.rests.sort_unstable_by_key(|(place, _)| *place);
}

fn constants_of(constants: &PerFeature, width: usize) -> Result<Vec<Option<f64>>, ImputeError> {
    let values = constants.expand("missing", width);
    let values = values.map_err(ImputeError::Constants)?;
    let is_wrong = |value: &&f64| !(**value as f32).is_finite();
    match values.iter().find(is_wrong) {
        Some(value) => Err(ImputeError::NotFinite { value: *value }),
        None => Ok(values.into_iter().map(|x| Some(large::kept(x))).collect()),
    }
}

/// Returns the means of the features with gaps.
fn means(data: &Dataset, training: &[u32]) -> Result<Vec<Option<f64>>, ImputeError> {
    let width = data.feature_count();
    let mut incomplete = vec![false; width];
    for &place in data.missing() {
        incomplete[place % width] = true;
    }
    let mean = |feature| match present_mean(data, training, feature) {
        Some(mean) => Ok(Some(mean)),
        None => Err(ImputeError::NoValue {
            feature: data.feature_name(feature),
        }),
    };
    let features = incomplete.into_iter().enumerate();
    features
        .map(|(feature, has_gaps)| if has_gaps { mean(feature) } else { Ok(None) })
        .collect()
}

/// Returns the mean of a feature over the training rows that have it.
fn present_mean(data: &Dataset, training: &[u32], feature: usize) -> Option<f64> {
    let width = data.feature_count();
    let (mut sum, mut count) = (0.0f64, 0u32);
    for &row in training {
        let place = row as usize * width + feature;
        if data.missing().binary_search(&place).is_err() {
            sum += data.exact(place);
            count += 1;
        }
    }
    (count > 0).then(|| large::kept(sum / f64::from(count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Targets;

    /// Rows: (1, ?), (3, 4), (?, 100).
    fn gaps() -> Dataset {
        let targets = Targets::Values(vec![0.0; 3]);
        let features = vec![1.0, 0.0, 3.0, 4.0, 0.0, 100.0];
        Dataset::new(features, 2, targets)
            .unwrap()
            .with_missing(vec![1, 4])
    }

    #[test]
    fn gaps_become_means_of_the_training_part_only() {
        let mut data = gaps();
        let imputed = impute(&mut data, &[0, 1], &Missing::Mean).unwrap();
        assert_eq!(imputed.values, [Some(2.0), Some(4.0)]);
        assert!(imputed.reads_rows);
        assert_eq!(data.features().to_vec(), [1.0, 4.0, 3.0, 4.0, 2.0, 100.0]);
        assert!(data.missing().is_empty());
    }

    #[test]
    fn feature_without_any_training_value_is_named() {
        let mut data = gaps();
        let error = impute(&mut data, &[0], &Missing::Mean).unwrap_err();
        assert_eq!(
            error,
            ImputeError::NoValue {
                feature: "1".into()
            }
        );
        assert!(data == gaps(), "a failed call leaves the data as they were");
    }

    #[test]
    fn constants_fill_gaps_and_read_nothing() {
        let constants = |text: &str| {
            #[derive(Deserialize)]
            struct Table {
                missing: Missing,
            }
            toml::from_str::<Table>(&format!("missing = {text}"))
                .unwrap()
                .missing
        };
        let mut data = gaps();
        let imputed = impute(&mut data, &[0, 1], &constants("[7, -1.5]")).unwrap();
        assert!(!imputed.reads_rows);
        assert_eq!(data.features().to_vec(), [1.0, -1.5, 3.0, 4.0, 7.0, 100.0]);
        let mut data = gaps();
        let imputed = impute(&mut data, &[0, 1], &constants("0")).unwrap();
        assert!(!imputed.reads_rows);
        assert_eq!(data.features().to_vec(), [1.0, 0.0, 3.0, 4.0, 0.0, 100.0]);
        for (text, words) in [("[1, 2, 3]", "lists 3 numbers"), ("nan", "must be finite")] {
            let error = impute(&mut gaps(), &[0], &constants(text)).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
        assert_eq!(constants("\"mean\""), Missing::Mean);
    }

    #[test]
    fn complete_data_keep_their_bits() {
        let mut data = Dataset::new(vec![1.0], 1, Targets::Values(vec![0.0])).unwrap();
        let imputed = impute(&mut data, &[], &Missing::Mean).unwrap();
        assert_eq!((imputed.values, imputed.reads_rows), (vec![None], false));
        assert_eq!(data.features().to_vec(), [1.0]);
    }
}
