//! Features of windows of sensor counts, as an accelerometer gives them (`sf_window_i8`,
//! `sf_window_f32`): scales, ranges, rows and working memory.

use smolfed_core::{
    recipe::Recipe,
    window::{self, Feature, MAX_BANDS, Scale},
};

use crate::{
    pointer,
    recipe::{sf_range, sf_recipe, sf_scale},
    status::sf_status,
};

/// The most features of a channel.
const MAX_EACH: usize = Feature::ALL.len() + MAX_BANDS;

/// The caller's pointers to a window.
#[derive(Clone, Copy)]
struct Given {
    recipe: *const sf_recipe,
    rows: *const i16,
    count: usize,
    /// The oldest row.
    first: usize,
    work: *mut u32,
    work_count: usize,
}

/// A window of counts, and how features are computed of it.
struct Window<'a> {
    recipe: window::Recipe,
    channels: usize,
    every: usize,
    rows: &'a [i16],
    first: usize,
}

impl<'a> Window<'a> {
    /// # Safety
    /// The pointers of `given` are null, or its values are there.
    unsafe fn new(given: Given) -> Result<(Self, &'a sf_recipe, &'a mut [u32]), sf_status> {
        // SAFETY: the caller's precondition.
        let [recipe] = (unsafe { pointer::slice(given.recipe, 1) })? else {
            return Err(sf_status::SF_POINTER);
        };
        // SAFETY: the caller's precondition, also for the pointers of the recipe.
        let Recipe::Windows {
            recipe: computed,
            channels,
        } = (unsafe { recipe.read() })?
        else {
            return Err(sf_status::SF_RECIPE);
        };
        let (channels, every) = (usize::from(channels), usize::from(recipe.every));
        let rows = computed.length() * every;
        if every == 0 || given.count != rows * channels || given.first >= rows {
            return Err(sf_status::SF_LENGTH);
        }
        let window = Self {
            recipe: computed,
            channels,
            every,
            // SAFETY: the caller's precondition.
            rows: unsafe { pointer::slice(given.rows, given.count) }?,
            first: given.first,
        };
        // SAFETY: the caller's precondition.
        let work = unsafe { pointer::slice_mut(given.work, given.work_count) }?;
        Ok((window, recipe, work))
    }

    /// Features of the window.
    const fn feature_count(&self) -> usize {
        self.channels * self.recipe.feature_count()
    }

    /// A sample of a channel, from the oldest row on.
    fn sample(&self, channel: usize, step: usize) -> i16 {
        let rows = self.recipe.length() * self.every;
        // Both are below the number of rows, which is not 0.
        let row = (self.first + step * self.every) % rows;
        let sample = self.rows.get(row * self.channels + channel);
        sample.copied().unwrap_or(0)
    }

    /// Calls with each feature in whole counts, channel by channel.
    fn counts(&self, work: &mut [u32], mut take: impl FnMut(usize, i32)) -> Result<(), sf_status> {
        let (each, mut counts) = (self.recipe.feature_count(), [0; MAX_EACH]);
        let counts = counts.get_mut(..each).unwrap_or_default();
        for channel in 0..self.channels {
            let sample = |_, step| self.sample(channel, step);
            let work = pointer::as_counts(work);
            let computed = self.recipe.counts_into(sample, work, counts);
            computed.map_err(|_| sf_status::SF_MEMORY)?;
            for (at, count) in counts.iter().enumerate() {
                take(channel * each + at, *count);
            }
        }
        Ok(())
    }

    /// Calls with each feature of the samples as numbers, channel by channel.
    fn numbers(&self, work: &mut [u32], mut take: impl FnMut(usize, f32)) -> Result<(), sf_status> {
        let (each, mut numbers) = (self.recipe.feature_count(), [0.0; MAX_EACH]);
        let numbers = numbers.get_mut(..each).unwrap_or_default();
        for channel in 0..self.channels {
            let sample = |_, step| f32::from(self.sample(channel, step));
            let work = pointer::as_numbers(work);
            let computed = self.recipe.features_into(sample, work, numbers);
            computed.map_err(|_| sf_status::SF_MEMORY)?;
            for (at, number) in numbers.iter().enumerate() {
                take(channel * each + at, *number);
            }
        }
        Ok(())
    }
}

