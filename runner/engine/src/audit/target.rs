//! The target of an attack: the rounds of an experiment, with canaries instead of its devices.
//!
//! The attacker sees the noisy average of every round. Everything after it is post-processing and
//! cannot increase the loss.

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

/// The attacker's view of one round.
#[derive(Debug)]
pub struct Observation<'a> {
    /// The round.
    pub round: u32,
    /// The noisy average times the denominator, in clip norms of the round. Under local trust, the
    /// uploads of the canaries, one after the other. If devices release in each step, the mean over
    /// the steps of a round.
    pub values: Vec<f64>,
    /// The sum of the bits, in units of one half, if the clip norm is adaptive. Under local trust,
    /// the bit of each upload.
    pub bits: Vec<f64>,
    /// The drawn cohort, for tests of the draw. The attacker does not see it.
    pub drawn: &'a [u32],
    /// Answers to the questions after this round.
    pub answers: &'a [SeenAnswer],
}

/// The attacker's view of the answers to a question.
#[derive(Debug)]
pub struct SeenAnswer {
    /// Index of the question in the experiment.
    pub question: u8,
    /// The noisy sum, in units of the bound. Under local trust, the uploads of the canaries, one
    /// after the other.
    pub values: Vec<f64>,
    /// The drawn cohort, for tests of the draw. The attacker does not see it.
    pub drawn: Vec<u32>,
}

/// The rounds of an experiment, and possibly an injected fault.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    experiment: Experiment,
    federation: &'a Federation,
    /// The score of a trial of a private selection.
    trial: Option<Trial>,
    fault: Fault,
    /// Factor from averages to sums.
    denominator: f64,
    /// The attacked view.
    view: View,
    /// The kind of source.
    devices: &'a dyn AuditedSource,
    /// Whether uploads are summed up even where the attacker sees individual uploads.
    is_summed: bool,
}

/// The claimed noise on each part of a device's message in a round.
#[derive(Clone, Copy, Debug)]
pub struct Multipliers {
    /// Std of the noise on an update, in clip norms.
    pub update: f64,
    /// Std of the noise on a bit, in units of one half, or `None` unless the clip norm is adaptive.
    pub bit: Option<f64>,
}

impl<'a> Target<'a> {
    /// Creates a target from `experiment`.
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
        let denominator = experiment.method.properties().divisor(
            experiment.config.cohort.denominator,
            &experiment.attendance,
            experiment.sampling().device_count(),
        );
        experiment.config.evaluate_every = 0;
        let fault = fault.placed(
            experiment.config.rounds,
            experiment.task().tensors().as_slice(),
        );
        // Questions between the rounds also take numbers.
        let fault = match fault {
            Fault::NoNoiseIn(round) => Fault::NoNoiseIn(experiment.number_of(round)),
            other => other,
        };
        inject(fault, &mut experiment, federation, denominator);
        // The score of a trial is released separately, as the canaries have no model.
        let trial = experiment.trial.take();
        experiment.config.privacy.selection = None;
        // Canaries take part as often as claimed, and in every round for tests of single rounds.
        experiment.window_bound = None;
        // Updates may be weighted by samples. Canaries send the maximum that the largest weight
        // allows.
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

    /// Changes the kind of source.
    #[must_use]
    pub fn with_devices(self, devices: &'a dyn AuditedSource) -> Self {
        Self { devices, ..self }
    }

