//! Recipe of a device's features (gradients, brightness, steps or windows) in a comparable form,
//! and its encoding in bytes for greetings and records.
//!
//! Firmware computes features with the types of [`features`](crate::features) and [`window`]. A
//! [`Recipe`] describes such a computation in up to [`MAX_RECIPE_BYTES`] bytes. A
//! [provisioning record](crate::provision) can contain the recipe of an experiment, and a device
//! sends the recipe of its firmware when a [`session`](crate::session) begins. A coordinator
//! refuses a device whose recipe differs from its experiment. A recipe does not describe scales,
//! such as the counts of a unit, or the largest length of a sample.
//!
//! ```
//! use smolfed_core::{
//!     features::Cells,
//!     recipe::{MAX_RECIPE_BYTES, Recipe},
//! };
//!
//! let cells = Cells::new(28, 28, 4)?;
//! let recipe = Recipe::Gradients { cells, planes: 1 };
//! let mut bytes = [0; MAX_RECIPE_BYTES];
//! assert_eq!(Recipe::read(recipe.write(&mut bytes)), Some(recipe));
//! assert_eq!(recipe.to_string(), "gradients of 28 × 28 pixels in cells of 4 × 4");
//! # Ok::<(), smolfed_core::features::FeatureError>(())
//! ```

use core::fmt;

use crate::bytes::{Reader, Writer};
use crate::crypto::hash;
use crate::features::{Cells, Range, Steps};
use crate::window::{self, Feature, MAX_BANDS, Measure};

/// Bytes of the longest recipe: windows with all bands.
pub const MAX_RECIPE_BYTES: usize = 8 + 2 * (MAX_BANDS + 1);

/// Separates digests of bounds from other public functions.
const LABEL: &[u8; 16] = b"smolfed bounds  ";

/// Planes of a colour image.
const COLOURS: u8 = 3;

/// The features that a device computes from its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// [`Gradients`](crate::features::Gradients) of images.
    Gradients {
        /// The image in cells.
        cells: Cells,
        /// Planes of an image: 1, or 3 for a colour image.
        planes: u8,
    },
    /// [`Pool`](crate::features::Pool) of images.
    Pool {
        /// The image in cells.
        cells: Cells,
        /// Planes of an image: 1, or 3 for a colour image.
        planes: u8,
    },
    /// [`Steps`] of numbers.
    Steps {
        /// Number of steps for each number.
        steps: Steps,
        /// Values of a sample.
        values: u16,
        /// A digest of the bounds, from [`Recipe::steps`].
        bounds: [u8; 8],
    },
    /// Features of windows.
    Windows {
        /// Recipe of each channel.
        recipe: window::Recipe,
        /// Number of channels.
        channels: u16,
    },
}

/// Codes are appended and never reused.
mod kind {
    pub(super) const GRADIENTS: u8 = 1;
    pub(super) const POOL: u8 = 2;
    pub(super) const STEPS: u8 = 3;
    pub(super) const WINDOWS: u8 = 4;
}

impl Recipe {
    /// Creates the recipe for steps of values with these bounds. A value without bounds stays as it
    /// is.
    ///
    /// The digest of the bounds is HChaCha20 from a key of zeros over the label "smolfed bounds  "
    /// and a block for each value: 1 u8, lower and upper bound `f32`, zeros, or only zeros. It is
    /// public.
    ///
    /// Returns `None` for more than 65,535 values.
    pub fn steps(steps: Steps, ranges: &[Option<Range<f32>>]) -> Option<Self> {
        let block = |range: &Option<Range<f32>>| {
            let mut block = [0; 16];
            if let Some(range) = range {
                let mut writer = Writer::new(&mut block);
                // Without the sign of a zero.
                writer.u8(1).f32(range.low() + 0.0).f32(range.high() + 0.0);
            }
            block
        };
        Some(Self::Steps {
            steps,
            values: u16::try_from(ranges.len()).ok()?,
            bounds: hash(LABEL, ranges.iter().map(block)),
        })
    }

