//! One device's round with a model of its own.

use smolfed_core::clip::clip_l2;
use smolfed_core::lanes;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::LearningRate;
use smolfed_core::personal::{
    Anchor, NoisySteps, PersonalTraining, PmtlUpdate, StepMemory, difference, split_step,
};
use smolfed_core::quantize::Grid;
use smolfed_core::stream::Stream;
use smolfed_core::train::{LocalTraining, TrainError, TrainReport};
use smolfed_simd::{Kernels, Release, Rows, Steps};

use super::plan::{PersonalKind, PersonalPlan};
use super::states::{StateError, States};
use crate::data::dataset::DatasetView;
use crate::task::Task;

/// What the devices of a cohort with models of their own share in a round.
#[derive(Clone, Copy)]
pub struct PersonalRound<'a> {
    /// The method.
    pub plan: &'a PersonalPlan,
    /// Where the states are; every device of the cohort has room.
    pub states: &'a States,
    /// The model before the first round.
    pub initial: &'a [f32],
}

/// A device's round: its samples, and the streams that are its own.
pub struct DeviceRound<'a> {
    /// The model.
    pub task: &'a Task,
    /// Batch size, learning rate, weight decay and clip norm.
    pub training: &'a LocalTraining,
    /// The shared parameters.
    pub shared: &'a [f32],
    /// What the device trains on.
    pub samples: &'a DatasetView<'a>,
    /// The order of the samples.
    pub order: Stream,
    /// Noise in each local step: the grid, the sampler if there is noise, and its stream.
    pub each_step: Option<(Grid, Option<&'a DiscreteGaussian>, Stream)>,
}

/// What comes out of a device's round.
#[derive(Debug, PartialEq)]
pub struct DeviceResult {
    /// How training went.
    pub report: TrainReport,
    /// The state to keep if the update is accepted.
    pub state: Vec<f32>,
}

/// Why a device sits a round out.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Training failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// Its state is damaged or cannot be read: the run must not go on.
    #[error(transparent)]
    State(#[from] StateError),
}

impl PersonalRound<'_> {
    /// Trains one device; the reported norm is that of its update before clipping or, where there is none,
    /// of its way. `update` becomes the clipped difference of the shared parameters or, with
    /// noise in each step, `sent` the sum of what the steps released.
    ///
    /// # Errors
    /// [`DeviceError`]: the device sits the round out, and keeps its state.
    pub fn train(
        &self,
        device: u32,
        round: DeviceRound<'_>,
        memory: StepMemory<'_>,
        update: &mut [f32],
        sent: &mut [i64],
    ) -> Result<DeviceResult, DeviceError> {
        let DeviceRound {
            task,
            training,
            shared,
            samples,
            mut order,
            each_step,
        } = round;
        let PersonalPlan {
            kind, effort, pull, ..
        } = *self.plan;
        let state = self.states.read(device)?;
        let start = self.plan.own_model(shared, self.initial, state.as_deref());
        let mut settings = PersonalTraining {
            effort,
            batch_size: training.batch_size,
            learning_rate: training.learning_rate,
            weight_decay: training.weight_decay,
        };
        if let PersonalKind::PpSgd { ratio } = kind {
            let rate = training.learning_rate.get() * (1.0 + ratio);
            settings.learning_rate = LearningRate::new(rate).map_err(|_| TrainError::Diverged)?;
        }
        let anchor = Anchor {
            at: shared,
            strength: pull,
            importance: None,
        };
        let anchor = matches!(kind, PersonalKind::Pmtl(_)).then_some(&anchor);
        let mut local = start.clone();
        let mut noisy = each_step.map(|(grid, noise, stream)| NoisySteps {
            grid,
            noise,
            stream,
            sent: &mut *sent,
            clipped: 0,
        });
        let mut release = noisy
            .as_mut()
            .map(|steps| |gradient: &mut [f32]| steps.release(gradient));
        let steps = Steps {
            settings: &settings,
            anchor,
            release: release.as_mut().map(|release| release as &mut Release<'_>),
        };
        let mut report = descend(task, samples, &mut local, steps, &mut order, memory)?;
        if let Some(steps) = noisy {
            report.clipped_steps = steps.clipped;
            report.clipping_chances = report.steps;
        }
        let moved: Vec<f32> = local.iter().zip(&start).map(|(w, s)| w - s).collect();
        report.norm = lanes::norm(&moved);

        let state = match kind {
            PersonalKind::Pmtl(PmtlUpdate::FromGlobal) => {
                difference(&local, shared, update);
                local
            }
            PersonalKind::Pmtl(PmtlUpdate::AsPrinted | PmtlUpdate::MeanOverAll) => {
                difference(&local, &start, update);
                local
            }
            PersonalKind::PpSgd { ratio } => {
                let mut offset = state.unwrap_or_else(|| vec![0.0; local.len()]);
                split_step(&local, shared, &mut offset, ratio, update);
                offset
            }
            PersonalKind::Split { .. } => {
                difference(&local, shared, update);
                local.split_off(self.plan.shared.min(local.len()))
            }
            PersonalKind::Local => local,
        };
        let sends_update = !matches!(
            kind,
            PersonalKind::Local | PersonalKind::Split { each_step: true }
        );
        if sends_update {
            report.norm = lanes::norm(update);
        }
        if let Some(bound) = training.clip_norm.filter(|_| sends_update) {
            clip_l2(update, bound.get()).map_err(|_| TrainError::Diverged)?;
            report.clipped_steps = u32::from(report.norm > bound.get());
            report.clipping_chances = 1;
        }
        Ok(DeviceResult { report, state })
    }
}

/// Local steps of whichever model a task is.
///
/// # Errors
/// [`TrainError`], as [`smolfed_core::personal::descend`].
pub fn descend(
    task: &Task,
    samples: &DatasetView<'_>,
    local: &mut [f32],
    steps: Steps<'_>,
    order: &mut Stream,
    memory: StepMemory<'_>,
) -> Result<TrainReport, TrainError> {
    fn run<M: Kernels<Target: Default>>(
        model: &M,
        samples: &Rows<'_, M::Target>,
        local: &mut [f32],
        steps: Steps<'_>,
        order: &mut Stream,
        memory: StepMemory<'_>,
    ) -> Result<TrainReport, TrainError> {
        model.descend(samples, local, steps, order, memory)
    }
    match task {
        Task::Linear(model) => run(model, &samples.values(), local, steps, order, memory),
        Task::Logistic(model) => run(model, &samples.classes(), local, steps, order, memory),
        Task::Softmax(model) => run(model, &samples.classes(), local, steps, order, memory),
        Task::Encoder(model) => run(model, &samples.classes(), local, steps, order, memory),
    }
}

/// The memory of local steps, on the heap.
#[derive(Debug, Default)]
pub struct StepBuffers {
    gradient: Vec<f32>,
    order: Vec<u32>,
    scratch: Vec<f32>,
}

impl StepBuffers {
    /// For devices of up to `samples` samples.
    pub fn of(&mut self, task: &Task, samples: usize) -> StepMemory<'_> {
        let group = smolfed_core::model::BATCH_GROUP;
        self.gradient.resize(task.parameter_count(), 0.0);
        self.order.resize(self.order.len().max(samples), 0);
        self.scratch.resize(task.scratch_count(group), 0.0);
        StepMemory {
            gradient: &mut self.gradient,
            order: &mut self.order,
            scratch: &mut self.scratch,
        }
    }
}
