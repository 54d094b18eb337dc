//! Recipes of features from `smolfed data recipe --c` (`sf_recipe`), and the scales and ranges of
//! the features of windows.

use smolfed_core::recipe::Recipe;

use crate::{pointer, status::sf_status};

/// A feature of a window as an integer: (feature - offset) · multiplier / 2^shift, rounded to the
/// nearest integer, halves away from zero, and saturated.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sf_scale {
    /// Subtracted from the feature.
    pub offset: i32,
    /// From 1 to 65,535.
    pub multiplier: u16,
    /// At most 47.
    pub shift: u8,
}

/// A feature of a window as a `float`: (feature - mean) / std of a feature between low and high,
/// computed in `double`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sf_range {
    /// Smaller features count as this.
    pub low: f64,
    /// Larger features count as this.
    pub high: f64,
    /// Subtracted from the feature.
    pub mean: f64,
    /// Not 0.
    pub std: f64,
}

/// The computation of features. `smolfed data recipe experiment.toml --c` writes one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sf_recipe {
    /// The recipe as docs/protocol.md encodes it.
    pub bytes: *const u8,
    /// Bytes of the recipe.
    pub byte_count: usize,
    /// One for each feature of a window of an integer model. Null otherwise.
    pub scales: *const sf_scale,
    /// One for each feature of a window of a `float` model. Null otherwise.
    pub ranges: *const sf_range,
    /// Every so many rows of a window are read, at least 1.
    pub every: u16,
    /// Binary places of integer features.
    pub places: u8,
    /// Whether a `float` model reads features in whole counts. Integer models ignore it, because
    /// their features always are whole counts.
    pub is_in_counts: bool,
}

impl sf_recipe {
    /// The bytes of the recipe.
    ///
    /// # Safety
    /// At `bytes` are `byte_count` bytes for as long as they are in use.
    pub(crate) unsafe fn bytes<'a>(&self) -> Result<&'a [u8], sf_status> {
        // SAFETY: the caller's precondition.
        unsafe { pointer::slice(self.bytes, self.byte_count) }
    }

    /// The recipe.
    ///
    /// # Safety
    /// Those of [`Self::bytes`].
    pub(crate) unsafe fn read(&self) -> Result<Recipe, sf_status> {
        // SAFETY: the caller's precondition.
        let bytes = unsafe { self.bytes() }?;
        Recipe::read(bytes).ok_or(sf_status::SF_RECIPE)
    }
}
