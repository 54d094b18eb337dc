//! Predictions with the model that a device has between rounds (`sf_predict_f32`,
//! `sf_probabilities_f32`), its round, and its parameters.

use crate::{
    client::{Client, Feature, Score},
    device::{sf_device, with},
    pointer,
    status::sf_status,
};

/// Tells the round whose model the device has, or the version on a device that only infers.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `round` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_model_round(device: *mut sf_device, round: *mut u32) -> sf_status {
    let found = |client: &mut dyn Client| {
        let model = client.model_round().ok_or(sf_status::SF_NO_MODEL)?;
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(round, model) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, found) }
}

/// Lends the parameters of the model, or the bits of its integer weights, in the order of
/// docs/inference.md. They stay until the next
/// call with the device.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `parameters` and `count` are null or have room for the answers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_model_parameters(
    device: *mut sf_device,
    parameters: *mut *const f32,
    count: *mut usize,
) -> sf_status {
    let found = |client: &mut dyn Client| {
        let found = client.parameters();
        let found = found.ok_or(sf_status::SF_NO_MODEL)?;
        // SAFETY: the caller's preconditions.
        unsafe {
            pointer::answer(parameters, found.as_ptr());
            pointer::answer(count, found.len());
        }
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, found) }
}

/// Predicts a sample.
///
/// # Safety
/// Those of its callers.
unsafe fn predict<X: Feature, S: Score>(
    device: *mut sf_device,
    (features, count): (*const X, usize),
    (scores, score_count): (*mut S, usize),
    class: *mut u16,
) -> sf_status {
    let predict = |client: &mut dyn Client| {
        // SAFETY: the caller's precondition.
        let features = unsafe { pointer::slice(features, count) }?;
        // SAFETY: the caller's precondition.
        let scores = unsafe { pointer::slice_mut(scores, score_count) }?;
        let found = client.predict(X::typed(features), S::typed(scores))?;
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(class, found) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, predict) }
}

/// Writes the score of each class of a new sample, and the most likely class. A model of a value
/// writes the value as its only score, and class 0.
///
/// Interrupts: no. Longest time: a prediction (docs/targets.md).
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `features` has `count` values, `scores` has room for
/// `score_count`, and `class` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_predict_f32(
    device: *mut sf_device,
    features: *const f32,
    count: usize,
    scores: *mut f32,
    score_count: usize,
    class: *mut u16,
) -> sf_status {
    let (features, scores) = ((features, count), (scores, score_count));
    // SAFETY: the caller's preconditions.
    unsafe { predict(device, features, scores, class) }
}

/// Writes the score of each class of a new sample, and the most likely class. A model of a value
/// writes the value as its only score, and class 0. Scores are in units of 2⁻¹⁶.
///
/// Interrupts: no. Longest time: a prediction (docs/targets.md).
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `features` has `count` values, `scores` has room for
/// `score_count`, and `class` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_predict_i8(
    device: *mut sf_device,
    features: *const i8,
    count: usize,
    scores: *mut i32,
    score_count: usize,
    class: *mut u16,
) -> sf_status {
    let (features, scores) = ((features, count), (scores, score_count));
    // SAFETY: the caller's preconditions.
    unsafe { predict(device, features, scores, class) }
}

/// Writes the score of each class of a new sample, and the most likely class. A model of a value
/// writes the value as its only score, and class 0. Scores are in units of 2⁻¹⁶.
///
/// Interrupts: no. Longest time: a prediction (docs/targets.md).
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `features` has `count` values, `scores` has room for
/// `score_count`, and `class` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_predict_i16(
    device: *mut sf_device,
    features: *const i16,
    count: usize,
    scores: *mut i32,
    score_count: usize,
    class: *mut u16,
) -> sf_status {
    let (features, scores) = ((features, count), (scores, score_count));
    // SAFETY: the caller's preconditions.
    unsafe { predict(device, features, scores, class) }
}

/// Turns scores into probabilities.
///
/// # Safety
/// Those of its callers.
unsafe fn probabilities<S: Score>(
    device: *mut sf_device,
    (scores, count): (*mut S, usize),
) -> sf_status {
    let turn = |client: &mut dyn Client| {
        // SAFETY: the caller's precondition.
        let scores = unsafe { pointer::slice_mut(scores, count) }?;
        let link = client.link(S::typed(scores))?;
        S::to_probabilities(scores, link);
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, turn) }
}

/// Turns the scores of a prediction into the probability of each class, or of class 1 if there is
/// one score.
///
/// Interrupts: no. Longest time: an exponential for each score.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `scores` has `count` scores.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_probabilities_f32(
    device: *mut sf_device,
    scores: *mut f32,
    count: usize,
) -> sf_status {
    // SAFETY: the caller's preconditions.
    unsafe { probabilities(device, (scores, count)) }
}

/// Turns the scores of a prediction into the probability of each class, or of class 1 if there is
/// one score. The unit is 2⁻¹⁶: certainty is 65,536.
///
/// Interrupts: no. Longest time: an exponential for each score.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `scores` has `count` scores.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_probabilities_i32(
    device: *mut sf_device,
    scores: *mut i32,
    count: usize,
) -> sf_status {
    // SAFETY: the caller's preconditions.
    unsafe { probabilities(device, (scores, count)) }
}
