//! The round loop (draw, train, release, apply, evaluate), and the errors that end a run, such as a
//! cohort in which nobody could train. With noise, that is no error, as it depends on the data.
//!
//! A round depends only on the [`TrainingState`] after the earlier ones, and on the root of its
//! random streams, which the round's number distinguishes. A run can therefore stop after any round
//! and resume from its state with the same bits.

pub mod record;
pub mod spectrum;
pub mod state;
pub mod tally;
mod versions;

use std::collections::BTreeMap;
use std::time::Instant;

use smolfed_accounting::correlated::CorrelatedError;
use smolfed_core::model::ModelError;
use smolfed_core::params::ClipNorm;
use smolfed_core::stream::Root;
use smolfed_core::train::LocalTraining;

use crate::attendance::buffered::Arrivals;
use crate::denoise::Auto;
use crate::evaluation::assessment::{FinalAssessment, HeldOutPart, assess};
use crate::evaluation::devices::DeviceReport;
use crate::evaluation::samples::{Evaluation, evaluate};
use crate::experiment::Experiment;
use crate::experiment::trial::Trial;
use crate::method::contract::{Assignment, EvaluationError, Figures, Learner, Store, View};
use crate::method::state::StateError;
use crate::question::{Answer, Inquiry};
use crate::representation::Picture;
use crate::source::{CohortSum, Draw, Source, SourceError, Step};
use smolfed_data::federation::Federation;
use smolfed_release::masked::{Asked, HelperError, Helpers};
use smolfed_release::saved::Saved;
use smolfed_release::sum::ReleaseAt;
use smolfed_release::{
    Admitted, History, Outcome, PrivateSum, ReleaseDigest, ReleaseSettings, Released, publish,
};

use crate::server::model::GlobalModel;
use versions::{Version, Versions};

pub use record::{RoundRecord, SimulationOnly, origin_of};
pub use spectrum::Spectrum;
pub use state::TrainingState;
pub use tally::WindowTally;

/// Why a round failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoundError {
    /// The model does not fit the data.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The source of devices failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The release does not match the mechanism.
    #[error(transparent)]
    Mechanism(#[from] CorrelatedError),
    /// A helper failed, and the run does not wait for it.
    #[error(transparent)]
    Helper(#[from] HelperError),
    /// The evaluation failed.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// No device of a cohort could train.
    #[error("round {round}: every device of the cohort was left out; the first because {reason}")]
    NobodyTrained {
        /// The round.
        round: u32,
        /// Why the first device was left out.
        reason: String,
    },
}

/// A federation in training.
pub struct TrainingLoop<'a> {
    experiment: &'a Experiment,
    federation: &'a Federation,
    learner: Box<dyn Learner + 'a>,
    root: Root,
    global: GlobalModel,
    round: u32,
    /// L of the next round, if it is adaptive.
    clip_norm: Option<ClipNorm>,
    /// The released score of a trial after the last round.
    score: Option<f64>,
    /// The releases after the last round, with the numbers of their questions.
    answers: Vec<(u8, Released)>,
    /// State of the mechanism from earlier rounds.
    history: History,
    /// The models of earlier rounds, if rounds are time windows.
    versions: Versions,
    /// The helpers that remove the masks (distributed trust).
    helpers: Option<Box<dyn Helpers + 'a>>,
    /// State of `denoiser = "auto"` from earlier rounds.
    auto: Option<Auto>,
    spectrum: Option<Spectrum>,
    devices: Option<DeviceReport>,
    assessment: Option<FinalAssessment>,
    picture: Option<Picture>,
}

/// The result of a round.
#[derive(Clone, Debug)]
pub struct RoundResult {
    /// The round's record. The caller fills in ε.
    pub record: RoundRecord,
    /// The released sum, which is public like the model, or `None` if the round produced none.
    pub released: Option<Released>,
}

