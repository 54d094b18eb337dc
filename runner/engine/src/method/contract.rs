//! The interface of a method: its configuration before a run ([`Method`], with its
//! [`MethodProperties`]), its state during the run ([`Learner`]), and the training of devices on
//! one thread ([`Trainer`]).

use std::path::Path;

use smolfed_accounting::PrivacyEvent;
use smolfed_core::contrast::Recipe;
use smolfed_core::model::ModelError;
use smolfed_core::params::Penalty;
use smolfed_core::personal::PersonalRequest;
use smolfed_core::stream::Root;
use smolfed_core::train::{LocalTraining, TrainReport};
use smolfed_core::wire::message::{ModelShape, Request};

use super::remote::RoundContext;
use super::state::{PersonalState, StateError};
use super::tuning::FineTune;
use crate::arithmetic::Local;
use crate::combinations::{Setting, Settings};
use crate::evaluation::devices::{DeviceMeans, DeviceReport};
use crate::of_task;
use crate::representation::Picture;
use crate::tables::simulation::ArithmeticName;
use crate::task::Task;
use smolfed_data::federation::Federation;
use smolfed_release::plan::{PrivacyPlan, SideReleases};
use smolfed_release::saved::Saved;
use smolfed_release::{Admitted, Contribution, Messages, ReleaseDigest, ReleaseSettings, Timing};

/// A federated learning method, configured for an experiment: what devices train, and how their
/// updates are used. Each method has its own file or folder.
pub trait Method: std::fmt::Debug + Send + Sync {
    /// What is the same in all rounds.
    fn properties(&self) -> &MethodProperties;

    /// What devices send in addition to their updates, if anything.
    fn second_message(&self) -> Option<&SecondMessage> {
        None
    }

    /// The settings that it declares ([`crate::combinations`]).
    fn settings(&self) -> Settings {
        let sends_matrices = self.second_message().is_some();
        let properties = self.properties().settings();
        properties.and([(Setting::Matrices, sends_matrices)])
    }

    /// The shared parameters before the first round, which depend on no data.
    fn initial(&self, root: &Root) -> Vec<f32> {
        let properties = self.properties();
        let mut parameters = properties.task.initial(root);
        parameters.truncate(properties.shared_count);
        parameters
    }

    /// Starts the method on a federation, with its state in `store`.
    ///
    /// # Errors
    /// [`StateError`] if the state cannot be created or restored.
    fn begin<'a>(
        &'a self,
        federation: &'a Federation,
        store: Option<Store<'_>>,
    ) -> Result<Box<dyn Learner + 'a>, StateError>;
}

/// What is the same in all rounds of a method. Those of [`MethodProperties::new`] describe
/// federated averaging; a method changes the fields in which it differs.
#[derive(Clone, Debug)]
pub struct MethodProperties {
    /// The model that devices train.
    pub task: Task,
    /// Parameters that are shared, and travel; they come first in the model.
    pub shared_count: usize,
    /// Whether the shared parameters are a model by themselves, which predicts.
    pub shares_a_model: bool,
    /// Whether training uses labels. The outputs of an encoder that is trained without labels are
    /// not classes.
    pub uses_labels: bool,
    /// How views of samples vary, for methods without labels.
    pub recipe: Option<Recipe>,
    /// What a device keeps between rounds, if there are personal models.
    pub personal_state: Option<PersonalState>,
    /// The model as the wire names it; `None` if it cannot.
    pub model_shape: Option<ModelShape>,
    /// What real devices are asked for beside local training of the shared model, or in its place.
    pub request: Option<Request>,
    /// The proximal term of local training, if the method sets it.
    pub proximal: Option<Penalty>,
    /// Fine-tuning on each device after the last round, and the passes over its samples.
    pub fine_tuning: Option<(FineTune, u32)>,
    /// How its devices calculate; the bits of boards, unless it asks [`Setup`] for another
    /// arithmetic.
    ///
    /// [`Setup`]: super::setup::Setup::arithmetic
    pub arithmetic: Local,
    /// How often a device releases something in a round.
    pub timing: Timing,
    /// What a configured noise multiplier is multiplied by.
    pub noise_scale: f64,
    /// Whether the sum of updates is divided by the number of all devices, not of those that are
    /// drawn on average.
    pub averages_over_all: bool,
    /// Whether one participant, device 0, has all samples: no cohorts are drawn.
    pub has_one_participant: bool,
    /// Settings that no other field implies.
    pub declared: Settings,
    /// What a reader of the privacy statement must know about the method.
    pub notes: Vec<String>,
}

