//! A run from its configuration to its directory (prepare, train or resume with checkpoints,
//! finish), and the reasons why it has no result.
//!
//! | module | contents |
//! | --- | --- |
//! | [`directory`] | all files of a run |
//! | [`recorder`] | records written during the run |
//! | [`budget`] | the limit on ε |
//! | [`verify`] | check of its privacy statement against its ledger |

pub mod budget;
pub mod directory;
pub mod recorder;
pub mod verify;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use smolfed_accounting::AccountingError;
use smolfed_core::stream::Root;

use crate::arithmetic;
use crate::check::ExperimentError;
use crate::config::Config;
use crate::evaluation::assessment::FinalAssessment;
use crate::evaluation::devices::DeviceReport;
use crate::experiment::Experiment;
use crate::membership::{Attack, Roc};
use crate::method::contract::{EvaluationError, Store};
use crate::method::state::StateError;
use crate::preprocessing::Preprocessing;
use crate::round::state::OWN_STEP;
use crate::round::{RoundError, RoundRecord, RoundResult, Spectrum, TrainingLoop, TrainingState};
use crate::run_files::error::{RunDirError, damaged};
use crate::server::Treatment;
use crate::source::{Simulated, Source, SourceError};
use crate::task::pretrained;
use budget::{Budget, BudgetError};
use directory::RunDir;
use directory::model_file::InputLayout;
use recorder::{LedgerWriter, RunRecorder, SaveError};
use smolfed_data::{DataError, DataFolders, Federation};
use smolfed_release::ledger::{Ledger, LedgerError, Spent, has_its_own_seed};
use smolfed_release::masked::Helpers;
use smolfed_release::origin::Origin;
use smolfed_release::statement::PrivacyStatement;

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The data failed.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The experiment failed.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A round failed.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// The accountant failed.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// The run directory failed.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The privacy ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The states of devices failed.
    #[error(transparent)]
    States(#[from] StateError),
    /// The limit on ε was reached.
    #[error(transparent)]
    Budget(#[from] BudgetError),
}

impl From<SaveError> for RunError {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::RunDir(error) => error.into(),
            SaveError::States(error) => error.into(),
        }
    }
}

impl RunError {
    /// Returns whether the input is to blame, not the run.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Data(_) | Self::Experiment(_) => true,
            Self::RunDir(error) => !matches!(error, RunDirError::Io { .. }),
            Self::Ledger(error) => !matches!(error, LedgerError::Io { .. }),
            Self::States(error)
            | Self::Round(
                RoundError::Source(SourceError::States(error))
                | RoundError::Evaluation(EvaluationError::State(error)),
            ) => error.is_bad_input(),
            Self::Round(_) | Self::Accounting(_) | Self::Budget(_) => false,
        }
    }

    /// Returns whether a round was refused because it costs too much.
    const fn is_over_budget(&self) -> bool {
        matches!(
            self,
            Self::Budget(BudgetError::OverBudget { .. })
                | Self::Ledger(LedgerError::OverLimit { .. })
        )
    }
}

/// How a run ended.
#[derive(Debug)]
pub enum Ending {
    /// All rounds are done.
    Done,
    /// The run was asked to stop.
    Interrupted,
    /// The next round would have exceeded the limit on ε.
    OverBudget(Box<RunError>),
    /// After some rounds, the run stopped waiting for devices or a helper. The next round was not
    /// charged.
    GaveUp(Box<RunError>),
}

/// Results of a run in memory.
#[derive(Debug)]
pub struct RunResult {
    /// One record per round.
    pub records: Vec<RoundRecord>,
    /// The global model.
    pub model: Vec<f32>,
    /// Privacy statements for the completed rounds. Empty before the first one.
    pub statements: Vec<PrivacyStatement>,
    /// Spectra of the last round, or `None` if it was not reached in this session.
    pub spectrum: Option<Spectrum>,
    /// Figures of each device's models after the last round, or `None` if this session did not
    /// reach it, or devices have no samples of their own to test on.
    pub devices: Option<DeviceReport>,
    /// All figures of the shared model after the last round, or `None` as for devices.
    pub assessment: Option<FinalAssessment>,
    /// Rounds charged once more in this session: the ledger does not show that their releases were
    /// the same before.
    pub repeated_rounds: Vec<u32>,
    /// The ending.
    pub ending: Ending,
}

/// Settings to watch and stop a run.
pub struct Control<'a> {
    /// Set to stop after the round.
    pub stop: &'a AtomicBool,
    /// Time between checkpoints. The last round of a session always has one.
    pub checkpoint_every: Duration,
    /// Called after each round.
    pub on_round: &'a mut dyn FnMut(&RoundRecord),
}

