//! The scale of features from the answers about their moments: constants for `data.scale` that no
//! device's rows gave away without noise.

use std::fmt;

use smolfed_core::question::Question;

use super::{Answer, AskedQuestion, Estimate};
use serde::Serialize;
use smolfed_data::federation::Unscaled;

/// A mean and a standard deviation for each feature.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReleasedScale {
    /// The means.
    pub mean: Vec<f64>,
    /// The standard deviations, above 0.
    pub std: Vec<f64>,
}

impl ReleasedScale {
    /// Returns the scale of features from the last answers about their moments. `None` if there are
    /// no such answers, or they do not determine a mean or a deviation.
    ///
    /// A feature without an answer and the 0 or 1 of a category have mean 0 and a deviation of one
    /// unit, and so stay unchanged. Where the interval of a deviation contains 0, the upper end
    /// replaces the estimate, or half the interval of the mean if that is larger: a smaller
    /// deviation may be noise alone, and dividing by it would magnify the feature.
    #[must_use]
    pub fn of(
        questions: &[AskedQuestion],
        answers: &[Answer],
        unscaled: &Unscaled,
    ) -> Option<Self> {
        let features = questions.first()?.dimensions.features;
        let unchanged = 1.0 / unscaled.unit;
        let (mut mean, mut std) = (vec![0.0; features], vec![unchanged; features]);
        let mut has_any = false;
        for answer in answers {
            let asked = questions.get(usize::from(answer.question))?;
            let Question::Moments(of) = &asked.question else {
                continue;
            };
            let (pairs, _) = answer.estimates.as_chunks();
            for (feature, [of_mean, of_deviation]) in (usize::from(of.first())..).zip(pairs) {
                if unscaled.indicators.get(feature) == Some(&true) {
                    continue;
                }
                *mean.get_mut(feature)? = of_mean.value? / unscaled.unit;
                *std.get_mut(feature)? = deviation(of_mean, of_deviation)? / unscaled.unit;
                has_any = true;
            }
        }
        has_any.then_some(Self { mean, std })
    }
}

/// Returns a deviation above 0. It is 1 for a constant feature without noise.
fn deviation(mean: &Estimate, deviation: &Estimate) -> Option<f64> {
    let ([low, high], [mean_low, mean_high]) = (deviation.interval, mean.interval);
    let value = match low? > 0.0 {
        true => deviation.value?,
        false => high?.max((mean_high? - mean_low?) / 2.0),
    };
    Some(if value > 0.0 { value } else { 1.0 })
}

/// Writes the key of a configuration. Both numbers of a feature end at the fourth digit of its
/// deviation.
impl fmt::Display for ReleasedScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[f64]| {
            let pairs = values.iter().zip(&self.std);
            let values: Vec<String> = pairs.map(|(value, std)| rounded(*value, *std)).collect();
            values.join(",")
        };
        let (mean, std) = (list(&self.mean), list(&self.std));
        write!(f, "data.scale={{mean=[{mean}],std=[{std}]}}")
    }
}

/// Returns a decimal number that ends at the fourth digit of `std`, but not before the point.
fn rounded(value: f64, std: f64) -> String {
    let decimals = (3.0 - std.log10().floor()).clamp(1.0, 40.0) as usize;
    format!("{value:.decimals$}")
}
