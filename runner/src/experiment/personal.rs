//! Models of a device's own, settled before the run.

use std::num::NonZeroU32;

use smolfed_core::params::Penalty;
use smolfed_core::personal::{Effort, PmtlUpdate};

use super::{ExperimentError, at_least_one, number, out_of_range};
use crate::config::{
    Config, FineTuneKind, Method, NoiseScale, NoiseTime, PmtlUpdateName, PrivatePart, Trust,
};
use crate::personal::evaluate::Extra;
use crate::personal::{FineTune, PersonalKind, PersonalPlan};
use crate::privacy::event::Sampling;
use crate::task::Task;

/// λ where none is given.
const STRENGTH: f64 = 0.1;
/// Passes of fine-tuning where none are given.
const FINE_TUNE_EPOCHS: u32 = 5;
/// Devices whose own models are evaluated where no number is given.
const MOST_DEVICES: u32 = 1000;

/// λ of `pmtl` and `fedprox`.
pub(super) fn strength(config: &Config) -> Result<Penalty, ExperimentError> {
    let lambda = config.personalise.lambda.unwrap_or(STRENGTH);
    number("personalise.lambda", lambda, Penalty::new)
}

/// What the method does on a device; `None` if devices keep no models.
pub(super) fn plan(config: &Config, task: &Task) -> Result<Option<PersonalPlan>, ExperimentError> {
    let personalise = &config.personalise;
    if !matches!(
        config.method,
        Method::DpFed | Method::DpFedLs | Method::Fedprox
    ) {
        for (key, value) in [
            ("train.proximal", config.train.proximal),
            ("train.gradient_smoothing", config.train.gradient_smoothing),
        ] {
            if value != 0.0 {
                let expected = format!("0 with method \"{}\"", config.method.name());
                return Err(out_of_range(key, value, &expected));
            }
        }
    }
    let effort = match personalise.local_steps {
        None => Effort::Epochs(config.train.epochs),
        Some(steps) => {
            at_least_one("personalise.local_steps", steps)?;
            Effort::Steps(NonZeroU32::new(steps).unwrap_or(NonZeroU32::MIN))
        }
    };
    let parameters = task.parameter_count();
    let (kind, shared) = match config.method {
        Method::DpFed
        | Method::DpFedLs
        | Method::Fedprox
        | Method::Fedsc
        | Method::FedavgSc
        | Method::CentralSc => return Ok(None),
        Method::Pmtl => {
            let update = match personalise.update.unwrap_or_default() {
                PmtlUpdateName::FromGlobal => PmtlUpdate::FromGlobal,
                PmtlUpdateName::AsPrinted => PmtlUpdate::AsPrinted,
                PmtlUpdateName::MeanOverAll => PmtlUpdate::MeanOverAll,
            };
            (PersonalKind::Pmtl(update), parameters)
        }
        Method::PpSgd => {
            if matches!(task, Task::Encoder(_)) {
                return Err(ExperimentError::Contradiction {
                    first: "method",
                    second: "model.hidden",
                    advice: "\"pp-sgd\" adds an offset to a model without a hidden layer; use \
                             \"pmtl\" or \"dpfedmtl\"",
                });
            }
            let ratio = personalise.ratio.unwrap_or(1.0);
            if !(0.0..=1000.0).contains(&ratio) {
                let expected = "from 0 to 1000";
                return Err(out_of_range("personalise.ratio", ratio, expected));
            }
            let ratio = ratio as f32;
            (PersonalKind::PpSgd { ratio }, parameters)
        }
        Method::Dpfedmtl => {
            let each_step = each_step(config)?;
            (PersonalKind::Split { each_step }, shared(config, task)?)
        }
        Method::Local => (PersonalKind::Local, 0),
    };
    Ok(Some(PersonalPlan {
        kind,
        effort,
        pull: strength(config)?,
        shared,
        parameters,
    }))
}

/// Parameters that are shared with `dpfedmtl`.
fn shared(config: &Config, task: &Task) -> Result<usize, ExperimentError> {
    let private = config.personalise.private.unwrap_or_default();
    let tensors = task.tensors();
    let lengths = tensors.as_slice();
    let kept = match private {
        PrivatePart::Head if !matches!(task, Task::Encoder(_)) => {
            return Err(ExperimentError::Missing {
                key: "model.hidden",
                purpose: "the units of the layer that \"dpfedmtl\" shares below the private head (or set \
                          `personalise.private` to \"biases\")",
            });
        }
        PrivatePart::Head => 2,
        PrivatePart::Biases => 1,
        PrivatePart::Nothing => 0,
    };
    Ok(lengths.iter().rev().skip(kept).sum())
}

/// Whether each local step is clipped and gets noise.
fn each_step(config: &Config) -> Result<bool, ExperimentError> {
    if config.personalise.noise.unwrap_or_default() == NoiseTime::EachRound {
        return Ok(false);
    }
    let contradiction = |second, advice| {
        Err(ExperimentError::Contradiction {
            first: "personalise.noise",
            second,
            advice,
        })
    };
    if config.privacy.trust != Trust::Local {
        return contradiction(
            "privacy.trust",
            "noise in each local step is the device's own: set `privacy.trust` to \"local\"",
        );
    }
    if config.personalise.local_steps.is_none() {
        return contradiction(
            "personalise.local_steps",
            "each step is a release, so that their number must be given",
        );
    }
    if config.privacy.clip_norm.is_none() {
        return contradiction(
            "privacy.clip_norm",
            "each step clips the shared gradient: give its bound",
        );
    }
    Ok(true)
}

