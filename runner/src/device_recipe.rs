//! The features of an experiment as source text for firmware: in Rust, for a project of
//! `firmware-example/template/`, and in C, as plain constants.
//!
//! Firmware that computes features by these constants has the bits of the simulation. It needs
//! public constants: an experiment whose scale reads rows or waits for moments is refused.

mod c;
mod rust;
mod scales;

use smolfed_core::recipe::Recipe;
use smolfed_data::features::{FeatureRecipe, ImageFeatures};
use smolfed_data::{Federation, recipe};
use smolfed_engine::experiment::Experiment;
use smolfed_engine::tables::simulation::{ArithmeticName, FeatureType};
use smolfed_engine::task::Task;

use scales::Map;

/// Why an experiment has no recipe for firmware.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceRecipeError {
    /// The model reads samples as they are.
    #[error(
        "the experiment computes no features of windows or of images: add \
         `data.window.features`, or `[features]` with `kind = \"gradients\"`"
    )]
    NoFeatures,
    /// Brightness of colour images, which firmware computes of three planes.
    #[error("the brightness of colour images has no recipe: set `features.kind` to \"gradients\"")]
    Colours,
    /// Another model than the firmware's.
    #[error("firmware of the template trains softmax regression: leave `[model]` out")]
    Model,
    /// Constants that would tell of rows.
    #[error(
        "`data.scale` is computed from the devices' rows, and firmware needs public constants: \
         set `data.scale` to \"none\", or to {{ mean = .., std = .. }}"
    )]
    Scale,
    /// Samples that firmware does not shorten.
    #[error("firmware does not shorten samples to `data.norm_bound` = {0}: leave it out")]
    NormBound(f32),
    /// Features in integers of numbers that are no counts.
    #[error(
        "`simulation.arithmetic` is \"integer\": set `data.window.counts` to the counts of a unit, \
         so that features are computed in integers"
    )]
    NoCounts,
    /// Constants that integers do not have.
    #[error(
        "`data.scale` of feature {feature}: {reason}. In integers, the mean is a whole number, and \
         `std` is 2^(shift + {fraction}) / multiplier with a shift of at most {max_shift}"
    )]
    NotExact {
        /// The feature, from 0.
        feature: usize,
        /// What is wrong, and the nearest right one.
        reason: String,
        /// Binary places.
        fraction: u8,
        /// The largest shift.
        max_shift: u32,
    },
}

/// How firmware stores features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// As `f32`.
    Numbers,
    /// As integers.
    Integers {
        /// Of 16 bits, not of 8.
        is_wide: bool,
        /// Binary places.
        fraction: u8,
    },
}

/// What is computed of a sample.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    /// Of windows.
    Windows {
        recipe: smolfed_core::window::Recipe,
        /// Names of the channels.
        channels: Vec<String>,
        length: u32,
        step: u32,
        every: u32,
        /// The counts of a unit, if features are whole numbers.
        counts: Option<Vec<f64>>,
        maps: Vec<Map>,
    },
    /// Of images.
    Image {
        features: ImageFeatures,
        planes: usize,
    },
}

/// What firmware must know of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRecipe {
    /// The experiment's name.
    name: String,
    source: Source,
    recipe: Recipe,
    format: Format,
    feature_count: usize,
    classes: Vec<String>,
}

impl DeviceRecipe {
    /// That of an experiment on its federation.
    ///
    /// # Errors
    /// [`DeviceRecipeError`].
    pub fn new(
        experiment: &Experiment,
        federation: &Federation,
    ) -> Result<Self, DeviceRecipeError> {
        let config = experiment.config();
        let recipe = recipe::of(&config.data, federation).ok_or(DeviceRecipeError::NoFeatures)?;
        let simulation = &config.simulation;
        let format = match simulation.arithmetic {
            ArithmeticName::Integer => Format::Integers {
                is_wide: simulation.integer.features == FeatureType::I16,
                fraction: simulation.integer.fraction,
            },
            _ => Format::Numbers,
        };
        let source = source(experiment, federation, format)?;
        if !matches!(experiment.task(), Task::Softmax(_)) {
            return Err(DeviceRecipeError::Model);
        }
        let max_length = federation
            .inputs()
            .map_or(f64::INFINITY, |inputs| inputs.max_length);
        let bound = federation.norm_bound();
        if let Some(bound) = bound.filter(|bound| f64::from(*bound) < max_length) {
            return Err(DeviceRecipeError::NormBound(bound));
        }
        let count = federation.class_count().unwrap_or_default();
        let names = federation.names().classes;
        let classes = match names.len() == count {
            true => names,
            false => (0..count).map(|class| class.to_string()).collect(),
        };
        Ok(Self {
            name: config.name.clone(),
            source,
            recipe,
            format,
            feature_count: federation.feature_count(),
            classes,
        })
    }

    /// A module of a project of `firmware-example/template/`.
    #[must_use]
    pub fn rust(&self) -> String {
        rust::text(self)
    }

    /// A header of constants.
    #[must_use]
    pub fn c(&self) -> String {
        c::text(self)
    }

    /// The classes on one line.
    fn class_list(&self) -> String {
        let names = self.classes.join(", ");
        names
            .replace(|c: char| c.is_control(), " ")
            .replace("*/", "* /")
    }
}

/// What is computed, and by which constants.
fn source(
    experiment: &Experiment,
    federation: &Federation,
    format: Format,
) -> Result<Source, DeviceRecipeError> {
    if let Some(inputs) = federation.inputs() {
        return match &inputs.recipe {
            FeatureRecipe::Image {
                features: ImageFeatures::Pool(_),
                planes,
                ..
            } if *planes > 1 => Err(DeviceRecipeError::Colours),
            FeatureRecipe::Image {
                features, planes, ..
            } => Ok(Source::Image {
                features: *features,
                planes: *planes,
            }),
            FeatureRecipe::Steps { .. } => Err(DeviceRecipeError::NoFeatures),
        };
    }
    let window = experiment.config().data.window_features();
    let (recordings, _) = window.ok_or(DeviceRecipeError::NoFeatures)?;
    let computed = recordings.features.as_ref();
    let computed = computed.ok_or(DeviceRecipeError::NoFeatures)?;
    let counts = computed.counts().map(<[f64]>::to_vec);
    if format != Format::Numbers && counts.is_none() {
        return Err(DeviceRecipeError::NoCounts);
    }
    if !federation.reads().iter().all(|read| read.key() != "scale")
        || federation.private_scale().is_some()
    {
        return Err(DeviceRecipeError::Scale);
    }
    Ok(Source::Windows {
        recipe: *computed.recipe(),
        channels: federation
            .names()
            .columns
            .iter()
            .map(|column| column.name.replace(|c: char| c.is_control(), " "))
            .collect(),
        length: recordings.window,
        step: recordings.step,
        every: recordings.every,
        counts,
        maps: scales::maps(federation, format)?,
    })
}

#[cfg(test)]
mod tests;
