//! The recipe of an experiment's features, in the form of devices that compute them.

use smolfed_core::recipe::Recipe;

use crate::config::{DataConfig, SourceConfig};
use crate::federation::Federation;
use crate::synthetic::SyntheticKind;
use crate::window_features::WindowFeatures;

/// Returns the recipe of the samples of `federation`, or `None` if the model reads them unchanged.
#[must_use]
pub fn of(config: &DataConfig, federation: &Federation) -> Option<Recipe> {
    if let Some(inputs) = federation.inputs() {
        return inputs.recipe.on_devices();
    }
    if let Some((recordings, _)) = config.window_features() {
        let channels = federation.names().columns.len();
        return of_windows(recordings.features.as_ref()?, channels);
    }
    match &config.source {
        SourceConfig::Synthetic(synthetic) => match &synthetic.kind {
            SyntheticKind::Windows(windows) => Some(Recipe::Windows {
                recipe: windows.features?,
                channels: u16::try_from(windows.channels).ok()?,
            }),
            _ => None,
        },
        SourceConfig::Stored(_) => None,
    }
}

/// Returns the recipe of features of windows, or `None` for more than 65,535 channels.
#[must_use]
pub fn of_windows(features: &WindowFeatures, channels: usize) -> Option<Recipe> {
    Some(Recipe::Windows {
        recipe: *features.recipe(),
        channels: u16::try_from(channels).ok()?,
    })
}
