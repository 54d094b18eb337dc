//! Local training: each device by itself, nothing is shared.

use super::contract::Method;
use super::personal::{Learned, Personal, Personalised};
use super::setup::Setup;
use crate::check::ExperimentError;
use crate::task::Task;
use smolfed_release::Timing;

#[derive(Debug)]
struct Local;

/// `local`.
pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    Ok(Box::new(Personalised::new(setup, setup.task()?, Local)?))
}

impl Personal for Local {
    fn shared_count(&self, _: &Task) -> usize {
        0
    }

    fn shares_a_model(&self) -> bool {
        false
    }

    fn conclude(&self, learned: Learned<'_>, _: &mut [f32]) -> Vec<f32> {
        learned.local
    }

    fn timing(&self) -> Timing {
        Timing::Never
    }
}
