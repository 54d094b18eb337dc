//! Common parts of methods that learn from labels or values: evaluation device by device, on each
//! device's own held-out samples.
//!
//! | figure | model |
//! | --- | --- |
//! | shared | the global model, before any local step |
//! | own | the device's personal model after its last round |
//! | tuned | after local steps from the personal model or, without one, from the shared one |
//! | alone | trained on the device alone, as long as in the run, with the first learning rate |
//!
//! A device whose training diverges lacks this figure. The others have theirs.

use std::num::NonZeroU32;
use std::sync::Arc;

use rayon::prelude::*;
use smolfed_core::params::Penalty;
use smolfed_core::personal::{Effort, PersonalTraining};
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::LocalTraining;
use smolfed_simd::Steps;

use super::contract::{EvaluationError, Figures, View};
use super::setup::Setup;
use super::state::StateError;
use super::tuning::{FineTune, Tuning};
use crate::arithmetic::steps::{StepBuffers, descend};
use crate::check::{ExperimentError, at_least_one, number, out_of_range};
use crate::evaluation::devices::{DeviceFigures, DeviceReport, Which};
use crate::evaluation::samples::evaluate;
use crate::tables::personalise::FineTuneKind;
use crate::tables::simulation::ArithmeticName;
use crate::task::Task;
use crate::task::pretrained::Pretrained;
use smolfed_data::dataset::DeviceBuffer;
use smolfed_data::federation::Federation;

/// Default λ.
pub(super) const DEFAULT_LAMBDA: f64 = 0.1;
/// Default number of passes of fine-tuning.
const FINE_TUNE_EPOCHS: u32 = 5;
/// Default number of evaluated devices.
const MAX_DEVICES: u32 = 1000;
/// Streams for training outside the rounds, above any round of a run.
const FINE_TUNING: u32 = u32::MAX;
const ALONE: u32 = u32::MAX - 1;

/// A model that predicts, and its evaluation device by device.
#[derive(Clone, Debug)]
pub struct Supervised {
    /// The model.
    pub task: Task,
    arithmetic: ArithmeticName,
    seed: u64,
    /// Initial parameters from a file.
    pretrained: Option<Arc<Pretrained>>,
    /// Fine-tuning after training, and its passes.
    fine_tune: Option<(FineTune, u32)>,
    /// Effort of a device that trains alone, if configured for comparison.
    alone: Option<Effort>,
    max_devices: u32,
}

impl Supervised {
    /// Creates it for devices that train for `effort` in a round.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn new(setup: &Setup<'_>, task: Task, effort: Effort) -> Result<Self, ExperimentError> {
        // As much as a device trains in the run, on average.
        let rounds = f64::from(setup.rounds) * setup.participation_rate();
        let times = |work: u32| (rounds * f64::from(work)).round().max(1.0) as u32;
        let alone = match effort {
            Effort::Steps(steps) => {
                Effort::Steps(NonZeroU32::new(times(steps.get())).unwrap_or(steps))
            }
            Effort::Epochs(_) => Effort::Epochs(times(setup.train.epochs)),
        };
        Ok(Self {
            task,
            arithmetic: setup.simulation.arithmetic,
            seed: setup.seed,
            pretrained: Pretrained::load(setup.model, &task, setup.simulation.arithmetic)?,
            fine_tune: fine_tune(setup)?,
            alone: Some(alone),
            max_devices: max_devices(setup)?,
        })
    }

    /// Leaves out training alone, for a method that itself trains each device alone.
    #[must_use]
    pub fn without_alone(self) -> Self {
        Self {
            alone: None,
            ..self
        }
    }

    /// Returns the whole model before the first round, which does not depend on data.
    #[must_use]
    pub fn initial(&self) -> Vec<f32> {
        self.initial_of(&Root::from_seed(self.seed))
    }

    /// Returns the initial model from the streams of another seed.
    #[must_use]
    pub fn initial_of(&self, root: &Root) -> Vec<f32> {
        let mut parameters = self.task.initial(root);
        if let Some(pretrained) = &self.pretrained {
            pretrained.put(&mut parameters);
        }
        parameters
    }

    /// Returns the fine-tuning after the last round, and its passes over the samples.
    #[must_use]
    pub const fn fine_tuning(&self) -> Option<(FineTune, u32)> {
        self.fine_tune
    }

    /// Returns a note for readers of the privacy statement.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.pretrained.as_ref().map(|pretrained| pretrained.note())
    }

    /// Evaluates the devices on their own test and validation samples. After the last round, it
    /// also evaluates fine-tuned models and models trained alone.
    ///
    /// # Errors
    /// [`EvaluationError`].
    pub fn evaluate(
        &self,
        view: &View<'_>,
        models: Models<'_>,
    ) -> Result<Figures, EvaluationError> {
        let evaluation = DeviceEvaluation {
            method: self,
            models,
            training: view.training,
            federation: view.federation,
            shared: view.global,
            initial: &self.initial(),
        };
        let [test, validation] = evaluation.run(view.is_last.then_some(view.root))?;
        Ok(Figures {
            means: [&test, &validation].map(|report| report.as_ref().map(DeviceReport::means)),
            devices: test.filter(|_| view.is_last),
            ..Figures::default()
        })
    }
}

