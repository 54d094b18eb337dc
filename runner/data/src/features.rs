//! Fixed features of samples, by the code that runs on devices: [`smolfed_core::features`].
//!
//! [`FeatureKind`] is the content of `[features]`. [`FeatureRecipe`] adds the shape of the samples,
//! and is sufficient for a new sample. Features are computed once, when data are read, on all
//! cores. They take four bytes each, and the original pixels are dropped.

mod error;
mod integers;
mod recipe;

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use smolfed_core::features::{Cells, Range, Steps};
use smolfed_core::fixed_point::FeatureFormat;

use crate::column::{Encoding, FeatureColumn};
use crate::constants::Bounds;
use crate::dataset::Dataset;
use crate::preparation::{ColumnMap, Fill, NumberMap};

pub use error::FeaturesError;
pub use recipe::{FeatureRecipe, ImageFeatures};

/// The kind of features of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureKind {
    /// Histograms of an image's gradients.
    Gradients {
        /// Pixels of a cell's side.
        cell: usize,
    },
    /// The brightness of an image's cells.
    Pool {
        /// Pixels of a cell's side.
        cell: usize,
    },
    /// A piecewise-linear encoding of each number and each part of a time. Categories are
    /// unchanged.
    Steps {
        /// Number of steps for each number.
        steps: Steps,
        /// Documented bounds of the numbers.
        bounds: Bounds,
    },
}

/// Suggested number of cells along the shorter side of an image, and the smallest cell.
const SUGGESTED_CELLS: usize = 7;
const SMALLEST_CELL: usize = 2;

impl FeatureKind {
    /// Returns the suggestion for images with these axes and largest pixel: gradients of 7 cells
    /// along the shorter side. `None` for other samples, and for images of fewer than two cells.
    #[must_use]
    pub fn suggested(axes: &[usize], maximum: Option<f32>) -> Option<Self> {
        let side = *axes.iter().rev().take(2).min()?;
        let cell = (side / SUGGESTED_CELLS).max(SMALLEST_CELL);
        let is_image = FeatureRecipe::of_image(axes, cell, 1.0, ImageFeatures::Gradients).is_ok();
        let is_of_bytes =
            |maximum: f32| maximum <= 1.0 || maximum.fract() == 0.0 && maximum <= 255.0;
        let fits = maximum.is_some_and(is_of_bytes) && is_image && side >= 2 * cell;
        fits.then_some(Self::Gradients { cell })
    }
}

/// The inputs of features.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// Number of values of a sample.
    pub count: usize,
    /// Lengths of the axes of a sample that is a grid, slowest first. Empty otherwise.
    pub axes: Vec<usize>,
    /// The names of the values, if they have names.
    pub names: Vec<String>,
    /// The computation of the features.
    pub recipe: FeatureRecipe,
    /// The largest possible length of the features of a sample.
    pub max_length: f64,
    /// Number of values of each column beyond their bounds, over all samples. Private.
    pub(super) beyond: Vec<u64>,
}

impl Inputs {
    /// Returns the map of each value before the features are computed: the identity.
    pub(super) fn columns(&self) -> Vec<ColumnMap> {
        let map = match self.recipe {
            FeatureRecipe::Image { .. } => ColumnMap::AS_IT_IS,
            FeatureRecipe::Steps { .. } => ColumnMap::Number(NumberMap {
                missing: Some(Fill::Open),
                ..NumberMap::AS_IT_IS
            }),
        };
        vec![map; self.count]
    }
}

/// Returns the computation of the features of the samples of `data`.
fn recipe_of(kind: &FeatureKind, data: &Dataset) -> Result<FeatureRecipe, FeaturesError> {
    let (cell, of_cells): (usize, fn(Cells) -> ImageFeatures) = match kind {
        FeatureKind::Gradients { cell } => (*cell, ImageFeatures::Gradients),
        FeatureKind::Pool { cell } => (*cell, ImageFeatures::Pool),
        FeatureKind::Steps { steps, bounds } => {
            let (width, columns) = (data.feature_count(), &data.names().columns);
            let ranges = ranges(width, columns, bounds)?;
            return Ok(FeatureRecipe::Steps {
                steps: *steps,
                ranges,
            });
        }
    };
    let levels = match data.maximum() {
        Some(maximum) if maximum <= 1.0 => 255.0 / maximum,
        _ => 1.0,
    };
    FeatureRecipe::of_image(data.axes(), cell, levels, of_cells)
}

/// Returns the number of values of each column beyond their bounds. Empty without bounds.
fn beyond(recipe: &FeatureRecipe, data: &Dataset) -> Vec<u64> {
    let FeatureRecipe::Steps { ranges, .. } = recipe else {
        return Vec::new();
    };
    let is_beyond = |range: &Option<Range<f32>>, value: f32| {
        range.is_some_and(|range| !(range.low()..=range.high()).contains(&value))
    };
    let mut counts = data.features().count(ranges, is_beyond);
    for place in data.missing() {
        let column = place % ranges.len();
        // The placeholder of an unfilled value does not count.
        counts[column] -= u64::from(is_beyond(&ranges[column], data.features().get(*place)));
    }
    counts
}

