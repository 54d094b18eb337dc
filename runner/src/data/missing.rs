//! Missing values: each becomes the mean of its feature over the training part.
//!
//! Test and validation rows are filled with the means of the training part too, never with their
//! own. The means read the devices' data without noise: no ε covers them (`docs/data.md`).

use super::dataset::Dataset;

/// Why missing values cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImputeError {
    /// A feature has no value in the training part.
    #[error("the column `{feature}` has no value in any training row; add it to `ignore`")]
    NoValue {
        /// Name of the feature, or its number from 0.
        feature: String,
    },
}

/// Fills every missing feature of `data` in place; afterwards [`Dataset::missing`] is empty.
///
/// * Cost: two passes over the missing places and one over the rows of `training`.
///
/// # Errors
/// [`ImputeError::NoValue`] if a feature to be filled has no value in `training`. `data` is then
/// unchanged.
pub fn impute(data: &mut Dataset, training: &[u32]) -> Result<(), ImputeError> {
    if data.missing().is_empty() {
        return Ok(());
    }
    let width = data.feature_count();
    let mut incomplete = vec![false; width];
    for &place in data.missing() {
        incomplete[place % width] = true;
    }
    let mut means = vec![0.0; width];
    for (feature, mean) in means.iter_mut().enumerate() {
        if incomplete[feature] {
            *mean = present_mean(data, training, feature).ok_or_else(|| ImputeError::NoValue {
                feature: data.feature_name(feature),
            })?;
        }
    }
    for place in std::mem::take(&mut data.missing) {
        data.features[place] = means[place % width];
    }
    Ok(())
}

/// Mean of a feature over the training rows that have it.
fn present_mean(data: &Dataset, training: &[u32], feature: usize) -> Option<f32> {
    let width = data.feature_count();
    let (mut sum, mut count) = (0.0f64, 0u32);
    for &row in training {
        let place = row as usize * width + feature;
        if data.missing().binary_search(&place).is_err() {
            sum += f64::from(data.features()[place]);
            count += 1;
        }
    }
    (count > 0).then(|| (sum / f64::from(count)) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dataset::Targets;

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
        impute(&mut data, &[0, 1]).unwrap();
        assert_eq!(data.features(), [1.0, 4.0, 3.0, 4.0, 2.0, 100.0]);
        assert!(data.missing().is_empty());
    }

    #[test]
    fn feature_without_any_training_value_is_named() {
        let mut data = gaps();
        let error = impute(&mut data, &[0]).unwrap_err();
        assert_eq!(
            error,
            ImputeError::NoValue {
                feature: "1".into()
            }
        );
        assert!(data == gaps(), "a failed call leaves the data as they were");
    }

    #[test]
    fn complete_data_keep_their_bits() {
        let mut data = Dataset::new(vec![1.0], 1, Targets::Values(vec![0.0])).unwrap();
        impute(&mut data, &[]).unwrap();
        assert_eq!(data.features(), [1.0]);
    }
}
