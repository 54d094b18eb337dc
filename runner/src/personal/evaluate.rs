//! How good models are device by device, on each device's own held-out samples.
//!
//! | figure | the model |
//! | --- | --- |
//! | shared | the global model, before any local step |
//! | own | the device's own model as its last round left it |
//! | tuned | after local steps from the own model or, without one, from the shared one |
//! | alone | trained on the device alone, as long as it would have trained in the run, with the first step size |
//!
//! A device whose own training diverges has no such figure; the others have theirs.
//!
//! They read private data without noise: a simulation has them, a coordinator does not (papers.md P10).

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use smolfed_core::model::ModelError;
use smolfed_core::personal::{Effort, PersonalTraining};
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::LocalTraining;
use smolfed_simd::Steps;

use super::plan::{FineTune, PersonalPlan};
use super::states::{StateError, States};
use super::training::{StepBuffers, descend};
use super::tuning::Tuning;
use crate::data::federation::Federation;
use crate::data::synthetic::DeviceBuffer;
use crate::rounds::Quantiles;
use crate::simulate::{Evaluation, evaluate};
use crate::task::Task;

/// Streams of the training that belongs to no round: above any round of a run.
const FINE_TUNING: u32 = u32::MAX;
const ALONE: u32 = u32::MAX - 1;

/// Why a device's models could not be evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// The model does not fit the samples.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A device's state is damaged or cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Accuracy, or the root mean squared error, of the models of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// The device.
    pub device: String,
    /// Held-out samples.
    pub samples: usize,
    /// The global model; absent where the shared part is no model by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<f64>,
    /// The device's own model; absent with methods that keep none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<f64>,
    /// After local steps; absent without fine-tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<f64>,
    /// Trained alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<f64>,
}

/// Which of a device's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The global model.
    Shared,
    /// The device's own.
    Own,
    /// Fine-tuned.
    Tuned,
    /// Trained alone.
    Alone,
}

impl Which {
    /// All of them, in the order of a table.
    pub const ALL: [Self; 4] = [Self::Shared, Self::Own, Self::Tuned, Self::Alone];

    /// The word in names of figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Own => "own",
            Self::Tuned => "tuned",
            Self::Alone => "alone",
        }
    }

    /// A few words for a legend.
    const fn words(self) -> &'static str {
        match self {
            Self::Shared => "shared model",
            Self::Own => "own model",
            Self::Tuned => "fine-tuned",
            Self::Alone => "trained alone",
        }
    }
}

impl DeviceFigures {
    /// The figure of one model.
    #[must_use]
    pub const fn of(&self, which: Which) -> Option<f64> {
        match which {
            Which::Shared => self.shared,
            Which::Own => self.own,
            Which::Tuned => self.tuned,
            Which::Alone => self.alone,
        }
    }

    fn set(&mut self, which: Which, figure: Option<f64>) {
        match which {
            Which::Shared => self.shared = figure,
            Which::Own => self.own = figure,
            Which::Tuned => self.tuned = figure,
            Which::Alone => self.alone = figure,
        }
    }
}

/// Means over devices, each device counting the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceMeans {
    /// Whether they are root mean squared errors and not accuracies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Of the global model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<f64>,
    /// Of the devices' own models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<f64>,
    /// After local steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<f64>,
    /// Trained alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<f64>,
}

impl DeviceMeans {
    /// What the method is judged by: the model that a device would use.
    #[must_use]
    pub fn result(&self) -> Option<f64> {
        self.tuned.or(self.own).or(self.shared)
    }
}

/// How one kind of model does over devices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Each device counts the same.
    pub mean: f64,
    /// Each device counts as often as it has held-out samples.
    pub weighted_mean: f64,
    /// Standard deviation over devices: the smaller, the fairer.
    pub std: f64,
    /// Over devices.
    pub quantiles: Quantiles,
}

