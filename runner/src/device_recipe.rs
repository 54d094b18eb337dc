//! The features of an experiment as source text for firmware: in Rust, for a project of
//! `firmware-example/template/`, and in C, as plain constants.
//!
//! Firmware that computes features by these constants has the bits of the simulation. It needs
//! public constants: an experiment whose scale reads rows or waits for moments is refused.

mod c;
mod facts;
mod rust;
mod scales;

use smolfed_data::features::{FeatureRecipe, ImageFeatures};
use smolfed_data::{Federation, recipe};
use smolfed_engine::experiment::Experiment;
use smolfed_engine::tables::simulation::{ArithmeticName, FeatureType};
use smolfed_engine::task::Task;

pub use facts::{DeviceRecipe, DeviceRecipeError};
use facts::{Format, Source};

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
