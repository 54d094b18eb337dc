//! A run from its configuration to its directory: prepare, train with checkpoints, finish.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use smolfed_core::contrast::Representation;
use smolfed_core::stream::Root;

use crate::audit::membership::{Attack, Roc};
use crate::config::Config;
use crate::contrast::{Contrasting, Matrices};
use crate::data::DataError;
use crate::data::DataFolders;
use crate::data::Federation;
use crate::experiment::{Experiment, ExperimentError, Origin};
use crate::personal::{DeviceReport, Personalised, StateError, States};
use crate::privacy::accountant::AccountingError;
use crate::privacy::event::{PrivacyEvent, PrivacyUnit};
use crate::privacy::ledger::{Charge, Ledger, LedgerError, Limit, before, has_its_own_seed};
use crate::privacy::statement::PrivacyStatement;
use crate::rounds::{RoundError, RoundRecord, Simulated, Spectrum, Start, Training, Updates};
use crate::run_dir::{Checkpoint, InputLayout, RecordFile, RunDir, RunDirError};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The experiment.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A round.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// The accountant.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// The run directory.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The privacy ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The models of a device's own.
    #[error(transparent)]
    States(#[from] StateError),
}

impl RunError {
    /// Whether the input is to blame, not the run.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Data(_) | Self::Experiment(_) => true,
            Self::RunDir(error) => !matches!(error, RunDirError::Io { .. }),
            Self::Ledger(error) => !matches!(error, LedgerError::Io { .. }),
            Self::States(error) | Self::Round(RoundError::States(error)) => error.is_bad_input(),
            Self::Round(_) | Self::Accounting(_) => false,
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub enum Ending {
    /// All rounds are done.
    Done,
    /// It was asked to stop.
    Interrupted,
    /// The next round would have exceeded the limit on ε.
    OverBudget(RoundError),
}

/// What a run leaves in memory.
#[derive(Debug)]
pub struct RunResult {
    /// One record a round.
    pub records: Vec<RoundRecord>,
    /// The global model.
    pub model: Vec<f32>,
    /// The privacy statements for the rounds that were run; empty before the first.
    pub statements: Vec<PrivacyStatement>,
    /// Spectra of the last round; `None` if it was not reached in this session.
    pub spectrum: Option<Spectrum>,
    /// Figures of each device's models after the last round; `None` if it was not reached in this
    /// session, or devices have no samples of their own to test on.
    pub devices: Option<DeviceReport>,
    /// How it ended.
    pub ending: Ending,
}

/// How a run is watched and stopped.
pub struct Control<'a> {
    /// Set to stop after the round.
    pub stop: &'a AtomicBool,
    /// Time between checkpoints; the last round of a session always has one.
    pub checkpoint_every: Duration,
    /// Called after each round.
    pub on_round: &'a mut dyn FnMut(&RoundRecord),
}

/// Reads the data, and the ledger if it is shared, and settles the experiment. Writes nothing.
///
/// What other runs spent before this one began counts against its target and its limit.
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
    let mut spent = Vec::new();
    if let Some(path) = &mut config.privacy.ledger {
        *path = std::path::absolute(&path).map_err(|source| LedgerError::Io {
            action: "open",
            path: path.display().to_string(),
            source,
        })?;
    }
    if let Some(path) = config.privacy.ledger.as_ref().filter(|path| path.exists()) {
        let (charges, run) = (Ledger::read(path)?, name(&config, &federation, &origin)?);
        has_its_own_seed(path, &charges, &run, origin.seed(config.seed))?;
        spent = before(&charges, &run);
    }
    let experiment = Experiment::with_spent(config, &federation, spent, origin)?;
    Ok((experiment, federation))
}

/// The name of a run in ledgers and checkpoints: runs of one name release the same bits.
///
/// # Errors
/// As [`fingerprint`].
pub fn name(
    config: &Config,
    federation: &Federation,
    origin: &Origin,
) -> Result<String, RunDirError> {
    let fingerprint = fingerprint(config, federation)?;
    Ok(match origin.id() {
        None => fingerprint,
        Some(id) => format!("{fingerprint}-{id}"),
    })
}

/// Names an experiment with its data and this version of smolfed.
///
/// # Errors
/// [`RunDirError::Config`] if the configuration has no text form.
pub fn fingerprint(config: &Config, federation: &Federation) -> Result<String, RunDirError> {
    let config = crc32fast::hash(config.to_toml()?.as_bytes());
    let data = federation.fingerprint();
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!("{config:08x}-{data:016x}-{version}"))
}

