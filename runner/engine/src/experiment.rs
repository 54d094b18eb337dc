//! An experiment that can run: the configuration, validated for its federation.
//!
//! One table lists the keys that exclude each other ([`crate::combinations`]). Keys are checked
//! against the data where they are used, and against the limits of devices in the terms of a fleet.

mod buffered;
pub mod cohort;
mod conditions;
mod correlated;
mod distributed;
pub(crate) mod keys;
mod notes;
pub(crate) mod questions;
pub mod scaling;
pub mod step;
pub mod trial;
mod weighting;

use smolfed_accounting::correlated::Participation;
use smolfed_accounting::{AccountingError, PrivacyEvent, Sampling};
use smolfed_core::params::{self, LearningRate};
use smolfed_core::stream::Root;
use smolfed_core::train::LocalTraining;
use smolfed_core::wire::message::ModelGrid;

use std::borrow::Cow;
use std::sync::Arc;

use crate::attendance::Attendance;
use crate::check::ExperimentError;
use crate::combinations::{Conflict, Setting, Settings};
use crate::config::{Config, TrialSeed};
use crate::denoise::Auto;
use crate::layout::TensorLayout;
use crate::method::contract::{Method, MethodProperties};
use crate::method::setup::Setup;
use crate::question::AskedQuestion;
use crate::server::adaptive::AdaptiveClip;
use crate::server::model::GlobalModel;
use crate::server::{OwnStep, ServerStep, Treatment};
use crate::task::Task;
use conditions::conditions;
use correlated::Correlated;
use keys::Keys;
use notes::notes;
use questions::Drafts;
use scaling::ScaleRelease;
use smolfed_data::federation::Federation;
use smolfed_release::ledger::Spent;
use smolfed_release::masked::{HelperPolicy, Helpers, LocalHelpers};
use smolfed_release::masking::Masking;
use smolfed_release::origin::Origin;
use smolfed_release::plan::{PrivacyPlan, SideReleases, Updates};
use smolfed_release::statement::PrivacyStatement;
use smolfed_release::{Channel, Fault, History, ReleaseSettings, Timing, weight};
use trial::Trial;
use weighting::Weights;

/// An experiment that can run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The complete configuration.
    pub(crate) config: Config,
    /// The training method.
    pub(crate) method: Arc<dyn Method>,
    /// The settings that its parts declare.
    pub(crate) declared: Settings,
    /// The devices of a round, as accounted.
    pub(crate) attendance: Attendance,
    /// The bound on the time windows of a device with independent noise, if rounds are windows.
    pub(crate) window_bound: Option<Participation>,
    /// Local training in the first round.
    pub(crate) training: LocalTraining,
    /// Factor on the learning rate from one round to the next.
    pub(crate) learning_rate_decay: f64,
    /// Handling of the devices' updates.
    pub(crate) release: ReleaseSettings,
    /// Noise and accounting.
    pub(crate) privacy: PrivacyPlan,
    /// The release of the features' scale before the first round, if it is private.
    pub(crate) scale_release: Option<ScaleRelease>,
    /// The score of this trial, if the run is one of a private selection.
    pub(crate) trial: Option<Trial>,
    /// Questions to devices between rounds.
    pub(crate) questions: Vec<AskedQuestion>,
    /// The server's step.
    pub(crate) server: ServerStep,
    /// Changes of the clip norm from round to round, if it is adaptive.
    pub(crate) adaptive: Option<AdaptiveClip>,
    /// Origin of devices and randomness.
    pub(crate) origin: Origin,
    /// The root of a trial that no seed determines. It has no text form.
    pub(crate) secret: Option<Root>,
}

/// Returns the releases of devices in addition to updates and answers.
fn side_releases(
    scale: Option<&ScaleRelease>,
    trial: Option<&Trial>,
    method: &dyn Method,
) -> Vec<SideReleases> {
    let of_scale = scale.map(|release| &release.side);
    let of_trial = trial.map(|trial| &trial.side);
    let of_message = method.second_message().map(|message| &message.of_device);
    let all = [of_scale, of_trial, of_message].into_iter().flatten();
    all.cloned().collect()
}