impl MethodProperties {
    /// Those of federated averaging of a model.
    #[must_use]
    pub fn new(task: Task) -> Self {
        Self {
            task,
            shared_count: task.parameter_count(),
            shares_a_model: true,
            uses_labels: true,
            recipe: None,
            personal_state: None,
            model_shape: of_task!(&task, model => ModelShape::of(model)),
            request: None,
            proximal: None,
            fine_tuning: None,
            arithmetic: Local::default(),
            timing: Timing::EachRound,
            noise_scale: 1.0,
            averages_over_all: false,
            has_one_participant: false,
            declared: Settings::default(),
            notes: Vec::new(),
        }
    }

    /// The settings that they declare ([`crate::combinations`]).
    #[must_use]
    pub fn settings(&self) -> Settings {
        let tuning = self.fine_tuning.map(|(objective, _)| objective);
        let compares_classes =
            matches!(tuning, Some(FineTune::SymmetrisedKl(_) | FineTune::Ewc(_)));
        let is_each_step = matches!(self.timing, Timing::EachStep(_));
        let keeps_state = self.personal_state.is_some() || self.personal_request().is_some();
        let is = |arithmetic| self.arithmetic.name == arithmetic;
        self.declared
            .clone()
            .and([
                (Setting::EachStep, is_each_step),
                (Setting::NothingSent, self.timing == Timing::Never),
                (Setting::OneParticipant, self.has_one_participant),
                (Setting::WithoutLabels, !self.uses_labels),
                (Setting::NoSharedModel, !self.shares_a_model),
                (Setting::PersonalModels, keeps_state),
                (Setting::OnlyF32, is(ArithmeticName::F32)),
                (Setting::Fast, is(ArithmeticName::Fast)),
                (Setting::Integer, is(ArithmeticName::Integer)),
                (Setting::MeanOverAll, self.averages_over_all),
                (Setting::FineTuning, tuning.is_some()),
                (Setting::ClassTuning, compares_classes),
            ])
            .and(self.task.settings())
    }

    /// What real devices with personal models are asked for.
    #[must_use]
    pub const fn personal_request(&self) -> Option<PersonalRequest> {
        match self.request {
            Some(Request::Personal(request)) => Some(request),
            _ => None,
        }
    }
}

/// A message that devices send in addition to their updates, under noise of its own.
#[derive(Clone, Debug)]
pub struct SecondMessage {
    /// How it is released.
    pub release: Messages,
    /// The most samples that a device with such a message may have.
    pub max_samples: u32,
    /// The rounds of these messages, and what one of them costs a whole device.
    pub of_device: SideReleases,
    /// The accounting in their own unit of privacy, which differs from that of the update.
    pub of_unit: PrivacyPlan,
}

impl SecondMessage {
    /// What the messages of `round` cost, beside its updates. The ledger tells the events of a
    /// round apart by their unit and kind of mechanism.
    pub fn events_in(&self, round: u32) -> impl Iterator<Item = PrivacyEvent> {
        let is_due = self.of_device.schedule.is_in(round);
        let of_unit = is_due.then_some(self.of_unit.event());
        self.of_device.event_in(round).into_iter().chain(of_unit)
    }
}

/// Where a run stores the state of its method, and the state in its last checkpoint.
#[derive(Clone, Copy)]
pub struct Store<'a> {
    /// The file for the states of devices. All ranks use the same.
    pub device_states: &'a Path,
    /// Names the run.
    pub run: &'a str,
    /// The number of completed rounds, and the state saved in the checkpoint after them.
    pub checkpoint: Option<(u32, &'a Saved)>,
    /// Whether this is another rank than the first, which has made the file.
    pub is_follower: bool,
}

/// What the devices of a cohort are asked to do in one round.
#[derive(Clone, Copy)]
pub struct Assignment<'a> {
    /// Local training, with this round's learning rate.
    pub training: LocalTraining,
    /// What becomes of their updates.
    pub release: &'a ReleaseSettings,
    /// The devices whose updates may enter the sum.
    pub admitted: &'a Admitted,
    /// The root of all random streams.
    pub root: &'a Root,
    /// The shared parameters.
    pub global: &'a [f32],
    /// The round of the run, from 0.
    pub round: u32,
    /// The round number in the identifiers of random streams. It equals `round`, unless the devices
    /// took part in earlier runs.
    pub number: u32,
}