    /// Encodes the recipe for records and greetings. `docs/protocol.md` has the layout.
    pub fn write<'a>(&self, bytes: &'a mut [u8; MAX_RECIPE_BYTES]) -> &'a [u8] {
        let mut writer = Writer::new(bytes);
        match self {
            Self::Gradients { cells, planes } => {
                write_image(writer.u8(kind::GRADIENTS), *cells, *planes);
            }
            Self::Pool { cells, planes } => write_image(writer.u8(kind::POOL), *cells, *planes),
            Self::Steps {
                steps,
                values,
                bounds,
            } => {
                let count = steps.count() as u8;
                writer.u8(kind::STEPS).u8(count).u16(*values).put(bounds);
            }
            Self::Windows { recipe, channels } => {
                // The measure has no meaning without bands.
                let has_bands = !recipe.bounds().is_empty();
                let measure = u8::from(has_bands && recipe.measure() == Measure::Amplitude);
                let features = recipe.features().map(|feature| 1 << feature as u8);
                writer
                    .u8(kind::WINDOWS)
                    .u8(measure)
                    .u16(*channels)
                    .u16(recipe.length() as u16)
                    .u8(features.fold(0, |bits, bit: u8| bits | bit))
                    .u8(recipe.bounds().len() as u8);
                for bound in recipe.bounds() {
                    writer.u16(*bound);
                }
            }
        }
        let length = writer.finish().unwrap_or_default();
        bytes.get(..length).unwrap_or_default()
    }

    /// Decodes a recipe, or returns `None` for other bytes.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let reader = &mut Reader(bytes);
        let recipe = match reader.u8()? {
            kind::GRADIENTS => {
                let (cells, planes) = read_image(reader)?;
                Self::Gradients { cells, planes }
            }
            kind::POOL => {
                let (cells, planes) = read_image(reader)?;
                Self::Pool { cells, planes }
            }
            kind::STEPS => Self::Steps {
                steps: Steps::new(reader.u8()?.into()).ok()?,
                values: reader.u16()?,
                bounds: reader.array()?,
            },
            kind::WINDOWS => read_windows(reader)?,
            _ => return None,
        };
        reader.end()?;
        Some(recipe)
    }
}

fn write_image(writer: &mut Writer<'_>, cells: Cells, planes: u8) {
    let [rows, columns, cell] = [cells.rows(), cells.columns(), cells.cell()];
    // At most MAX_SIDE.
    writer.u8(planes).u16(rows as u16).u16(columns as u16);
    writer.u16(cell as u16);
}

fn read_image(reader: &mut Reader<'_>) -> Option<(Cells, u8)> {
    let planes = reader.u8().filter(|planes| [1, COLOURS].contains(planes))?;
    let (rows, columns, cell) = (reader.u16()?, reader.u16()?, reader.u16()?);
    let cells = Cells::new(rows.into(), columns.into(), cell.into()).ok()?;
    Some((cells, planes))
}

fn read_windows(reader: &mut Reader<'_>) -> Option<Recipe> {
    let measure = match reader.u8()? {
        0 => Measure::Energy,
        1 => Measure::Amplitude,
        _ => return None,
    };
    let (channels, length) = (reader.u16()?, reader.u16()?);
    let (bits, bound_count) = (reader.u8()?, reader.u8()?);
    let (mut features, mut feature_count) = (Feature::ALL, 0);
    for feature in Feature::ALL
        .into_iter()
        .filter(|x| bits & 1 << *x as u8 != 0)
    {
        *features.get_mut(feature_count)? = feature;
        feature_count += 1;
    }
    let mut bounds = [0; MAX_BANDS + 1];
    let bounds = bounds.get_mut(..bound_count.into())?;
    for bound in bounds.iter_mut() {
        *bound = reader.u16()?;
    }
    let features = features.get(..feature_count)?;
    let has_measure = measure == Measure::Energy || bound_count > 0;
    let is_known = bits >> Feature::ALL.len() == 0 && has_measure;
    let recipe = window::Recipe::new(length.into(), features, bounds, measure).ok();
    recipe
        .filter(|_| is_known && channels > 0)
        .map(|recipe| Recipe::Windows { recipe, channels })
}

/// Writes the recipe in words: `gradients of 28 × 28 pixels in cells of 4 × 4`.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_image = |f: &mut fmt::Formatter<'_>, name, cells: &Cells, planes: u8| {
            let [rows, columns, cell] = [cells.rows(), cells.columns(), cells.cell()];
            let colour = if planes == COLOURS { "colour " } else { "" };
            let pixels = format_args!("{rows} × {columns} {colour}pixels");
            write!(f, "{name} of {pixels} in cells of {cell} × {cell}")
        };
        match self {
            Self::Gradients { cells, planes } => of_image(f, "gradients", cells, *planes),
            Self::Pool { cells, planes } => of_image(f, "brightness", cells, *planes),
            Self::Steps {
                steps,
                values,
                bounds,
            } => {
                let (count, bounds) = (steps.count(), u64::from_be_bytes(*bounds));
                write!(
                    f,
                    "{count} steps a value, {values} values, bounds {bounds:016x}"
                )
            }
            Self::Windows { recipe, channels } => {
                let length = recipe.length();
                write!(f, "windows of {length} samples, {channels} channels")?;
                for feature in recipe.features() {
                    write!(f, ", {}", feature.name())?;
                }
                if !recipe.bounds().is_empty() {
                    let measure = match recipe.measure() {
                        Measure::Energy => "energy",
                        Measure::Amplitude => "amplitude",
                    };
                    write!(f, ", {measure} of bands {:?}", recipe.bounds())?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
