//! `[server]`: how the server uses the noisy average.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::combinations::{Setting, Settings};
use crate::denoise::DenoiserKind;
use crate::denoise::flattening::SmoothAlong;

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Step size η_g on the average.
    pub learning_rate: f64,
    /// σ of the Laplacian smoothing. It requires `method = "dp-fed-ls"`.
    pub smoothing_factor: f64,
    /// Smooth weights along these axes of the input instead of along one line. The product of the
    /// axes is the number of features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<usize>,
    /// The lines along which the weights of `model.layers` are smoothed: one line, in this order of
    /// a kernel's outputs (B), inputs (C), rows (H) and columns (W), or the rows and columns of the
    /// images that they weigh ("image").
    #[serde(skip_serializing_if = "SmoothAlong::is_default")]
    #[schemars(with = "String")]
    pub smooth_along: SmoothAlong,
    /// Binary places, from 0 to 15, of the model that devices get. It is rounded to multiples of
    /// 2^−places between −2^(15−places) and 2^(15−places), which travel in 16 bits. The server
    /// keeps all bits. Without this key the model has 32 bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_places: Option<u8>,
    /// Another denoiser, for comparison.
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
