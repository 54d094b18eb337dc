//! Writing during a run: the ledger before each round, the records and checkpoints after it.

use smolfed_accounting::{PrivacyEvent, PrivacyUnit};

use super::directory::RunDir;
use crate::experiment::Experiment;
use crate::method::state::StateError;
use crate::round::{RoundRecord, TrainingLoop};
use crate::run_files::error::RunDirError;
use crate::run_files::records::RecordFile;
use smolfed_release::condition::Randomness;
use smolfed_release::ledger::{Charge, Ledger, LedgerError, Limit};
use smolfed_release::origin::Origin;
use smolfed_release::plan::PrivacyPlan;

/// The ledger while a run is charged to it.
pub struct LedgerWriter {
    ledger: Ledger,
    /// A limit on ε for each unit of privacy.
    limits: Vec<(PrivacyUnit, Limit)>,
    run: String,
    seed: Option<u64>,
    planned: u32,
    claims: Vec<Claim>,
    is_selected: bool,
}

/// The conditions of the charges for one unit of privacy.
struct Claim {
    unit: PrivacyUnit,
    has_uncovered: bool,
    known_seeds: Option<Vec<(Randomness, u64)>>,
    declared: Vec<String>,
}

impl Claim {
    /// Returns the conditions of a plan, for a run with this seed.
    fn of(plan: &PrivacyPlan, origin: &Origin, seed: Option<u64>) -> Self {
        let seeds = plan.known_seeds();
        let has_seed = seed.is_some() || !seeds.is_empty();
        Self {
            unit: plan.event().unit,
            has_uncovered: plan.has_uncovered(),
            known_seeds: (has_seed && !origin.is_simulation()).then_some(seeds),
            declared: plan.declared(),
        }
    }
}

impl LedgerWriter {
    /// Opens the shared ledger, or the run's own. Returns `None` for a run that leaves nothing
    /// behind. The first `done` rounds must already be charged.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn open(
        experiment: &Experiment,
        dir: Option<&RunDir>,
        run: &str,
        done: u32,
    ) -> Result<Option<Self>, LedgerError> {
        let (config, privacy) = (&experiment.config, &experiment.privacy);
        if privacy.releases_nothing() {
            // Nothing is released.
            return Ok(None);
        }
        let own = dir.map(RunDir::ledger);
        let Some(path) = config.privacy.ledger.clone().or(own) else {
            return Ok(None);
        };
        let ledger = Ledger::open(&path)?;
        for round in 0..done {
            for event in experiment.events_in(round) {
                ledger.expect(run, [round], event)?;
            }
        }
        let message = experiment.method.second_message();
        let plans = [Some(privacy), message.map(|message| &message.of_unit)];
        let plans = plans.into_iter().flatten();
        let origin = &experiment.origin;
        let seed = origin.seed(config.run_seed());
        let claims = plans.clone().map(|plan| Claim::of(plan, origin, seed));
        let limits = plans.filter_map(|plan| {
            let limit = Limit {
                accountant: plan.accountant,
                delta: plan.delta,
                epsilon: plan.budget?,
            };
            Some((plan.event().unit, limit))
        });
        Ok(Some(Self {
            ledger,
            limits: limits.collect(),
            run: run.to_owned(),
            seed,
            // Without a figure, all rounds, which states no less.
            planned: privacy
                .planned_rounds(config.rounds)
                .unwrap_or(config.rounds),
            claims: claims.collect(),
            is_selected: experiment.trial.is_some(),
        }))
    }

    /// Charges the releases of a round before its result is used.
    ///
    /// # Errors
    /// [`LedgerError`]: the round must not be used.
    pub fn charge(&mut self, round: u32, event: PrivacyEvent) -> Result<(), LedgerError> {
        let mut claims = self.claims.iter();
        // Every event of a run has the unit of one of its plans.
        let claim = claims.find(|claim| claim.unit == event.unit);
        let charge = Charge {
            run: self.run.clone(),
            seed: self.seed,
            round,
            repetition: 0,
            planned: Some(self.planned),
            event,
            has_digest: true,
            has_uncovered: claim.is_none_or(|claim| claim.has_uncovered),
            known_seeds: claim.and_then(|claim| claim.known_seeds.clone()),
            declared: claim.map_or_else(Vec::new, |claim| claim.declared.clone()),
            is_selected: self.is_selected,
        };
        let mut limits = self.limits.iter();
        let limit = limits.find(|(unit, _)| *unit == event.unit);
        self.ledger.charge(charge, limit.map(|(_, limit)| limit))
    }

    /// Records the digest of a round's releases before its result is used. Returns the events
    /// charged once more, if the ledger does not show that the round released the same before.
    ///
    /// # Errors
    /// [`LedgerError`]: the result must not be used.
    pub fn record(&mut self, round: u32, digest: &str) -> Result<Vec<PrivacyEvent>, LedgerError> {
        self.ledger.record(&self.run, round, digest, &self.limits)
    }

    /// Returns the charges for rounds that the run repeated with another release.
    #[must_use]
    pub fn repeated(&self) -> Vec<PrivacyEvent> {
        self.ledger.repeated(&self.run)
    }
}

/// The run directory during a run.
pub struct RunRecorder<'a> {
    dir: &'a RunDir,
    metrics: RecordFile<RoundRecord>,
    run: String,
}

/// Why a checkpoint could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The run directory failed.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The states of devices failed.
    #[error(transparent)]
    States(#[from] StateError),
}

impl<'a> RunRecorder<'a> {
    /// Opens the directory of the run of this name, with the records of the first `done` rounds.
    ///
    /// # Errors
    /// [`RunDirError`].
    pub fn open(dir: &'a RunDir, run: String, done: u32) -> Result<Self, RunDirError> {
        let metrics = dir.metrics(done)?;
        Ok(Self { dir, metrics, run })
    }

    /// Returns the directory.
    #[must_use]
    pub const fn dir(&self) -> &'a RunDir {
        self.dir
    }

    /// Appends a round's record.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn append(&mut self, record: &RoundRecord) -> Result<(), RunDirError> {
        self.metrics.append(record)
    }

    /// Saves the state after syncing the records that it relies on.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn save(&self, training: &mut TrainingLoop<'_>) -> Result<(), SaveError> {
        self.metrics.sync()?;
        let state = training.state(&self.run)?;
        state.save(&self.dir.checkpoint(), &self.run)?;
        training.state_saved();
        Ok(())
    }
}
