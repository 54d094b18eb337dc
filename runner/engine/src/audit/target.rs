//! What is attacked: the rounds of an experiment, with canaries in the place of its devices.
//!
//! The attacker sees the noisy average of every round. What follows is post-processing and cannot
//! increase the loss.

mod rounds;

use std::sync::Arc;

use smolfed_accounting::accountant::{Accountant, AccountingError};
use smolfed_accounting::{Adjacency, Delta, PrivacyEvent, PrivacyLoss, Sampling};

use super::canaries::{Canaries, Canary, Sends};
pub use super::error::TargetError;
use super::injection::{charged, inject};
use super::source::{Asks, CanarySource};
use super::sources::{AuditedSource, SimulatedDevices};
use super::view::View;
use crate::experiment::Experiment;
use crate::experiment::scaling::ScaleRelease;
use crate::experiment::trial::Trial;
use crate::method::contract::MethodProperties;
use crate::question::AskedQuestion;
use crate::source::Source;
use smolfed_data::federation::Federation;
use smolfed_release::{Fault, PrivacyStatement};

/// What the attacker sees of one round.
#[derive(Debug)]
pub struct Observation<'a> {
    /// The round.
    pub round: u32,
    /// The noisy average times the denominator, in clip norms of the round; under local trust the
    /// uploads of the canaries, one after the other. Of devices that release something in each
    /// step, the mean over the steps of a round.
    pub values: Vec<f64>,
    /// The sum of the bits, in units of one half, if the clip norm is adaptive; under local trust
    /// the bit of each upload.
    pub bits: Vec<f64>,
    /// The cohort that was drawn, which the attacker does not see: for tests of the draw.
    pub drawn: &'a [u32],
    /// Answers to the questions after it, if any are asked.
    pub answers: &'a [SeenAnswer],
}

/// What the attacker sees of the answers to a question.
#[derive(Debug)]
pub struct SeenAnswer {
    /// Which of the experiment.
    pub question: u8,
    /// The noisy sum, in units of the bound; under local trust the uploads of the canaries, one
    /// after the other.
    pub values: Vec<f64>,
    /// The cohort that was drawn, which the attacker does not see: for tests of the draw.
    pub drawn: Vec<u32>,
}

/// The rounds of an experiment, with a fault if one is injected.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    experiment: Experiment,
    federation: &'a Federation,
    /// The score of a trial of a private selection.
    trial: Option<Trial>,
    fault: Fault,
    /// What averages are multiplied by to be sums.
    denominator: f64,
    /// Whose view is attacked.
    view: View,
    /// Where the devices are.
    devices: &'a dyn AuditedSource,
    /// Whether uploads are summed up even where the attacker sees each by itself.
    is_summed: bool,
}

/// The noise that is claimed for each part of what a device sends in a round.
#[derive(Clone, Copy, Debug)]
pub struct Multipliers {
    /// Std of the noise on an update, in clip norms.
    pub update: f64,
    /// Of the noise on a bit, in units of one half; `None` unless the clip norm is adaptive.
    pub bit: Option<f64>,
}

impl<'a> Target<'a> {
    /// The rounds of `experiment`.
    ///
    /// # Errors
    /// [`TargetError::NothingClaimed`] without a clip norm or without noise.
    pub fn new(
        experiment: &Experiment,
        federation: &'a Federation,
        fault: Fault,
    ) -> Result<Self, TargetError> {
        let fault = fault.compiled();
        let mut experiment = experiment.clone();
        let mechanism = &experiment.release.mechanism;
        let has_noise = mechanism.sampler.is_some() && mechanism.strategy.is_none();
        if !has_noise || experiment.release.encoding.grid().is_none() {
            return Err(TargetError::NothingClaimed);
        }
        let denominator = denominator(&experiment);
        experiment.config.evaluate_every = 0;
        let fault = fault.placed(
            experiment.config.rounds,
            experiment.task().tensors().as_slice(),
        );
        // Questions between the rounds have numbers as well.
        let fault = match fault {
            Fault::NoNoiseIn(round) => Fault::NoNoiseIn(experiment.number_of(round)),
            other => other,
        };
        inject(fault, &mut experiment, federation, denominator);
        // The score of a trial, which no model of canaries has, is released by itself.
        let trial = experiment.trial.take();
        experiment.config.privacy.selection = None;
        // Canaries take part as often as is claimed, and in tests of single rounds in each of them.
        experiment.allowed = None;
        // Updates may be weighted by samples; canaries send as much as the largest weight allows.
        experiment.release.weight_cap = None;
        Ok(Self {
            experiment,
            federation,
            trial,
            fault,
            denominator,
            view: View::default(),
            devices: &SimulatedDevices,
            is_summed: false,
        })
    }