/// Returns λ of `pmtl` and `fedprox`.
pub(super) fn lambda(setup: &Setup<'_>) -> Result<Penalty, ExperimentError> {
    let lambda = setup.personalise.lambda.unwrap_or(DEFAULT_LAMBDA);
    number("personalise.lambda", lambda, Penalty::new)
}

/// Refuses keys of plain federated averaging, which other methods do not have.
pub(super) fn refuse_keys_of_averaging(setup: &Setup<'_>) -> Result<(), ExperimentError> {
    for (key, value) in [
        ("train.proximal", setup.train.proximal),
        ("train.gradient_smoothing", setup.train.gradient_smoothing),
    ] {
        if value != 0.0 {
            let expected = format!("0 with method \"{}\"", setup.name);
            return Err(out_of_range(key, value, &expected));
        }
    }
    Ok(())
}

/// Returns the maximum number of evaluated devices.
pub(super) fn max_devices(setup: &Setup<'_>) -> Result<u32, ExperimentError> {
    let max = setup.personalise.evaluate_devices.unwrap_or(MAX_DEVICES);
    at_least_one("personalise.evaluate_devices", max)?;
    Ok(max)
}

fn fine_tune(setup: &Setup<'_>) -> Result<Option<(FineTune, u32)>, ExperimentError> {
    let personalise = setup.personalise;
    let kind = personalise.fine_tune.unwrap_or_default();
    let lambda = personalise.fine_tune_lambda.unwrap_or(DEFAULT_LAMBDA);
    let lambda = number("personalise.fine_tune_lambda", lambda, Penalty::new)?;
    let objective = match kind {
        FineTuneKind::None => None,
        FineTuneKind::Plain => Some(FineTune::Plain),
        FineTuneKind::MeanRegularised => Some(FineTune::MeanRegularised(lambda)),
        FineTuneKind::SymmetrisedKl => Some(FineTune::SymmetrisedKl(lambda)),
        FineTuneKind::Ewc => Some(FineTune::Ewc(lambda)),
    };
    let epochs = personalise.fine_tune_epochs.unwrap_or(FINE_TUNE_EPOCHS);
    at_least_one("personalise.fine_tune_epochs", epochs)?;
    Ok(objective.map(|objective| (objective, epochs)))
}

/// The models that a method provides for a device, before local steps.
#[derive(Clone, Copy)]
pub struct Models<'a> {
    /// Whether the shared parameters are a complete model.
    pub shares_a_model: bool,
    /// The stored model of a device, if the method keeps one.
    pub own: Option<&'a (dyn Fn(u32) -> Result<Vec<f32>, StateError> + Sync)>,
}

/// Inputs of the evaluation of devices.
struct DeviceEvaluation<'a> {
    method: &'a Supervised,
    models: Models<'a>,
    /// Local training, as in the first round.
    training: &'a LocalTraining,
    federation: &'a Federation,
    /// The shared parameters.
    shared: &'a [f32],
    /// The model before the first round.
    initial: &'a [f32],
}

/// A device's figures on its test and on its validation samples.
type Parts = [Option<DeviceFigures>; 2];

