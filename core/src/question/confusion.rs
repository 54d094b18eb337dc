//! Confusion matrix: shares of samples by true and predicted class, starting with the predictions
//! for the first class.

use super::terms::{Dimensions, Sample, Target, count_in};

pub(super) const fn length(of: &Dimensions) -> usize {
    of.classes.saturating_mul(of.classes)
}

pub(super) fn add<F>(of: &Dimensions, sample: &Sample<F>, vector: &mut [f32]) {
    let (Target::Class(class), Some(judged)) = (sample.target, sample.judged) else {
        return;
    };
    let predicted = usize::from(judged.class);
    if predicted < of.classes {
        let row = usize::from(class).saturating_mul(of.classes);
        count_in(vector, row.saturating_add(predicted));
    }
}
