//! What the server does with the noisy sum, settled before the run.

use smolfed_core::params::LearningRate;
use smolfed_core::personal::PmtlUpdate;
use smolfed_core::smooth::LaplacianSmoothing;

use super::{ExperimentError, number, out_of_range, weighting};
use crate::config::{
    Config, DenoiserKind, Denominator, Method, PmtlUpdateName, ServerConfig, Weighting,
};
use crate::personal::{PersonalKind, PersonalPlan};
use crate::privacy::event::Sampling;
use crate::server::{Denoiser, ServerStep};
use crate::task::Task;

/// The step, with its denoiser and its denominator.
pub(super) fn server_step(
    config: &Config,
    task: &Task,
    sampling: Sampling,
    personal: Option<&PersonalPlan>,
) -> Result<ServerStep, ExperimentError> {
    let ServerConfig {
        learning_rate,
        smoothing_factor,
        axes,
        denoiser,
    } = &config.server;
    // 0 is none.
    let smoothing = LaplacianSmoothing::new(*smoothing_factor as f32).map_err(|_| {
        let wanted = "a finite number, 0 or more";
        out_of_range("server.smoothing_factor", *smoothing_factor, wanted)
    })?;
    let smoothing = (*smoothing_factor > 0.0).then_some(smoothing);
    if smoothing.is_some() && config.method == Method::DpFed {
        return Err(ExperimentError::Contradiction {
            first: "method",
            second: "server.smoothing_factor",
            advice: "use method \"dp-fed-ls\" to smooth, or a factor of 0",
        });
    }
    if smoothing.is_some() && *denoiser != DenoiserKind::None {
        return Err(ExperimentError::Contradiction {
            first: "server.denoiser",
            second: "server.smoothing_factor",
            advice: "compare them in runs of their own",
        });
    }
    if !axes.is_empty() && matches!(task, Task::Encoder(_)) {
        return Err(ExperimentError::Contradiction {
            first: "server.axes",
            second: "model.hidden",
            advice: "axes are for models whose weights are as long as a sample",
        });
    }
    let cells = axes
        .iter()
        .try_fold(1usize, |product, axis| product.checked_mul(*axis));
    if !axes.is_empty() && cells != Some(task.feature_count()) {
        return Err(ExperimentError::Range {
            key: "server.axes",
            value: format!("{axes:?}"),
            expected: format!(
                "lengths whose product is the {} features",
                task.feature_count()
            ),
        });
    }
    let denoiser = match (denoiser, smoothing) {
        (DenoiserKind::JamesStein, _) => Denoiser::JamesStein,
        (DenoiserKind::SoftThreshold, _) => Denoiser::SoftThreshold,
        (DenoiserKind::None, None) => Denoiser::None,
        (DenoiserKind::None, Some(smoothing)) => Denoiser::Laplacian {
            smoothing,
            axes: axes.clone(),
        },
    };
    let devices = f64::from(sampling.device_count());
    if config.cohort.denominator == Denominator::Realised {
        let realised = |first, advice| {
            Err(ExperimentError::Contradiction {
                first,
                second: "cohort.denominator",
                advice,
            })
        };
        if config.personalise.update == Some(PmtlUpdateName::MeanOverAll)
            && config.method == Method::Pmtl
        {
            return realised(
                "personalise.update",
                "\"mean-over-all\" divides by all devices, not by those that were drawn",
            );
        }
        if weighting::of_config(config) == Weighting::Samples {
            return realised(
                "cohort.weighting",
                "weights by \"samples\" are divided by their expected sum, not by the number drawn",
            );
        }
    }
    let over_all = PersonalKind::Pmtl(PmtlUpdate::MeanOverAll);
    let expected = match personal {
        _ if config.method == Method::CentralSc => 1.0,
        Some(plan) if plan.kind == over_all => devices,
        _ => sampling.sampling_rate().unwrap_or(1.0) * devices,
    };
    Ok(ServerStep {
        learning_rate: number("server.learning_rate", *learning_rate, LearningRate::new)?,
        denoiser,
        fixed_denominator: match config.cohort.denominator {
            Denominator::Expected => Some(expected),
            Denominator::Realised => None,
        },
    })
}
