//! Fixed features of samples, by the code that runs on devices: [`smolfed_core::features`].
//!
//! [`FeatureKind`] is what `[features]` says. [`FeatureRecipe`] adds the shape of the samples, and
//! is all that a new sample needs. Features are computed once, when data are read, on all cores.
//! They take four bytes each, and the pixels that they are made of are dropped.

mod error;

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use smolfed_core::features::{Cells, Gradients, Pool, Range, Steps};

use crate::column::{Encoding, FeatureColumn};
use crate::constants::Bounds;
use crate::dataset::Dataset;
use crate::preparation::{ColumnMap, Fill, NumberMap};

pub use error::FeaturesError;

/// Channels of a colour image.
const COLOURS: usize = 3;

/// Which features are computed of a sample.
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
    /// A piecewise-linear encoding of each number and each part of a time; categories stay as they
    /// are.
    Steps {
        /// How many for each number.
        steps: Steps,
        /// Documented bounds of the numbers.
        bounds: Bounds,
    },
}

/// Cells along the shorter side of an image that are suggested, and the smallest cell.
const SUGGESTED_CELLS: usize = 7;
const SMALLEST_CELL: usize = 2;

impl FeatureKind {
    /// What is suggested for images with these axes and largest pixel: gradients of 7 cells along
    /// the shorter side. `None` for other samples, and for images of fewer than two cells.
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

/// How the features of one sample are computed.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureRecipe {
    /// Of an image.
    Image {
        /// Which features.
        features: ImageFeatures,
        /// Planes of the image: 1, or 3 of a colour image.
        planes: usize,
        /// Levels of 8 bits in a unit of a pixel: 1, or 255 where pixels are from 0 to 1.
        levels: f32,
    },
    /// Of numbers.
    Steps {
        /// How many for each number.
        steps: Steps,
        /// The bounds of each value of a sample; `None` for one that stays as it is.
        ranges: Vec<Option<Range<f32>>>,
    },
}

/// Features of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFeatures {
    /// Histograms of gradients.
    Gradients(Cells),
    /// Sums of pixels.
    Pool(Cells),
}

/// What features are made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// Values of a sample.
    pub count: usize,
    /// Lengths of the axes of a sample that is a grid, slowest first; empty otherwise.
    pub axes: Vec<usize>,
    /// The names of the values, where they have names.
    pub names: Vec<String>,
    /// How the features are computed.
    pub recipe: FeatureRecipe,
    /// The largest length that the features of a sample can have.
    pub max_length: f64,
    /// Values of each column that were beyond their bounds, of all samples; private.
    pub(super) beyond: Vec<u64>,
}

impl Inputs {
    /// What becomes of each value before the features are computed: nothing.
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

impl ImageFeatures {
    /// The image in cells.
    #[must_use]
    pub const fn cells(self) -> Cells {
        match self {
            Self::Gradients(cells) | Self::Pool(cells) => cells,
        }
    }

    const fn count(self) -> usize {
        match self {
            Self::Gradients(cells) => Gradients::new(cells).feature_count(),
            Self::Pool(cells) => Pool::new(cells).feature_count(),
        }
    }
}

impl FeatureRecipe {
    /// That of the samples of `data`.
    fn new(kind: &FeatureKind, data: &Dataset) -> Result<Self, FeaturesError> {
        let (cell, of_cells): (usize, fn(Cells) -> ImageFeatures) = match kind {
            FeatureKind::Gradients { cell } => (*cell, ImageFeatures::Gradients),
            FeatureKind::Pool { cell } => (*cell, ImageFeatures::Pool),
            FeatureKind::Steps { steps, bounds } => {
                let (width, columns) = (data.feature_count(), &data.names().columns);
                let ranges = ranges(width, columns, bounds)?;
                return Ok(Self::Steps {
                    steps: *steps,
                    ranges,
                });
            }
        };
        let levels = match data.maximum() {
            Some(maximum) if maximum <= 1.0 => 255.0 / maximum,
            _ => 1.0,
        };
        Self::of_image(data.axes(), cell, levels, of_cells)
    }

