//! The quality (evaluation) of a model on rows with known targets, which come in parts, in floating
//! point or in integers.

use super::error::InferenceError;
use super::input::Input;
use super::integers::Integers;
use super::model::{Outputs, TrainedModel};
use smolfed_data::constants::Affine;
use smolfed_engine::evaluation::assessment::{Assessment, Assessor};
use smolfed_engine::evaluation::samples::Tally;

/// Evaluates a model on all rows of a file.
///
/// # Errors
/// [`InferenceError`] for a file without rows, for a row that cannot be read, and for a model
/// without labels.
pub fn assess(model: &TrainedModel, input: &mut Input<'_>) -> Result<Assessment, InferenceError> {
    let scale = scale_of(model)?;
    let mut assessor = Assessor::new(model.task(), scale);
    while let Some(part) = input.next(Tally::PART)? {
        assessor.add(part.samples(), model.scores(part.samples())?);
    }
    assessor.finish().ok_or_else(|| InferenceError::Empty {
        origin: input.origin().to_owned(),
    })
}

/// Evaluates a model in integers on all rows of a file. Also returns the number of saturated
/// features.
///
/// # Errors
/// As [`assess`].
pub fn assess_integers(
    model: &Integers<'_>,
    input: &mut Input<'_>,
) -> Result<(Assessment, u64), InferenceError> {
    let scale = scale_of(model.model())?;
    let mut assessor = Assessor::new(model.model().task(), scale);
    let mut saturated = 0;
    while let Some(part) = input.next(Tally::PART)? {
        let found = model.predictions(part.samples())?;
        saturated += found.saturated;
        assessor.add(part.samples(), found.scores);
    }
    let assessment = assessor.finish().ok_or_else(|| InferenceError::Empty {
        origin: input.origin().to_owned(),
    });
    Ok((assessment?, saturated))
}

/// Returns the scale of a model's targets.
///
/// # Errors
/// [`InferenceError::NoPrediction`] for a model without labels.
pub(super) fn scale_of(model: &TrainedModel) -> Result<Affine, InferenceError> {
    match model.outputs() {
        Outputs::Representation => {
            // A hidden layer has a separate message.
            model.parameters()?;
            Err(InferenceError::NoPrediction(
                "the model is an encoder learned without labels, so it has no classes to evaluate; \
                 `smolfed predict` gives the representations",
            ))
        }
        Outputs::Value(scale) => Ok(scale),
        Outputs::Logit(_) | Outputs::Logits(_) => Ok(Affine::IDENTITY),
    }
}