    /// Returns the kind of source.
    #[must_use]
    pub const fn devices(&self) -> &'a dyn AuditedSource {
        self.devices
    }

    /// Returns the target with all uploads summed up, as in a run.
    #[must_use]
    pub fn summed(&self) -> Self {
        Self {
            is_summed: true,
            ..self.clone()
        }
    }

    /// Changes the view to this party's.
    #[must_use]
    pub fn seen_by(self, view: View) -> Self {
        Self { view, ..self }
    }

    /// Returns the attacked view.
    #[must_use]
    pub const fn view(&self) -> View {
        self.view
    }

    /// Returns the experiment, with its fault.
    #[must_use]
    pub const fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Returns the number of devices in the federation.
    #[must_use]
    pub fn device_count(&self) -> u32 {
        self.federation.device_count()
    }

    /// Returns the number of rounds.
    #[must_use]
    pub const fn rounds(&self) -> u32 {
        self.experiment.config.rounds
    }

    /// Returns the lengths of the tensors that devices share.
    #[must_use]
    pub fn tensors(&self) -> Vec<usize> {
        self.experiment.shared_tensors()
    }

    /// Returns the target with only the first `rounds` rounds.
    #[must_use]
    pub fn shortened(&self, rounds: u32) -> Self {
        let mut short = self.clone();
        short.experiment.config.rounds = rounds.min(self.rounds());
        short
    }

    /// Returns whether the attacker sees individual uploads.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.experiment.release.mechanism.is_local() && !self.is_summed
    }

    /// Returns whether the attacker knows the cohorts.
    #[must_use]
    pub fn knows_cohorts(&self) -> bool {
        self.is_local() || self.view.knows_cohorts()
    }

    /// Returns the claim about the updates of one round against the attacker.
    #[must_use]
    pub fn event(&self) -> PrivacyEvent {
        self.view.event(self.experiment.privacy.event())
    }

    /// Returns the claimed events of a device by round: the private scale, the score of a trial and
    /// answers, if there are any, and the updates.
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

    /// Returns the questions between rounds.
    #[must_use]
    pub fn questions(&self) -> &[AskedQuestion] {
        &self.experiment.questions
    }

    /// Returns the rounds after which a question is asked.
    pub fn asked_in(&self, asked: &AskedQuestion) -> impl Iterator<Item = u32> + use<> {
        let schedule = asked.side.schedule;
        (0..self.rounds()).filter(move |round| schedule.is_in(*round))
    }

    /// Returns whether an event is about updates.
    #[must_use]
    pub fn is_of_updates(&self, event: &PrivacyEvent) -> bool {
        let kind = std::mem::discriminant(&self.event().mechanism);
        std::mem::discriminant(&event.mechanism) == kind
    }

    /// Returns the charged events by round, as a run writes them to its ledger.
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

    /// Returns the claim about all answers to a question together against the attacker, or `None`
    /// if it is never asked.
    #[must_use]
    pub fn event_of(&self, asked: &AskedQuestion) -> Option<PrivacyEvent> {
        let count = asked.side.schedule.count(self.rounds());
        let event = self.view.event(asked.side.event);
        (count > 0).then(|| event.with_count(count.into()))
    }

    /// Returns the statement about the answers to a question alone, or `None` without a claim.
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

    /// Returns the claimed loss of everything under attack, or `None` if no accountant composes it.
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

    /// Splits the noise of a claimed round into its parts. All of it is on the update unless the
    /// clip norm is adaptive.
    #[must_use]
    pub fn multipliers(&self, claim: &PrivacyEvent) -> Multipliers {
        match self.experiment.privacy.mechanism.split() {
            Some(split) => Multipliers {
                update: split.update.get(),
                bit: Some(split.bit.get()),
            },
            // The mean over steps has the mean of their noise.
            None => Multipliers {
                update: claim.mechanism.noise_multiplier().get() / self.releases().sqrt(),
                bit: None,
            },
        }
    }

    /// Returns the release of the features' scale, if it is private and has noise.
    #[must_use]
    pub fn moments(&self) -> Option<&ScaleRelease> {
        let release = self.experiment.scale_release.as_ref();
        release.filter(|release| release.side.event.mechanism.noise_multiplier().get() > 0.0)
    }

    /// Returns the score of a trial of a private selection.
    #[must_use]
    pub const fn trial(&self) -> Option<&Trial> {
        self.trial.as_ref()
    }

    /// Returns the number of grid steps in a clip norm. For the mean over releases, it counts the
    /// steps of all of them.
    #[must_use]
    pub fn steps_per_clip_norm(&self) -> f64 {
        let grid = self.experiment.release.encoding.grid();
        let steps = grid.map_or(f64::MAX, |grid| f64::from(grid.bits()).exp2());
        steps * self.releases()
    }

    /// Returns the number of releases per device in a round.
    fn releases(&self) -> f64 {
        f64::from(self.experiment.release.timing.releases())
    }

    /// Returns the number of devices per user.
    #[must_use]
    pub fn devices_per_user(&self) -> u32 {
        self.event().devices_per_user.get()
    }

    /// Returns whether the claim assumes nothing about the cohorts: canaries then come as often as
    /// allowed.
    fn is_unsampled(&self) -> bool {
        matches!(self.experiment.sampling(), Sampling::Unsampled { .. })
    }

    /// Returns the largest claimed number of participations of a device.
    #[must_use]
    pub fn joins(&self) -> u32 {
        match self.experiment.sampling() {
            Sampling::Unsampled {
                max_participations, ..
            } => max_participations.min(self.rounds()),
            _ => self.rounds(),
        }
    }

    /// Returns the contribution of an absent canary.
    #[must_use]
    pub fn other_world(&self) -> Sends {
        match self.event().adjacency() {
            Adjacency::ReplaceOne => Sends::Opposite,
            Adjacency::AddRemove if self.knows_cohorts() => Sends::Zero,
            Adjacency::AddRemove => Sends::Nothing,
        }
    }

    /// Runs the experiment once with these canaries, and passes every round to `see`.
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

    /// Runs selected rounds, and questions.
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

/// When canaries take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// Whenever they are drawn (under local trust, in every round), as often as claimed.
    AsClaimed,
    /// In every round, for tests of a device's messages.
    Always,
    /// In every round, without other devices.
    Alone,
}

/// The rounds to observe. No round of independent noise depends on those before it.
#[derive(Clone, Copy, Debug)]
pub struct Course<'a> {
    /// Ascending, or `None` for all.
    pub rounds: Option<&'a [u32]>,
    /// Whether the rounds themselves take place, and not only their questions.
    pub has_updates: bool,
    /// The questions to ask.
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