/// The figures of all evaluated devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// Whether figures are root mean squared errors and not accuracies.
    pub is_error: bool,
    /// Labels of a device that a head on an encoder learns from; `None` where models learn from all samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<usize>,
    /// One a device that has held-out samples.
    pub devices: Vec<DeviceFigures>,
}

impl DeviceReport {
    /// A few words for a legend.
    #[must_use]
    pub const fn words(&self, which: Which) -> &'static str {
        match (self.labels, which) {
            (Some(_), Which::Own) => "head on the encoder",
            (Some(_), Which::Alone) => "without the encoder",
            _ => which.words(),
        }
    }

    /// How one kind of model does; `None` without figures.
    #[must_use]
    pub fn spread(&self, which: Which) -> Option<Spread> {
        let figures = || {
            let all = self.devices.iter();
            all.filter_map(move |device| Some((device.of(which)?, device.samples as f64)))
        };
        let quantiles = Quantiles::new(figures().map(|(figure, _)| figure).collect())?;
        let count = figures().count() as f64;
        let mean = figures().map(|(figure, _)| figure).sum::<f64>() / count;
        let samples: f64 = figures().map(|(_, samples)| samples).sum();
        let weighted: f64 = figures().map(|(figure, samples)| figure * samples).sum();
        let squares: f64 = figures().map(|(figure, _)| (figure - mean).powi(2)).sum();
        Some(Spread {
            mean,
            weighted_mean: weighted / samples,
            std: (squares / count).sqrt(),
            quantiles,
        })
    }

    /// The means.
    #[must_use]
    pub fn means(&self) -> DeviceMeans {
        let mean = |which| self.spread(which).map(|spread| spread.mean);
        DeviceMeans {
            is_error: self.is_error,
            shared: mean(Which::Shared),
            own: mean(Which::Own),
            tuned: mean(Which::Tuned),
            alone: mean(Which::Alone),
        }
    }
}

/// What devices are evaluated with.
pub struct DeviceEvaluation<'a> {
    /// The model.
    pub task: &'a Task,
    /// The method and the states; `None` for methods without personal models.
    pub personal: Option<(&'a PersonalPlan, &'a States)>,
    /// Local training, as in the first round.
    pub training: &'a LocalTraining,
    /// The devices.
    pub federation: &'a Federation,
    /// The shared parameters.
    pub shared: &'a [f32],
    /// The model before the first round.
    pub initial: &'a [f32],
    /// Devices that are looked at, at most.
    pub most_devices: u32,
}

/// Training beyond the rounds, for the last evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Extra {
    /// Fine-tuning, and passes of it.
    pub fine_tune: Option<(FineTune, u32)>,
    /// How long a device trains that trains alone.
    pub alone: Option<Effort>,
}

/// A device's figures on its test and on its validation samples.
type Figures = [Option<DeviceFigures>; 2];