    /// That of images with these axes.
    ///
    /// # Errors
    /// [`FeaturesError`] unless they are rows and columns of one or three planes, and the cell
    /// fits.
    pub fn of_image(
        axes: &[usize],
        cell: usize,
        levels: f32,
        features: impl FnOnce(Cells) -> ImageFeatures,
    ) -> Result<Self, FeaturesError> {
        let (planes, rows, columns) = match *axes {
            [rows, columns] => (1, rows, columns),
            [planes @ (1 | COLOURS), rows, columns] => (planes, rows, columns),
            _ => return Err(FeaturesError::NoImage(axes.to_vec())),
        };
        let cells = Cells::new(rows, columns, cell).map_err(FeaturesError::Cells)?;
        Ok(Self::Image {
            features: features(cells),
            planes,
            levels,
        })
    }

    /// What is computed, in words: `gradients of cells of 4 × 4 pixels`.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Image { features, .. } => {
                let (kind, cell) = (self.kind(), features.cells().cell());
                format!("{kind} of cells of {cell} × {cell} pixels")
            }
            Self::Steps { steps, .. } => format!("{} steps of each number", steps.count()),
        }
    }

    /// The name of the kind in files.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Image {
                features: ImageFeatures::Gradients(_),
                ..
            } => "gradients",
            Self::Image {
                features: ImageFeatures::Pool(_),
                ..
            } => "pool",
            Self::Steps { .. } => "steps",
        }
    }

    /// Features of a sample.
    #[must_use]
    pub fn feature_count(&self) -> usize {
        match self {
            Self::Image { features, .. } => features.count(),
            Self::Steps { steps, ranges } => {
                let numbers = ranges.iter().flatten().count();
                ranges.len() + numbers * (steps.count() - 1)
            }
        }
    }

    /// The names of the features of values of these names: `age_0`, `age_1`. None of an image.
    #[must_use]
    pub fn names(&self, of_values: &[String]) -> Vec<String> {
        let Self::Steps { steps, ranges } = self else {
            return Vec::new();
        };
        let names = of_values.iter().zip(ranges).flat_map(|(name, range)| {
            let numbers = 0..steps.count();
            let steps = numbers.map(move |step| format!("{name}_{step}"));
            match range {
                Some(_) => steps.collect(),
                None => vec![name.clone()],
            }
        });
        names.collect()
    }

    /// The features of samples of `inputs` values, of which the first is row `first`, from 0.
    ///
    /// # Errors
    /// As [`compute`](Self::compute), with the row.
    pub fn compute_all(
        &self,
        values: &[f32],
        inputs: usize,
        first: usize,
    ) -> Result<Vec<f32>, FeaturesError> {
        let width = self.feature_count();
        let mut features = vec![0.0; values.len() / inputs * width];
        let mut bytes = Vec::new();
        let rows = values
            .chunks_exact(inputs)
            .zip(features.chunks_exact_mut(width));
        for (row, (values, features)) in (first..).zip(rows) {
            let computed = self.compute(values, &mut bytes, features);
            computed.map_err(|error| error.in_row(row))?;
        }
        Ok(features)
    }

    /// Writes the features of a sample, of which NaN are missing values. `bytes` is working memory.
    ///
    /// # Errors
    /// [`FeaturesError`] for a pixel that is missing or not of 8 bits.
    pub fn compute(
        &self,
        sample: &[f32],
        bytes: &mut Vec<u8>,
        features: &mut [f32],
    ) -> Result<(), FeaturesError> {
        match self {
            Self::Image {
                features: kind,
                planes,
                levels,
            } => {
                bytes.clear();
                for (at, pixel) in sample.iter().enumerate() {
                    let value = *pixel;
                    if value.is_nan() {
                        return Err(FeaturesError::NoPixel { at });
                    }
                    let level = byte(value, *levels);
                    bytes.push(level.ok_or(FeaturesError::Pixel { at, value })?);
                }
                kind.compute(bytes, *planes, features)
            }
            Self::Steps { steps, ranges } => {
                let mut rest = features;
                for (value, range) in sample.iter().zip(ranges) {
                    let count = range.map_or(1, |_| steps.count());
                    let Some((own, after)) = rest.split_at_mut_checked(count) else {
                        break;
                    };
                    match range {
                        Some(range) => {
                            let written = steps.features_into(*value, range, own);
                            written.map_err(FeaturesError::Core)?;
                        }
                        None if value.is_nan() => own.fill(0.0),
                        None => own.fill(*value),
                    }
                    rest = after;
                }
                Ok(())
            }
        }
    }
}