impl<'a> TrainingLoop<'a> {
    /// Creates a loop that starts or resumes from `state`, and draws its random streams from
    /// `root`.
    ///
    /// * `store`: storage for the state of the method. Without one, it is in memory or temporary
    ///   files.
    /// * `helpers`: remove the masks, instead of a simulation's helpers.
    ///
    /// # Errors
    /// [`StateError`] if the states of devices cannot be stored, or `state` belongs to another
    /// experiment.
    pub fn new(
        experiment: &'a Experiment,
        federation: &'a Federation,
        root: Root,
        state: &TrainingState,
        store: Option<Store<'_>>,
        helpers: Option<Box<dyn Helpers + 'a>>,
    ) -> Result<Self, StateError> {
        let mut history = experiment.history();
        let mut versions = Versions::new(experiment.staleness());
        let mut helpers = helpers.or_else(|| experiment.local_helpers(&root));
        let mut auto = experiment.auto(&state.global);
        let mut restore = || {
            if state.round > 0 {
                history.restore(&state.server, state.round)?;
                versions.restore(&state.server, state.round, state.global.len())?;
                let helpers = helpers.as_mut();
                helpers.map_or(Ok(()), |helpers| helpers.restore(&state.server))?;
                let auto = auto.as_mut();
                auto.map_or(Ok(()), |auto| auto.restore(&state.server))?;
            }
            match state.clip_norm {
                None if experiment.adaptive.is_some() => Err("it has no `clip_norm`".to_owned()),
                _ if store.is_none() && state.method != Saved::default() => {
                    Err("the method's state is only where its run is stored".to_owned())
                }
                _ => Ok(()),
            }
        };
        restore().map_err(|reason| StateError::Checkpoint { reason })?;
        Ok(Self {
            learner: experiment.method.begin(federation, store)?,
            experiment,
            federation,
            root,
            global: GlobalModel::new(experiment.model_grid(), state.global.clone()),
            round: state.round,
            clip_norm: state.clip_norm.filter(|_| experiment.adaptive.is_some()),
            score: None,
            answers: Vec::new(),
            history,
            versions,
            helpers,
            auto,
            spectrum: None,
            devices: None,
            assessment: None,
            picture: None,
        })
    }

    /// Creates a simulation before its first round. It keeps its state in memory or temporary
    /// files.
    ///
    /// # Errors
    /// [`StateError`] if the states of devices cannot be stored, or the randomness was not kept.
    pub fn simulation(
        experiment: &'a Experiment,
        federation: &'a Federation,
    ) -> Result<Self, StateError> {
        let root = experiment.root()?;
        let state = TrainingState::new(experiment);
        Self::new(experiment, federation, root, &state, None, None)
    }

    /// Returns the state after the last round, in the run of this name. The states of devices are
    /// on disk when this returns.
    ///
    /// # Errors
    /// [`StateError`] if they cannot be written.
    pub fn state(&mut self, run: &str) -> Result<TrainingState, StateError> {
        let mut server = Saved::default();
        self.history
            .save(&mut server, self.experiment.release.is_simulation);
        self.versions.save(&mut server);
        if let Some(helpers) = &self.helpers {
            helpers.save(&mut server);
        }
        if let Some(auto) = &self.auto {
            auto.save(&mut server);
        }
        Ok(TrainingState {
            round: self.round,
            global: self.global.kept().to_vec(),
            clip_norm: self.clip_norm,
            method: self.learner.save(run)?,
            server,
        })
    }

    /// Reports that the state after the last round is on disk. The files it relies on are not
    /// overwritten.
    pub fn state_saved(&mut self) {
        self.learner.committed(self.round);
    }

    /// Waits until a round can take place, before it is charged.
    ///
    /// # Errors
    /// [`RoundError::Helper`] if helpers are missing and the run does not wait for them.
    pub fn ready(&mut self) -> Result<(), RoundError> {
        match &mut self.helpers {
            Some(helpers) => Ok(helpers.ready()?),
            None => Ok(()),
        }
    }

