//! `[server]`: what the server does with the noisy average.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::server::denoise::DenoiserKind;

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Step size η_g on the average.
    pub learning_rate: f64,
    /// σ of the Laplacian smoothing; needs `method = "dp-fed-ls"`.
    pub smoothing_factor: f64,
    /// Smooth weights along these axes of the input instead of along one line; their product is the
    /// number of features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<usize>,
    /// Another denoiser, for comparison.
    #[schemars(with = "String")]
    pub denoiser: DenoiserKind,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            learning_rate: 1.0,
            smoothing_factor: 0.0,
            axes: Vec::new(),
            denoiser: DenoiserKind::default(),
        }
    }
}