/// A method during a run, with the state that it keeps between rounds.
pub trait Learner: Send + Sync {
    /// Called before a cohort trains: allocates the states of those that train here, and exchanges
    /// any first messages. Returns the reason for each message that was left out.
    ///
    /// All ranks call it with the whole cohort, of which each trains a part, and afterwards know
    /// the same.
    ///
    /// # Errors
    /// [`StateError`] ends the run.
    fn before(
        &mut self,
        _: &Assignment<'_>,
        _cohort: &[u32],
        _context: &mut RoundContext<'_>,
    ) -> Result<Vec<String>, StateError> {
        Ok(Vec::new())
    }

    /// The model as real devices receive it: as long as the whole model. Behind the shared
    /// parameters it has what the personal ones are before the first round.
    fn model_for_devices(&self, shared: &[f32]) -> Vec<f32> {
        shared.to_vec()
    }

    /// What comes behind the model for one real device.
    fn tail_for_device(&self, _: &Assignment<'_>, _device: u32) -> Vec<f32> {
        Vec::new()
    }

    /// A round was paid for and came to nothing; real devices may have taken part in it.
    fn burned(&mut self, _round: u32) {}

    /// A trainer for one thread.
    fn trainer<'a>(&'a self, assignment: &'a Assignment<'a>) -> Box<dyn Trainer + 'a>;

    /// Called after a cohort has trained; returns the same as [`Self::before`].
    ///
    /// # Errors
    /// [`StateError`] ends the run.
    fn after(
        &mut self,
        _: &Assignment<'_>,
        _cohort: &[u32],
        _context: &mut RoundContext<'_>,
    ) -> Result<Vec<String>, StateError> {
        Ok(Vec::new())
    }

    /// Evaluates what the method learns in addition to the shared model on the common samples.
    /// Reads private data: simulation only.
    ///
    /// # Errors
    /// [`EvaluationError`].
    fn evaluate(&self, _: &View<'_>) -> Result<Figures, EvaluationError> {
        Ok(Figures::default())
    }

    /// The state to store in the next checkpoint. All other files on which that checkpoint depends
    /// are on disk when this returns.
    ///
    /// # Errors
    /// [`StateError`].
    fn save(&mut self, _run: &str) -> Result<Saved, StateError> {
        Ok(Saved::default())
    }

    /// The checkpoint after `rounds` rounds is on the disk.
    fn committed(&mut self, _rounds: u32) {}

    /// Writes the messages that devices sent beside their updates in the last round, in an order
    /// that the round determines.
    fn write_messages(&self, _: &mut ReleaseDigest) {}
}

/// The buffers with which one thread trains devices, one after the other.
pub trait Trainer {
    /// Trains a device and leaves what it sends in `contribution`.
    ///
    /// # Errors
    /// Why the device is left out of the round, in a sentence; its state is then unchanged.
    fn train(
        &mut self,
        device: u32,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, String>;

    /// Stores the new state of a device whose update was accepted.
    fn store_state(&mut self, _device: u32) {}
}

/// What an evaluation looks at.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The devices.
    pub federation: &'a Federation,
    /// The shared parameters.
    pub global: &'a [f32],
    /// Local training, as in the first round.
    pub training: &'a LocalTraining,
    /// Names the random streams of what is trained for the evaluation.
    pub root: &'a Root,
    /// Whether this was the last round.
    pub is_last: bool,
}

/// Why models could not be evaluated.
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

/// The results of an evaluation; all of them describe private data.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Means over devices, on their own test and validation samples.
    pub means: [Option<DeviceMeans>; 2],
    /// The figures of each device, after the last round.
    pub devices: Option<DeviceReport>,
    /// Accuracy of nearest neighbours among representations, of test and validation samples.
    pub knn_accuracy: [Option<f64>; 2],
    /// Accuracy of a linear probe on representations.
    pub probe_accuracy: Option<f64>,
    /// What representations look like, after the last round.
    pub picture: Option<Picture>,
}