    /// Runs one round with the devices of `source`. The ledger must have recorded its privacy cost
    /// before.
    ///
    /// # Errors
    /// [`RoundError`]. The run then ends, and resumes from its last checkpoint.
    pub fn step(&mut self, source: &mut dyn Source) -> Result<RoundResult, RoundError> {
        let started = Instant::now();
        let (experiment, round) = (self.experiment, self.round);
        let is_last = round + 1 == experiment.config.rounds;
        let mut record = RoundRecord::new(round, experiment.training_in(round).learning_rate);

        // Draw.
        let number = experiment.number_of(round);
        let (training, release) = experiment.terms_in(round, self.clip_norm);
        self.offer(source, Step { round, number }, training, &release)?;
        let Some(draw) = self.draw(source, Step { round, number })? else {
            return Ok(self.burned(record));
        };
        let (number, cohort) = (draw.number, &draw.cohort);
        record.cohort = cohort.len();
        record.clip_norm = self.clip_norm.map(ClipNorm::get);
        if draw.history_lost {
            self.history.restart();
        }

        // Train. The devices' messages are private, and enter an exact sum.
        let trained = self.train(source, &draw, training, &release)?;
        if experiment.attendance.windows().is_some() {
            record.of_window(&draw, experiment.staleness());
        } else if !experiment.has_noise() {
            somebody_trained(round, &trained.outcomes)?;
        }
        record.simulation_only = SimulationOnly::new(&trained.outcomes, &trained.left_out_messages);

        // Release: the sum is public once it contains the noise.
        let at = ReleaseAt {
            number,
            learning_rate: record.learning_rate,
            cohort_size: cohort.len(),
        };
        let without_noise = is_last
            .then(|| trained.sum.simulated(&release, &at))
            .flatten();
        let released = self.publish(trained.sum, trained.asked, &release, &at);
        source.round_finished(released.is_err())?;
        let released = match released {
            Ok(released) => self.history.decode(released)?,
            Err(error) => return Ok(self.lost(error, record)),
        };

        // Apply: everything from here on is post-processing.
        self.versions.keep(Version {
            round,
            number,
            model: self.global.published().to_vec(),
        });
        let clean =
            without_noise.map(|sum| experiment.server.simulated_average(&sum, cohort.len()));
        self.apply(&released, clean.as_deref(), is_last);
        if let Some(auto) = &self.auto {
            record.experts = auto.weights();
            record.kept = auto.kept().to_vec();
        }
        record.beyond_grid = self.global.beyond();
        record.unclipped_share = self.adapt(&released);
        if is_last {
            self.score = self.scored()?;
            record.score = self.score;
        }
        record.answers = self.ask(source)?;
        self.round += 1;

        // Evaluate.
        let every = experiment.config.evaluate_every;
        if is_last || (every > 0 && self.round.is_multiple_of(every)) {
            self.evaluate(&mut record, is_last)?;
        }
        record.seconds = started.elapsed().as_secs_f64();
        Ok(RoundResult {
            record: record.with_origins(experiment.has_secret_sizes()),
            released: Some(released),
        })
    }

    /// Starts a time window: devices that ask in it get the current model.
    fn offer(
        &self,
        source: &mut dyn Source,
        step: Step,
        training: LocalTraining,
        release: &ReleaseSettings,
    ) -> Result<(), SourceError> {
        if self.experiment.attendance.windows().is_none() {
            return Ok(());
        }
        let assignment = Assignment {
            training,
            release,
            // Updates are admitted on arrival.
            admitted: &Admitted::All,
            root: &self.root,
            global: self.global.published(),
            round: step.round,
            number: step.number,
        };
        source.offer(&assignment, &*self.learner)
    }

    /// Trains the devices of a round, and sums up their updates.
    fn train(
        &mut self,
        source: &mut dyn Source,
        draw: &Draw,
        training: LocalTraining,
        release: &ReleaseSettings,
    ) -> Result<CohortSum, SourceError> {
        let (experiment, round) = (self.experiment, self.round);
        let admitted = self.history.admit(round, &draw.cohort);
        let admitted = release.fault.admits(admitted);
        let assignment = Assignment {
            training,
            release,
            admitted: &admitted,
            root: &self.root,
            global: self.global.published(),
            round,
            number: draw.number,
        };
        let learner = &mut *self.learner;
        match experiment.attendance.windows() {
            None => source.sum(&assignment, learner, &draw.cohort),
            Some(_) => {
                let (versions, rates) = (&self.versions, |v| experiment.training_in(v));
                sum_of_window(source, &assignment, learner, versions, draw, rates)
            }
        }
    }

