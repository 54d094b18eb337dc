//! DPFedMTL: shared layers below a private part of each device (Wu, Chen, Wang 2020,
//! arXiv:2011.07179, Algorithm 1).

use smolfed_core::personal::{Personal as OnDevice, difference};

use super::contract::{Method, MethodProperties};
use super::personal::{Learned, Personal, PersonalModel, Personalised};
use super::setup::Setup;
use super::state::PersonalState;
use crate::check::ExperimentError;
use crate::combinations::{Setting, Settings};
use crate::tables::personalise::{NoiseScale, NoiseTime, PrivatePart};
use crate::task::Task;
use smolfed_release::Timing;

/// Note of a statement with noise of the paper's scale.
const PRINTED_SCALE: &str = "The noise is scaled as DPFedMTL prints it, S = 2CK/M; its mean over a \
                             cohort has sensitivity 2C/K, and one upload 2C. This epsilon is for \
                             the actual noise.";

#[derive(Debug)]
struct DpFedMtl;

/// Builds `dpfedmtl`.
pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    let task = setup.task()?;
    let timing = timing(setup)?;
    let shared = shared(setup, &task)?;
    let printed_scale = printed_scale(setup)?;
    let properties = MethodProperties {
        shared_count: shared,
        shares_a_model: shared == task.parameter_count(),
        timing,
        noise_scale: printed_scale.unwrap_or(1.0),
        declared: Settings::of([(Setting::PrintedScale, printed_scale.is_some())]),
        notes: printed_scale
            .iter()
            .map(|_| PRINTED_SCALE.to_owned())
            .collect(),
        ..MethodProperties::new(task)
    };
    Ok(Box::new(Personalised::new(setup, properties, DpFedMtl)?))
}

/// Returns the number of shared parameters.
fn shared(setup: &Setup<'_>, task: &Task) -> Result<usize, ExperimentError> {
    let private = setup.personalise.private.unwrap_or_default();
    let tensors = task.tensors();
    let lengths = tensors.as_slice();
    let kept = match private {
        PrivatePart::Head if task.is_one_layer() => {
            return Err(ExperimentError::Missing {
                key: "model.hidden",
                purpose: "the units of the layer that \"dpfedmtl\" shares below the private head \
                          (or set `personalise.private` to \"biases\")",
            });
        }
        PrivatePart::Head => 2,
        PrivatePart::Biases => 1,
        PrivatePart::Nothing => 0,
    };
    let shared = lengths.iter().rev().skip(kept).sum();
    if shared == 0 {
        return Err(ExperimentError::Missing {
            key: "model.layers",
            purpose: "parameters below the private head, which \"dpfedmtl\" could share",
        });
    }
    Ok(shared)
}

/// Returns whether clipping and noise apply to each local step, or to the update of the round.
fn timing(setup: &Setup<'_>) -> Result<Timing, ExperimentError> {
    if setup.personalise.noise.unwrap_or_default() == NoiseTime::EachRound {
        return Ok(Timing::EachRound);
    }
    let missing = |key, purpose| Err(ExperimentError::Missing { key, purpose });
    let Some(steps) = setup.personalise.local_steps else {
        return missing(
            "personalise.local_steps",
            "with `personalise.noise` = \"each-step\" each step is a release, so their number must \
             be given",
        );
    };
    if setup.keys.clip_norm.is_none() {
        return missing(
            "privacy.clip_norm",
            "with `personalise.noise` = \"each-step\" each step clips the shared gradient: give \
             its bound",
        );
    }
    Ok(Timing::EachStep(steps))
}

/// Returns the paper's noise scale 2K/M, if configured (docs/papers.md, D2).
fn printed_scale(setup: &Setup<'_>) -> Result<Option<f64>, ExperimentError> {
    if setup.personalise.noise_scale != Some(NoiseScale::AsPrinted) {
        return Ok(None);
    }
    if !setup.has_noise_multiplier {
        return Err(ExperimentError::Missing {
            key: "privacy.noise_multiplier",
            purpose: "with `personalise.noise_scale` = \"as-printed\" the paper's scale multiplies \
                      its sigma: give it, and neither an epsilon nor a noise std",
        });
    }
    Ok(Some(2.0 * setup.sampling.sampling_rate().unwrap_or(1.0)))
}

impl Personal for DpFedMtl {
    fn model(&self) -> PersonalModel {
        PersonalModel {
            state: PersonalState::Rest,
            on_device: Some(OnDevice::Rest),
            ..PersonalModel::default()
        }
    }

    fn conclude(&self, learned: Learned<'_>, update: &mut [f32]) -> Vec<f32> {
        let mut local = learned.local;
        difference(&local, learned.shared, update);
        local.split_off(learned.shared.len().min(local.len()))
    }
}
