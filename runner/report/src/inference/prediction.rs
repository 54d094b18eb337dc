//! From prepared rows to a class with probabilities, a value in its own unit, or a representation.
//! The scores are the same as in the evaluation of a run.

use smolfed_core::model::Model;

use super::error::InferenceError;
use super::model::{Outputs, TrainedModel};
use smolfed_data::dataset::DatasetView;
use smolfed_engine::evaluation::samples::scores;
use smolfed_engine::task::Task;

/// A model's prediction for a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Prediction {
    /// A class.
    Class {
        /// Its number.
        class: usize,
        /// The probability of each class.
        probabilities: Vec<f32>,
    },
    /// A value in its own unit.
    Value(f64),
    /// A representation.
    Representation(Vec<f32>),
}

/// The predictions of a model in integers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntegerPredictions {
    /// One per sample.
    pub predictions: Vec<Prediction>,
    /// For each sample, as many numbers as the model has outputs.
    pub scores: Vec<f32>,
    /// Number of features beyond the largest integer of their format, which replaces them.
    pub saturated: u64,
}

impl TrainedModel {
    /// Returns the scores of samples: for each, as many numbers as the model has outputs.
    ///
    /// # Errors
    /// [`InferenceError::NoPrediction`] for a hidden layer alone.
    pub fn scores(&self, samples: DatasetView<'_>) -> Result<Vec<f32>, InferenceError> {
        Ok(scores(self.task(), self.parameters()?, samples)?)
    }

    /// Returns the predictions for scores, sample by sample.
    pub fn predictions(&self, scores: &[f32]) -> impl Iterator<Item = Prediction> {
        let rows = scores.chunks_exact(self.task().output_count());
        rows.map(|row| match self.outputs() {
            Outputs::Value(scale) => Prediction::Value(scale.undo(row[0])),
            Outputs::Representation => Prediction::Representation(row.to_vec()),
            Outputs::Logit(_) | Outputs::Logits(_) => Prediction::Class {
                class: self.task().class(row),
                probabilities: probabilities(self.task(), row),
            },
        })
    }
}

/// Returns the probability of each class, with the bits of devices.
fn probabilities(task: &Task, scores: &[f32]) -> Vec<f32> {
    let mut scores = scores.to_vec();
    match task {
        Task::Linear(model) => model.probabilities_in_place(&mut scores),
        Task::Logistic(model) => {
            model.probabilities_in_place(&mut scores);
            let second = scores.first().copied().unwrap_or(0.5);
            scores = vec![1.0 - second, second];
        }
        Task::Softmax(model) => model.probabilities_in_place(&mut scores),
        Task::Encoder(model) => model.probabilities_in_place(&mut scores),
        Task::Sequential(model) => model.probabilities_in_place(&mut scores),
    }
    scores
}

#[cfg(test)]
mod tests {
    use smolfed_core::model::{Logistic, Softmax};

    use super::*;

    #[test]
    fn probabilities_are_positive_and_sum_to_one() {
        let task = Task::Softmax(Softmax::new(1, 3));
        let found = probabilities(&task, &[0.0, 1000.0, 1000.0]);
        assert_eq!(found, [0.0, 0.5, 0.5]);
        assert_eq!(task.class(&[0.0, 7.0, 7.0]), 1);
        let found = probabilities(&task, &[0.0, 0.0, 2f32.ln()]);
        for (found, expected) in found.iter().zip([0.25, 0.25, 0.5]) {
            assert!((found - expected).abs() < 1e-6, "{found}");
        }
        let task = Task::Logistic(Logistic::new(1));
        assert_eq!(probabilities(&task, &[0.0]), [0.5, 0.5]);
        assert_eq!(task.class(&[0.1]), 1);
    }
}
