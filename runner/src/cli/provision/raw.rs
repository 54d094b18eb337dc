//! Records for firmware that computes the features of its samples. They name the recipe, and their
//! samples are pixels.

use smolfed_core::Identity;
use smolfed_core::crypto::Key;
use smolfed_core::provision;
use smolfed_core::recipe::{MAX_RECIPE_BYTES, Recipe};
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::Policy;
use smolfed_data::dataset::DeviceBuffer;
use smolfed_data::features::FeatureRecipe;
use smolfed_data::{DataFolders, Federation, recipe};
use smolfed_engine::experiment::Experiment;
use smolfed_engine::on_samples;
use smolfed_engine::task::Task;

use super::record::{record, write};
use crate::cli::CliError;

/// Recipe and images for firmware that computes features.
pub(super) struct Raw {
    recipe: Recipe,
    images: Option<Images>,
}

/// The images of an experiment, and how their features are computed.
struct Images {
    federation: Federation,
    recipe: FeatureRecipe,
}

impl Raw {
    /// For the devices of an experiment, with their images or without samples.
    pub(super) fn new(
        experiment: &Experiment,
        federation: &Federation,
        folders: &DataFolders,
        with_data: bool,
    ) -> Result<Self, CliError> {
        let config = experiment.config();
        let refuse = |why: String| CliError::Usage(format!("`--raw`: {why}"));
        let recipe = recipe::of(&config.data, federation).ok_or_else(|| {
            let advice = "Add `[features]`, or leave `--raw` out";
            refuse(format!("the experiment computes no features. {advice}"))
        })?;
        let inputs = federation.inputs();
        let max_length = inputs.map_or(f64::INFINITY, |inputs| inputs.max_length);
        if let Some(bound) = federation
            .norm_bound()
            .filter(|x| f64::from(*x) < max_length)
        {
            return Err(refuse(format!(
                "firmware does not shorten samples to `data.norm_bound` = {bound}. Leave one of \
                 them out"
            )));
        }
        let images = || {
            let recipe = inputs.map(|inputs| inputs.recipe.clone());
            let recipe = recipe.filter(|recipe| matches!(recipe, FeatureRecipe::Image { .. }));
            let recipe = recipe.ok_or_else(|| {
                let advice = "Leave `--with-data` out";
                refuse(format!("records have raw samples of images only. {advice}"))
            })?;
            let data = config.data.clone().without_features();
            let federation = Federation::new(&data, folders, config.seed);
            let federation = federation.map_err(|error| CliError::Usage(error.to_string()))?;
            Ok::<_, CliError>(Images { federation, recipe })
        };
        Ok(Self {
            recipe,
            images: with_data.then(images).transpose()?,
        })
    }

    /// The record of a device.
    pub(super) fn record(
        &self,
        identity: &Identity,
        key: &Key,
        policy: &Policy,
        task: &Task,
    ) -> Result<Vec<u8>, CliError> {
        let refuse = |error: &dyn std::fmt::Display| {
            CliError::Usage(format!("device {}: {error}", identity.device))
        };
        let page = match &self.images {
            None => record(identity, key, policy, task, None),
            Some(images) => {
                let mut buffer = DeviceBuffer::default();
                let view = images.federation.device(identity.device, &mut buffer);
                on_samples!(task, view, (_model, rows) => {
                    let mut pixels = Vec::new();
                    for index in 0..rows.len() {
                        let image = images.recipe.pixels(rows.features(index)).transpose();
                        let image = image.map_err(|error| refuse(&error))?.unwrap_or_default();
                        pixels.extend(image.into_iter().map(f32::from));
                    }
                    let targets: Vec<_> = (0..rows.len()).map(|at| rows.target(at)).collect();
                    let samples = SampleSlice::new(&pixels, &targets, view.feature_count());
                    let samples = samples.map_err(|error| refuse(&error))?;
                    write(identity, key, policy, Some(&samples), view.feature_count())
                })
            }
        };
        let mut page = page.map_err(|error| refuse(&error))?;
        page.resize(page.len() + MAX_RECIPE_BYTES, 0);
        let length = provision::name_recipe(&mut page, &self.recipe);
        page.truncate(length.map_err(|error| refuse(&error))?);
        Ok(page)
    }
}
