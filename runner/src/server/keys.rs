//! What the server does with the noisy sum, from the configuration.

use smolfed_core::params::LearningRate;
use smolfed_core::smooth::LaplacianSmoothing;

use super::ServerStep;
use super::denoise::{Denoiser, DenoiserKind};
use crate::config::Config;
use crate::config::check::{ExperimentError, contradiction};
use crate::config::cohort::Denominator;
use crate::config::privacy::MechanismName;
use crate::config::server::ServerConfig;
use crate::method::contract::Method;
use crate::source::attendance::Attendance;
use crate::task::Task;

/// The keys of `[server]` that are numbers, in the types that are used.
#[derive(Clone, Copy, Debug)]
pub struct ServerKeys {
    /// η_g.
    pub learning_rate: LearningRate,
    /// A_σ; `None` for no smoothing.
    pub smoothing: Option<LaplacianSmoothing>,
}

impl ServerKeys {
    /// The step, with its denoiser and its denominator.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn step(
        self,
        config: &Config,
        method: &dyn Method,
        attendance: &Attendance,
        device_count: u32,
    ) -> Result<ServerStep, ExperimentError> {
        let auto = config.server.denoiser.experts(&config.server.axes);
        if auto.is_some() && config.privacy.mechanism == MechanismName::Correlated {
            return Err(contradiction(
                "server.denoiser",
                "privacy.mechanism",
                "\"auto\" takes the noise of each round as independent: use another denoiser",
            ));
        }
        let devices = f64::from(device_count);
        let expected = method.denominator(attendance.expected_size(), devices);
        Ok(ServerStep {
            denoiser: self.denoiser(&config.server, method.task())?,
            auto,
            learning_rate: self.learning_rate,
            fixed_denominator: match config.cohort.denominator {
                Denominator::Expected => Some(expected),
                Denominator::Realised => None,
            },
        })
    }

    fn denoiser(self, server: &ServerConfig, task: &Task) -> Result<Denoiser, ExperimentError> {
        if self.smoothing.is_some() && server.denoiser != DenoiserKind::None {
            return Err(contradiction(
                "server.denoiser",
                "server.smoothing_factor",
                "compare them in separate runs",
            ));
        }
        check_axes(&server.axes, task)?;
        Ok(match self.smoothing {
            None => server.denoiser.denoiser(),
            Some(smoothing) => Denoiser::laplacian(smoothing, server.axes.clone()),
        })
    }
}

fn check_axes(axes: &[usize], task: &Task) -> Result<(), ExperimentError> {
    if axes.is_empty() {
        return Ok(());
    }
    if let Some(key) = task.nonlinear_key() {
        return Err(contradiction(
            "server.axes",
            key,
            "axes are for models whose weights are as long as a sample",
        ));
    }
    let cells = axes
        .iter()
        .try_fold(1usize, |product, axis| product.checked_mul(*axis));
    let features = task.feature_count();
    if cells == Some(features) {
        return Ok(());
    }
    Err(ExperimentError::Range {
        key: "server.axes",
        value: format!("{axes:?}"),
        expected: format!("lengths whose product is the {features} features"),
    })
}