impl DeviceEvaluation<'_> {
    /// Evaluates the devices on their own test and validation samples; `None` for a part that no
    /// device has. `extra` asks for fine-tuning and for training alone, with streams of `root`.
    ///
    /// # Errors
    /// [`EvaluationError`].
    pub fn run(
        &self,
        extra: Option<(&Extra, &Root)>,
    ) -> Result<[Option<DeviceReport>; 2], EvaluationError> {
        let figures: Result<Vec<Figures>, EvaluationError> = self
            .federation
            .some_devices(self.most_devices)
            .into_par_iter()
            .map(|device| self.device(device, extra))
            .collect();
        let is_error = matches!(self.task, Task::Linear(_));
        let mut reports = [Vec::new(), Vec::new()];
        for figures in figures? {
            for (report, figures) in reports.iter_mut().zip(figures) {
                report.extend(figures);
            }
        }
        Ok(reports.map(|devices| {
            (!devices.is_empty()).then_some(DeviceReport {
                is_error,
                labels: None,
                devices,
            })
        }))
    }

    fn device(
        &self,
        device: u32,
        extra: Option<(&Extra, &Root)>,
    ) -> Result<Figures, EvaluationError> {
        let (mut test, mut validation) = (DeviceBuffer::default(), DeviceBuffer::default());
        let held_out = [
            self.federation.device_test(device, &mut test),
            self.federation.device_validation(device, &mut validation),
        ]
        .map(|samples| samples.filter(|samples| !samples.is_empty()));
        if held_out.iter().all(Option::is_none) {
            return Ok([None, None]);
        }
        let models = self.models(device, extra)?;
        let unit = self.federation.target_scale().std();
        let mut parts = [None, None];
        for (part, samples) in parts.iter_mut().zip(held_out) {
            let Some(samples) = samples else {
                continue;
            };
            let mut figures = DeviceFigures {
                device: self.federation.device_name(device),
                samples: samples.len(),
                ..DeviceFigures::default()
            };
            for (which, model) in &models {
                let found: Option<Evaluation> = evaluate(self.task, model, samples, unit)?;
                figures.set(
                    *which,
                    found.and_then(|found| found.accuracy.or(found.rmse)),
                );
            }
            *part = Some(figures);
        }
        Ok(parts)
    }

    /// The models that a device is evaluated with.
    fn models(
        &self,
        device: u32,
        extra: Option<(&Extra, &Root)>,
    ) -> Result<Vec<(Which, Vec<f32>)>, EvaluationError> {
        let mut models = Vec::new();
        let own = match self.personal {
            None => None,
            Some((plan, states)) => {
                let state = states.read(device)?;
                Some(plan.own_model(self.shared, self.initial, state.as_deref()))
            }
        };
        let shares_a_model = self.personal.is_none_or(|(plan, _)| plan.shares_a_model());
        if shares_a_model {
            models.push((Which::Shared, self.shared.to_vec()));
        }
        models.extend(own.iter().map(|own| (Which::Own, own.clone())));
        let Some((extra, root)) = extra else {
            return Ok(models);
        };
        let mut buffer = DeviceBuffer::default();
        let samples = self.federation.device(device, &mut buffer);
        let stream = |round| {
            root.stream(StreamId {
                purpose: Purpose::BatchShuffle,
                round,
                device,
            })
        };
        if let Some((objective, epochs)) = extra.fine_tune {
            let mut model = own.unwrap_or_else(|| self.shared.to_vec());
            let anchor = match shares_a_model {
                true => self.shared.to_vec(),
                false => model.clone(),
            };
            let tuning = Tuning {
                task: self.task,
                anchor: &anchor,
                objective,
                settings: &self.settings(Effort::Epochs(epochs)),
            };
            // A device whose training fails has no figure, and the others have theirs.
            if tuning
                .run(&samples, &mut model, &mut stream(FINE_TUNING))
                .is_ok()
            {
                models.push((Which::Tuned, model));
            }
        }
        if let Some(effort) = extra.alone {
            let mut model = self.initial.to_vec();
            let steps = Steps {
                settings: &self.settings(effort),
                anchor: None,
                release: None,
            };
            let mut buffers = StepBuffers::default();
            let memory = buffers.of(self.task, samples.len());
            let order = &mut stream(ALONE);
            if descend(self.task, &samples, &mut model, steps, order, memory).is_ok() {
                models.push((Which::Alone, model));
            }
        }
        Ok(models)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_count_devices_or_samples() {
        let device = |own, samples| DeviceFigures {
            own: Some(own),
            samples,
            ..DeviceFigures::default()
        };
        let report = DeviceReport {
            is_error: false,
            labels: None,
            devices: vec![device(0.5, 1), device(1.0, 3)],
        };
        let spread = report.spread(Which::Own).unwrap();
        assert_eq!(
            (spread.mean, spread.weighted_mean, spread.std),
            (0.75, 0.875, 0.25)
        );
        assert_eq!((spread.quantiles.min, spread.quantiles.max), (0.5, 1.0));
        assert_eq!(report.spread(Which::Tuned), None);
        assert_eq!(report.means().result(), Some(0.75));
    }
}
