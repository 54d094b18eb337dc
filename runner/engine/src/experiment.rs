//! An experiment that can run: the configuration, validated for its federation.
//!
//! One table has the keys that exclude each other ([`crate::combinations`]). Keys are checked
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
use crate::server::{OwnStep, ServerStep};
use crate::task::Task;
use conditions::conditions;
use correlated::Correlated;
use keys::Keys;
use notes::notes;
use questions::Drafts;
use scaling::ScaleRelease;
use smolfed_data::federation::Federation;
use smolfed_release::masked::{HelperPolicy, Helpers, LocalHelpers};
use smolfed_release::masking::Masking;
use smolfed_release::origin::Origin;
use smolfed_release::plan::{PrivacyPlan, SideReleases, Updates};
use smolfed_release::statement::PrivacyStatement;
use smolfed_release::{Channel, Fault, History, ReleaseSettings, weight};
use trial::Trial;
use weighting::Weights;

/// An experiment that can run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The configuration, complete.
    pub(crate) config: Config,
    /// What devices train.
    pub(crate) method: Arc<dyn Method>,
    /// The settings that its parts declare.
    pub(crate) declared: Settings,
    /// How cohorts are accounted.
    pub(crate) sampling: Sampling,
    /// Who takes part in a round: as is accounted.
    pub(crate) attendance: Attendance,
    /// The bound on the rounds of a device with independent noise, if there is one.
    pub(crate) allowed: Option<Participation>,
    /// Local training in the first round.
    pub(crate) training: LocalTraining,
    /// Factor on the learning rate from one round to the next.
    pub(crate) learning_rate_decay: f64,
    /// What becomes of the devices' updates.
    pub(crate) release: ReleaseSettings,
    /// Noise and accounting.
    pub(crate) privacy: PrivacyPlan,
    /// The release of the features' scale before the first round, if it is private.
    pub(crate) scale_release: Option<ScaleRelease>,
    /// The score of this trial, if the run is one of a private selection.
    pub(crate) trial: Option<Trial>,
    /// What devices are asked between rounds.
    pub(crate) questions: Vec<AskedQuestion>,
    /// The server's step.
    pub(crate) server: ServerStep,
    /// How the clip norm changes from round to round, if it does.
    pub(crate) adaptive: Option<AdaptiveClip>,
    /// Where devices and randomness come from.
    pub(crate) origin: Origin,
    /// The root of a trial that no seed determines. It has no text form.
    pub(crate) secret: Option<Root>,
}

