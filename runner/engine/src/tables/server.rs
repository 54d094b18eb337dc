//! The keys of `[server]` for the use of the noisy average: learning rate, smoothing, denoiser, and
//! the model in 16 bits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::combinations::{Setting, Settings};
use crate::denoise::DenoiserKind;
use crate::denoise::flattening::SmoothAlong;

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Step size of the server, applied to the average.
    pub learning_rate: f64,
    /// σ of the Laplacian smoothing. Not with `method = "dp-fed"`.
    pub smoothing_factor: f64,
    /// Smooths weights along these axes of the input, such as `[28, 28]`, instead of treating them
    /// as a one-dimensional signal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<usize>,
    /// For `model.layers`: along one line through each tensor, ordered by a kernel's outputs (B),
    /// inputs (C), rows (H) and columns (W). `"image"`: along the rows and columns of kernels, and
    /// of the images that dense layers read.
    ///
    /// Default: `"BCHW"`.
    #[serde(skip_serializing_if = "SmoothAlong::is_default")]
    #[schemars(with = "String")]
    pub smooth_along: SmoothAlong,
    /// Sends the model in 16 bits (docs/slow-links.md#models-in-16-bits), with 0 to 15 binary
    /// places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_places: Option<u8>,
    /// `"auto"`: automatic denoising (docs/denoising.md), not with correlated noise. `"auto-step"`,
    /// `"james-stein"` and `"soft-threshold"` are for comparison.
    #[schemars(with = "String")]
    pub denoiser: DenoiserKind,
}

impl ServerConfig {
    /// The settings that it declares ([`crate::combinations`]).
    pub(crate) fn settings(&self) -> Settings {
        let is_auto = matches!(self.denoiser, DenoiserKind::Auto | DenoiserKind::AutoStep);
        Settings::of([
            (Setting::Smoothing, self.smoothing_factor > 0.0),
            (Setting::Denoiser, self.denoiser != DenoiserKind::None),
            (Setting::AutoDenoiser, is_auto),
            (Setting::Axes, !self.axes.is_empty()),
        ])
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            learning_rate: 1.0,
            smoothing_factor: 0.0,
            axes: Vec::new(),
            smooth_along: SmoothAlong::default(),
            model_places: None,
            denoiser: DenoiserKind::default(),
        }
    }
}