impl Experiment {
    /// Resolves a configuration for a federation.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn new(config: Config, federation: &Federation) -> Result<Self, ExperimentError> {
        Self::with_spent(config, federation, &Spent::default(), Origin::Simulation)
    }

    /// Resolves a configuration for a population on which other runs have already `spent`.
    ///
    /// # Errors
    /// As [`Self::new`], and also if no room is left for a round.
    pub fn with_spent(
        config: Config,
        federation: &Federation,
        spent: &Spent,
        origin: Origin,
    ) -> Result<Self, ExperimentError> {
        let method = config.method;
        Self::build(config, federation, spent, origin, |setup| {
            method.build(setup)
        })
    }

    /// Creates a simulation of a method without a name in files, which `build` makes. The file's
    /// `method` is ignored, and there are no earlier runs.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_method(
        config: Config,
        federation: &Federation,
        build: impl FnOnce(&Setup<'_>) -> Result<Box<dyn Method>, ExperimentError>,
    ) -> Result<Self, ExperimentError> {
        let spent = Spent::default();
        Self::build(config, federation, &spent, Origin::Simulation, build)
    }

    fn build(
        config: Config,
        federation: &Federation,
        spent: &Spent,
        origin: Origin,
        build: impl FnOnce(&Setup<'_>) -> Result<Box<dyn Method>, ExperimentError>,
    ) -> Result<Self, ExperimentError> {
        let name = config.method.name();
        let declared = declared(&config, federation, &origin);
        // Before any planning, and again with the settings that the method declares.
        declared.agree(name)?;
        let mut keys = Keys::parse(&config, federation)?;
        let (sampling, correlated) = (keys.sampling, keys.correlated.as_ref());
        let events = spent.events();
        let setup = setup(&config, &keys, federation, spent, &origin);
        let method = build(&setup)?;
        let properties = method.properties();
        let weights = Weights::parse(&config.cohort, keys.encoding, properties);
        let declared = declared.and(method.settings()).and(weights.settings());
        declared.agree(name)?;
        step::suits(config.train.learning_rate, properties)?;
        keys.training.proximal = properties.proximal.unwrap_or(keys.training.proximal);
        let scale_release = ScaleRelease::new(federation, &keys.privacy, sampling)?;
        let fits = |of: &Correlated| of.fits(&keys.attendance, keys.encoding);
        correlated.map_or(Ok(()), fits)?;
        let trial = Trial::new(&config, federation, &keys.privacy, sampling)?;
        let is_alone = properties.timing == Timing::Never && method.second_message().is_none();
        let drafts = Drafts::new(&config, federation, &keys, events, is_alone)?;
        let mut notes = notes(&config, &declared, events, &origin, &*method);
        notes.extend(scale_release.as_ref().map(ScaleRelease::note));
        notes.extend(trial.iter().flat_map(|trial| trial.notes(config.seed)));
        notes.extend(keys.note(&config)?);
        let side = side_releases(scale_release.as_ref(), trial.as_ref(), &*method);
        let [of_questions, with_noise_of_rounds] = drafts.sides();
        let weight_cap = weights.cap(federation)?;
        let mut privacy = PrivacyPlan::of_updates(Updates {
            rounds: config.rounds,
            keys: keys.privacy,
            sampling,
            strategy: correlated.map(|correlated| Arc::clone(&correlated.strategy)),
            encoding: keys.encoding,
            timing: properties.timing,
            noise_scale: properties.noise_scale,
            side: [side, of_questions].concat(),
            with_noise_of_rounds,
            trials: trial.as_ref().map(|trial| trial.trials),
            spent: events,
            is_ledger_shared: config.privacy.ledger.is_some(),
            conditions: conditions(&config, federation, spent, &origin, &*method),
            staleness: keys.attendance.windows().map(|windows| windows.staleness),
            notes,
        })?;
        let masking = distributed::masking(&keys, &privacy, properties.timing)?;
        let questions = drafts.with_noise(&privacy.mechanism, masking, &origin)?;
        privacy.note(questions::note(&questions, config.rounds));
        let devices = sampling.device_count();
        let server = &keys.server;
        let mut server = server.step(&config, properties, &keys.attendance, devices)?;
        weigh_denominator(&mut server, weight_cap, federation, &privacy);
        Ok(Self {
            declared,
            training: keys.training,
            learning_rate_decay: keys.learning_rate_decay,
            release: release(&keys, &privacy, properties, weight_cap, masking, &origin),
            attendance: keys.attendance,
            window_bound: keys.window_bound,
            privacy,
            scale_release,
            trial,
            questions,
            server,
            adaptive: keys.adaptive,
            method: Arc::from(method),
            config,
            origin,
            secret: None,
        })
    }

    /// Returns the complete configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the devices of a round.
    #[must_use]
    pub const fn attendance(&self) -> &Attendance {
        &self.attendance
    }

    /// Returns the training method.
    #[must_use]
    pub fn method(&self) -> &dyn Method {
        &*self.method
    }

    /// Refuses settings that exclude this source of devices.
    ///
    /// # Errors
    /// [`Conflict`] with the first broken rule.
    pub fn fits_source(&self, source: Setting) -> Result<(), Conflict> {
        self.declared
            .clone()
            .and(source)
            .agree(self.config.method.name())
    }

    /// Returns the accounted sampling of cohorts.
    #[must_use]
    pub const fn sampling(&self) -> Sampling {
        self.privacy.event().sampling
    }

    /// Returns the grid of the model that devices get, if it has one.
    #[must_use]
    pub const fn model_grid(&self) -> Option<ModelGrid> {
        self.server.grid
    }

    /// Returns a model of the server as everyone else sees it: on the grid, if there is one.
    #[must_use]
    pub fn published(&self, model: Vec<f32>) -> Vec<f32> {
        GlobalModel::new(self.server.grid, model)
            .published()
            .to_vec()
    }

    /// Returns the bound on a device's rounds that ε relies on, with correlated noise or time
    /// windows.
    #[must_use]
    pub fn allowed(&self) -> Option<Participation> {
        let strategy = self.release.mechanism.strategy.as_ref();
        let correlated = strategy.map(|strategy| strategy.participation());
        correlated.or(self.window_bound)
    }

    /// Returns whether the sizes of cohorts must stay secret. This holds if ε relies on the secrecy
    /// of the draw ([`Config::has_secret_cohorts`]), and in windows of real devices that send
    /// updates in clear. Such a device reports at once that it cannot train, so its data may decide
    /// in which window it counts.
    #[must_use]
    pub fn has_secret_sizes(&self) -> bool {
        let is_window = self.attendance.windows().is_some();
        let is_in_clear = !self.release.is_simulation && !self.release.mechanism.is_local();
        self.config.has_secret_cohorts() || (is_window && is_in_clear)
    }

    /// Returns s, the number of windows after its model's window in which an update still counts.
    /// It is 0 without windows.
    #[must_use]
    pub fn staleness(&self) -> u32 {
        let windows = self.attendance.windows();
        windows.map_or(0, |windows| windows.staleness)
    }

    /// Returns the settings of local training in the first round.
    #[must_use]
    pub const fn training(&self) -> LocalTraining {
        self.training
    }

    /// Returns the handling of the devices' updates.
    #[must_use]
    pub const fn release(&self) -> &ReleaseSettings {
        &self.release
    }

    /// Returns noise and accounting.
    #[must_use]
    pub const fn privacy(&self) -> &PrivacyPlan {
        &self.privacy
    }

    /// Returns the release of the features' scale before the first round, if it is private.
    #[must_use]
    pub const fn scale_release(&self) -> Option<&ScaleRelease> {
        self.scale_release.as_ref()
    }

    /// Returns the score of this trial, if the run is one of a private selection.
    #[must_use]
    pub const fn trial(&self) -> Option<&Trial> {
        self.trial.as_ref()
    }

    /// Returns the questions to devices between rounds.
    #[must_use]
    pub fn questions(&self) -> &[AskedQuestion] {
        &self.questions
    }

    /// Returns whether updates or answers have noise.
    #[must_use]
    pub fn has_noise(&self) -> bool {
        let multiplier = |asked: &AskedQuestion| asked.side.event.mechanism.noise_multiplier();
        let mut of_answers = self.questions.iter().map(multiplier);
        self.privacy.has_noise() || of_answers.any(|multiplier| multiplier.get() > 0.0)
    }

    /// Returns the questions after `round`, each with its number.
    pub fn questions_after(&self, round: u32) -> impl Iterator<Item = (u32, &AskedQuestion)> {
        let first = self.number_of(round).saturating_add(1);
        let due = self.questions.iter();
        let due = due.filter(move |question| question.side.schedule.is_in(round));
        (first..).zip(due)
    }

    /// Returns the number of `round` among all rounds and questions of the run. It names the
    /// round's random streams.
    #[must_use]
    pub fn number_of(&self, round: u32) -> u32 {
        questions::number_of(&self.questions, round)
    }

    /// Returns the origin of devices and randomness.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Changes the randomness to another trial of a private selection, given by a seed.
    #[must_use]
    pub fn with_trial_seed(mut self, seed: u64) -> Self {
        if self.trial.is_some() {
            self.config.set_trial_seed(TrialSeed::Known(seed));
        }
        self
    }

    /// Changes the randomness to that of a trial of a private selection, which stays secret. The
    /// configuration records only that it is secret.
    #[must_use]
    pub fn with_trial_secret(mut self, root: Root) -> Self {
        if self.trial.is_some() {
            self.config.set_trial_seed(TrialSeed::SECRET);
            self.secret = Some(root);
        }
        self
    }

    /// Returns the root of the random streams of cohorts, training and noise.
    ///
    /// # Errors
    /// [`ExperimentError::SecretRandomness`] if the configuration belongs to a run with secret
    /// randomness, which was not kept.
    pub fn root(&self) -> Result<Root, ExperimentError> {
        match (&self.secret, self.config.run_seed()) {
            (Some(root), _) => Ok(root.clone()),
            (None, Some(seed)) => Ok(Root::from_seed(seed)),
            (None, None) => Err(ExperimentError::SecretRandomness),
        }
    }

    /// Replaces the server's step by a custom step, which sees released sums only.
    #[must_use]
    pub fn with_own_step(mut self, step: OwnStep) -> Self {
        self.server.treatment = Treatment::Own(step);
        self
    }

    /// Returns the model.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.method.properties().task
    }

    /// Returns the privacy events of `round`, which are charged before it. There are none if it
    /// releases nothing.
    #[must_use]
    pub fn events_in(&self, round: u32) -> Vec<PrivacyEvent> {
        let updates = Some(self.privacy.event()).filter(|event| event.releases > 0);
        let message = self.method.second_message();
        let messages = message
            .into_iter()
            .flat_map(|message| message.events_in(round));
        let scale = self.scale_release.as_ref();
        let scale = scale.and_then(|release| release.side.event_in(round));
        let trial = self.trial.as_ref();
        let score = trial.and_then(|trial| trial.side.event_in(round));
        let once = scale.into_iter().chain(score);
        let answers = self.questions.iter();
        let answers = answers.filter_map(|question| question.side.event_in(round));
        once.chain(answers).chain(updates).chain(messages).collect()
    }

    /// Returns the privacy statements for the first `rounds` rounds: about the updates and, if
    /// devices send other messages, about these. `repeated` are the events that the ledger charges
    /// once more. They count what the plan allows devices to send, as the actual messages depend on
    /// who took part.
    ///
    /// # Errors
    /// As [`PrivacyPlan::estimate`].
    pub fn statements(
        &self,
        rounds: u32,
        repeated: &[PrivacyEvent],
    ) -> Result<Vec<PrivacyStatement>, AccountingError> {
        let updates = self.privacy.with_repeated(repeated);
        let planned = match rounds < self.config.rounds {
            true => updates.planned_rounds(self.config.rounds)?,
            false => rounds,
        };
        let mut statements = updates.statements_of(u64::from(rounds), u64::from(planned))?;
        if let Some(message) = self.method.second_message() {
            let schedule = &message.of_device.schedule;
            let [done, planned] = [rounds, planned].map(|rounds| schedule.count(rounds).into());
            if done > 0 {
                let messages = message.of_unit.with_repeated(repeated);
                statements.extend(messages.statements_of(done, planned)?);
            }
        }
        Ok(statements)
    }

    /// Returns the federation with its scale. A private scale comes from the devices' moments with
    /// noise of the experiment's root, in simulations only. Without a root, no run follows, and the
    /// scale stays open.
    #[must_use]
    pub fn scaled<'a>(&self, federation: &'a Federation) -> Cow<'a, Federation> {
        let release = self.scale_release.as_ref().zip(self.root().ok());
        match release.and_then(|(release, root)| release.scaled(federation, &root)) {
            Some(scaled) => Cow::Owned(scaled),
            None => Cow::Borrowed(federation),
        }
    }

    /// Returns the mechanism's state before the first round.
    #[must_use]
    pub fn history(&self) -> History {
        let strategy = self.release.mechanism.strategy.as_ref();
        let bits = self.release.encoding.grid().map_or(0, |grid| grid.bits());
        let ring = self.release.masking.map(|masking| masking.ring);
        let history = History::new(strategy, bits, self.method.properties().shared_count);
        history.of_masked(ring).admitting(self.window_bound)
    }

    /// Returns the requirements of each helper, for cohorts of at least `min_cohort` devices, or
    /// `None` without helpers.
    #[must_use]
    pub fn helper_policy(&self, min_cohort: u32) -> Option<HelperPolicy> {
        // Over all rounds and answers.
        let rounds = self.number_of(self.config.rounds);
        distributed::policy(
            self.release.masking,
            &self.privacy.mechanism,
            rounds,
            min_cohort,
        )
    }

    /// Returns the helpers of a simulation, with keys and noise of its root, or `None` with real
    /// devices, and without helpers.
    #[must_use]
    pub fn local_helpers<'h>(&self, root: &Root) -> Option<Box<dyn Helpers + 'h>> {
        let policy = self
            .helper_policy(0)
            .filter(|_| self.release.is_simulation)?;
        let devices = self.sampling().device_count();
        Some(Box::new(LocalHelpers::new(
            &policy,
            devices,
            root,
            self.release.fault,
        )))
    }

    /// Returns the state of `denoiser = "auto"` before the first round of a model, or `None`
    /// without noise, where the model is not denoised.
    #[must_use]
    pub fn auto(&self, start: &[f32]) -> Option<Auto> {
        let Treatment::Mix(experts) = &self.server.treatment else {
            return None;
        };
        let has_noise = self.privacy.has_noise();
        has_noise.then(|| Auto::new(start, &self.shared_layout(), experts))
    }

    /// Returns the shared tensors.
    #[must_use]
    pub fn shared_layout(&self) -> Vec<TensorLayout> {
        let shared = self.method.properties().shared_count;
        let mut total = 0;
        let is_shared = |layout: &TensorLayout| {
            total += layout.length();
            total <= shared
        };
        let layout = self.task().layout();
        layout.into_iter().take_while(is_shared).collect()
    }

    /// Returns the lengths of the shared tensors.
    #[must_use]
    pub fn shared_tensors(&self) -> Vec<usize> {
        let layout = self.shared_layout();
        layout.iter().map(TensorLayout::length).collect()
    }

    /// Returns the settings of local training in `round`: the learning rate decays from round to
    /// round.
    #[must_use]
    pub fn training_in(&self, round: u32) -> LocalTraining {
        // One f64 multiplication per round, the same on every machine. `powi` is not.
        let mut rate = f64::from(self.training.learning_rate.get());
        for _ in 0..round {
            rate *= self.learning_rate_decay;
        }
        // A decayed rate leaves the range only by vanishing. The first one then stays in force, as
        // the smallest positive number does no harm either.
        let smallest = f64::from(f32::MIN_POSITIVE);
        let learning_rate =
            LearningRate::new(rate.max(smallest) as f32).unwrap_or(self.training.learning_rate);
        LocalTraining {
            learning_rate,
            ..self.training
        }
    }

    /// Returns the warning about the clip norm of a round, if it is adaptive and far from its start
    /// ([`AdaptiveClip::caution`]).
    #[must_use]
    pub fn clip_norm_caution(&self, round: u32, clip_norm: f32) -> Option<String> {
        self.adaptive?.caution(round, clip_norm)
    }

    /// Returns local training and release in `round`, with its clip norm if that is adaptive.
    #[must_use]
    pub fn terms_in(
        &self,
        round: u32,
        clip_norm: Option<params::ClipNorm>,
    ) -> (LocalTraining, ReleaseSettings) {
        let (training, release) = (self.training_in(round), self.release.clone());
        let Some(clip_norm) = clip_norm else {
            return (training, release);
        };
        // A method without clipped steps has no clip norm here.
        let training = LocalTraining {
            clip_norm: training.clip_norm.map(|_| clip_norm),
            ..training
        };
        (training, release.at_clip_norm(clip_norm))
    }
}

