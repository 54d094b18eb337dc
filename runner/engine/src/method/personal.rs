//! Methods whose devices keep a personal model from round to round.
//!
//! Only what a device sends is protected. Its personal model stays on it: the statement's ε is
//! about what *others* learn from all shared models together with their own personal models
//! (billboard privacy, Hsu et al. 2014, arXiv:1311.2828; Hu, Wu, Smith 2023, Section 4), and not
//! about a personal model that is published.

pub mod states;

use std::num::NonZeroU32;

use smolfed_core::lanes;
use smolfed_core::params::{LearningRate, Penalty};
use smolfed_core::personal::{
    Anchor, Effort, Personal as OnDevice, PersonalRequest, PersonalTraining,
};
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::{TrainError, TrainReport};
use smolfed_simd::{GradientRelease, Steps};

use super::contract::{
    Assignment, EvaluationError, Figures, Learner, Method, Store, Trainer, View,
};
use super::remote::RoundContext;
use super::setup::Setup;
use super::state::{PersonalState, StateError};
use super::supervised::{Models, Supervised, refuse_keys_of_averaging};
use super::tuning::FineTune;
use crate::arithmetic::{Arithmetic, Buffers, Device, Local};
use crate::check::{ExperimentError, at_least_one, contradiction};
use crate::ranks::gather_parts;
use crate::tables::simulation::ArithmeticName;
use crate::task::Task;
use smolfed_data::dataset::{DatasetView, DeviceBuffer};
use smolfed_data::federation::Federation;
use smolfed_release::saved::Saved;
use smolfed_release::{Contribution, Timing};
use states::States;

/// The key of a checkpoint for the digest of the personal models.
const STATES: &str = "states";

/// What a method does with personal models. One file a method.
pub trait Personal: std::fmt::Debug + Send + Sync {
    /// Parameters that are shared; they come first.
    fn shared_count(&self, task: &Task) -> usize {
        task.parameter_count()
    }

    /// What a device keeps between rounds.
    fn state(&self) -> PersonalState {
        PersonalState::Model
    }

    /// Whether the shared parameters are a model by themselves.
    fn shares_a_model(&self) -> bool {
        true
    }

    /// λ of the pull to the shared model in local steps, if there is one.
    fn pull(&self) -> Option<Penalty> {
        None
    }

    /// What the learning rate of local steps is multiplied by, if it is changed.
    fn learning_rate_factor(&self) -> Option<f32> {
        None
    }

    /// Writes what the device sends to `update`, unless it sends none, and gives the state that it
    /// keeps.
    fn conclude(&self, learned: Learned<'_>, update: &mut [f32]) -> Vec<f32>;

    /// What real devices are asked for; `None` if they cannot take part.
    fn on_device(&self) -> Option<OnDevice> {
        None
    }

    /// How often a device releases something in a round.
    fn timing(&self) -> Timing {
        Timing::EachRound
    }

    /// What a configured noise multiplier is multiplied by.
    fn noise_scale(&self) -> f64 {
        1.0
    }

    /// The denominator of a round, where `expected` of `devices` are drawn on average.
    fn denominator(&self, expected: f64, _devices: f64) -> f64 {
        expected
    }

    /// What a reader of the privacy statement must know beside that models are kept.
    fn note(&self) -> Option<&'static str> {
        None
    }
}

/// A device's model after its local steps.
pub struct Learned<'a> {
    /// The model.
    pub local: Vec<f32>,
    /// What training started from.
    pub start: &'a [f32],
    /// The shared parameters of the round.
    pub shared: &'a [f32],
    /// The device's state before.
    pub state: Option<Vec<f32>>,
}

/// A method with personal models, configured for an experiment.
#[derive(Debug)]
pub struct Personalised<P> {
    personal: P,
    supervised: Supervised,
    /// How long a device trains in a round.
    effort: Effort,
    /// How devices calculate.
    arithmetic: Local,
}

impl<P: Personal> Personalised<P> {
    /// Resolves what all such methods have in common.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn new(setup: &Setup<'_>, task: Task, personal: P) -> Result<Self, ExperimentError> {
        refuse_keys_of_averaging(setup)?;
        let effort = match setup.personalise.local_steps {
            None => Effort::Epochs(setup.train.epochs),
            Some(steps) => {
                at_least_one("personalise.local_steps", steps)?;
                Effort::Steps(NonZeroU32::new(steps).unwrap_or(NonZeroU32::MIN))
            }
        };
        let is_pulled = personal.pull().is_some_and(|pull| pull.get() > 0.0);
        let arithmetic = setup.arithmetic(&task, effort, is_pulled)?;
        if arithmetic.name == ArithmeticName::Integer {
            return Err(contradiction(
                "simulation.arithmetic",
                "method",
                "\"integer\" trains a shared model, and no personal ones: use \"f32\"",
            ));
        }
        let is_stepwise = matches!(personal.timing(), Timing::EachStep(_));
        if is_stepwise && arithmetic.name != ArithmeticName::F32 {
            return Err(contradiction(
                "simulation.arithmetic",
                "personalise.noise",
                "gradients with noise are no combinations of samples, which \"fast\" needs: use \
                 \"f32\"",
            ));
        }
        let mut supervised = Supervised::new(setup, task, effort)?;
        if personal.timing() == Timing::Never {
            supervised = supervised.without_alone();
        }
        Ok(Self {
            personal,
            supervised,
            effort,
            arithmetic,
        })
    }
}

