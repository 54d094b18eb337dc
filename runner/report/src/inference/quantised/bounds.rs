//! Bounds of the features that a model reads, which follow from its preprocessing.

use smolfed_data::features::FeatureRecipe;
use smolfed_data::large;
use smolfed_data::preparation::{ColumnMap, NumberMap};

use super::network::Interval;
use crate::inference::error::InferenceError;
use crate::inference::model::TrainedModel;

/// Returns the interval of each feature.
///
/// # Errors
/// [`InferenceError::NoRanges`] names a feature without bounds.
pub(super) fn of_features(model: &TrainedModel) -> Result<Vec<Interval>, InferenceError> {
    let preprocessing = &model.preprocessing;
    let count = preprocessing.feature_count();
    // No feature exceeds the length of its row.
    let length = preprocessing.norm_bound.map(f64::from);
    let longest = length.map(|bound| Interval::new(-bound, bound));
    let unbounded = |feature: String| InferenceError::NoRanges { feature };
    match (&preprocessing.features, longest) {
        (Some(_), Some(longest)) => Ok(vec![longest; count]),
        // Roots of shares of a sum, times half the root of their number.
        (Some(FeatureRecipe::Image { .. }), None) => {
            let largest = (count as f64).sqrt() / 2.0;
            Ok(vec![Interval::new(0.0, largest); count])
        }
        (Some(FeatureRecipe::Steps { .. }), None) => Err(unbounded("a feature".to_owned())),
        (None, longest) => {
            let columns = preprocessing.columns.iter().enumerate();
            let of_column = columns.map(|(at, column)| {
                let own = of_column(&column.map);
                let name = || match &column.name {
                    Some(name) => format!("`{name}`"),
                    None => format!("feature {}", at + 1),
                };
                match (own, longest) {
                    (Some(own), Some(longest)) => Ok(own.clip(longest)),
                    (Some(either), None) | (None, Some(either)) => Ok(either),
                    (None, None) => Err(unbounded(name())),
                }
            });
            of_column.collect()
        }
    }
}

/// Returns the values of a column between its bounds, if it has any.
fn of_column(map: &ColumnMap) -> Option<Interval> {
    let ColumnMap::Number(NumberMap { map, then, .. }) = map else {
        return Some(Interval::point(0.0));
    };
    let [low, high] = map.bounds?.map(|end| {
        let scaled = map.affine.apply_exact(large::kept(end));
        f64::from(then.map_or(scaled, |then| then.apply(scaled)))
    });
    // The replacement for a missing value may be 0.
    Some(Interval::new(low, high).hull(Interval::point(0.0)))
}