/// Divides a sum of weighted updates by the sum of their weights. With noise, the denominator stays
/// unchanged: the sum of the weights depends on the devices' data.
fn weigh_denominator(
    server: &mut ServerStep,
    cap: Option<u32>,
    federation: &Federation,
    privacy: &PrivacyPlan,
) {
    if let (Some(cap), Some(denominator)) = (cap, &mut server.fixed_denominator)
        && privacy.mechanism.sampler.is_none()
    {
        *denominator *= weight::mean(cap, federation.sample_counts());
    }
}

/// Returns the settings of the configuration, the data and the origin of the devices.
fn declared(config: &Config, federation: &Federation, origin: &Origin) -> Settings {
    let is_private = federation.private_scale().is_some();
    let has_quorum = matches!(
        origin,
        Origin::Fleet {
            has_quorum: true,
            ..
        }
    );
    config.settings().and([
        (Setting::RealDevices, !origin.is_simulation()),
        (Setting::Quorum, has_quorum),
        (Setting::Recorded, matches!(origin, Origin::Replay { .. })),
        (Setting::PrivateScale, is_private),
    ])
}

/// Returns the handling of the devices' updates.
fn release(
    keys: &Keys,
    privacy: &PrivacyPlan,
    properties: &MethodProperties,
    weight_cap: Option<u32>,
    masking: Option<Masking>,
    origin: &Origin,
) -> ReleaseSettings {
    ReleaseSettings {
        channel: Channel::Updates,
        encoding: keys.encoding,
        weight_cap,
        mechanism: privacy.mechanism.clone(),
        masking,
        timing: properties.timing,
        noise_std: keys.privacy.clip_norm.map_or(0.0, |clip_norm| {
            privacy.mechanism.party_noise_std_at(clip_norm)
        }),
        is_simulation: origin.is_simulation(),
        fault: Fault::None,
    }
}

/// Returns the setup for building the method.
pub(crate) fn setup<'a>(
    config: &'a Config,
    keys: &Keys,
    federation: &'a Federation,
    spent: &'a Spent,
    origin: &'a Origin,
) -> Setup<'a> {
    Setup {
        name: config.method.name(),
        rounds: config.rounds,
        seed: config.initial_seed(),
        data: &config.data,
        model: &config.model,
        train: &config.train,
        personalise: &config.personalise,
        contrast: &config.contrast,
        has_noise_multiplier: config.privacy.noise_multiplier.is_some(),
        keys: keys.privacy,
        simulation: &config.simulation,
        federation,
        sampling: keys.sampling,
        spent,
        origin,
    }
}

#[cfg(test)]
mod tests;