impl DeviceEvaluation<'_> {
    /// Returns a report on test and one on validation samples, or `None` for a part that no device
    /// has. With a root of streams, it also covers fine-tuning and training alone.
    fn run(&self, root: Option<&Root>) -> Result<[Option<DeviceReport>; 2], EvaluationError> {
        let figures: Result<Vec<Parts>, EvaluationError> = self
            .federation
            .some_devices(self.method.max_devices)
            .into_par_iter()
            .map(|device| self.device(device, root))
            .collect();
        let is_error = self.method.task.predicts_values();
        let mut reports = [Vec::new(), Vec::new()];
        for figures in figures? {
            for (report, figures) in reports.iter_mut().zip(figures) {
                report.extend(figures);
            }
        }
        let tuned = self.method.fine_tune.map(|_| Which::Tuned);
        let alone = self.method.alone.map(|_| Which::Alone);
        let trained = root.map_or([None, None], |_| [tuned, alone]);
        Ok(reports.map(|devices| {
            let has_none = |device: &DeviceFigures, which| device.models.get(which).is_none();
            let nobody_has = |which: &Which| devices.iter().all(|device| has_none(device, *which));
            let diverged = trained.into_iter().flatten().filter(nobody_has).collect();
            (!devices.is_empty()).then_some(DeviceReport {
                is_error,
                labels: None,
                diverged,
                devices,
            })
        }))
    }

    fn device(&self, device: u32, root: Option<&Root>) -> Result<Parts, EvaluationError> {
        let (mut test, mut validation) = (DeviceBuffer::default(), DeviceBuffer::default());
        let held_out = [
            self.federation.device_test(device, &mut test),
            self.federation.device_validation(device, &mut validation),
        ]
        .map(|samples| samples.filter(|samples| !samples.is_empty()));
        if held_out.iter().all(Option::is_none) {
            return Ok([None, None]);
        }
        let models = self.models(device, root)?;
        let unit = self.federation.target_scale().std();
        let mut parts = [None, None];
        for (part, samples) in parts.iter_mut().zip(held_out) {
            let Some(samples) = samples else {
                continue;
            };
            let mut figures = DeviceFigures {
                device: self.federation.device_name(device),
                number: Some(device),
                samples: samples.len(),
                ..DeviceFigures::default()
            };
            for (which, model) in &models {
                let Supervised {
                    task, arithmetic, ..
                } = self.method;
                let found = evaluate(task, *arithmetic, model, samples.into(), unit)?;
                let figure = found.and_then(|found| found.accuracy.or(found.rmse));
                // A diverged model has no figure.
                figures.models.set(*which, figure.filter(|x| x.is_finite()));
            }
            *part = Some(figures);
        }
        Ok(parts)
    }

    /// Returns the models of a device to evaluate.
    fn models(
        &self,
        device: u32,
        root: Option<&Root>,
    ) -> Result<Vec<(Which, Vec<f32>)>, EvaluationError> {
        let mut models = Vec::new();
        let own = self.models.own.map(|own| own(device)).transpose()?;
        if self.models.shares_a_model {
            models.push((Which::Shared, self.shared.to_vec()));
        }
        models.extend(own.iter().map(|own| (Which::Own, own.clone())));
        if let Some(root) = root {
            models.extend(
                self.tuned(device, root, own)
                    .map(|model| (Which::Tuned, model)),
            );
            models.extend(self.alone(device, root).map(|model| (Which::Alone, model)));
        }
        Ok(models)
    }

    /// Returns the model after fine-tuning, or `None` if there is none or it fails. Other devices
    /// keep theirs.
    fn tuned(&self, device: u32, root: &Root, own: Option<Vec<f32>>) -> Option<Vec<f32>> {
        let (objective, epochs) = self.method.fine_tune?;
        let mut model = own.unwrap_or_else(|| self.shared.to_vec());
        let anchor = match self.models.shares_a_model {
            true => self.shared.to_vec(),
            false => model.clone(),
        };
        let tuning = Tuning {
            task: &self.method.task,
            anchor: &anchor,
            objective,
            settings: &self.settings(Effort::Epochs(epochs)),
        };
        let mut buffer = DeviceBuffer::default();
        let samples = self.federation.device(device, &mut buffer);
        let order = &mut root.stream(shuffle(FINE_TUNING, device));
        let tuned = tuning.run(&samples, &mut model, order);
        tuned.is_ok().then_some(model)
    }

    /// Returns the model of a device trained alone, or `None` if there is none or it fails.
    fn alone(&self, device: u32, root: &Root) -> Option<Vec<f32>> {
        let mut model = self.initial.to_vec();
        let steps = Steps {
            settings: &self.settings(self.method.alone?),
            anchor: None,
            release: None,
        };
        let mut buffer = DeviceBuffer::default();
        let samples = self.federation.device(device, &mut buffer);
        let mut buffers = StepBuffers::default();
        let memory = buffers.memory_for(&self.method.task, samples.len());
        let order = &mut root.stream(shuffle(ALONE, device));
        let task = &self.method.task;
        let trained = descend(task, &samples, &mut model, steps, order, memory);
        trained.is_ok().then_some(model)
    }

    fn settings(&self, effort: Effort) -> PersonalTraining {
        PersonalTraining {
            effort,
            batch_size: self.training.batch_size,
            learning_rate: self.training.learning_rate,
            weight_decay: self.training.weight_decay,
        }
    }
}

/// Returns the stream for the order of a device's samples in training outside the rounds.
const fn shuffle(round: u32, device: u32) -> StreamId {
    StreamId {
        purpose: Purpose::BatchShuffle,
        round,
        device,
    }
}
