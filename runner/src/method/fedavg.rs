//! Federated averaging: each device trains the shared model on its samples and sends the difference
//! (DP-Fed), and the server may smooth the noisy average (DP-Fed-LS, Liang et al. 2020,
//! arXiv:2005.00218, Algorithm 1).

use smolfed_core::model::BATCH_GROUP;
use smolfed_core::params::Penalty;
use smolfed_core::personal::Effort;
use smolfed_core::stream::{Purpose, Stream, StreamId};
use smolfed_core::train::{LocalTraining, TrainError, TrainReport, Workspace};
use smolfed_simd::Kernels;

use super::contract::{
    Assignment, EvaluationError, Figures, Learner, Method, Store, Trainer, View,
};
use super::setup::Setup;
use super::state::StateError;
use super::supervised::{Models, Supervised};
use crate::config::check::{ExperimentError, contradiction};
use crate::data::dataset::DeviceBuffer;
use crate::data::federation::Federation;
use crate::on_samples;
use crate::release::Contribution;
use crate::task::Task;

/// Federated averaging of a model.
#[derive(Clone, Copy, Debug)]
pub struct Averaging {
    supervised: Supervised,
    /// The proximal term that the method adds, if it does.
    proximal: Option<Penalty>,
}

impl Averaging {
    /// Federated averaging with a proximal term of the method's own, if it has one.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn new(setup: &Setup<'_>, proximal: Option<Penalty>) -> Result<Self, ExperimentError> {
        let effort = Effort::Epochs(setup.train.epochs);
        Ok(Self {
            supervised: Supervised::new(setup, setup.task()?, effort)?,
            proximal,
        })
    }
}

/// `dp-fed`.
pub(super) fn plain(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    if setup.server.smoothing_factor > 0.0 {
        return Err(contradiction(
            "method",
            "server.smoothing_factor",
            "use method \"dp-fed-ls\" to smooth, or a factor of 0",
        ));
    }
    smoothed(setup)
}

/// `dp-fed-ls`.
pub(super) fn smoothed(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    Ok(Box::new(Averaging::new(setup, None)?))
}

impl Method for Averaging {
    fn task(&self) -> &Task {
        &self.supervised.task
    }

    fn adapt(&self, training: LocalTraining) -> LocalTraining {
        LocalTraining {
            proximal: self.proximal.unwrap_or(training.proximal),
            ..training
        }
    }

    fn begin<'a>(
        &'a self,
        federation: &'a Federation,
        _: Option<Store<'_>>,
    ) -> Result<Box<dyn Learner + 'a>, StateError> {
        Ok(Box::new(AveragingLearner {
            method: self,
            federation,
        }))
    }
}

struct AveragingLearner<'a> {
    method: &'a Averaging,
    federation: &'a Federation,
}

impl Learner for AveragingLearner<'_> {
    fn trainer<'a>(&'a self, assignment: &'a Assignment<'a>) -> Box<dyn Trainer + 'a> {
        let task = self.method.task();
        Box::new(AveragingTrainer {
            task,
            federation: self.federation,
            assignment,
            local: vec![0.0; task.parameter_count()],
            order: Vec::new(),
            scratch: vec![0.0; task.scratch_count(BATCH_GROUP)],
            buffer: DeviceBuffer::default(),
        })
    }

    /// Devices keep no models: they are evaluated after the last round only.
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

/// One thread's working memory.
struct AveragingTrainer<'a> {
    task: &'a Task,
    federation: &'a Federation,
    assignment: &'a Assignment<'a>,
    local: Vec<f32>,
    order: Vec<u32>,
    scratch: Vec<f32>,
    buffer: DeviceBuffer,
}

impl Trainer for AveragingTrainer<'_> {
    fn train(
        &mut self,
        device: u32,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, String> {
        let order = &mut self.assignment.root.stream(StreamId {
            purpose: Purpose::BatchShuffle,
            round: self.assignment.number,
            device,
        });
        self.local_update(device, contribution.update(), order)
            .map_err(|error| error.to_string())
    }
}

impl AveragingTrainer<'_> {
    fn local_update(
        &mut self,
        device: u32,
        update: &mut [f32],
        order: &mut Stream,
    ) -> Result<TrainReport, TrainError> {
        let view = self.federation.device(device, &mut self.buffer);
        self.order.resize(self.order.len().max(view.len()), 0);
        let work = Workspace {
            local: &mut self.local,
            update,
            order: &mut self.order,
            scratch: &mut self.scratch,
        };
        let Assignment {
            global, training, ..
        } = self.assignment;
        on_samples!(self.task, view, (model, rows) => {
            model.local_update(rows, global, training, order, work)
        })
    }
}