/// Reads the data and any shared ledger, and builds the experiment. Writes nothing.
///
/// Earlier expenses of other runs count against its target and its limit.
///
/// # Errors
/// [`RunError::Data`], [`RunError::Ledger`] and [`RunError::Experiment`].
pub fn prepare(
    config: Config,
    folders: &DataFolders,
) -> Result<(Experiment, Federation), RunError> {
    prepare_from(config, folders, Origin::Simulation)
}

/// As [`prepare`], for devices and randomness of any origin.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_from(
    mut config: Config,
    folders: &DataFolders,
    origin: Origin,
) -> Result<(Experiment, Federation), RunError> {
    config.data = folders.anchor(config.data)?;
    let federation = Federation::new(&config.data, folders, config.seed)?;
    prepare_on(config, federation, folders, origin)
}

/// As [`prepare_from`], for an existing federation, which must match `config.data` and the seed of
/// `config`.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_on(
    mut config: Config,
    federation: Federation,
    folders: &DataFolders,
    origin: Origin,
) -> Result<(Experiment, Federation), RunError> {
    pretrained::anchor(&mut config.model, folders).map_err(ExperimentError::from)?;
    let mut spent = Spent::default();
    if let Some(path) = &mut config.privacy.ledger {
        *path = std::path::absolute(&path).map_err(|source| LedgerError::Io {
            action: "open",
            path: path.display().to_string(),
            source,
        })?;
    }
    if let Some(path) = config.privacy.ledger.as_ref().filter(|path| path.exists()) {
        let (charges, run) = (Ledger::read(path)?, name(&config, &federation, &origin)?);
        has_its_own_seed(path, &charges, &run, origin.seed(config.run_seed()))?;
        spent = Spent::before(&run, &charges);
    }
    let experiment = Experiment::with_spent(config, &federation, &spent, origin)?;
    if experiment.release.is_simulation
        && let Cow::Owned(scaled) = experiment.scaled(&federation)
    {
        return Ok((experiment, scaled));
    }
    Ok((experiment, federation))
}

/// Returns the name of a run in ledgers and checkpoints. Runs of one name release the same bits.
///
/// # Errors
/// As [`fingerprint`].
pub fn name(
    config: &Config,
    federation: &Federation,
    origin: &Origin,
) -> Result<String, RunDirError> {
    let mut name = fingerprint(config, federation)?;
    let bits = arithmetic::bits(config.simulation.arithmetic);
    for part in [origin.id(), bits.as_deref()] {
        name.extend(part.map(|part| format!("-{part}")));
    }
    Ok(name)
}

/// Returns the name of a run in its checkpoints. Each start recomputes the scale that devices
/// released. With a different scale, from another build, the run must not continue, since that
/// would be a second release. A run with a program's own server step must not continue without it
/// either.
pub fn state_name(run: &str, federation: &Federation, has_own_step: bool) -> String {
    let mut name = run.to_owned();
    let moments = federation.released_moments();
    if !moments.is_empty() {
        let bytes: Vec<u8> = moments.iter().flat_map(|x| x.to_le_bytes()).collect();
        name.push_str(&format!("-{:08x}", crc32fast::hash(&bytes)));
    }
    if has_own_step {
        name.push_str(OWN_STEP);
    }
    name
}

/// Returns a name for an experiment with its data and this version of smolfed.
///
/// # Errors
/// [`RunDirError::Config`] if the configuration has no text form.
pub fn fingerprint(config: &Config, federation: &Federation) -> Result<String, RunDirError> {
    let config = crc32fast::hash(config.to_toml()?.as_bytes());
    let data = federation.fingerprint();
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!("{config:08x}-{data:016x}-{version}"))
}

/// Trains simulated devices to the end, from the last checkpoint in `dir` if there is one.
///
/// # Errors
/// [`RunError`]. `dir` then holds the last checkpoint, from which the run can be resumed.
pub fn execute(
    experiment: &Experiment,
    federation: &Federation,
    dir: Option<&RunDir>,
    control: Control<'_>,
) -> Result<RunResult, RunError> {
    let run = Run {
        experiment,
        federation,
        dir,
        root: experiment.root()?,
        helpers: None,
    };
    run.execute(&mut Simulated(federation), control)
}

/// A run before it starts or resumes.
pub struct Run<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The devices.
    pub federation: &'a Federation,
    /// Its directory, or `None` for a run that leaves nothing behind.
    pub dir: Option<&'a RunDir>,
    /// Root of the server's random streams.
    pub root: Root,
    /// Remote helpers, or `None` if there are none or they are in this process.
    pub helpers: Option<Box<dyn Helpers>>,
}

