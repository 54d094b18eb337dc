//! How good a model is on rows whose targets are known, which come in parts.

use serde::Serialize;

use super::error::InferenceError;
use super::input::{Input, Part};
use super::model::{Outputs, TrainedModel};
use crate::evaluation::samples::{Evaluation, Tally};

/// How good a model is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Assessment {
    /// Rows.
    pub rows: u64,
    /// As in the evaluation of a run.
    #[serde(flatten)]
    pub evaluation: Evaluation,
    /// Of values only.
    #[serde(flatten)]
    pub errors: Option<ValueErrors>,
}

/// Errors of predicted values, in the target's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ValueErrors {
    /// Mean absolute error.
    pub mae: f64,
    /// R² = 1 − Σ (y − ŷ)² / Σ (y − ȳ)²: the share of the variance that is explained, below 0 for a
    /// model that is worse than the mean of these targets. `None` if all targets are the same.
    pub r2: Option<f64>,
    /// The root mean squared error of the mean of these targets, for comparison.
    pub rmse_of_mean: f64,
}

/// Sums over predicted values.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    absolute: f64,
    squared: f64,
    /// Mean of the targets so far, and the sum of squares about it (Welford 1962).
    mean: f64,
    scatter: f64,
}

impl Moments {
    fn add(&mut self, target: f64, predicted: f64) {
        let error = predicted - target;
        self.count += 1.0;
        self.absolute += error.abs();
        self.squared += error * error;
        let before = target - self.mean;
        self.mean += before / self.count;
        self.scatter += before * (target - self.mean);
    }

    fn errors(&self) -> ValueErrors {
        ValueErrors {
            mae: self.absolute / self.count,
            r2: (self.scatter > 0.0).then(|| 1.0 - self.squared / self.scatter),
            rmse_of_mean: (self.scatter / self.count).sqrt(),
        }
    }
}

/// Evaluates a model on all rows of a file.
///
/// # Errors
/// [`InferenceError`] for a file without rows, for a row that cannot be read, and for a model
/// without labels.
pub fn assess(model: &TrainedModel, input: &mut Input<'_>) -> Result<Assessment, InferenceError> {
    if matches!(model.outputs(), Outputs::Representation) {
        // A hidden layer has a sentence of its own.
        model.parameters()?;
        return Err(InferenceError::NoPrediction(
            "the model is an encoder that was learned without labels: its outputs are no classes \
             to be evaluated; `smolfed predict` gives the representations",
        ));
    }
    let (mut tally, mut moments) = (Tally::default(), Moments::default());
    let mut rows = 0;
    while let Some(part) = input.next(Tally::PART)? {
        rows += part.ids.len() as u64;
        let scores = model.scores(part.samples())?;
        add_values(model, &part, &scores, &mut moments);
        tally.add(model.task(), part.samples(), scores);
    }
    let unit = match model.outputs() {
        Outputs::Value(scale) => scale.std(),
        _ => 1.0,
    };
    let evaluation = tally.evaluation(model.task(), unit);
    Ok(Assessment {
        rows,
        evaluation: evaluation.ok_or_else(|| InferenceError::Empty {
            origin: input.origin().to_owned(),
        })?,
        errors: (moments.count > 0.0).then(|| moments.errors()),
    })
}

/// Adds the errors of predicted values, if the model predicts values.
fn add_values(model: &TrainedModel, part: &Part, scores: &[f32], moments: &mut Moments) {
    let Outputs::Value(scale) = model.outputs() else {
        return;
    };
    for (row, score) in scores.iter().enumerate() {
        let target = part.samples().value(row);
        moments.add(scale.undo(target), scale.undo(*score));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_values_are_those_of_their_definitions() {
        let mut moments = Moments::default();
        for (target, predicted) in [(1.0, 2.0), (3.0, 3.0), (8.0, 5.0)] {
            moments.add(target, predicted);
        }
        let errors = moments.errors();
        // Targets have mean 4 and squares about it of 9 + 1 + 16 = 26; errors are 1, 0 and −3.
        assert!((errors.mae - 4.0 / 3.0).abs() < 1e-12);
        assert!((errors.r2.unwrap() - (1.0 - 10.0 / 26.0)).abs() < 1e-12);
        assert!((errors.rmse_of_mean - (26f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn targets_that_are_all_the_same_have_no_variance_to_explain() {
        let mut moments = Moments::default();
        moments.add(2.0, 1.0);
        moments.add(2.0, 3.0);
        assert_eq!(moments.errors().r2, None);
    }
}
