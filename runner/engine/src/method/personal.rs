//! Methods whose devices keep a personal model from round to round.
//!
//! Only the devices' messages are protected. A personal model stays on its device. The statement's
//! ε bounds the information that *others* gain from all shared models together with their own
//! personal models (billboard privacy, Hsu et al. 2014, arXiv:1311.2828, and Hu, Wu, Smith 2023,
//! Section 4). It does not cover a published personal model.

pub mod states;

use std::num::NonZeroU32;

use smolfed_core::lanes;
use smolfed_core::params::{LearningRate, Penalty};
use smolfed_core::personal::{
    Anchor, Effort, Personal as OnDevice, PersonalRequest, PersonalTraining,
};
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::{TrainError, TrainReport};
use smolfed_core::wire::message::Request;
use smolfed_simd::{GradientRelease, Steps};

use super::contract::{
    Assignment, EvaluationError, Figures, Learner, Method, MethodProperties, Store, Trainer, View,
};
use super::remote::RoundContext;
use super::setup::Setup;
use super::state::{PersonalState, StateError};
use super::supervised::{Models, Supervised, refuse_keys_of_averaging};
use crate::arithmetic::{Arithmetic, Buffers, Device};
use crate::check::{ExperimentError, at_least_one};
use crate::combinations::Setting;
use crate::ranks::gather_parts;
use smolfed_data::dataset::{DatasetView, DeviceBuffer};
use smolfed_data::federation::Federation;
use smolfed_release::saved::Saved;
use smolfed_release::{Contribution, Timing};
use states::States;

/// Checkpoint key for the digest of the personal models.
const STATES: &str = "states";

/// Note of a statement if nothing is sent.
const ALONE: &str = "Each device trains by itself and sends nothing.";

/// Note if devices keep personal models.
const KEPT: &str = "Each device keeps a personal model. Epsilon bounds how much all others \
                    together learn about a device, from everything that is shared and from their \
                    own personal models (billboard privacy). It does not cover the device's \
                    personal model, which must stay on the device.";

/// The personal part of a method. Each method has one file.
pub trait Personal: std::fmt::Debug + Send + Sync {
    /// Returns the model of a device, and its local steps.
    fn model(&self) -> PersonalModel {
        PersonalModel::default()
    }

    /// Writes the device's message to `update`, unless it sends none, and returns the state to
    /// keep.
    fn conclude(&self, learned: Learned<'_>, update: &mut [f32]) -> Vec<f32>;
}

/// The personal model of a device, and its local steps.
#[derive(Clone, Copy, Debug)]
pub struct PersonalModel {
    /// State of the device between rounds.
    pub state: PersonalState,
    /// λ of the pull to the shared model in local steps, if there is one.
    pub pull: Option<Penalty>,
    /// Factor on the learning rate of local steps, if it is changed.
    pub learning_rate_factor: Option<f32>,
    /// Work of real devices, or `None` if they cannot take part.
    pub on_device: Option<OnDevice>,
}

impl Default for PersonalModel {
    fn default() -> Self {
        Self {
            state: PersonalState::Model,
            pull: None,
            learning_rate_factor: None,
            on_device: None,
        }
    }
}

/// A device's model after its local steps.
pub struct Learned<'a> {
    /// The model.
    pub local: Vec<f32>,
    /// The model at the start of training.
    pub start: &'a [f32],
    /// The shared parameters of the round.
    pub shared: &'a [f32],
    /// The device's previous state.
    pub state: Option<Vec<f32>>,
}

/// A method with personal models, configured for an experiment.
#[derive(Debug)]
pub struct Personalised<P> {
    properties: MethodProperties,
    personal: P,
    model: PersonalModel,
    /// Number of values in a device's state.
    state_length: usize,
    supervised: Supervised,
    /// Training effort of a device in a round.
    effort: Effort,
}

impl<P: Personal> Personalised<P> {
    /// Adds the common properties of all such methods to the properties of one.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn new(
        setup: &Setup<'_>,
        properties: MethodProperties,
        personal: P,
    ) -> Result<Self, ExperimentError> {
        refuse_keys_of_averaging(setup)?;
        let effort = match setup.personalise.local_steps {
            None => Effort::Epochs(setup.train.epochs),
            Some(steps) => {
                at_least_one("personalise.local_steps", steps)?;
                Effort::Steps(NonZeroU32::new(steps).unwrap_or(NonZeroU32::MIN))
            }
        };
        let (task, model) = (properties.task, personal.model());
        let is_pulled = model.pull.is_some_and(|pull| pull.get() > 0.0);
        let arithmetic = setup.arithmetic(&task, effort, is_pulled)?;
        let mut supervised = Supervised::new(setup, task, effort)?;
        if properties.timing == Timing::Never {
            supervised = supervised.without_alone();
        }
        let shared = properties.shared_count;
        let state_length = model.state.length(task.parameter_count(), shared);
        let personal_state = (state_length > 0).then_some(model.state);
        let request = request(&model, effort, shared);
        let common = match properties.timing {
            Timing::Never => Some(ALONE),
            Timing::EachRound | Timing::EachStep(_) => personal_state.map(|_| KEPT),
        };
        let notes = common.map(str::to_owned).into_iter();
        let notes = notes.chain(properties.notes).chain(supervised.note());
        Ok(Self {
            properties: MethodProperties {
                personal_state,
                is_for_real_devices: request.is_some(),
                request: request.map(Request::Personal),
                arithmetic,
                declared: properties.declared.and(Setting::PersonalModels),
                fine_tuning: supervised.fine_tuning(),
                notes: notes.collect(),
                ..properties
            },
            personal,
            model,
            state_length,
            supervised,
            effort,
        })
    }
}

