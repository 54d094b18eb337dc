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
use crate::attendance::Attendance;
use crate::combinations::{Setting, Settings};
use crate::evaluation::devices::{DeviceMeans, DeviceReport};
use crate::of_task;
use crate::representation::Picture;
use crate::tables::cohort::Denominator;
use crate::tables::simulation::ArithmeticName;
use crate::task::Task;
use smolfed_data::federation::Federation;
use smolfed_release::plan::{PrivacyPlan, SideReleases};
use smolfed_release::saved::Saved;
use smolfed_release::{Admitted, Contribution, Messages, ReleaseDigest, ReleaseSettings, Timing};

/// A federated learning method, configured for an experiment: how devices train, and how their
/// updates are used. Each method has its own file or folder.
pub trait Method: std::fmt::Debug + Send + Sync {
    /// Returns the properties that are the same in all rounds.
    fn properties(&self) -> &MethodProperties;

    /// Returns the messages of devices in addition to their updates, if there are any.
    fn second_message(&self) -> Option<&SecondMessage> {
        None
    }

    /// Returns whether devices add noise to their second messages.
    fn has_noise_on_second_messages(&self) -> bool {
        let message = self.second_message();
        message.is_some_and(|message| message.of_unit.multiplier().get() > 0.0)
    }

    /// Returns the settings that it declares ([`crate::combinations`]).
    fn settings(&self) -> Settings {
        let sends_matrices = self.second_message().is_some();
        let properties = self.properties().settings();
        properties.and([(Setting::Matrices, sends_matrices)])
    }

    /// Returns the shared parameters before the first round, which do not depend on data.
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

/// Properties of a method that are the same in all rounds. [`MethodProperties::new`] describes
/// federated averaging. A method changes the fields in which it differs.
#[derive(Clone, Debug)]
pub struct MethodProperties {
    /// The trained model.
    pub task: Task,
    /// Number of shared parameters, which are sent. They come first in the model.
    pub shared_count: usize,
    /// Whether the shared parameters are a complete model, which predicts.
    pub shares_a_model: bool,
    /// Whether training uses labels. The outputs of an encoder trained without labels are not
    /// classes.
    pub uses_labels: bool,
    /// Variation of the views of samples, for methods without labels.
    pub recipe: Option<Recipe>,
    /// State of a device between rounds, if there are personal models.
    pub personal_state: Option<PersonalState>,
    /// The model's name in the wire protocol, or `None` if it has none.
    pub model_shape: Option<ModelShape>,
    /// Whether real devices compute the updates of the method: by local training of the shared
    /// model, or by `request`.
    pub is_for_real_devices: bool,
    /// Work of real devices in addition to local training of the shared model, or instead of it.
    pub request: Option<Request>,
    /// The proximal term of local training, if the method sets it.
    pub proximal: Option<Penalty>,
    /// Fine-tuning on each device after the last round, and its passes over the samples.
    pub fine_tuning: Option<(FineTune, u32)>,
    /// Arithmetic of its devices: the bits of boards, unless the method asks [`Setup`] for another
    /// one.
    ///
    /// [`Setup`]: super::setup::Setup::arithmetic
    pub arithmetic: Local,
    /// How often a device releases something in a round.
    pub timing: Timing,
    /// Factor on a configured noise multiplier.
    pub noise_scale: f64,
    /// Whether the sum of updates is divided by the number of all devices, instead of the average
    /// number of drawn ones.
    pub averages_over_all: bool,
    /// Whether one participant, device 0, has all samples, so there are no cohorts.
    pub has_one_participant: bool,
    /// Settings not implied by any other field.
    pub declared: Settings,
    /// Notes about the method for readers of the privacy statement.
    pub notes: Vec<String>,
}

impl MethodProperties {
    /// Returns the properties of federated averaging of a model, in simulations only. A method that
    /// real devices support says so.
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
            is_for_real_devices: false,
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

    /// Returns the settings that they declare ([`crate::combinations`]).
    #[must_use]
    pub fn settings(&self) -> Settings {
        let tuning = self.fine_tuning.map(|(objective, _)| objective);
        let compares_classes =
            matches!(tuning, Some(FineTune::SymmetrisedKl(_) | FineTune::Ewc(_)));
        let is_each_step = matches!(self.timing, Timing::EachStep(_));
        let keeps_state = self.personal_state.is_some() || self.personal_request().is_some();
        let is = |arithmetic| self.arithmetic.name() == arithmetic;
        self.declared
            .clone()
            .and([
                (Setting::EachStep, is_each_step),
                (Setting::NothingSent, self.timing == Timing::Never),
                (Setting::OneParticipant, self.has_one_participant),
                (Setting::WithoutLabels, !self.uses_labels),
                (Setting::NoSharedModel, !self.shares_a_model),
                (Setting::PersonalModels, keeps_state),
                (Setting::OnlySimulated, !self.is_for_real_devices),
                (Setting::OnlyF32, is(ArithmeticName::F32)),
                (Setting::Fast, is(ArithmeticName::Fast)),
                (Setting::Integer, is(ArithmeticName::Integer)),
                (Setting::MeanOverAll, self.averages_over_all),
                (Setting::FineTuning, tuning.is_some()),
                (Setting::ClassTuning, compares_classes),
            ])
            .and(self.task.settings())
    }