/// Returns the largest length of features. Roots of shares have at most half the root of their
/// number, each step at most ½, and the categories of a column at most 1 together.
fn max_length(recipe: &FeatureRecipe, columns: &[FeatureColumn]) -> f64 {
    let squares = match recipe {
        FeatureRecipe::Image { features, .. } => features.count() as f64 / 4.0,
        FeatureRecipe::Steps { steps, ranges } => {
            let numbers = ranges.iter().flatten().count();
            let is_category =
                |column: &&FeatureColumn| matches!(column.encoding, Encoding::Categories(_));
            let categories = columns.iter().filter(is_category).count();
            (numbers * steps.count()) as f64 / 4.0 + categories as f64
        }
    };
    squares.sqrt()
}

/// Returns the bounds of each of `width` values: those of numbers, in their order.
fn ranges(
    width: usize,
    columns: &[FeatureColumn],
    bounds: &Bounds,
) -> Result<Vec<Option<Range<f32>>>, FeaturesError> {
    let is_number: Vec<bool> = match columns.is_empty() {
        true => vec![true; width],
        false => {
            let indicators = columns.iter().flat_map(FeatureColumn::indicators);
            indicators.map(|is_indicator| !is_indicator).collect()
        }
    };
    let numbers = is_number.iter().filter(|is_number| **is_number).count();
    let mut bounds = bounds.expand(numbers)?.into_iter();
    let range = |[low, high]: [f64; 2]| {
        Range::new(low as f32, high as f32).map_err(|_| FeaturesError::Bounds { low, high })
    };
    let ranges = is_number.into_iter().map(|is_number| match is_number {
        true => bounds.next().map(range).transpose(),
        false => Ok(None),
    });
    ranges.collect()
}

impl FeatureRecipe {
    /// Returns the features of samples of `inputs` values, of which the first is row `first`, from
    /// 0. With a format of `integers`, features round to the integers of boards.
    ///
    /// # Errors
    /// The errors of [`compute`](Self::compute), with the row.
    pub fn compute_all(
        &self,
        values: &[f32],
        inputs: usize,
        first: usize,
        integers: Option<FeatureFormat>,
    ) -> Result<Vec<f32>, FeaturesError> {
        let width = self.feature_count();
        let mut features = vec![0.0; values.len() / inputs * width];
        let mut bytes = Vec::new();
        let rows = values
            .chunks_exact(inputs)
            .zip(features.chunks_exact_mut(width));
        for (row, (values, features)) in (first..).zip(rows) {
            let computed = self.compute_for(integers, values, &mut bytes, features);
            computed.map_err(|error| error.in_row(row))?;
        }
        Ok(features)
    }

    /// Calls [`Self::compute`]. With a format of `integers`, features round to the integers of
    /// boards.
    ///
    /// # Errors
    /// The errors of [`Self::compute`].
    fn compute_for(
        &self,
        integers: Option<FeatureFormat>,
        sample: &[f32],
        bytes: &mut Vec<u8>,
        features: &mut [f32],
    ) -> Result<(), FeaturesError> {
        self.compute(sample, bytes, features)?;
        match integers {
            Some(format) => integers::match_boards(self, format, sample, bytes, features),
            None => Ok(()),
        }
    }
}

/// Replaces the values of all samples of `data` by the features of `kind`, and returns a
/// description of the original values. With a format of `integers`, features round to the integers
/// that boards compute in it.
///
/// # Errors
/// [`FeaturesError`] for samples that are not images, or have unsupported values.
pub(super) fn replace(
    data: Dataset,
    kind: &FeatureKind,
    integers: Option<FeatureFormat>,
) -> Result<(Dataset, Inputs), FeaturesError> {
    let recipe = recipe_of(kind, &data)?;
    let width = recipe.feature_count();
    let mut features = vec![0.0; data.len() * width];
    let threads = available_parallelism().map_or(1, NonZeroUsize::get);
    let rows = data.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let parts = features.chunks_mut(rows * width).enumerate();
        let workers: Vec<_> = parts
            .map(|(part, features)| {
                let (data, recipe) = (&data, &recipe);
                scope.spawn(move || of_rows(data, recipe, integers, part * rows, features))
            })
            .collect();
        let mut results = workers.into_iter().map(|worker| worker.join());
        // A panic of a worker continues on this thread.
        results
            .try_for_each(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let inputs = Inputs {
        count: data.feature_count(),
        axes: data.axes().to_vec(),
        names: data.names().features.clone(),
        max_length: max_length(&recipe, &data.names().columns),
        beyond: beyond(&recipe, &data),
        recipe,
    };
    let names = inputs.recipe.names(&inputs.names);
    Ok((data.with_features(features, width, names)?, inputs))
}

/// Writes the features of the rows from `first` on.
fn of_rows(
    data: &Dataset,
    recipe: &FeatureRecipe,
    integers: Option<FeatureFormat>,
    first: usize,
    features: &mut [f32],
) -> Result<(), FeaturesError> {
    let inputs = data.feature_count();
    let (mut sample, mut bytes) = (vec![0.0; inputs], Vec::new());
    let of_rows = features.chunks_exact_mut(recipe.feature_count());
    for (row, features) in (first..).zip(of_rows) {
        data.features().write(row * inputs, &mut sample);
        for (at, value) in sample.iter_mut().enumerate() {
            if data.is_missing(row * inputs + at) {
                *value = f32::NAN;
            }
        }
        let computed = recipe.compute_for(integers, &sample, &mut bytes, features);
        computed.map_err(|error| error.in_row(row))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