/// Returns the work of real devices, or `None` if they cannot take part.
fn request(model: &PersonalModel, effort: Effort, shared_count: usize) -> Option<PersonalRequest> {
    Some(PersonalRequest {
        personal: model.on_device?,
        steps: match effort {
            Effort::Epochs(_) => None,
            Effort::Steps(steps) => Some(steps),
        },
        shared: u32::try_from(shared_count).ok()?,
        last: None,
    })
}

impl<P: Personal> Method for Personalised<P> {
    fn properties(&self) -> &MethodProperties {
        &self.properties
    }

    fn initial(&self, root: &Root) -> Vec<f32> {
        let mut parameters = self.supervised.initial_of(root);
        parameters.truncate(self.properties.shared_count);
        parameters
    }

    fn begin<'a>(
        &'a self,
        federation: &'a Federation,
        store: Option<Store<'_>>,
    ) -> Result<Box<dyn Learner + 'a>, StateError> {
        Ok(Box::new(PersonalLearner {
            method: self,
            federation,
            initial: self.supervised.initial(),
            states: states_in(self.state_length, store)?,
            arithmetic: self.properties.arithmetic.begin(),
        }))
    }
}

/// Returns the personal models of a run: from its last checkpoint, or none yet.
fn states_in(length: usize, store: Option<Store<'_>>) -> Result<States, StateError> {
    let Some(store) = store else {
        return States::temporary(length);
    };
    let (path, run) = (store.device_states, store.run);
    let checkpoint = match store.checkpoint {
        None => None,
        Some((round, saved)) => {
            let digest = saved.entries.get(STATES).map(|digest| digest.parse());
            let digest = digest.transpose().map_err(|_| StateError::Checkpoint {
                reason: format!("`{STATES}` is not a number"),
            })?;
            Some((round, digest))
        }
    };
    match checkpoint {
        _ if store.is_follower => States::follow(path, length, run, checkpoint),
        None => States::create(path, length, run),
        Some((rounds, digest)) => States::open(path, length, run, rounds, digest),
    }
}

/// Devices with personal models in a run.
struct PersonalLearner<'a, P> {
    method: &'a Personalised<P>,
    federation: &'a Federation,
    /// The model before the first round.
    initial: Vec<f32>,
    states: States,
    arithmetic: Box<dyn Arithmetic>,
}

impl<P: Personal> Learner for PersonalLearner<'_, P> {
    fn before(
        &mut self,
        _: &Assignment<'_>,
        cohort: &[u32],
        context: &mut RoundContext<'_>,
    ) -> Result<Vec<String>, StateError> {
        let is_local = |device: &u32| !context.remote.has(*device);
        let local: Vec<u32> = cohort.iter().copied().filter(is_local).collect();
        self.states.reserve(&local)?;
        Ok(Vec::new())
    }

    fn model_for_devices(&self, shared: &[f32]) -> Vec<f32> {
        let rest = self.initial.get(shared.len()..).unwrap_or_default();
        [shared, rest].concat()
    }

    fn trainer<'a>(&'a self, assignment: &'a Assignment<'a>) -> Box<dyn Trainer + 'a> {
        Box::new(PersonalTrainer {
            learner: self,
            assignment,
            buffers: Buffers::default(),
            samples: DeviceBuffer::default(),
            state: Vec::new(),
        })
    }

    fn after(
        &mut self,
        assignment: &Assignment<'_>,
        cohort: &[u32],
        context: &mut RoundContext<'_>,
    ) -> Result<Vec<String>, StateError> {
        let is_local = |device: &u32| !context.remote.has(*device);
        let local: Vec<u32> = cohort.iter().copied().filter(is_local).collect();
        let kept = match self.states.failure() {
            Some(failure) => Err(failure),
            None => Ok(self.states.kept(assignment.round, &local)),
        };
        let kept = gather_parts(context.ranks, kept)?;
        self.states.learn(assignment.round, &kept);
        Ok(Vec::new())
    }

    fn evaluate(&self, view: &View<'_>) -> Result<Figures, EvaluationError> {
        let kind = self.method.model.state;
        let own = |device| {
            let state = self.states.read(device)?;
            Ok(kind.own_model(view.global, &self.initial, state.as_deref()))
        };
        let models = Models {
            shares_a_model: self.method.properties.shares_a_model,
            own: Some(&own),
        };
        self.method.supervised.evaluate(view, models)
    }

    fn save(&mut self, run: &str) -> Result<Saved, StateError> {
        self.states.sync(run)?;
        let digest = self.states.digest().to_string();
        Ok(Saved {
            entries: [(STATES.to_owned(), digest)].into(),
            ..Saved::default()
        })
    }

    fn committed(&mut self, rounds: u32) {
        self.states.committed(rounds);
    }
}