    /// Returns the divisor of sums according to the configuration. It does not depend on data, even
    /// where the server's divisor does.
    #[must_use]
    pub fn divisor(
        &self,
        denominator: Denominator,
        attendance: &Attendance,
        device_count: u32,
    ) -> f64 {
        match (self.has_one_participant, self.averages_over_all) {
            (true, _) => 1.0,
            (false, true) => f64::from(device_count),
            (false, false) => denominator.expected_updates(attendance.expected_size()),
        }
    }

    /// Returns the work of real devices with personal models.
    #[must_use]
    pub const fn personal_request(&self) -> Option<PersonalRequest> {
        match self.request {
            Some(Request::Personal(request)) => Some(request),
            _ => None,
        }
    }
}

/// A message of devices in addition to their updates, under separate noise.
#[derive(Clone, Debug)]
pub struct SecondMessage {
    /// The release of the messages.
    pub release: Messages,
    /// Maximum number of samples of a device with such a message.
    pub max_samples: u32,
    /// The rounds of these messages, and the cost of one of them for a whole device.
    pub of_device: SideReleases,
    /// The accounting in the messages' unit of privacy, which differs from the update's.
    pub of_unit: PrivacyPlan,
}

impl SecondMessage {
    /// Returns the events of the messages of `round`, without its updates. The ledger distinguishes
    /// the events of a round by unit and kind of mechanism.
    pub fn events_in(&self, round: u32) -> impl Iterator<Item = PrivacyEvent> {
        let is_due = self.of_device.schedule.is_in(round);
        let of_unit = is_due.then_some(self.of_unit.event());
        self.of_device.event_in(round).into_iter().chain(of_unit)
    }
}

/// Storage for the state of a run's method, and the state in its last checkpoint.
#[derive(Clone, Copy)]
pub struct Store<'a> {
    /// The file for the states of devices, which all ranks share.
    pub device_states: &'a Path,
    /// Name of the run.
    pub run: &'a str,
    /// Number of completed rounds, and the state in the checkpoint after them.
    pub checkpoint: Option<(u32, &'a Saved)>,
    /// Whether this is not the first rank, which has created the file.
    pub is_follower: bool,
}

/// The work of a cohort's devices in one round.
#[derive(Clone, Copy)]
pub struct Assignment<'a> {
    /// Local training, with this round's learning rate.
    pub training: LocalTraining,
    /// Handling of their updates.
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

/// A method during a run, with its state between rounds.
pub trait Learner: Send + Sync {
    /// Prepares the training of a cohort: allocates the states of devices that train here, and
    /// exchanges any first messages. Returns the reason for each omitted message.
    ///
    /// All ranks call it with the whole cohort, of which each trains a part, and have the same
    /// information afterwards.
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

    /// Returns the model for real devices, with the length of the whole model. The initial personal
    /// parameters follow the shared ones.
    fn model_for_devices(&self, shared: &[f32]) -> Vec<f32> {
        shared.to_vec()
    }

    /// Returns the data after the model for one real device.
    fn tail_for_device(&self, _: &Assignment<'_>, _device: u32) -> Vec<f32> {
        Vec::new()
    }

    /// Handles a round that was charged and then failed. Real devices may have taken part in it.
    fn burned(&mut self, _round: u32) {}

    /// Returns a trainer for one thread.
    fn trainer<'a>(&'a self, assignment: &'a Assignment<'a>) -> Box<dyn Trainer + 'a>;

    /// Runs after a cohort has trained. Returns the same as [`Self::before`].
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

    /// Evaluates the method, except for the shared model on the common samples. Reads private data:
    /// simulation only.
    ///
    /// # Errors
    /// [`EvaluationError`].
    fn evaluate(&self, _: &View<'_>) -> Result<Figures, EvaluationError> {
        Ok(Figures::default())
    }

    /// Returns the state for the next checkpoint. All other files on which that checkpoint depends
    /// are on disk when this returns.
    ///
    /// # Errors
    /// [`StateError`].
    fn save(&mut self, _run: &str) -> Result<Saved, StateError> {
        Ok(Saved::default())
    }

    /// Runs when the checkpoint after `rounds` rounds is on disk.
    fn committed(&mut self, _rounds: u32) {}

    /// Writes the devices' messages of the last round, besides their updates, in an order that the
    /// round determines.
    fn write_messages(&self, _: &mut ReleaseDigest) {}
}

/// The buffers of one thread for training devices one by one.
pub trait Trainer {
    /// Trains a device and leaves its messages in `contribution`.
    ///
    /// # Errors
    /// A sentence with the reason why the device is left out of the round. Its state is then
    /// unchanged.
    fn train(
        &mut self,
        device: u32,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, String>;

    /// Stores the new state of a device after its update was accepted.
    fn store_state(&mut self, _device: u32) {}
}

/// The inputs of an evaluation.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The devices.
    pub federation: &'a Federation,
    /// The shared parameters.
    pub global: &'a [f32],
    /// Local training, as in the first round.
    pub training: &'a LocalTraining,
    /// Root of the random streams for training in the evaluation.
    pub root: &'a Root,
    /// Whether this was the last round.
    pub is_last: bool,
}

/// Why an evaluation failed.
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

/// The results of an evaluation. All of them describe private data.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Means over devices, on their own test and validation samples.
    pub means: [Option<DeviceMeans>; 2],
    /// The figures of each device, after the last round.
    pub devices: Option<DeviceReport>,
    /// Nearest-neighbour accuracy of representations, on test and validation samples.
    pub knn_accuracy: [Option<f64>; 2],
    /// Accuracy of a linear probe on representations.
    pub probe_accuracy: Option<f64>,
    /// Picture of the representations, after the last round.
    pub picture: Option<Picture>,
}
