//! Features of images (`sf_image_f32`, `sf_image_i8`, `sf_image_i16`): gradients or brightness of
//! cells, by the recipe of the experiment.

use smolfed_core::{
    features::{FeatureError, Gradients, Pool},
    fixed_point::{self, FeatureScale},
    recipe::Recipe,
};

use crate::{pointer, recipe::sf_recipe, status::sf_status};

/// An image of the caller, and its recipe.
///
/// # Safety
/// The pointers are null, or their values are there.
unsafe fn given<'a>(
    recipe: *const sf_recipe,
    (pixels, count): (*const u8, usize),
) -> Result<(Recipe, u8, &'a [u8]), sf_status> {
    // SAFETY: the caller's precondition.
    let [recipe] = (unsafe { pointer::slice(recipe, 1) })? else {
        return Err(sf_status::SF_POINTER);
    };
    // SAFETY: the caller's precondition, also for the pointers of the recipe.
    unsafe {
        Ok((
            recipe.read()?,
            recipe.places,
            pointer::slice(pixels, count)?,
        ))
    }
}

/// The three planes of a colour image. Of another length, a plane has another one as well.
fn planes(pixels: &[u8]) -> [&[u8]; 3] {
    let each = pixels.len() / 3;
    let (first, rest) = pixels.split_at_checked(each).unwrap_or_default();
    let (second, third) = rest.split_at_checked(each).unwrap_or_default();
    [first, second, third]
}

/// Writes the features of an image for a model on `float`.
///
/// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
/// pixels.
///
/// # Safety
/// Preconditions: `recipe` is null or points to a recipe. `pixels` has `count` pixels, row by row.
/// A colour image has all red, then all green, then all blue ones. `features` has room for
/// `feature_count` features.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_image_f32(
    recipe: *const sf_recipe,
    pixels: *const u8,
    count: usize,
    features: *mut f32,
    feature_count: usize,
) -> sf_status {
    let write = || {
        // SAFETY: the caller's preconditions.
        let (recipe, _, pixels) = unsafe { given(recipe, (pixels, count)) }?;
        // SAFETY: the caller's preconditions.
        let features = unsafe { pointer::slice_mut(features, feature_count) }?;
        let written = match recipe {
            Recipe::Gradients { cells, planes: 1 } => {
                Gradients::new(cells).features_into([pixels], features)
            }
            Recipe::Gradients { cells, .. } => {
                Gradients::new(cells).features_into(planes(pixels), features)
            }
            Recipe::Pool { cells, planes: 1 } => Pool::new(cells).features_into(pixels, features),
            _ => return Err(sf_status::SF_RECIPE),
        };
        written.map_err(sf_status::from)
    };
    sf_status::of(write())
}

/// The memory for integer features of an image.
struct Output<X> {
    sums: (*mut u32, usize),
    features: (*mut X, usize),
}

/// Writes integer features of an image.
///
/// # Safety
/// The pointers are null, or their values are there.
unsafe fn integers<X: fixed_point::Feature>(
    recipe: *const sf_recipe,
    pixels: (*const u8, usize),
    Output {
        sums: (sums, sum_count),
        features: (features, count),
    }: Output<X>,
) -> Result<(), sf_status> {
    // SAFETY: the caller's precondition.
    let (recipe, places, pixels) = unsafe { given(recipe, pixels) }?;
    let scale = FeatureScale::new::<X>(places).map_err(|_| sf_status::SF_RECIPE)?;
    // SAFETY: the caller's precondition.
    let (sums, features) = unsafe {
        (
            pointer::slice_mut(sums, sum_count)?,
            pointer::slice_mut(features, count)?,
        )
    };
    // Exactly as many as there are features.
    let sums = sums.get_mut(..count).ok_or(sf_status::SF_MEMORY)?;
    let written = match recipe {
        Recipe::Gradients { cells, planes: 1 } => {
            Gradients::new(cells).quantised_into([pixels], scale, sums, features)
        }
        Recipe::Gradients { cells, .. } => {
            Gradients::new(cells).quantised_into(planes(pixels), scale, sums, features)
        }
        Recipe::Pool { cells, planes: 1 } => {
            Pool::new(cells).quantised_into(pixels, scale, sums, features)
        }
        _ => return Err(sf_status::SF_RECIPE),
    };
    written.map(|_saturated| ()).map_err(sf_status::from)
}

/// Writes the features of an image for a model on `int8_t`.
///
/// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
/// pixels.
///
/// # Safety
/// Preconditions: as `sf_image_f32`. `sums` has room for `sum_count` words, as many as there are
/// features.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_image_i8(
    recipe: *const sf_recipe,
    pixels: *const u8,
    count: usize,
    sums: *mut u32,
    sum_count: usize,
    features: *mut i8,
    feature_count: usize,
) -> sf_status {
    let output = Output {
        sums: (sums, sum_count),
        features: (features, feature_count),
    };
    // SAFETY: the caller's preconditions.
    sf_status::of(unsafe { integers(recipe, (pixels, count), output) })
}

/// Writes the features of an image for a model on `int16_t`.
///
/// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
/// pixels.
///
/// # Safety
/// Preconditions: as `sf_image_i8`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_image_i16(
    recipe: *const sf_recipe,
    pixels: *const u8,
    count: usize,
    sums: *mut u32,
    sum_count: usize,
    features: *mut i16,
    feature_count: usize,
) -> sf_status {
    let output = Output {
        sums: (sums, sum_count),
        features: (features, feature_count),
    };
    // SAFETY: the caller's preconditions.
    sf_status::of(unsafe { integers(recipe, (pixels, count), output) })
}

impl From<FeatureError> for sf_status {
    fn from(_: FeatureError) -> Self {
        Self::SF_LENGTH
    }
}
