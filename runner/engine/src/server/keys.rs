//! The keys of `[server]`, converted to the server's step on the noisy sum: learning rate,
//! smoothing and its axes, denoiser, grid of the model.

use smolfed_core::params::LearningRate;
use smolfed_core::smooth::LaplacianSmoothing;
use smolfed_core::wire::message::ModelGrid;

use super::{ServerStep, Treatment};
use crate::attendance::Attendance;
use crate::check::{ExperimentError, contradiction};
use crate::config::Config;
use crate::denoise::Denoiser;
use crate::denoise::flattening::{Flattenings, SmoothAlong};
use crate::method::contract::MethodProperties;
use crate::tables::cohort::Denominator;
use crate::tables::server::ServerConfig;
use crate::task::Task;

/// The numeric keys of `[server]`, parsed.
#[derive(Clone, Copy, Debug)]
pub struct ServerKeys {
    /// η_g.
    pub learning_rate: LearningRate,
    /// A_σ, or `None` for no smoothing.
    pub smoothing: Option<LaplacianSmoothing>,
    /// The grid of the model, if it has one.
    pub grid: Option<ModelGrid>,
}

impl ServerKeys {
    /// Returns the step, with its denoiser and its denominator.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn step(
        self,
        config: &Config,
        properties: &MethodProperties,
        attendance: &Attendance,
        device_count: u32,
    ) -> Result<ServerStep, ExperimentError> {
        let flattenings = flattenings(&config.server, &properties.task)?;
        let denominator = config.cohort.denominator;
        let divisor = properties.divisor(denominator, attendance, device_count);
        Ok(ServerStep {
            treatment: self.treatment(&config.server, flattenings),
            learning_rate: self.learning_rate,
            fixed_denominator: match denominator {
                Denominator::Expected | Denominator::Updates(_) => Some(divisor),
                Denominator::Realised => None,
            },
            grid: self.grid,
        })
    }

    fn treatment(self, server: &ServerConfig, flattenings: Flattenings) -> Treatment {
        // The rules refuse smoothing with another denoiser.
        if let Some(smoothing) = self.smoothing {
            return Treatment::Denoise(Denoiser::laplacian(smoothing, flattenings));
        }
        match server.denoiser.experts(flattenings) {
            Some(experts) => Treatment::Mix(experts),
            None => Treatment::Denoise(server.denoiser.denoiser()),
        }
    }
}

/// Returns the axes for smoothing the tensors.
fn flattenings(server: &ServerConfig, task: &Task) -> Result<Flattenings, ExperimentError> {
    check_axes(&server.axes, task)?;
    let along = server.smooth_along;
    if along == SmoothAlong::default() {
        return Ok(Flattenings::of_samples(&server.axes));
    }
    if !matches!(task, Task::Sequential(_)) {
        return Err(ExperimentError::Range {
            key: "server.smooth_along",
            value: format!("\"{along}\""),
            expected:
                "left out without `model.layers`; `server.axes` has the lengths of a sample's \
                       axes"
                    .to_owned(),
        });
    }
    let layout = task.layout();
    let (flattenings, advice) = match along {
        SmoothAlong::Line(order) => {
            let flattenings = Flattenings::ordered(&layout, order);
            (flattenings, "no layer is a convolution with an order")
        }
        SmoothAlong::Image => {
            let advice = "no layer is a convolution, or dense on an image";
            (Flattenings::of_images(&layout), advice)
        }
    };
    match flattenings.are_lines() {
        true => Err(contradiction("server.smooth_along", "model.layers", advice)),
        false => Ok(flattenings),
    }
}

fn check_axes(axes: &[usize], task: &Task) -> Result<(), ExperimentError> {
    if axes.is_empty() {
        return Ok(());
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