    /// Makes the sum of a round public. With masks, it asks the helpers.
    fn publish(
        &mut self,
        sum: PrivateSum,
        asked: Option<Asked>,
        release: &ReleaseSettings,
        at: &ReleaseAt,
    ) -> Result<Released, HelperError> {
        let helpers = helpers_of(&mut self.helpers);
        let history = &mut self.history;
        publish(sum, asked, history, helpers, release, &self.root, at)
    }

    /// Adds the release to the global model. In the last round, also computes the spectrum next to
    /// a simulation's average without noise.
    fn apply(&mut self, released: &Released, clean: Option<&[f32]>, is_last: bool) {
        let server = &self.experiment.server;
        let tensors = self.experiment.shared_tensors();
        let mut average = server.average(released);
        let noisy = is_last.then(|| average.clone());
        let auto = self.auto.as_mut();
        self.global
            .update(|kept| server.apply(kept, &mut average, released, &tensors, auto));
        self.spectrum = noisy.map(|noisy| {
            let weights = tensors.first().copied().unwrap_or(0);
            Spectrum::new(clean, &noisy, &average, weights)
        });
    }

    /// Sets the clip norm of the next round from the release. Returns the noisy share of the
    /// updates that were not clipped.
    fn adapt(&mut self, released: &Released) -> Option<f64> {
        let adaptive = self.experiment.adaptive?;
        let share = adaptive.unclipped_share(released)?;
        self.clip_norm = self.clip_norm.map(|now| adaptive.next(now, share));
        Some(share)
    }

    /// Asks the questions after the round, about the current model. Each has a separate cohort,
    /// noise and release, like a round.
    pub(crate) fn ask(&mut self, source: &mut dyn Source) -> Result<Vec<Answer>, RoundError> {
        let (experiment, round) = (self.experiment, self.round);
        let of_round = experiment.number_of(round);
        self.answers.clear();
        let mut answers = Vec::new();
        for (own, asked) in experiment.questions_after(round) {
            let fault = asked.release.fault;
            let number = fault.answer_draw(own, of_round);
            let step = Step { round, number };
            let Some(draw) = source.draw(&asked.attendance, &self.root, step)? else {
                continue;
            };
            let number = fault.answer_number(draw.number, own, of_round);
            let answered = source.answers(
                &Inquiry {
                    asked,
                    task: experiment.task(),
                    model: self.global.published(),
                    format: experiment.method.properties().arithmetic.feature_format(),
                    training: experiment.training_in(round),
                    root: &self.root,
                    round,
                    number,
                },
                &draw.cohort,
            )?;
            let at = ReleaseAt {
                number,
                learning_rate: 1.0,
                cohort_size: draw.cohort.len(),
            };
            let release = &asked.release;
            let ring = release.masking.map(|masking| masking.ring);
            // An answer is not combined with other releases.
            let bits = release.encoding.grid().map_or(0, |grid| grid.bits());
            let mut alone = History::new(None, bits, asked.length()).of_masked(ring);
            let released = publish(
                answered.sum,
                answered.asked,
                &mut alone,
                helpers_of(&mut self.helpers),
                release,
                &self.root,
                &at,
            );
            source.round_finished(released.is_err())?;
            match released {
                Ok(released) => {
                    answers.push(asked.answer(&released));
                    self.answers.push((asked.index, released));
                }
                Err(error) => {
                    let what = format!("the answer to \"{}\" after round {round}", asked.name);
                    self.warn_of_loss(&what, error);
                }
            }
        }
        Ok(answers)
    }

    /// Warns that a round is lost without its helpers' answers, and continues.
    fn lost(&mut self, error: HelperError, record: RoundRecord) -> RoundResult {
        self.warn_of_loss(&format!("round {}", self.round), error);
        self.burned(record)
    }

    /// Warns about a loss without the helpers' answers.
    fn warn_of_loss(&mut self, what: &str, error: HelperError) {
        tracing::warn!(
            reason = "lost",
            round = self.round,
            private = format!("{what} is lost: {}", error.in_private()),
            "{what} is lost: {error}"
        );
        if let Some(helpers) = &mut self.helpers {
            helpers.lost(error);
        }
    }