/// Trains to the end, from the last checkpoint in `dir` if there is one.
///
/// # Errors
/// [`RunError`]; `dir` then holds the last checkpoint, from which the run can be resumed.
pub fn execute(
    experiment: &Experiment,
    federation: &Federation,
    dir: Option<&RunDir>,
    control: Control<'_>,
) -> Result<RunResult, RunError> {
    let start = Start::simulation(experiment);
    if let Some(plan) = &experiment.contrast {
        let rounds = experiment.config.rounds;
        let matrices = matrices(experiment, federation, dir, plan.network.width())?;
        let updates = &mut Contrasting::new(federation, plan, rounds, matrices);
        return execute_with(experiment, federation, dir, control, (start, updates));
    }
    match experiment.personal {
        None => {
            let updates = &mut Simulated(federation);
            execute_with(experiment, federation, dir, control, (start, updates))
        }
        Some(plan) => {
            let root = Root::from_seed(experiment.config.seed);
            let updates = &mut Personalised {
                federation,
                plan,
                initial: experiment.task.initial(&root),
                states: states(experiment, federation, dir, plan.state_length())?,
                releases: experiment.privacy.event.releases,
            };
            execute_with(experiment, federation, dir, control, (start, updates))
        }
    }
}

/// The personal models of a run: those of its last checkpoint, or none yet.
fn states(
    experiment: &Experiment,
    federation: &Federation,
    dir: Option<&RunDir>,
    length: usize,
) -> Result<States, RunError> {
    let Some(dir) = dir else {
        return Ok(States::temporary(length)?);
    };
    let name = name(&experiment.config, federation, &experiment.origin)?;
    let path = dir.personal_models();
    Ok(
        match dir.load_checkpoint(&name, experiment.shared_count())? {
            None => States::create(&path, length, &name)?,
            Some(checkpoint) => {
                let at = (checkpoint.round, checkpoint.states);
                States::open(&path, length, &name, at)?
            }
        },
    )
}

/// The correlation matrices of a run: those of its last checkpoint, or none yet.
fn matrices(
    experiment: &Experiment,
    federation: &Federation,
    dir: Option<&RunDir>,
    width: usize,
) -> Result<Matrices, RunError> {
    let Some(dir) = dir else {
        return Ok(Matrices::new(width));
    };
    let name = name(&experiment.config, federation, &experiment.origin)?;
    let checkpoint = dir.load_checkpoint(&name, experiment.shared_count())?;
    let sent = checkpoint.map(|checkpoint| checkpoint.matrices);
    let restored = Matrices::restored(width, sent.unwrap_or_default());
    Ok(restored.map_err(|error| dir.foreign_checkpoint(error.to_string()))?)
}

