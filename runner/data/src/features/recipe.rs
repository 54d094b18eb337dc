//! The computation of the fixed features of one sample: features of an image, or steps of numbers.

use std::borrow::Cow;

use smolfed_core::features::{Cells, Gradients, Pool, Range, Steps};
use smolfed_core::recipe::Recipe;

use super::error::FeaturesError;

/// Channels of a colour image.
pub(super) const COLOURS: usize = 3;

/// The computation of the features of one sample.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureRecipe {
    /// Features of an image.
    Image {
        /// The kind of features.
        features: ImageFeatures,
        /// Planes of the image: 1, or 3 for a colour image.
        planes: usize,
        /// Levels of 8 bits in a unit of a pixel: 1, or 255 if pixels are from 0 to 1.
        levels: f32,
    },
    /// Features of numbers.
    Steps {
        /// Number of steps for each number.
        steps: Steps,
        /// The bounds of each value of a sample. `None` for an unchanged value.
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

impl ImageFeatures {
    /// Returns the cells of the image.
    #[must_use]
    pub const fn cells(self) -> Cells {
        match self {
            Self::Gradients(cells) | Self::Pool(cells) => cells,
        }
    }

    pub(super) const fn count(self) -> usize {
        match self {
            Self::Gradients(cells) => Gradients::new(cells).feature_count(),
            Self::Pool(cells) => Pool::new(cells).feature_count(),
        }
    }
}

impl FeatureRecipe {
    /// Creates the recipe of images with these axes.
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

    /// Returns the recipe in the form of devices that compute the features. `None` if it has more
    /// values than this form allows.
    #[must_use]
    pub fn on_devices(&self) -> Option<Recipe> {
        match self {
            Self::Image {
                features, planes, ..
            } => {
                let planes = u8::try_from(*planes).ok()?;
                Some(match *features {
                    ImageFeatures::Gradients(cells) => Recipe::Gradients { cells, planes },
                    ImageFeatures::Pool(cells) => Recipe::Pool { cells, planes },
                })
            }
            Self::Steps { steps, ranges } => Recipe::steps(*steps, ranges),
        }
    }

    /// Returns the pixels of an image in the range of a camera, from 0 to 255. Features of numbers
    /// have none.
    ///
    /// # Errors
    /// The errors of [`compute`](Self::compute).
    pub fn pixels(&self, sample: &[f32]) -> Option<Result<Vec<u8>, FeaturesError>> {
        match self {
            Self::Image { levels, .. } => {
                let mut bytes = Vec::with_capacity(sample.len());
                Some(read_pixels(sample, *levels, &mut bytes).map(|()| bytes))
            }
            Self::Steps { .. } => None,
        }
    }

    /// Returns a description of the features: `gradients of cells of 4 × 4 pixels`.
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

    /// Returns the name of the kind in files.
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

    /// Returns the number of features of a sample.
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

    /// Returns the names of the features of values with these names: `age_0`, `age_1`. Empty for an
    /// image.
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

    /// Writes the features of a sample, in which NaN are missing values. `bytes` is working memory.
    ///
    /// # Errors
    /// [`FeaturesError`] for a pixel that is missing or does not have 8 bits.
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
                read_pixels(sample, *levels, bytes)?;
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

/// Reads the levels of an image's pixels.
fn read_pixels(sample: &[f32], levels: f32, bytes: &mut Vec<u8>) -> Result<(), FeaturesError> {
    bytes.clear();
    for (at, pixel) in sample.iter().enumerate() {
        let value = *pixel;
        if value.is_nan() {
            return Err(FeaturesError::NoPixel { at });
        }
        let level = byte(value, levels);
        bytes.push(level.ok_or(FeaturesError::Pixel { at, value })?);
    }
    Ok(())
}

impl ImageFeatures {
    fn compute(
        self,
        pixels: &[u8],
        planes: usize,
        features: &mut [f32],
    ) -> Result<(), FeaturesError> {
        let plane = |at| plane(pixels, planes, at);
        let written = match (self, planes) {
            (Self::Gradients(cells), COLOURS) => {
                Gradients::new(cells).features_into([plane(0), plane(1), plane(2)], features)
            }
            (Self::Gradients(cells), _) => Gradients::new(cells).features_into([pixels], features),
            (Self::Pool(cells), _) => {
                Pool::new(cells).features_into(&luma_of(pixels, planes), features)
            }
        };
        written.map_err(FeaturesError::Core)
    }
}

/// Returns a plane of an image.
pub(super) fn plane(pixels: &[u8], planes: usize, at: usize) -> &[u8] {
    let size = pixels.len() / planes;
    &pixels[at * size..(at + 1) * size]
}

/// Returns the brightness of each pixel of an image.
pub(super) fn luma_of(pixels: &[u8], planes: usize) -> Cow<'_, [u8]> {
    if planes != COLOURS {
        return Cow::Borrowed(pixels);
    }
    let plane = |at| plane(pixels, planes, at);
    let colours = plane(0).iter().zip(plane(1)).zip(plane(2));
    let levels = colours.map(|((red, green), blue)| luma([*red, *green, *blue]));
    Cow::Owned(levels.collect())
}

/// Returns the brightness of a pixel, in integers.
fn luma([red, green, blue]: [u8; COLOURS]) -> u8 {
    let sum = 77 * u32::from(red) + 150 * u32::from(green) + 29 * u32::from(blue);
    // The weights add up to 256.
    (sum >> 8) as u8
}

/// Returns the level of a pixel. `None` if it is missing, beyond 8 bits or, if a unit is one level,
/// not an integer.
fn byte(pixel: f32, levels: f32) -> Option<u8> {
    let level = (pixel * levels).round();
    let is_whole = levels > 1.0 || level.to_bits() == pixel.abs().to_bits();
    let is_level = (0.0..=255.0).contains(&level) && is_whole;
    is_level.then_some(level as u8)
}