    /// Continues after a charged round that failed. The mechanism's state is lost or has a gap, and
    /// the round counts for all devices that may have taken part.
    fn burned(&mut self, mut record: RoundRecord) -> RoundResult {
        if self.history.is_kept() {
            let attendance = &self.experiment.attendance;
            let number = self.experiment.number_of(self.round);
            let cohort = match attendance.windows() {
                None => attendance.cohort(&self.root, self.round, number),
                // The set of arrived updates is lost with the process that knew it.
                Some(_) => (0..self.experiment.sampling().device_count()).collect(),
            };
            self.history.admit(self.round, &cohort);
            self.history.restart();
        }
        self.learner.burned(self.round);
        self.round += 1;
        record.burned = true;
        RoundResult {
            record: record.with_origins(self.experiment.has_secret_sizes()),
            released: None,
        }
    }

    /// Returns the noisy score of a trial of a private selection.
    fn scored(&self) -> Result<Option<f64>, ModelError> {
        let score = |trial: &Trial| {
            let task = self.experiment.task();
            trial.score(task, self.global.published(), self.federation, &self.root)
        };
        self.experiment.trial.as_ref().map(score).transpose()
    }

    fn draw(&self, source: &mut dyn Source, step: Step) -> Result<Option<Draw>, SourceError> {
        match self.experiment.method.properties().has_one_participant {
            true => {
                let alone = Arrivals {
                    devices: vec![0],
                    ..Arrivals::default()
                };
                Ok(Some(Draw::of(step.number, alone)))
            }
            false => source.draw(&self.experiment.attendance, &self.root, step),
        }
    }

    /// Evaluates the shared model on common samples and, for simulated devices, the method.
    fn evaluate(&mut self, record: &mut RoundRecord, is_last: bool) -> Result<(), RoundError> {
        let properties = self.experiment.method.properties();
        let target_unit = self.federation.target_scale().std();
        let evaluated = |samples| -> Result<Option<Evaluation>, ModelError> {
            match properties.shares_a_model {
                true => evaluate(
                    &properties.task,
                    properties.arithmetic.name(),
                    self.global.published(),
                    samples,
                    target_unit,
                ),
                false => Ok(None),
            }
        };
        record.test = evaluated(self.federation.test())?;
        record.test_is_simulation_only =
            record.test.is_some() && self.federation.test_belongs_to_devices();
        let only = &mut record.simulation_only;
        only.validation = evaluated(self.federation.validation())?;
        if is_last && properties.shares_a_model {
            self.assessment = self.assess()?;
        }
        if !self.experiment.release.is_simulation {
            return Ok(());
        }
        let Figures {
            means,
            devices,
            knn_accuracy,
            probe_accuracy,
            picture,
        } = self.learner.evaluate(&View {
            federation: self.federation,
            global: self.global.published(),
            training: &self.experiment.training,
            root: &self.root,
            is_last,
        })?;
        [only.devices, only.devices_validation] = means;
        [only.knn_accuracy, only.validation_knn_accuracy] = knn_accuracy;
        only.probe_accuracy = probe_accuracy;
        if is_last {
            (self.devices, self.picture) = (devices, picture);
        }
        Ok(())
    }

    /// Assesses the shared model on test samples or, without any, on validation samples.
    fn assess(&self) -> Result<Option<FinalAssessment>, ModelError> {
        let federation = self.federation;
        let (part, samples) = match federation.test() {
            none if none.is_empty() => (HeldOutPart::Validation, federation.validation()),
            test => (HeldOutPart::Test, test),
        };
        let task = self.experiment.task();
        let figures = assess(
            task,
            self.global.published(),
            samples,
            federation.target_scale(),
        )?;
        Ok(figures.map(|figures| FinalAssessment {
            part,
            is_simulation_only: part == HeldOutPart::Validation
                || federation.test_belongs_to_devices(),
            figures,
        }))
    }

