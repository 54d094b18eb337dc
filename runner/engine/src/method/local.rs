//! Local training: each device trains separately, and nothing is shared.

use super::contract::{Method, MethodProperties};
use super::personal::{Learned, Personal, Personalised};
use super::setup::Setup;
use crate::check::ExperimentError;
use smolfed_release::Timing;

#[derive(Debug)]
struct Local;

/// Builds `local`.
pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    let properties = MethodProperties {
        shared_count: 0,
        shares_a_model: false,
        timing: Timing::Never,
        ..MethodProperties::new(setup.task()?)
    };
    Ok(Box::new(Personalised::new(setup, properties, Local)?))
}

impl Personal for Local {
    fn conclude(&self, learned: Learned<'_>, _: &mut [f32]) -> Vec<f32> {
        learned.local
    }
}