impl<P: Personal> Method for Personalised<P> {
    fn task(&self) -> &Task {
        &self.supervised.task
    }

    fn shared_count(&self) -> usize {
        self.personal.shared_count(self.task())
    }

    fn initial(&self, root: &Root) -> Vec<f32> {
        let mut parameters = self.supervised.initial_of(root);
        parameters.truncate(self.shared_count());
        parameters
    }

    fn shares_a_model(&self) -> bool {
        self.personal.shares_a_model()
    }

    fn arithmetic(&self) -> Local {
        self.arithmetic
    }

    fn timing(&self) -> Timing {
        self.personal.timing()
    }

    fn noise_scale(&self) -> f64 {
        self.personal.noise_scale()
    }

    fn denominator(&self, expected: f64, devices: f64) -> f64 {
        self.personal.denominator(expected, devices)
    }

    fn personal_state(&self) -> Option<PersonalState> {
        let state = self.personal.state();
        let length = state.length(self.task().parameter_count(), self.shared_count());
        (length > 0).then_some(state)
    }

    fn personal_request(&self) -> Option<PersonalRequest> {
        Some(PersonalRequest {
            personal: self.personal.on_device()?,
            steps: match self.effort {
                Effort::Epochs(_) => None,
                Effort::Steps(steps) => Some(steps),
            },
            shared: u32::try_from(self.shared_count()).ok()?,
            last: None,
        })
    }

    fn notes(&self) -> Vec<String> {
        if self.timing() == Timing::Never {
            let alone = "Each device trains by itself and sends nothing.".to_owned();
            return std::iter::once(alone)
                .chain(self.supervised.note())
                .collect();
        }
        let kept = self.personal_state().map(|_| {
            "Each device keeps a personal model. Epsilon bounds what all others together learn of \
             a device, from everything that is shared and from their own personal models \
             (billboard privacy). It does not cover the device's personal model, which must stay \
             on the device."
        });
        let notes = kept.into_iter().chain(self.personal.note());
        let notes = notes.map(str::to_owned);
        notes.chain(self.supervised.note()).collect()
    }

    fn fine_tuning(&self) -> Option<(FineTune, u32)> {
        self.supervised.fine_tuning()
    }

    fn begin<'a>(
        &'a self,
        federation: &'a Federation,
        store: Option<Store<'_>>,
    ) -> Result<Box<dyn Learner + 'a>, StateError> {
        let (parameters, shared) = (self.task().parameter_count(), self.shared_count());
        let length = self.personal.state().length(parameters, shared);
        Ok(Box::new(PersonalLearner {
            method: self,
            federation,
            initial: self.supervised.initial(),
            states: states_in(length, store)?,
            arithmetic: self.arithmetic.begin(),
        }))
    }
}

/// The personal models of a run: those of its last checkpoint, or none yet.
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
                reason: format!("`{STATES}` is no number"),
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
        let personal = &self.method.personal;
        let own = |device| {
            let state = self.states.read(device)?;
            Ok(personal
                .state()
                .own_model(view.global, &self.initial, state.as_deref()))
        };
        let models = Models {
            shares_a_model: personal.shares_a_model(),
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

/// One thread's working memory, and the new state of the device that trained last.
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
    /// Trains the device; gives the state to keep if what it sends is accepted. The reported norm
    /// is that of the update before clipping or, where there is none, of the model's displacement.
    fn train(
        &self,
        state: Option<Vec<f32>>,
        buffers: &mut Buffers,
        contribution: &mut Contribution<'_>,
    ) -> Result<(TrainReport, Vec<f32>), TrainError> {
        let personal = &self.learner.method.personal;
        let shared = self.assignment.global;
        let initial = &self.learner.initial;
        let start = personal
            .state()
            .own_model(shared, initial, state.as_deref());
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
        let state = personal.conclude(learned, contribution.update());
        if personal.timing() == Timing::EachRound {
            contribution.clip(&mut report)?;
        }
        Ok((report, state))
    }

    /// The local steps, which release their gradients where that is asked for.
    fn descend(
        &self,
        local: &mut [f32],
        buffers: &mut Buffers,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, TrainError> {
        let method = self.learner.method;
        let (task, personal) = (method.task(), &method.personal);
        let pull = personal.pull().map(|strength| Anchor {
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
            task,
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
        let learning_rate = match method.personal.learning_rate_factor() {
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