impl ImageFeatures {
    fn compute(
        self,
        pixels: &[u8],
        planes: usize,
        features: &mut [f32],
    ) -> Result<(), FeaturesError> {
        let plane = |at: usize| {
            let size = pixels.len() / planes;
            &pixels[at * size..(at + 1) * size]
        };
        let written = match (self, planes) {
            (Self::Gradients(cells), COLOURS) => {
                Gradients::new(cells).features_into([plane(0), plane(1), plane(2)], features)
            }
            (Self::Gradients(cells), _) => Gradients::new(cells).features_into([pixels], features),
            (Self::Pool(cells), COLOURS) => {
                let grey: Vec<u8> = (0..pixels.len() / COLOURS)
                    .map(|at| luma([plane(0)[at], plane(1)[at], plane(2)[at]]))
                    .collect();
                Pool::new(cells).features_into(&grey, features)
            }
            (Self::Pool(cells), _) => Pool::new(cells).features_into(pixels, features),
        };
        written.map_err(FeaturesError::Core)
    }
}

/// The brightness of a pixel, in integers.
fn luma([red, green, blue]: [u8; COLOURS]) -> u8 {
    let sum = 77 * u32::from(red) + 150 * u32::from(green) + 29 * u32::from(blue);
    // The weights add up to 256.
    (sum >> 8) as u8
}

/// The level of a pixel; `None` if it is missing, beyond 8 bits or, where a unit is one level, not
/// whole.
fn byte(pixel: f32, levels: f32) -> Option<u8> {
    let level = (pixel * levels).round();
    let is_whole = levels > 1.0 || level.to_bits() == pixel.abs().to_bits();
    let is_level = (0.0..=255.0).contains(&level) && is_whole;
    is_level.then_some(level as u8)
}

/// How many values of each column are beyond their bounds; empty without bounds.
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
        // What is there until it is filled does not count.
        counts[column] -= u64::from(is_beyond(&ranges[column], data.features().get(*place)));
    }
    counts
}

/// The largest length of features: roots of shares have that of half a root of their number, each
/// step at most ½, and the categories of a column at most 1 together.
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

/// The bounds of each of `width` values: those of numbers, in their order.
fn ranges(
    width: usize,
    columns: &[FeatureColumn],
    bounds: &Bounds,
) -> Result<Vec<Option<Range<f32>>>, FeaturesError> {
    let of_columns = columns.iter().flat_map(|column| {
        let (is_number, count) = match &column.encoding {
            Encoding::Number => (true, 1),
            Encoding::Categories(categories) => (false, categories.len()),
            Encoding::Time(parts) => (true, parts.len()),
        };
        std::iter::repeat_n(is_number, count)
    });
    let is_number: Vec<bool> = match columns.is_empty() {
        true => vec![true; width],
        false => of_columns.collect(),
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

/// The features that `kind` asks for of all samples of `data`, in the place of what they are made
/// of, and what that was.
///
/// # Errors
/// [`FeaturesError`] for samples that are no images, or have values of which no features are
/// computed.
pub(super) fn replace(
    data: Dataset,
    kind: &FeatureKind,
) -> Result<(Dataset, Inputs), FeaturesError> {
    let recipe = FeatureRecipe::new(kind, &data)?;
    let width = recipe.feature_count();
    let mut features = vec![0.0; data.len() * width];
    let threads = available_parallelism().map_or(1, NonZeroUsize::get);
    let rows = data.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let parts = features.chunks_mut(rows * width).enumerate();
        let workers: Vec<_> = parts
            .map(|(part, features)| {
                let (data, recipe) = (&data, &recipe);
                scope.spawn(move || of_rows(data, recipe, part * rows, features))
            })
            .collect();
        let mut results = workers.into_iter().map(|worker| worker.join());
        // A panic of a worker is one of this thread.
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
        let computed = recipe.compute(&sample, &mut bytes, features);
        computed.map_err(|error| error.in_row(row))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
