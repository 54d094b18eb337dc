//! PP-SGD: a shared model, and an offset to it on each device (Bietti et al. 2022,
//! arXiv:2202.05318).
//!
//! A device predicts with the sum of both. For any model, the gradients by each equal the gradient
//! by the sum, so one pass trains both.

use smolfed_core::personal::{MAX_RATIO, Personal as OnDevice, split_step};

use super::contract::{Method, MethodProperties};
use super::personal::{Learned, Personal, PersonalModel, Personalised};
use super::setup::Setup;
use super::state::PersonalState;
use crate::check::{ExperimentError, out_of_range};

#[derive(Debug)]
struct PpSgd {
    /// Step of the offset relative to the step of the shared model.
    ratio: f32,
}

/// Builds `pp-sgd`.
pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    let properties = MethodProperties::new(setup.task()?);
    let ratio = setup.personalise.ratio.unwrap_or(1.0);
    if !(0.0..=f64::from(MAX_RATIO)).contains(&ratio) {
        return Err(out_of_range("personalise.ratio", ratio, "from 0 to 1000"));
    }
    let ratio = ratio as f32;
    let method = Personalised::new(setup, properties, PpSgd { ratio })?;
    Ok(Box::new(method))
}

impl Personal for PpSgd {
    fn model(&self) -> PersonalModel {
        PersonalModel {
            state: PersonalState::Offset,
            learning_rate_factor: Some(1.0 + self.ratio),
            on_device: Some(OnDevice::Offset { ratio: self.ratio }),
            ..PersonalModel::default()
        }
    }

    fn conclude(&self, learned: Learned<'_>, update: &mut [f32]) -> Vec<f32> {
        let Learned {
            local,
            shared,
            state,
            ..
        } = learned;
        let mut offset = state.unwrap_or_else(|| vec![0.0; local.len()]);
        split_step(&local, shared, &mut offset, self.ratio, update);
        offset
    }
}