/// Releases of a device in a round: one update, as many steps as get noise, or nothing.
pub(super) fn releases(config: &Config, plan: Option<&PersonalPlan>) -> u32 {
    match plan.map(|plan| plan.kind) {
        Some(PersonalKind::Local) => 0,
        Some(PersonalKind::Split { each_step: true }) => {
            config.personalise.local_steps.unwrap_or(1)
        }
        _ => 1,
    }
}

/// What a configured noise multiplier is multiplied by: 1, or the paper's 2K/M (papers.md D2).
pub(super) fn noise_scale(config: &Config, sampling: Sampling) -> Result<f64, ExperimentError> {
    let is_printed = config.method == Method::Dpfedmtl
        && config.personalise.noise_scale == Some(NoiseScale::AsPrinted);
    if !is_printed {
        return Ok(1.0);
    }
    let refuse = |first, advice| {
        Err(ExperimentError::Contradiction {
            first,
            second: "personalise.noise_scale",
            advice,
        })
    };
    if config.privacy.noise_multiplier.is_none() {
        return refuse(
            "privacy",
            "the paper's scale multiplies its sigma: give `privacy.noise_multiplier`, and neither an epsilon \
             nor a noise std",
        );
    }
    if config.privacy.trust != Trust::Local {
        return refuse(
            "privacy.trust",
            "the paper's scale is that of each device's own noise: set `privacy.trust` to \"local\"",
        );
    }
    Ok(2.0 * sampling.sampling_rate().unwrap_or(1.0))
}

/// What the privacy statement must say about models of a device's own.
pub(super) fn notes(config: &Config, plan: Option<&PersonalPlan>) -> Vec<String> {
    let Some(plan) = plan else {
        return Vec::new();
    };
    if plan.kind == PersonalKind::Local {
        return vec!["Each device trains by itself and sends nothing.".to_owned()];
    }
    let mut notes = Vec::new();
    if plan.state_length() > 0 {
        notes.push(
            "Each device keeps a model of its own. Epsilon bounds what all the others learn of a device, \
         from everything that is shared and from their own models together (billboard privacy). It does \
         not cover the device's own model, which must stay on the device."
                .to_owned(),
        );
    }
    if config.method == Method::Dpfedmtl
        && config.personalise.noise_scale == Some(NoiseScale::AsPrinted)
    {
        notes.push(
            "The noise is scaled as DPFedMTL prints it, S = 2CK/M; its mean over a cohort has \
             sensitivity 2C/K, and one upload 2C. This epsilon is that of the noise that is really \
             there."
                .to_owned(),
        );
    }
    notes
}

/// Training beyond the rounds for the last evaluation of devices.
pub(super) fn extra(
    config: &Config,
    task: &Task,
    plan: Option<&PersonalPlan>,
    sampling: Sampling,
) -> Result<Extra, ExperimentError> {
    let personalise = &config.personalise;
    if config.method.is_contrastive() {
        // Heads on the encoder are trained instead.
        return Ok(Extra {
            fine_tune: None,
            alone: None,
        });
    }
    let kind = personalise.fine_tune.unwrap_or_default();
    let lambda = personalise.fine_tune_lambda.unwrap_or(STRENGTH);
    let lambda = number("personalise.fine_tune_lambda", lambda, Penalty::new)?;
    let needs_softmax = matches!(kind, FineTuneKind::SymmetrisedKl | FineTuneKind::Ewc);
    if needs_softmax && !matches!(task, Task::Softmax(_)) {
        return Err(ExperimentError::Contradiction {
            first: "personalise.fine_tune",
            second: "model.kind",
            advice: "\"symmetrised-kl\" and \"ewc\" are for softmax models without a hidden layer; use \
                     \"mean-regularised\"",
        });
    }
    let objective = match kind {
        FineTuneKind::None => None,
        FineTuneKind::Plain => Some(FineTune::Plain),
        FineTuneKind::MeanRegularised => Some(FineTune::MeanRegularised(lambda)),
        FineTuneKind::SymmetrisedKl => Some(FineTune::SymmetrisedKl(lambda)),
        FineTuneKind::Ewc => Some(FineTune::Ewc(lambda)),
    };
    let epochs = personalise.fine_tune_epochs.unwrap_or(FINE_TUNE_EPOCHS);
    at_least_one("personalise.fine_tune_epochs", epochs)?;
    // As much as a device trains in the run, on average.
    let rounds = f64::from(config.rounds) * sampling.sampling_rate().unwrap_or(1.0);
    let times = |work: u32| (rounds * f64::from(work)).round().max(1.0) as u32;
    let alone = match plan.map(|plan| plan.effort) {
        Some(Effort::Steps(steps)) => {
            Effort::Steps(NonZeroU32::new(times(steps.get())).unwrap_or(steps))
        }
        Some(Effort::Epochs(_)) | None => Effort::Epochs(times(config.train.epochs)),
    };
    let is_alone = plan.is_some_and(|plan| plan.kind == PersonalKind::Local);
    Ok(Extra {
        fine_tune: objective.map(|objective| (objective, epochs)),
        alone: (!is_alone).then_some(alone),
    })
}

/// Devices that are evaluated, at most.
pub(super) fn most_devices(config: &Config) -> Result<u32, ExperimentError> {
    let most = config.personalise.evaluate_devices.unwrap_or(MOST_DEVICES);
    at_least_one("personalise.evaluate_devices", most)?;
    Ok(most)
}