impl<'a> Run<'a> {
    /// Trains the devices of any source to the end.
    ///
    /// # Errors
    /// As [`execute`].
    pub fn execute(
        mut self,
        source: &mut dyn Source,
        control: Control<'_>,
    ) -> Result<RunResult, RunError> {
        let experiment = self.experiment;
        let name = name(&experiment.config, self.federation, &experiment.origin)?;
        let shared = experiment.method.properties().shared_count;
        let has_own_step = matches!(experiment.server.treatment, Treatment::Own(_));
        let run = state_name(&name, self.federation, has_own_step);
        let load = |dir: &RunDir| TrainingState::load(&dir.checkpoint(), &run, shared);
        let saved = self.dir.map(load).transpose()?.flatten();
        let state = saved.unwrap_or_else(|| TrainingState::new(experiment));
        let done = state.round;
        let device_states = self.dir.map(RunDir::personal_models);
        let store = device_states.as_deref().map(|path| state.store(path, &run));
        let training = self.training(&state, store)?;
        source.begin(store.as_ref()).map_err(RoundError::from)?;
        // The loop has its own copy, which includes private sums.
        drop(state);
        let open = |dir| RunRecorder::open(dir, run.clone(), done);
        let ledger = LedgerWriter::open(experiment, self.dir, &name, done)?;
        let repeated = ledger.as_ref().map(LedgerWriter::repeated);
        let repeated = repeated.unwrap_or_default();
        let mut session = RunSession {
            recorder: self.dir.map(open).transpose()?,
            ledger,
            budget: Budget::new(&experiment.privacy, experiment.config.rounds, &repeated),
            repeated_rounds: Vec::new(),
            records: self
                .dir
                .map(RunDir::records)
                .transpose()?
                .unwrap_or_default(),
            training,
        };
        let ending = session.train(source, control)?;
        self.finish(session, source, ending)
    }

    /// Creates the round loop from a state.
    fn training(
        &mut self,
        state: &TrainingState,
        store: Option<Store<'_>>,
    ) -> Result<TrainingLoop<'a>, RunError> {
        let (root, helpers) = (self.root.clone(), self.helpers.take());
        let helpers = helpers.map(|helpers| helpers as Box<dyn Helpers + 'a>);
        TrainingLoop::new(
            self.experiment,
            self.federation,
            root,
            state,
            store,
            helpers,
        )
        .map_err(|error| match (error, self.dir) {
            (StateError::Checkpoint { reason }, Some(dir)) => {
                damaged(&dir.checkpoint().join(TrainingState::FILE), reason).into()
            }
            (error, _) => error.into(),
        })
    }

    /// Saves the remaining files, and collects the result.
    fn finish(
        &self,
        mut session: RunSession<'_>,
        source: &mut dyn Source,
        ending: Ending,
    ) -> Result<RunResult, RunError> {
        let rounds = session.training.round();
        let statements = match rounds {
            0 => Vec::new(),
            _ => {
                let ledger = session.ledger.as_ref();
                let repeated = ledger.map(LedgerWriter::repeated).unwrap_or_default();
                self.experiment.statements(rounds, &repeated)?
            }
        };
        if let Some(recorder) = &session.recorder {
            recorder.dir().write_privacy(&statements)?;
            self.write_results(recorder.dir(), &session.training)?;
            // Save last. A killed run then repeats its last rounds when it resumes, and so recovers
            // the figures that are known only while they run.
            session.save(source)?;
        }
        let training = session.training;
        Ok(RunResult {
            records: session.records,
            repeated_rounds: session.repeated_rounds,
            model: training.global().to_vec(),
            statements,
            spectrum: training.spectrum().cloned(),
            devices: match (training.devices(), self.dir) {
                (Some(devices), _) => Some(devices.clone()),
                // A run that was already complete is not evaluated again.
                (None, Some(dir)) if training.is_done() => dir.device_figures().ok(),
                (None, _) => None,
            },
            assessment: match (training.assessment(), self.dir) {
                (Some(assessment), _) => Some(assessment.clone()),
                (None, Some(dir)) if training.is_done() => dir.assessment().ok(),
                (None, _) => None,
            },
            ending,
        })
    }

