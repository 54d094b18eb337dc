//! Federated averaging: each device trains the shared model on its samples and sends the difference
//! (DP-Fed), and the server may smooth the noisy average (DP-Fed-LS, Liang et al. 2020,
//! arXiv:2005.00218, Algorithm 1).

use smolfed_core::params::Penalty;
use smolfed_core::personal::Effort;
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::TrainReport;

use super::contract::{
    Assignment, EvaluationError, Figures, Learner, Method, MethodProperties, Store, Trainer, View,
};
use super::setup::Setup;
use super::state::StateError;
use super::supervised::{Models, Supervised};
use crate::arithmetic::{Arithmetic, Buffers, Device};
use crate::check::ExperimentError;
use crate::combinations::Setting;
use smolfed_data::dataset::DeviceBuffer;
use smolfed_data::federation::Federation;
use smolfed_release::Contribution;

/// Federated averaging of a model.
#[derive(Clone, Debug)]
pub struct Averaging {
    supervised: Supervised,
    properties: MethodProperties,
}

impl Averaging {
    /// Creates federated averaging, with a proximal term if the method sets one.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn new(setup: &Setup<'_>, proximal: Option<Penalty>) -> Result<Self, ExperimentError> {
        let effort = Effort::Epochs(setup.train.epochs);
        let task = setup.task()?;
        // The proximal term pulls to the model at the start of training, not to another one.
        let arithmetic = setup.arithmetic(&task, effort, false)?;
        let supervised = Supervised::new(setup, task, effort)?;
        let properties = MethodProperties {
            is_for_real_devices: true,
            proximal,
            arithmetic,
            fine_tuning: supervised.fine_tuning(),
            notes: supervised.note().into_iter().collect(),
            ..MethodProperties::new(task)
        };
        Ok(Self {
            supervised,
            properties,
        })
    }

    /// Adds a setting that it declares.
    pub(super) fn declaring(mut self, setting: Setting) -> Self {
        self.properties.declared = setting.into();
        self
    }
}

/// Builds `dp-fed`.
pub(super) fn plain(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    let averaging = Averaging::new(setup, None)?;
    Ok(Box::new(averaging.declaring(Setting::Unsmoothed)))
}

/// Builds `dp-fed-ls`.
pub(super) fn smoothed(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    Ok(Box::new(Averaging::new(setup, None)?))
}

impl Method for Averaging {
    fn properties(&self) -> &MethodProperties {
        &self.properties
    }

    fn initial(&self, root: &Root) -> Vec<f32> {
        self.supervised.initial_of(root)
    }

    fn begin<'a>(
        &'a self,
        federation: &'a Federation,
        _: Option<Store<'_>>,
    ) -> Result<Box<dyn Learner + 'a>, StateError> {
        Ok(Box::new(AveragingLearner {
            method: self,
            federation,
            arithmetic: self.properties.arithmetic.begin(),
        }))
    }
}

struct AveragingLearner<'a> {
    method: &'a Averaging,
    federation: &'a Federation,
    arithmetic: Box<dyn Arithmetic>,
}

impl Learner for AveragingLearner<'_> {
    fn trainer<'a>(&'a self, assignment: &'a Assignment<'a>) -> Box<dyn Trainer + 'a> {
        Box::new(AveragingTrainer {
            learner: self,
            assignment,
            buffers: Buffers::default(),
            samples: DeviceBuffer::default(),
        })
    }

    /// Evaluates after the last round only, as devices keep no models.
    fn evaluate(&self, view: &View<'_>) -> Result<Figures, EvaluationError> {
        if !view.is_last {
            return Ok(Figures::default());
        }
        let models = Models {
            shares_a_model: true,
            own: None,
        };
        self.method.supervised.evaluate(view, models)
    }
}

/// Working memory of one thread.
struct AveragingTrainer<'a> {
    learner: &'a AveragingLearner<'a>,
    assignment: &'a Assignment<'a>,
    buffers: Buffers,
    samples: DeviceBuffer,
}

impl Trainer for AveragingTrainer<'_> {
    fn train(
        &mut self,
        device: u32,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, String> {
        let Assignment {
            global, training, ..
        } = self.assignment;
        let order = &mut self.assignment.root.stream(StreamId {
            purpose: Purpose::BatchShuffle,
            round: self.assignment.number,
            device,
        });
        let AveragingLearner {
            method,
            federation,
            arithmetic,
        } = self.learner;
        let device = Device {
            number: device,
            task: &method.properties.task,
            samples: &federation.device(device, &mut self.samples),
        };
        let (update, buffers) = (contribution.update(), &mut self.buffers);
        arithmetic
            .local_update(&device, global, update, training, order, buffers)
            .map_err(|error| error.to_string())
    }
}
