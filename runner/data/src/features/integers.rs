//! Features for boards that compute them without floating point.
//!
//! Such a board rounds the exact value of a feature once. A feature in `f32` has already been
//! rounded, and may lie on the other side of a half. It then moves to the nearest `f32` that rounds
//! to the integer of the board, by a few units in its last place. Simulations in integers therefore
//! train on the bits of boards. This holds for images, and for steps of numbers that are counts,
//! with bounds that are counts.

use smolfed_core::features::{Gradients, Pool, Range, Steps};
use smolfed_core::fixed_point::{Feature, FeatureFormat, FeatureScale};

use super::error::FeaturesError;
use super::recipe::{COLOURS, FeatureRecipe, ImageFeatures, luma_of, plane};

/// Largest magnitude of counts, integers that `f32` represents exactly.
const MAX_COUNT: f32 = 16_777_216.0;

/// Moves the features of a sample so that they round to the integers of a board. `bytes` are the
/// pixels of an image.
pub(super) fn match_boards(
    recipe: &FeatureRecipe,
    format: FeatureFormat,
    sample: &[f32],
    bytes: &[u8],
    features: &mut [f32],
) -> Result<(), FeaturesError> {
    if format.is_wide() {
        match_as::<i16>(recipe, format.scale(), sample, bytes, features)
    } else {
        match_as::<i8>(recipe, format.scale(), sample, bytes, features)
    }
}

fn match_as<X: Feature>(
    recipe: &FeatureRecipe,
    scale: FeatureScale,
    sample: &[f32],
    bytes: &[u8],
    features: &mut [f32],
) -> Result<(), FeaturesError> {
    match recipe {
        FeatureRecipe::Image {
            features: kind,
            planes,
            ..
        } => {
            let mut integers = vec![X::default(); features.len()];
            of_image(*kind, *planes, scale, bytes, &mut integers)?;
            move_to(&integers, scale, features);
        }
        FeatureRecipe::Steps { steps, ranges } => {
            let mut rest = features;
            let mut integers = vec![X::default(); steps.count()];
            for (value, range) in sample.iter().zip(ranges) {
                let count = range.map_or(1, |_| steps.count());
                let Some((own, after)) = rest.split_at_mut_checked(count) else {
                    break;
                };
                if let Some(range) = range
                    && of_count(*steps, *value, range, scale, &mut integers)?
                {
                    move_to(&integers, scale, own);
                }
                rest = after;
            }
        }
    }
    Ok(())
}

fn of_image<X: Feature>(
    kind: ImageFeatures,
    planes: usize,
    scale: FeatureScale,
    pixels: &[u8],
    integers: &mut [X],
) -> Result<(), FeaturesError> {
    let mut sums = vec![0; integers.len()];
    let plane = |at| plane(pixels, planes, at);
    let written = match (kind, planes) {
        (ImageFeatures::Gradients(cells), COLOURS) => {
            let colours = [plane(0), plane(1), plane(2)];
            Gradients::new(cells).quantised_into(colours, scale, &mut sums, integers)
        }
        (ImageFeatures::Gradients(cells), _) => {
            Gradients::new(cells).quantised_into([pixels], scale, &mut sums, integers)
        }
        (ImageFeatures::Pool(cells), _) => {
            let grey = luma_of(pixels, planes);
            Pool::new(cells).quantised_into(&grey, scale, &mut sums, integers)
        }
    };
    written.map(|_saturated| ()).map_err(FeaturesError::Core)
}

/// Computes the integers of a number with bounds, if the number and both bounds are counts of a
/// sensor.
fn of_count<X: Feature>(
    steps: Steps,
    value: f32,
    range: &Range<f32>,
    scale: FeatureScale,
    integers: &mut [X],
) -> Result<bool, FeaturesError> {
    let is_count = |x: f32| x.fract() == 0.0 && x.abs() <= MAX_COUNT;
    if ![value, range.low(), range.high()].into_iter().all(is_count) {
        return Ok(false);
    }
    let counts = Range::of_counts(range.low() as i32, range.high() as i32);
    let written =
        counts.and_then(|counts| steps.quantised_into(value as i32, &counts, scale, integers));
    written.map(|_saturated| true).map_err(FeaturesError::Core)
}

/// Moves each feature that rounds to another integer.
fn move_to<X: Feature>(integers: &[X], scale: FeatureScale, features: &mut [f32]) {
    let unit = 2f32.powi(scale.fraction() as i32);
    for (feature, integer) in features.iter_mut().zip(integers) {
        // Both are exact: F is at most 15, and an integer has 16 bits.
        let (scaled, integer) = (*feature * unit, integer.get() as f32);
        // Rounds half away from zero. If both are saturated, the integers are equal.
        let rounded = X::saturated(scaled.round() as i32).get() as f32;
        if rounded < integer {
            // The smallest number that rounds up, or the one after those that round down.
            let edge = (integer - 0.5) / unit;
            *feature = if integer > 0.0 { edge } else { edge.next_up() };
        } else if rounded > integer {
            let edge = (integer + 0.5) / unit;
            *feature = if integer < 0.0 {
                edge
            } else {
                edge.next_down()
            };
        }
    }
}

#[cfg(test)]
mod tests;