    /// The same with devices of this kind.
    #[must_use]
    pub fn with_devices(self, devices: &'a dyn AuditedSource) -> Self {
        Self { devices, ..self }
    }

    /// Where the devices are.
    #[must_use]
    pub const fn devices(&self) -> &'a dyn AuditedSource {
        self.devices
    }

    /// The same where all uploads are summed up, as a run does.
    #[must_use]
    pub fn summed(&self) -> Self {
        Self {
            is_summed: true,
            ..self.clone()
        }
    }

    /// The same as this party sees it.
    #[must_use]
    pub fn seen_by(self, view: View) -> Self {
        Self { view, ..self }
    }

    /// Whose view is attacked.
    #[must_use]
    pub const fn view(&self) -> View {
        self.view
    }

    /// The experiment, with its fault.
    #[must_use]
    pub const fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Devices in the federation.
    #[must_use]
    pub fn device_count(&self) -> u32 {
        self.federation.device_count()
    }

    /// Rounds of the experiment.
    #[must_use]
    pub const fn rounds(&self) -> u32 {
        self.experiment.config.rounds
    }

    /// Lengths of the tensors that devices share.
    #[must_use]
    pub fn tensors(&self) -> Vec<usize> {
        self.experiment.shared_tensors()
    }

    /// The same with the first `rounds` rounds alone.
    #[must_use]
    pub fn shortened(&self, rounds: u32) -> Self {
        let mut short = self.clone();
        short.experiment.config.rounds = rounds.min(self.rounds());
        short
    }

    /// Whether the attacker sees each upload by itself.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.experiment.release.mechanism.is_local() && !self.is_summed
    }

    /// Whether the attacker knows who takes part.
    #[must_use]
    pub fn knows_cohorts(&self) -> bool {
        self.is_local() || self.view.knows_cohorts()
    }

    /// What is claimed about updates against the attacker: one round.
    #[must_use]
    pub fn event(&self) -> PrivacyEvent {
        self.view.event(self.experiment.privacy.event())
    }

    /// What is released of a device and claimed, by round: the private scale, the score of a trial
    /// and answers, if there are any, and the updates.
    #[must_use]
    pub fn claims(&self) -> Vec<(u32, PrivacyEvent)> {
        let answers = self.questions().iter().flat_map(|asked| {
            let event = self.view.event(asked.side.event);
            self.asked_in(asked).map(move |round| (round, event))
        });
        let last = self.rounds().saturating_sub(1);
        let scale = self.moments().map(|moments| (0, moments.side.event));
        let score = self.trial().map(|trial| (last, trial.side.event));
        let updates = (0..self.rounds()).map(|round| (round, self.event()));
        let once = scale.into_iter().chain(score);
        once.chain(answers).chain(updates).collect()
    }

    /// What devices are asked between rounds.
    #[must_use]
    pub fn questions(&self) -> &[AskedQuestion] {
        &self.experiment.questions
    }

    /// The rounds after which a question is asked.
    pub fn asked_in(&self, asked: &AskedQuestion) -> impl Iterator<Item = u32> + use<> {
        let schedule = asked.side.schedule;
        (0..self.rounds()).filter(move |round| schedule.is_in(*round))
    }

    /// Whether an event is of updates.
    #[must_use]
    pub fn is_of_updates(&self, event: &PrivacyEvent) -> bool {
        let kind = std::mem::discriminant(&self.event().mechanism);
        std::mem::discriminant(&event.mechanism) == kind
    }

    /// What is charged for that, round after round, as a run writes it to its ledger.
    #[must_use]
    pub fn charges(&self) -> Vec<(u32, PrivacyEvent)> {
        let is_attacked =
            |event: &PrivacyEvent| event.is_beside_updates() || self.is_of_updates(event);
        let of_round = |round| {
            let score = self.trial().and_then(|trial| trial.side.event_in(round));
            let events = self.experiment.events_in(round).into_iter().chain(score);
            let events = events.filter(|event| event.unit == self.event().unit);
            let events = events
                .filter(is_attacked)
                .map(|event| self.view.event(event));
            events.map(move |event| (round, event))
        };
        charged(self.fault, (0..self.rounds()).flat_map(of_round).collect())
    }

    /// What is claimed of the answers to a question against the attacker, all of them together;
    /// `None` if it is never asked.
    #[must_use]
    pub fn event_of(&self, asked: &AskedQuestion) -> Option<PrivacyEvent> {
        let count = asked.side.schedule.count(self.rounds());
        let event = self.view.event(asked.side.event);
        (count > 0).then(|| event.with_count(count.into()))
    }

    /// The statement that would be made of the answers to a question alone; `None` without a claim.
    ///
    /// # Errors
    /// [`AccountingError`] if no accountant has a figure.
    pub fn statement_of(
        &self,
        asked: &AskedQuestion,
    ) -> Result<Option<PrivacyStatement>, AccountingError> {
        let count = asked.side.schedule.count(self.rounds());
        let event = asked.side.event;
        if count == 0 || event.mechanism.noise_multiplier().get() <= 0.0 {
            return Ok(None);
        }
        let events = [event.with_count(count.into())];
        let delta = self.experiment.privacy.delta;
        let estimate = Accountant::tightest_for(&events).epsilon(&events, delta)?;
        let bound = smolfed_accounting::ClipNorm::new(1.0).ok();
        Ok(PrivacyStatement::new(&estimate, &events, bound))
    }

    /// The loss that is claimed for all that is attacked; `None` where no accountant composes it.
    #[must_use]
    pub fn loss(&self, delta: Delta) -> Option<PrivacyLoss> {
        let rounds = self.event().with_count(u64::from(self.rounds()));
        let scale = self.moments().map(|moments| moments.side.event);
        let score = self.trial().map(|trial| trial.side.event);
        let answers = self.questions().iter();
        let answers = answers.filter_map(|asked| self.event_of(asked));
        let events = scale.into_iter().chain([rounds]).chain(score);
        let events = events.chain(answers);
        let exposures: Vec<_> = events.map(|event| event.exposure()).collect();
        PrivacyLoss::compose(&exposures, delta).ok()
    }

    /// The noise of each part, which together are the noise of a claimed round: all of it is on
    /// the update unless the clip norm is adaptive.
    #[must_use]
    pub fn multipliers(&self, claim: &PrivacyEvent) -> Multipliers {
        match self.experiment.privacy.mechanism.split() {
            Some(split) => Multipliers {
                update: split.update.get(),
                bit: Some(split.bit.get()),
            },
            // The mean over steps has the noise of their mean.
            None => Multipliers {
                update: claim.mechanism.noise_multiplier().get() / self.releases().sqrt(),
                bit: None,
            },
        }
    }

    /// The release of the features' scale, if it is private and has noise.
    #[must_use]
    pub fn moments(&self) -> Option<&ScaleRelease> {
        let release = self.experiment.scale_release.as_ref();
        release.filter(|release| release.side.event.mechanism.noise_multiplier().get() > 0.0)
    }

    /// The score of a trial of a private selection.
    #[must_use]
    pub const fn trial(&self) -> Option<&Trial> {
        self.trial.as_ref()
    }

    /// Steps of the grid in a clip norm; of the mean over releases, in all of them.
    #[must_use]
    pub fn steps_per_clip_norm(&self) -> f64 {
        let grid = self.experiment.release.encoding.grid();
        let steps = grid.map_or(f64::MAX, |grid| f64::from(grid.bits()).exp2());
        steps * self.releases()
    }

    /// Releases of a device in a round.
    fn releases(&self) -> f64 {
        f64::from(self.experiment.release.timing.releases())
    }

    /// Devices of a user.
    #[must_use]
    pub fn devices_per_user(&self) -> u32 {
        self.event().devices_per_user.get()
    }

    /// Whether nothing is claimed of who comes when: canaries come as often as they may.
    fn is_unsampled(&self) -> bool {
        matches!(self.experiment.sampling, Sampling::Unsampled { .. })
    }

    /// How often a device takes part at most: the largest number that is claimed for.
    #[must_use]
    pub fn joins(&self) -> u32 {
        match self.experiment.sampling {
            Sampling::Unsampled {
                max_participations, ..
            } => max_participations.min(self.rounds()),
            _ => self.rounds(),
        }
    }

    /// What a canary sends that does not take part.
    #[must_use]
    pub fn other_world(&self) -> Sends {
        match self.event().adjacency() {
            Adjacency::ReplaceOne => Sends::Opposite,
            Adjacency::AddRemove if self.knows_cohorts() => Sends::Zero,
            Adjacency::AddRemove => Sends::Nothing,
        }
    }

    /// One run with these canaries; `see` is shown every round.
    ///
    /// * `seed` gives all randomness.
    /// * `coordinates` is the length of an update.
    ///
    /// # Errors
    /// [`TargetError`] if a round breaks down.
    pub fn observe(
        &self,
        seed: u64,
        coordinates: usize,
        canaries: Vec<Canary>,
        joins: Joining,
        see: impl FnMut(&Observation<'_>),
    ) -> Result<(), TargetError> {
        let course = Course::default();
        self.observe_course(seed, coordinates, canaries, joins, &course, see)
    }

    /// The same for other rounds than all of them, and with questions.
    ///
    /// # Errors
    /// [`TargetError`] if a round breaks down.
    pub fn observe_course(
        &self,
        seed: u64,
        coordinates: usize,
        canaries: Vec<Canary>,
        joins: Joining,
        course: &Course<'_>,
        mut see: impl FnMut(&Observation<'_>),
    ) -> Result<(), TargetError> {
        let uploads = match self.is_local() {
            true => canaries.iter().map(|canary| canary.devices.len()).sum(),
            false => 1,
        };
        let canaries = Canaries {
            properties: MethodProperties {
                shared_count: coordinates * uploads,
                shares_a_model: false,
                ..MethodProperties::new(*self.experiment.task())
            },
            coordinates,
            canaries,
            is_forced: joins != Joining::AsClaimed || self.knows_cohorts() || self.is_unsampled(),
            are_alone: joins == Joining::Alone,
            joins: match joins {
                Joining::Always | Joining::Alone => self.rounds(),
                Joining::AsClaimed => self.joins(),
            },
            sees_uploads: self.is_local(),
        };
        let mut experiment = Experiment {
            method: Arc::new(canaries.clone()),
            ..self.experiment.clone()
        };
        experiment.config.seed = seed;
        let mut rounds = |devices: &mut dyn Source| {
            let mut source = CanarySource::new(devices, &canaries, &experiment, course.asks);
            self.rounds_with(&mut source, &experiment, course, &mut see)
        };
        self.devices
            .run(&experiment, &canaries, self.federation, &mut rounds)
    }
}

/// What sums are divided by, as it follows from the configuration: it depends on no data, even
/// where that of the server does.
fn denominator(experiment: &Experiment) -> f64 {
    let properties = experiment.method.properties();
    let denominator = experiment.config.cohort.denominator;
    match (properties.has_one_participant, properties.averages_over_all) {
        (true, _) => 1.0,
        (false, true) => f64::from(experiment.sampling.device_count()),
        (false, false) => denominator.expected_updates(experiment.attendance.expected_size()),
    }
}

/// When canaries take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// Whenever they are drawn (under local trust in every round), as often as is claimed.
    AsClaimed,
    /// In every round: for tests of what a device sends.
    Always,
    /// In every round, in which no other devices take part.
    Alone,
}

/// The rounds that are observed. No round of independent noise depends on those before it.
#[derive(Clone, Copy, Debug)]
pub struct Course<'a> {
    /// Ascending; `None` for all.
    pub rounds: Option<&'a [u32]>,
    /// Whether there are rounds, and not their questions alone.
    pub has_updates: bool,
    /// The questions that are asked.
    pub asks: Asks,
}

impl Default for Course<'_> {
    fn default() -> Self {
        Self {
            rounds: None,
            has_updates: true,
            asks: Asks::Nothing,
        }
    }
}
