//! Quality of a model on the samples of devices (evaluation): accuracy and loss for classes, or the
//! error for values.

use super::terms::{Dimensions, Sample, Target, count_in, divide};

/// √½: accuracy and loss have the same weight.
const HALF: f32 = core::f32::consts::FRAC_1_SQRT_2;

pub(super) const fn length(of: &Dimensions) -> usize {
    match of.classes {
        0 => 2,
        _ => 4,
    }
}

/// The first entry counts correct predictions, the third adds up losses. For values, the first adds
/// up squared errors.
pub(super) fn add<F>(bound: f32, sample: &Sample<F>, vector: &mut [f32]) {
    let Some(judged) = sample.judged else {
        return;
    };
    // NaN counts as the bound.
    let share = judged.loss / bound;
    let share = if share < 1.0 { share.max(0.0) } else { 1.0 };
    let place = match sample.target {
        Target::Class(class) => {
            if class == judged.class {
                count_in(vector, 0);
            }
            2
        }
        Target::Value(_) => 0,
    };
    if let Some(sum) = vector.get_mut(place) {
        *sum += share;
    }
}

pub(super) fn finish(of: &Dimensions, samples: f32, vector: &mut [f32]) {
    divide(vector, samples);
    let scale = if of.classes == 0 { 1.0 } else { HALF };
    for pair in vector.chunks_exact_mut(2) {
        if let [share, rest] = pair {
            // A rounded sum of shares may exceed their number.
            *share = share.min(1.0);
            *rest = (1.0 - *share) * scale;
            *share *= scale;
        }
    }
}
