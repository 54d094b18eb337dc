//! What is learned: the kind of model with its sizes, and the shape of its parameters.

use smolfed_core::model::{Linear, Logistic, Model, Softmax, Tensors};

use crate::config::ModelKind;

/// A model of run-time size.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// Linear regression.
    Linear(Linear<usize>),
    /// Logistic regression.
    Logistic(Logistic<usize>),
    /// Softmax regression.
    Softmax(Softmax<usize, usize>),
}

/// Why a model does not fit the data; the text completes "`model.kind` is ..".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// Linear regression on classes.
    #[error("\"linear\", but the data have classes: use \"logistic\" or \"softmax\"")]
    ValuesNeeded,
    /// A classifier on values.
    #[error("\"{kind}\", but the data have values to predict: use \"linear\"")]
    ClassesNeeded {
        /// The kind that was asked for.
        kind: &'static str,
    },
    /// Logistic regression on more than two classes.
    #[error("\"logistic\", but the data have {classes} classes: use \"softmax\"")]
    TwoClassesNeeded {
        /// Classes of the data.
        classes: usize,
    },
}

impl Task {
    /// A model for data of `features` features and `classes` classes (`None` for values).
    ///
    /// # Errors
    /// [`TaskError`] if the kind does not fit the data.
    pub fn new(
        kind: Option<ModelKind>,
        features: usize,
        classes: Option<usize>,
    ) -> Result<Self, TaskError> {
        match (kind, classes) {
            (None | Some(ModelKind::Linear), None) => Ok(Self::Linear(Linear::new(features))),
            (None | Some(ModelKind::Softmax), Some(classes)) => {
                Ok(Self::Softmax(Softmax::new(features, classes)))
            }
            (Some(ModelKind::Logistic), Some(0..=2)) => Ok(Self::Logistic(Logistic::new(features))),
            (Some(ModelKind::Logistic), Some(classes)) => {
                Err(TaskError::TwoClassesNeeded { classes })
            }
            (Some(ModelKind::Linear), Some(_)) => Err(TaskError::ValuesNeeded),
            (Some(ModelKind::Logistic), None) => Err(TaskError::ClassesNeeded { kind: "logistic" }),
            (Some(ModelKind::Softmax), None) => Err(TaskError::ClassesNeeded { kind: "softmax" }),
        }
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> ModelKind {
        match self {
            Self::Linear(_) => ModelKind::Linear,
            Self::Logistic(_) => ModelKind::Logistic,
            Self::Softmax(_) => ModelKind::Softmax,
        }
    }

    /// Lengths of the parameter tensors: weights, then biases.
    #[must_use]
    pub fn tensors(&self) -> Tensors {
        match self {
            Self::Linear(model) => model.tensors(),
            Self::Logistic(model) => model.tensors(),
            Self::Softmax(model) => model.tensors(),
        }
    }

    /// Number of parameters.
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        self.tensors().total()
    }

    /// Features of a sample.
    #[must_use]
    pub fn feature_count(&self) -> usize {
        match self {
            Self::Linear(model) => model.feature_count(),
            Self::Logistic(model) => model.feature_count(),
            Self::Softmax(model) => model.feature_count(),
        }
    }

    /// Scores of a sample.
    #[must_use]
    pub fn output_count(&self) -> usize {
        match self {
            Self::Linear(model) => model.output_count(),
            Self::Logistic(model) => model.output_count(),
            Self::Softmax(model) => model.output_count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_choose_the_model_when_the_file_does_not() {
        assert_eq!(Task::new(None, 3, None).unwrap().kind(), ModelKind::Linear);
        let task = Task::new(None, 64, Some(10)).unwrap();
        assert_eq!(
            (task.kind(), task.parameter_count()),
            (ModelKind::Softmax, 650)
        );
        assert_eq!((task.feature_count(), task.output_count()), (64, 10));
    }

    #[test]
    fn models_that_do_not_fit_the_data_are_refused() {
        let error = |kind, classes| Task::new(Some(kind), 2, classes).unwrap_err();
        assert_eq!(error(ModelKind::Linear, Some(2)), TaskError::ValuesNeeded);
        let refused = TaskError::TwoClassesNeeded { classes: 3 };
        assert_eq!(error(ModelKind::Logistic, Some(3)), refused);
        for kind in [ModelKind::Logistic, ModelKind::Softmax] {
            assert!(matches!(error(kind, None), TaskError::ClassesNeeded { .. }));
        }
    }
}