    /// Writes the model and its figures.
    fn write_results(&self, dir: &RunDir, training: &TrainingLoop<'_>) -> Result<(), RunError> {
        let (experiment, federation) = (self.experiment, self.federation);
        let properties = experiment.method.properties();
        if properties.shared_count > 0 {
            let layout = InputLayout::new(experiment, federation);
            dir.write_model(&properties.task, &layout, training.global())?;
        }
        // Releases are charged before anything derived from them is written.
        if training.round() > 0 || federation.released_moments().is_empty() {
            dir.write_preprocessing(&Preprocessing::new(experiment, federation))?;
        }
        if let Some(devices) = training.devices() {
            dir.write_device_figures(devices)?;
        }
        if let Some(assessment) = training.assessment() {
            dir.write_assessment(assessment)?;
        }
        if let Some(picture) = training.picture() {
            dir.write_representation(picture)?;
        }
        // The data of real devices are not here to attack.
        if training.is_done()
            && experiment.release.is_simulation
            && properties.shares_a_model
            && let Some(roc) = Roc::of_model(&properties.task, training.global(), federation)
                .map_err(RoundError::Model)?
        {
            let model = "this model".to_owned();
            dir.write_membership(&[Attack { model, roc }])?;
        }
        if let Some(spectrum) = training.spectrum() {
            dir.write_diagnostics(spectrum)?;
        }
        Ok(())
    }
}

/// A run in progress.
struct RunSession<'a> {
    training: TrainingLoop<'a>,
    budget: Budget,
    ledger: Option<LedgerWriter>,
    repeated_rounds: Vec<u32>,
    recorder: Option<RunRecorder<'a>>,
    records: Vec<RoundRecord>,
}

impl RunSession<'_> {
    fn train(&mut self, source: &mut dyn Source, control: Control<'_>) -> Result<Ending, RunError> {
        let mut saved = Instant::now();
        while !self.training.is_done() {
            let ready = self.wait(source, control.stop);
            // A waiting run may be asked to stop.
            if control.stop.load(Ordering::Relaxed) {
                return Ok(Ending::Interrupted);
            }
            match ready {
                Ok(()) => {}
                // There are results to save.
                Err(error) if self.training.round() > 0 => {
                    return Ok(Ending::GaveUp(Box::new(error.into())));
                }
                Err(error) => return Err(error.into()),
            }
            let record = match self.round(source) {
                Ok(record) => record,
                Err(error) if error.is_over_budget() => {
                    return Ok(Ending::OverBudget(Box::new(error)));
                }
                Err(error) => return Err(error),
            };
            if let Some(recorder) = &mut self.recorder {
                recorder.append(&record)?;
                if saved.elapsed() >= control.checkpoint_every && !self.training.is_done() {
                    self.save(source)?;
                    saved = Instant::now();
                }
            }
            (control.on_round)(&record);
            self.records.push(record);
        }
        Ok(Ending::Done)
    }

    /// Waits until helpers and devices are ready at the same time.
    fn wait(&mut self, source: &mut dyn Source, stop: &AtomicBool) -> Result<(), RoundError> {
        loop {
            self.training.ready()?;
            let has_waited = source.ready(self.training.round())?;
            if !has_waited || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    /// Writes a checkpoint, if the run has a directory.
    fn save(&mut self, source: &mut dyn Source) -> Result<(), RunError> {
        if let Some(recorder) = &self.recorder {
            let before = source.before_checkpoint(self.training.round());
            before.map_err(RoundError::from)?;
            recorder.save(&mut self.training)?;
        }
        Ok(())
    }

    /// Runs one round: checks the budget, charges, runs, and records its release. Nothing that it
    /// released leaves this function before the ledger has it.
    fn round(&mut self, source: &mut dyn Source) -> Result<RoundRecord, RunError> {
        let round = self.training.round();
        let mut epsilon = self.budget.before(round)?;
        let events = self.training.experiment().events_in(round);
        if let Some(ledger) = &mut self.ledger {
            for event in &events {
                ledger.charge(round, *event)?;
            }
        }
        let RoundResult {
            mut record,
            released,
        } = self.training.step(source)?;
        // Without a charge, there is nothing that a repetition could cost again.
        let released = released.filter(|_| !events.is_empty());
        if let (Some(ledger), Some(released)) = (&mut self.ledger, released) {
            let again = ledger.record(round, &self.training.digest(&released))?;
            if !again.is_empty() {
                let experiment = self.training.experiment();
                let (rounds, repeated) = (experiment.config.rounds, ledger.repeated());
                self.budget = Budget::new(&experiment.privacy, rounds, &repeated);
                epsilon = self.budget.epsilon_after(round + 1)?;
                self.repeated_rounds.push(round);
            }
        }
        record.epsilon = epsilon.is_finite().then_some(epsilon);
        Ok(record)
    }
}

#[cfg(test)]
mod tests;