/// Writes integer features of a window.
///
/// # Safety
/// The pointers are null, or their values are there.
unsafe fn integers<X>(
    given: Given,
    (features, count): (*mut X, usize),
    rounded: impl Fn(Scale, i32) -> X,
) -> Result<(), sf_status> {
    // SAFETY: the caller's precondition.
    let (window, recipe, work) = unsafe { Window::new(given) }?;
    if count != window.feature_count() {
        return Err(sf_status::SF_LENGTH);
    }
    // SAFETY: the caller's precondition. A recipe has a scale for each feature, or none.
    let (scales, features): (&[sf_scale], _) = unsafe {
        (
            pointer::slice(recipe.scales, count)?,
            pointer::slice_mut(features, count)?,
        )
    };
    let is_scale = |s: &sf_scale| Scale::new(s.offset, s.multiplier, s.shift).is_ok();
    if !scales.iter().all(is_scale) {
        return Err(sf_status::SF_RECIPE);
    }
    window.counts(work, |at, found| {
        if let (Some(feature), Some(scale)) = (features.get_mut(at), scales.get(at))
            && let Ok(scale) = Scale::new(scale.offset, scale.multiplier, scale.shift)
        {
            *feature = rounded(scale, found);
        }
    })
}

/// Writes the features of a window for a model on `int8_t`.
///
/// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
/// rows.
///
/// # Safety
/// Preconditions: `recipe` is null or points to a recipe. `rows` has `count` counts, row by row
/// with all channels. `first` is the oldest row: 0 unless the rows are a ring. `work` has room for
/// `work_count` words, as many as a window has samples of a channel, rounded up to a power of two.
/// `features` has room for `feature_count` features.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_window_i8(
    recipe: *const sf_recipe,
    rows: *const i16,
    count: usize,
    first: usize,
    work: *mut u32,
    work_count: usize,
    features: *mut i8,
    feature_count: usize,
) -> sf_status {
    let given = Given {
        recipe,
        rows,
        count,
        first,
        work,
        work_count,
    };
    let rounded = |scale: Scale, found| scale.to_i8(found).0;
    // SAFETY: the caller's preconditions.
    sf_status::of(unsafe { integers(given, (features, feature_count), rounded) })
}

/// Writes the features of a window for a model on `int16_t`.
///
/// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
/// rows.
///
/// # Safety
/// Preconditions: as `sf_window_i8`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_window_i16(
    recipe: *const sf_recipe,
    rows: *const i16,
    count: usize,
    first: usize,
    work: *mut u32,
    work_count: usize,
    features: *mut i16,
    feature_count: usize,
) -> sf_status {
    let given = Given {
        recipe,
        rows,
        count,
        first,
        work,
        work_count,
    };
    let rounded = |scale: Scale, found| scale.to_i16(found).0;
    // SAFETY: the caller's preconditions.
    sf_status::of(unsafe { integers(given, (features, feature_count), rounded) })
}

/// Writes the features of a window for a model on `float`.
///
/// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
/// rows.
///
/// # Safety
/// Preconditions: as `sf_window_i8`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_window_f32(
    recipe: *const sf_recipe,
    rows: *const i16,
    count: usize,
    first: usize,
    work: *mut u32,
    work_count: usize,
    features: *mut f32,
    feature_count: usize,
) -> sf_status {
    let given = Given {
        recipe,
        rows,
        count,
        first,
        work,
        work_count,
    };
    // SAFETY: the caller's preconditions.
    sf_status::of(unsafe { numbers(given, (features, feature_count)) })
}

/// Writes the features of a window as numbers.
///
/// # Safety
/// The pointers are null, or their values are there.
unsafe fn numbers(given: Given, (features, count): (*mut f32, usize)) -> Result<(), sf_status> {
    // SAFETY: the caller's precondition.
    let (window, recipe, work) = unsafe { Window::new(given) }?;
    if count != window.feature_count() {
        return Err(sf_status::SF_LENGTH);
    }
    // SAFETY: the caller's precondition. A recipe has a range for each feature, or none.
    let (ranges, features): (&[sf_range], _) = unsafe {
        (
            pointer::slice(recipe.ranges, count)?,
            pointer::slice_mut(features, count)?,
        )
    };
    let mut write = |at: usize, found: f32| {
        if let (Some(feature), Some(range)) = (features.get_mut(at), ranges.get(at)) {
            let found = f64::from(found).max(range.low).min(range.high);
            *feature = ((found - range.mean) / range.std) as f32;
        }
    };
    match recipe.is_in_counts {
        true => window.counts(work, |at, found| write(at, found as f32)),
        false => window.numbers(work, write),
    }
}