    /// Returns the experiment.
    #[must_use]
    pub const fn experiment(&self) -> &'a Experiment {
        self.experiment
    }

    /// Returns the global model.
    #[must_use]
    pub fn global(&self) -> &[f32] {
        self.global.published()
    }

    /// Returns L of the next round, if it is adaptive.
    #[must_use]
    pub const fn clip_norm(&self) -> Option<ClipNorm> {
        self.clip_norm
    }

    /// Returns the number of completed rounds, which is the number of the next one.
    #[must_use]
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// Makes `round` the next one, whatever came before it, for audits.
    pub(crate) const fn skip_to(&mut self, round: u32) {
        self.round = round;
    }

    /// Returns the releases after the last round, with the indices of their questions.
    pub(crate) fn answers(&self) -> &[(u8, Released)] {
        &self.answers
    }

    /// Returns whether all rounds are done.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.round >= self.experiment.config.rounds
    }

    /// Returns the digest of the last round's releases, and of the scale that its devices have.
    #[must_use]
    pub fn digest(&self, released: &Released) -> String {
        let mut digest = ReleaseDigest::default();
        digest.moments(self.federation.released_moments());
        digest.score(self.score);
        for (question, released) in &self.answers {
            digest.answer(*question, released);
        }
        self.learner.write_messages(&mut digest);
        digest.with_sum(released)
    }

    /// Returns the spectrum of the last round's averaged update, known after the last round.
    #[must_use]
    pub const fn spectrum(&self) -> Option<&Spectrum> {
        self.spectrum.as_ref()
    }

    /// Returns the picture of the representations after the last round, if the method trains an
    /// encoder.
    #[must_use]
    pub const fn picture(&self) -> Option<&Picture> {
        self.picture.as_ref()
    }

    /// Returns the figures of each device after the last round, on its own test samples.
    #[must_use]
    pub const fn devices(&self) -> Option<&DeviceReport> {
        self.devices.as_ref()
    }

    /// Returns the assessment of the shared model, known after the last round.
    #[must_use]
    pub const fn assessment(&self) -> Option<&FinalAssessment> {
        self.assessment.as_ref()
    }
}

/// Returns the helpers that remove the masks.
fn helpers_of<'h>(helpers: &'h mut Option<Box<dyn Helpers + '_>>) -> Option<&'h mut dyn Helpers> {
    let helpers = helpers.as_deref_mut();
    helpers.map(|helpers| helpers as &mut dyn Helpers)
}

/// Trains the devices whose updates arrive in a time window, each from its version, and sums up
/// their updates. Updates of a version that the window does not accept are left out, whatever the
/// source says.
fn sum_of_window(
    source: &mut dyn Source,
    window: &Assignment<'_>,
    learner: &mut dyn Learner,
    versions: &Versions,
    draw: &Draw,
    training_of: impl Fn(u32) -> LocalTraining,
) -> Result<CohortSum, SourceError> {
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (device, version) in draw.cohort.iter().zip(&draw.versions) {
        groups.entry(*version).or_default().push(*device);
    }
    let mut sum = PrivateSum::zero(window.global.len());
    let (mut outcomes, mut left_out_messages) = (BTreeMap::new(), Vec::new());
    for (version, devices) in groups {
        let found = versions.find(version, window.round);
        let assignment = match found {
            _ if version == window.round => *window,
            Some(found) => Assignment {
                training: training_of(version),
                global: &found.model,
                round: found.round,
                number: found.number,
                ..*window
            },
            None => continue,
        };
        let trained = source.sum(&assignment, learner, &devices)?;
        sum.absorb(&trained.sum);
        left_out_messages.extend(trained.left_out_messages);
        outcomes.extend(devices.into_iter().zip(trained.outcomes));
    }
    let outcome = |device| outcomes.remove(device).unwrap_or(Outcome::Missing);
    Ok(CohortSum {
        sum,
        outcomes: draw.cohort.iter().map(outcome).collect(),
        left_out_messages,
        asked: None,
    })
}

/// Refuses a round in which every device of the cohort was left out. Whether devices can train
/// depends on their data: with noise the round continues, releases noise alone, and nobody can
/// tell.
fn somebody_trained(round: u32, outcomes: &[Outcome]) -> Result<(), RoundError> {
    let is_left_out = |outcome: &Outcome| matches!(outcome, Outcome::LeftOut { .. });
    match outcomes.first() {
        Some(Outcome::LeftOut { reason }) if outcomes.iter().all(is_left_out) => {
            let reason = reason.clone();
            Err(RoundError::NobodyTrained { round, reason })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