/// What devices release in addition to updates and answers.
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
        Self::with_spent(config, federation, &[], Origin::Simulation)
    }

    /// The same for a population on which other runs have `spent` before.
    ///
    /// # Errors
    /// As [`Self::new`]; also if what was spent leaves no room for a round.
    pub fn with_spent(
        config: Config,
        federation: &Federation,
        spent: &[PrivacyEvent],
        origin: Origin,
    ) -> Result<Self, ExperimentError> {
        let method = config.method;
        Self::build(config, federation, spent, origin, |setup| {
            method.build(setup)
        })
    }

    /// A simulation of a method that has no name in files, which `build` makes. The file's
    /// `method` is ignored, and nothing was spent before.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_method(
        config: Config,
        federation: &Federation,
        build: impl FnOnce(&Setup<'_>) -> Result<Box<dyn Method>, ExperimentError>,
    ) -> Result<Self, ExperimentError> {
        Self::build(config, federation, &[], Origin::Simulation, build)
    }

    fn build(
        config: Config,
        federation: &Federation,
        spent: &[PrivacyEvent],
        origin: Origin,
        build: impl FnOnce(&Setup<'_>) -> Result<Box<dyn Method>, ExperimentError>,
    ) -> Result<Self, ExperimentError> {
        let name = config.method.name();
        let declared = declared(&config, federation, &origin);
        // Before anything is planned, and again with what the method declares.
        declared.agree(name)?;
        let mut keys = Keys::parse(&config, federation)?;
        let (sampling, correlated) = (keys.sampling, keys.correlated.as_ref());
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
        let drafts = Drafts::new(&config, federation, &keys, spent)?;
        let mut notes = notes(&config, &declared, spent, &origin, &properties.notes);
        notes.extend(scale_release.as_ref().map(ScaleRelease::note));
        notes.extend(trial.iter().flat_map(|trial| trial.notes(config.seed)));
        notes.extend(correlated.and_then(Correlated::note));
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
            spent,
            is_ledger_shared: config.privacy.ledger.is_some(),
            conditions: conditions(&config, federation, &origin),
            staleness: keys.attendance.windows().map(|windows| windows.staleness),
            notes,
        })?;
        let masking = distributed::masking(&keys, &privacy, properties.timing)?;
        let questions = drafts.with_noise(&privacy.mechanism, masking, &origin)?;
        privacy.note(questions::note(&questions, config.rounds));
        let devices = sampling.device_count();
        let mut server = keys
            .server
            .step(&config, properties, &keys.attendance, devices)?;
        weigh_denominator(&mut server, weight_cap, federation, &privacy);
        Ok(Self {
            declared,
            sampling,
            training: keys.training,
            learning_rate_decay: keys.learning_rate_decay,
            release: release(&keys, &privacy, properties, weight_cap, masking, &origin),
            attendance: keys.attendance,
            allowed: keys.allowed,
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

    /// The configuration, complete.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Who takes part in a round.
    #[must_use]
    pub const fn attendance(&self) -> &Attendance {
        &self.attendance
    }

    /// What devices train.
    #[must_use]
    pub fn method(&self) -> &dyn Method {
        &*self.method
    }

    /// Refuses settings that exclude this source of devices.
    ///
    /// # Errors
    /// [`Conflict`] with the first rule that this breaks.
    pub fn fits_source(&self, source: Setting) -> Result<(), Conflict> {
        self.declared
            .clone()
            .and(source)
            .agree(self.config.method.name())
    }

    /// How cohorts are accounted.
    #[must_use]
    pub const fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// The grid of the model that devices get, if it has one.
    #[must_use]
    pub const fn model_grid(&self) -> Option<ModelGrid> {
        self.server.grid
    }

    /// A model of the server as all others see it: on the grid, if there is one.
    #[must_use]
    pub fn published(&self, model: Vec<f32>) -> Vec<f32> {
        GlobalModel::new(self.server.grid, model)
            .published()
            .to_vec()
    }

    /// The bound on the rounds of a device that ε relies on, with correlated noise or with windows
    /// of time.
    #[must_use]
    pub fn allowed(&self) -> Option<Participation> {
        let strategy = self.release.mechanism.strategy.as_ref();
        let correlated = strategy.map(|strategy| strategy.participation());
        correlated.or(self.allowed)
    }

    /// Whether the sizes of cohorts must stay secret: where ε rests on the secrecy of the draw
    /// ([`Config::has_secret_cohorts`]), and in windows of real devices that send their updates in
    /// clear. Such a device says at once that it cannot train, so that its data may decide in which
    /// window it counts.
    #[must_use]
    pub fn has_secret_sizes(&self) -> bool {
        let is_window = self.attendance.windows().is_some();
        let is_in_clear = !self.release.is_simulation && !self.release.mechanism.is_local();
        self.config.has_secret_cohorts() || (is_window && is_in_clear)
    }

    /// s: the number of windows after that of its model in which an update still counts. It is 0
    /// without windows.
    #[must_use]
    pub fn staleness(&self) -> u32 {
        let windows = self.attendance.windows();
        windows.map_or(0, |windows| windows.staleness)
    }

    /// Local training in the first round.
    #[must_use]
    pub const fn training(&self) -> LocalTraining {
        self.training
    }

    /// What becomes of the devices' updates.
    #[must_use]
    pub const fn release(&self) -> &ReleaseSettings {
        &self.release
    }

    /// Noise and accounting.
    #[must_use]
    pub const fn privacy(&self) -> &PrivacyPlan {
        &self.privacy
    }

    /// The release of the features' scale before the first round, if it is private.
    #[must_use]
    pub const fn scale_release(&self) -> Option<&ScaleRelease> {
        self.scale_release.as_ref()
    }

    /// The score of this trial, if the run is one of a private selection.
    #[must_use]
    pub const fn trial(&self) -> Option<&Trial> {
        self.trial.as_ref()
    }

    /// What devices are asked between rounds.
    #[must_use]
    pub fn questions(&self) -> &[AskedQuestion] {
        &self.questions
    }

    /// The questions after `round`, each with its number.
    pub fn questions_after(&self, round: u32) -> impl Iterator<Item = (u32, &AskedQuestion)> {
        let first = self.number_of(round).saturating_add(1);
        let due = self.questions.iter();
        let due = due.filter(move |question| question.side.schedule.is_in(round));
        (first..).zip(due)
    }

    /// The number of `round` among all rounds and questions of the run, which names its random
    /// streams.
    #[must_use]
    pub fn number_of(&self, round: u32) -> u32 {
        questions::number_of(&self.questions, round)
    }

    /// Where devices and randomness come from.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The same experiment with the randomness of another trial of a private selection, which a
    /// seed determines.
    #[must_use]
    pub fn with_trial_seed(mut self, seed: u64) -> Self {
        if self.trial.is_some() {
            self.config.set_trial_seed(TrialSeed::Known(seed));
        }
        self
    }

    /// The same experiment with secret randomness of a trial of a private selection. The
    /// configuration says that it is secret, and nothing more.
    #[must_use]
    pub fn with_trial_secret(mut self, root: Root) -> Self {
        if self.trial.is_some() {
            self.config.set_trial_seed(TrialSeed::SECRET);
            self.secret = Some(root);
        }
        self
    }

    /// The root of the random streams of cohorts, training and noise.
    ///
    /// # Errors
    /// [`ExperimentError::SecretRandomness`] if the configuration is that of a run with secret
    /// randomness, which was not kept.
    pub fn root(&self) -> Result<Root, ExperimentError> {
        match (&self.secret, self.config.run_seed()) {
            (Some(root), _) => Ok(root.clone()),
            (None, Some(seed)) => Ok(Root::from_seed(seed)),
            (None, None) => Err(ExperimentError::SecretRandomness),
        }
    }

    /// The same experiment with a server's step of a program, which sees released sums only.
    #[must_use]
    pub fn with_own_step(mut self, step: OwnStep) -> Self {
        self.server.own = Some(step);
        self
    }

    /// The model.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.method.properties().task
    }

    /// The privacy events of `round`, which are charged before it; empty if it releases nothing.
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

    /// The privacy statements for the first `rounds` rounds: of the updates and, if devices send
    /// other messages, of these. `repeated` are the events that the ledger charges once more. They
    /// count what devices may send by the plan, and not what they sent, which depends on who took
    /// part.
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

    /// The federation with its scale: where that is private, from the devices' moments with noise
    /// of the experiment's root; simulations only. Without a root, no run follows, and the scale
    /// stays open.
    #[must_use]
    pub fn scaled<'a>(&self, federation: &'a Federation) -> Cow<'a, Federation> {
        let release = self.scale_release.as_ref().zip(self.root().ok());
        match release.and_then(|(release, root)| release.scaled(federation, &root)) {
            Some(scaled) => Cow::Owned(scaled),
            None => Cow::Borrowed(federation),
        }
    }

    /// What the mechanism keeps from round to round, before the first.
    #[must_use]
    pub fn history(&self) -> History {
        let strategy = self.release.mechanism.strategy.as_ref();
        let bits = self.release.encoding.grid().map_or(0, |grid| grid.bits());
        let ring = self.release.masking.map(|masking| masking.ring);
        let history = History::new(strategy, bits, self.method.properties().shared_count);
        history.of_masked(ring).admitting(self.allowed)
    }

    /// What each helper insists on, for cohorts of `min_cohort` devices or more; `None` without
    /// helpers.
    #[must_use]
    pub fn helper_policy(&self, min_cohort: u32) -> Option<HelperPolicy> {
        // Of all rounds and answers.
        let rounds = self.number_of(self.config.rounds);
        distributed::policy(
            self.release.masking,
            &self.privacy.mechanism,
            rounds,
            min_cohort,
        )
    }

    /// The helpers of a simulation, with keys and noise of its root; `None` with real devices, and
    /// without helpers.
    #[must_use]
    pub fn local_helpers<'h>(&self, root: &Root) -> Option<Box<dyn Helpers + 'h>> {
        let policy = self
            .helper_policy(0)
            .filter(|_| self.release.is_simulation)?;
        let devices = self.sampling.device_count();
        Some(Box::new(LocalHelpers::new(
            &policy,
            devices,
            root,
            self.release.fault,
        )))
    }

    /// What `denoiser = "auto"` keeps, before the first round of a model. Nothing without noise:
    /// the model is then that of no denoiser.
    #[must_use]
    pub fn auto(&self, start: &[f32]) -> Option<Auto> {
        let experts = self.server.auto.as_ref();
        let experts = experts.filter(|_| self.privacy.has_noise())?;
        Some(Auto::new(start, &self.shared_layout(), experts))
    }

    /// The tensors that are shared.
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

    /// Lengths of the tensors that are shared.
    #[must_use]
    pub fn shared_tensors(&self) -> Vec<usize> {
        let layout = self.shared_layout();
        layout.iter().map(TensorLayout::length).collect()
    }

    /// Local training in `round`: the learning rate decays from round to round.
    #[must_use]
    pub fn training_in(&self, round: u32) -> LocalTraining {
        // One multiplication a round in f64, the same on every machine; `powi` is not.
        let mut rate = f64::from(self.training.learning_rate.get());
        for _ in 0..round {
            rate *= self.learning_rate_decay;
        }
        // A decayed rate only leaves the range by vanishing; the first one then stays in force, as
        // the smallest positive number does no harm either.
        let smallest = f64::from(f32::MIN_POSITIVE);
        let learning_rate =
            LearningRate::new(rate.max(smallest) as f32).unwrap_or(self.training.learning_rate);
        LocalTraining {
            learning_rate,
            ..self.training
        }
    }

    /// The warning about the clip norm of a round, if it is adaptive and far from where it began
    /// ([`AdaptiveClip::caution`]).
    #[must_use]
    pub fn clip_norm_caution(&self, round: u32, clip_norm: f32) -> Option<String> {
        self.adaptive?.caution(round, clip_norm)
    }

    /// Local training and release in `round`: with its clip norm, if that is adaptive.
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
        // A method that does not clip its steps says so by no clip norm.
        let training = LocalTraining {
            clip_norm: training.clip_norm.map(|_| clip_norm),
            ..training
        };
        (training, release.at_clip_norm(clip_norm))
    }
}

/// Divides a sum of weighted updates by the sum of their weights. With noise the denominator stays
/// as it is: the sum of the weights depends on the devices' data.
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

/// The settings of the configuration, the data and the origin of the devices.
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
        (Setting::RealDevices, matches!(origin, Origin::Fleet { .. })),
        (Setting::Quorum, has_quorum),
        (Setting::Recorded, matches!(origin, Origin::Replay { .. })),
        (Setting::PrivateScale, is_private),
    ])
}

/// What becomes of the devices' updates.
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
        is_simulation: !matches!(origin, Origin::Fleet { .. }),
        fault: Fault::None,
    }
}

/// What the method is built from.
pub(crate) fn setup<'a>(
    config: &'a Config,
    keys: &Keys,
    federation: &'a Federation,
    spent: &'a [PrivacyEvent],
    origin: &'a Origin,
) -> Setup<'a> {
    Setup {
        name: config.method.name(),
        rounds: config.rounds,
        seed: config.initial_seed(),
        data: &config.data,
        model: &config.model,
        cohort: &config.cohort,
        train: &config.train,
        server: &config.server,
        personalise: &config.personalise,
        contrast: &config.contrast,
        privacy: &config.privacy,
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