/// As [`execute`], with updates of any source. A checkpoint replaces model and round of `start`.
///
/// # Errors
/// As [`execute`].
pub fn execute_with(
    experiment: &Experiment,
    federation: &Federation,
    dir: Option<&RunDir>,
    control: Control<'_>,
    (mut start, updates): (Start, &mut dyn Updates),
) -> Result<RunResult, RunError> {
    let mut books = dir
        .map(|dir| Books::open(dir, experiment, federation))
        .transpose()?;
    let resumed = books.as_mut().and_then(|books| books.resumed.take());
    let done = resumed.as_ref().map_or(0, |checkpoint| checkpoint.round);
    let mut payments = Payments::open(experiment, federation, dir, done)?;
    if let Some(checkpoint) = resumed {
        (start.round, start.global) = (checkpoint.round, checkpoint.parameters);
    }
    let mut training = Training::new(experiment, federation, start);
    let mut records = match dir {
        Some(dir) => dir.records()?,
        None => Vec::new(),
    };
    let mut saved = Instant::now();
    let mut ending = Ending::Done;
    while !training.is_done() {
        if control.stop.load(Ordering::Relaxed) {
            ending = Ending::Interrupted;
            break;
        }
        let record = training.step(updates, &mut |round, event| match &mut payments {
            Some(payments) => payments.charge(round, event),
            None => Ok(()),
        });
        let record = match record {
            Ok(record) => record,
            Err(error) if error.is_over_budget() => {
                ending = Ending::OverBudget(error);
                break;
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(books) = &mut books {
            books.metrics.append(&record)?;
            if saved.elapsed() >= control.checkpoint_every && !training.is_done() {
                books.save(&training, updates)?;
                saved = Instant::now();
            }
        }
        (control.on_round)(&record);
        records.push(record);
    }
    let rounds = training.round();
    let releases = updates.matrices().and_then(Matrices::range_of_releases);
    let statements = if rounds == 0 {
        Vec::new()
    } else {
        experiment.statements(rounds, releases)?
    };
    if let Some(books) = &books {
        books.save(&training, updates)?;
        books.dir.write_privacy(&statements)?;
        let mut layout = InputLayout {
            axes: federation.axes(),
            names: federation.names(),
            is_encoder: experiment.contrast.is_some(),
        };
        if layout.is_encoder {
            // Its outputs are no classes.
            layout.names.classes.clear();
        }
        if experiment.shared_count() > 0 {
            books
                .dir
                .write_model(&experiment.task, &layout, training.global())?;
        }
        if let Some(devices) = training.devices() {
            books.dir.write_device_figures(devices)?;
        }
        if let Some(picture) = training.picture() {
            books.dir.write_representation(picture)?;
        }
        // What real devices hold is not here to be attacked.
        if training.is_done()
            && !matches!(experiment.origin, Origin::Fleet { .. })
            && experiment.shares_a_model()
            && let Some(roc) = Roc::of_model(&experiment.task, training.global(), federation)
                .map_err(RoundError::Model)?
        {
            let model = "this model".to_owned();
            books.dir.write_membership(&[Attack { model, roc }])?;
        }
        if let Some(spectrum) = training.spectrum() {
            books.dir.write_diagnostics(spectrum)?;
        }
    }
    Ok(RunResult {
        records,
        model: training.global().to_vec(),
        statements,
        spectrum: training.spectrum().cloned(),
        devices: match (training.devices(), dir) {
            (Some(devices), _) => Some(devices.clone()),
            // A run that was done already is not evaluated again.
            (None, Some(dir)) if training.is_done() => dir.device_figures().ok(),
            (None, _) => None,
        },
        ending,
    })
}

/// The ledger while a run pays from it.
struct Payments {
    ledger: Ledger,
    /// A limit on ε for each unit of privacy.
    limits: Vec<(PrivacyUnit, Limit)>,
    run: String,
    seed: Option<u64>,
}

impl Payments {
    /// Opens the shared ledger, or the run's own; `None` for a run that leaves nothing behind. The
    /// first `done` rounds must have been paid.
    fn open(
        experiment: &Experiment,
        federation: &Federation,
        dir: Option<&RunDir>,
        done: u32,
    ) -> Result<Option<Self>, RunError> {
        let (config, privacy) = (&experiment.config, &experiment.privacy);
        if privacy.event.releases == 0 {
            // Nothing is released.
            return Ok(None);
        }
        let own = dir.map(RunDir::ledger);
        let Some(path) = config.privacy.ledger.clone().or(own) else {
            return Ok(None);
        };
        let run = name(config, federation, &experiment.origin)?;
        let ledger = Ledger::open(&path)?;
        ledger.expect(&run, 0..done, privacy.event)?;
        for round in 0..done {
            for event in experiment.matrix_events_in(round) {
                ledger.expect(&run, [round], event)?;
            }
        }
        let plans = [Some(privacy), experiment.matrix_privacy.as_ref()];
        let limits = plans.into_iter().flatten().filter_map(|plan| {
            let limit = Limit {
                accountant: plan.accountant,
                delta: plan.delta,
                epsilon: plan.budget?,
            };
            Some((plan.event.unit, limit))
        });
        Ok(Some(Self {
            ledger,
            limits: limits.collect(),
            run,
            seed: experiment.origin.seed(config.seed),
        }))
    }

    /// Pays for a round before its result is used.
    fn charge(&mut self, round: u32, event: PrivacyEvent) -> Result<(), LedgerError> {
        let charge = Charge {
            run: self.run.clone(),
            seed: self.seed,
            round,
            event,
        };
        let mut limits = self.limits.iter();
        let limit = limits.find(|(unit, _)| *unit == event.unit);
        self.ledger.charge(charge, limit.map(|(_, limit)| limit))
    }
}

/// The run directory while a run writes to it.
struct Books<'a> {
    dir: &'a RunDir,
    metrics: RecordFile<RoundRecord>,
    fingerprint: String,
    resumed: Option<Checkpoint>,
}

impl<'a> Books<'a> {
    fn open(
        dir: &'a RunDir,
        experiment: &Experiment,
        federation: &Federation,
    ) -> Result<Self, RunDirError> {
        let fingerprint = name(&experiment.config, federation, &experiment.origin)?;
        let resumed = dir.load_checkpoint(&fingerprint, experiment.shared_count())?;
        let rounds = resumed.as_ref().map_or(0, |checkpoint| checkpoint.round);
        let metrics = dir.metrics(rounds)?;
        Ok(Self {
            dir,
            metrics,
            fingerprint,
            resumed,
        })
    }

    /// Saves the state; the records it counts on are on the disk first.
    fn save(&self, training: &Training<'_>, updates: &mut dyn Updates) -> Result<(), RunError> {
        self.metrics.sync()?;
        let mut digest = None;
        if let Some(states) = updates.states() {
            states.sync(&self.fingerprint)?;
            digest = Some(states.digest());
        }
        self.dir.save_checkpoint(&Checkpoint {
            round: training.round(),
            parameters: training.global().to_vec(),
            fingerprint: self.fingerprint.clone(),
            states: digest,
            matrices: updates
                .matrices()
                .map_or_else(BTreeMap::new, |m| m.sent().clone()),
        })?;
        if let Some(states) = updates.states() {
            states.committed(training.round());
        }
        Ok(())
    }
}