/// Working memory of one thread, and the new state of the last trained device.
struct PersonalTrainer<'a, P> {
    learner: &'a PersonalLearner<'a, P>,
    assignment: &'a Assignment<'a>,
    buffers: Buffers,
    samples: DeviceBuffer,
    state: Vec<f32>,
}

impl<P: Personal> Trainer for PersonalTrainer<'_, P> {
    fn train(
        &mut self,
        device: u32,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, String> {
        let states = &self.learner.states;
        let state = states.read(device).map_err(|error| {
            let reason = error.to_string();
            // The run ends after the cohort.
            states.note(error);
            reason
        })?;
        let samples = self.learner.federation.device(device, &mut self.samples);
        let round = PersonalRound {
            learner: self.learner,
            assignment: self.assignment,
            samples: &samples,
            device,
        };
        let (report, state) = round
            .train(state, &mut self.buffers, contribution)
            .map_err(|error| error.to_string())?;
        self.state = state;
        Ok(report)
    }

    fn store_state(&mut self, device: u32) {
        let states = &self.learner.states;
        states.write(device, self.assignment.round, &self.state);
    }
}

/// One device's round.
struct PersonalRound<'a, P> {
    learner: &'a PersonalLearner<'a, P>,
    assignment: &'a Assignment<'a>,
    samples: &'a DatasetView<'a>,
    device: u32,
}

impl<P: Personal> PersonalRound<'_, P> {
    /// Trains the device. Returns the state to keep if its message is accepted. The reported norm
    /// is that of the update before clipping or, without an update, of the model's displacement.
    fn train(
        &self,
        state: Option<Vec<f32>>,
        buffers: &mut Buffers,
        contribution: &mut Contribution<'_>,
    ) -> Result<(TrainReport, Vec<f32>), TrainError> {
        let method = self.learner.method;
        let shared = self.assignment.global;
        let (kind, initial) = (method.model.state, &self.learner.initial);
        let start = kind.own_model(shared, initial, state.as_deref());
        let mut local = start.clone();
        let mut report = self.descend(&mut local, buffers, contribution)?;
        let moved: Vec<f32> = local.iter().zip(&start).map(|(w, s)| w - s).collect();
        report.norm = lanes::norm(&moved);
        let learned = Learned {
            local,
            start: &start,
            shared,
            state,
        };
        let state = method.personal.conclude(learned, contribution.update());
        if method.properties.timing == Timing::EachRound {
            contribution.clip(&mut report)?;
        }
        Ok((report, state))
    }

    /// Takes the local steps, and releases their gradients if configured.
    fn descend(
        &self,
        local: &mut [f32],
        buffers: &mut Buffers,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, TrainError> {
        let Personalised {
            properties, model, ..
        } = self.learner.method;
        let pull = model.pull.map(|strength| Anchor {
            at: self.assignment.global,
            strength,
            importance: None,
        });
        let mut release = contribution
            .steps()
            .map(|steps| |gradient: &mut [f32]| steps.release(gradient));
        let steps = Steps {
            settings: &self.settings()?,
            anchor: pull.as_ref(),
            release: release
                .as_mut()
                .map(|release| release as &mut GradientRelease<'_>),
        };
        let order = &mut self.assignment.root.stream(StreamId {
            purpose: Purpose::BatchShuffle,
            round: self.assignment.number,
            device: self.device,
        });
        let device = Device {
            number: self.device,
            task: &properties.task,
            samples: self.samples,
        };
        let arithmetic = &self.learner.arithmetic;
        let mut report = arithmetic.descend(&device, local, steps, order, buffers)?;
        if let Some(steps) = contribution.steps() {
            report.clipped_steps = steps.clipped;
            report.clipping_chances = report.steps;
        }
        Ok(report)
    }

    fn settings(&self) -> Result<PersonalTraining, TrainError> {
        let training = &self.assignment.training;
        let method = self.learner.method;
        let learning_rate = match method.model.learning_rate_factor {
            None => training.learning_rate,
            Some(factor) => LearningRate::new(training.learning_rate.get() * factor)
                .map_err(|_| TrainError::Diverged)?,
        };
        Ok(PersonalTraining {
            effort: method.effort,
            batch_size: training.batch_size,
            learning_rate,
            weight_decay: training.weight_decay,
        })
    }
}

#[cfg(test)]
mod tests;
