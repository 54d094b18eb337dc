//! Questions alone: devices do not train and send no updates, and the model stays unchanged.

use smolfed_core::personal::Effort;
use smolfed_core::stream::Root;
use smolfed_core::train::TrainReport;

use super::contract::{
    Assignment, EvaluationError, Figures, Learner, Method, MethodProperties, Store, Trainer, View,
};
use super::setup::Setup;
use super::state::StateError;
use super::supervised::Supervised;
use crate::check::ExperimentError;
use smolfed_data::federation::Federation;
use smolfed_release::{Contribution, Timing};

/// A model to ask devices about.
#[derive(Debug)]
struct Asked {
    supervised: Supervised,
    properties: MethodProperties,
}

/// Builds `ask`.
pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    let task = setup.task()?;
    let effort = Effort::Epochs(1);
    // Devices do not train, but those that train in integers also answer from integers.
    let arithmetic = setup.arithmetic(&task, effort, false)?;
    let supervised = Supervised::new(setup, task, effort)?.without_alone();
    let properties = MethodProperties {
        is_for_real_devices: true,
        timing: Timing::Never,
        arithmetic,
        ..MethodProperties::new(task)
    };
    Ok(Box::new(Asked {
        supervised,
        properties,
    }))
}

impl Method for Asked {
    fn properties(&self) -> &MethodProperties {
        &self.properties
    }

    fn initial(&self, root: &Root) -> Vec<f32> {
        self.supervised.initial_of(root)
    }

    fn begin<'a>(
        &'a self,
        _: &'a Federation,
        _: Option<Store<'_>>,
    ) -> Result<Box<dyn Learner + 'a>, StateError> {
        Ok(Box::new(NoTraining))
    }
}

/// Devices that do nothing.
struct NoTraining;

impl Learner for NoTraining {
    fn trainer<'a>(&'a self, _: &'a Assignment<'a>) -> Box<dyn Trainer + 'a> {
        Box::new(Self)
    }

    fn evaluate(&self, _: &View<'_>) -> Result<Figures, EvaluationError> {
        Ok(Figures::default())
    }
}

impl Trainer for NoTraining {
    fn train(
        &mut self,
        _: u32,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, String> {
        contribution.update().fill(0.0);
        Ok(TrainReport::default())
    }
}
