//! The round loop: cohort, local training, exact sum, noise, denoising, step, record.
//!
//! A round depends on the global model before it and on its own number, on nothing else: all
//! randomness is named by the round. So a run can stop after any round and go on from the model
//! alone, with the same bits.

mod record;
mod spectrum;
mod updates;

use std::time::Instant;

use smolfed_core::model::ModelError;
use smolfed_core::stream::Root;

use crate::contrast::ContrastPlan;
use crate::contrast::evaluate::{Judge, Judged};
use crate::coordinator::keys::KeysError;
use crate::data::federation::Federation;
use crate::experiment::{Experiment, Origin};
use crate::number::upper;
use crate::personal::evaluate::{DeviceEvaluation, EvaluationError};
use crate::personal::{DeviceMeans, DeviceReport, StateError};
use crate::privacy::accountant::{Accountant, AccountingError};
use crate::privacy::event::PrivacyEvent;
use crate::privacy::ledger::LedgerError;
use crate::privacy::params::Delta;
use crate::representation::{Picture, knn_accuracy, probe_accuracy};
use crate::run_dir::RunDirError;
use crate::server::{NoisySum, add_noise};
use crate::simulate::{Outcome, RoundPlan, evaluate};

pub use record::{Quantiles, RoundRecord, SimulationOnly};
pub use spectrum::Spectrum;
pub use updates::{Draw, Simulated, Updates};

/// Why a round could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoundError {
    /// The next round would cost more than the budget.
    #[error(
        "round {round} would raise epsilon to {}, above the limit of {budget} (at delta = {}, by \
         `{accountant}`): the run stops before it",
        upper(*epsilon, 5),
        upper(delta.get(), 4)
    )]
    Budget {
        /// The round.
        round: u32,
        /// ε after it.
        epsilon: f64,
        /// The limit.
        budget: f64,
        /// δ of both.
        delta: Delta,
        /// Who counts.
        accountant: Accountant,
    },
    /// The accountant has no figure.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// The round could not be paid for.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The model does not fit the data.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The models of a device's own.
    #[error(transparent)]
    States(#[from] StateError),
    /// A device's models could not be evaluated.
    #[error(transparent)]
    Devices(#[from] EvaluationError),
    /// The round numbers of a fleet.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// Who took part could not be written down.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// No device of a cohort could train.
    #[error("round {round}: every device of the cohort was left out; the first because {reason}")]
    NobodyTrained {
        /// The round.
        round: u32,
        /// What came of the first device.
        reason: String,
    },
}

impl RoundError {
    /// Whether the round was refused because it costs too much.
    #[must_use]
    pub const fn is_over_budget(&self) -> bool {
        matches!(
            self,
            Self::Budget { .. } | Self::Ledger(LedgerError::OverLimit { .. })
        )
    }
}

/// Places at most at which ε is computed in a run.
const MILESTONES: u32 = 64;

/// Where a training begins or goes on.
#[derive(Clone, Debug)]
pub struct Start {
    /// The global model.
    pub global: Vec<f32>,
    /// Rounds that are done.
    pub round: u32,
    /// Root of the server's random streams.
    pub root: Root,
}

impl Start {
    /// A simulation before its first round: all parameters are zero, all streams follow from the
    /// experiment's seed.
    #[must_use]
    pub fn simulation(experiment: &Experiment) -> Self {
        Self {
            global: initial(experiment),
            round: 0,
            root: Root::from_seed(experiment.config.seed),
        }
    }
}

/// The shared parameters before the first round.
fn initial(experiment: &Experiment) -> Vec<f32> {
    let root = Root::from_seed(experiment.config.seed);
    let mut parameters = match &experiment.contrast {
        Some(plan) => plan.network.initial(&root),
        None => experiment.task.initial(&root),
    };
    parameters.truncate(experiment.shared_count());
    parameters
}

/// A federation in training.
pub struct Training<'a> {
    experiment: &'a Experiment,
    federation: &'a Federation,
    root: Root,
    global: Vec<f32>,
    round: u32,
    spectrum: Option<Spectrum>,
    /// ε after so many rounds, the last one that was computed.
    epsilon: Option<(u32, f64)>,
    devices: Option<DeviceReport>,
    picture: Option<Picture>,
}

impl<'a> Training<'a> {
    /// Before the round that `start` names, with the model that the earlier rounds gave.
    #[must_use]
    pub fn new(experiment: &'a Experiment, federation: &'a Federation, start: Start) -> Self {
        Self {
            experiment,
            federation,
            root: start.root,
            global: start.global,
            round: start.round,
            spectrum: None,
            epsilon: None,
            devices: None,
            picture: None,
        }
    }

    /// ε after `rounds` rounds: exact in short runs; in long ones that of the next of
    /// [`MILESTONES`], which is no less, so that accounting does not slow the rounds down.
    fn epsilon_after(&mut self, rounds: u32) -> Result<f64, AccountingError> {
        let privacy = &self.experiment.privacy;
        let planned = self.experiment.config.rounds;
        let step = planned.div_ceil(MILESTONES).max(1);
        let milestone = rounds.div_ceil(step).saturating_mul(step).min(planned);
        let epsilon = match self.epsilon {
            Some((at, epsilon)) if at == milestone => epsilon,
            _ => privacy.estimate(u64::from(milestone))?.epsilon,
        };
        self.epsilon = Some((milestone, epsilon));
        if privacy.budget.is_some_and(|budget| epsilon > budget.get()) {
            // The next milestone is too far; this round may not be.
            return Ok(privacy.estimate(u64::from(rounds))?.epsilon);
        }
        Ok(epsilon)
    }

    /// The global model.
    #[must_use]
    pub fn global(&self) -> &[f32] {
        &self.global
    }

    /// Rounds that are done; the number of the next one.
    #[must_use]
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// Whether all rounds are done.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.round >= self.experiment.config.rounds
    }

    /// The spectrum of the last round's averaged update; known after the last round.
    #[must_use]
    pub const fn spectrum(&self) -> Option<&Spectrum> {
        self.spectrum.as_ref()
    }

    /// A round that was paid for and comes to nothing.
    fn burned(&mut self, epsilon: f64) -> RoundRecord {
        let round = self.round;
        self.round += 1;
        RoundRecord {
            round,
            cohort: 0,
            epsilon: epsilon.is_finite().then_some(epsilon),
            learning_rate: self.experiment.training_in(round).learning_rate.get(),
            test: None,
            burned: true,
            simulation_only: SimulationOnly::default(),
            seconds: 0.0,
        }
    }

    /// The means over devices of their models, on their own test and validation samples. Without models
    /// of their own only after the last round.
    fn evaluate_devices(
        &mut self,
        updates: &dyn Updates,
        is_last: bool,
    ) -> Result<[Option<DeviceMeans>; 2], RoundError> {
        let experiment = self.experiment;
        let personal = updates.personal();
        if personal.is_none() && !is_last {
            return Ok([None, None]);
        }
        let initial = experiment
            .task
            .initial(&Root::from_seed(experiment.config.seed));
        let evaluation = DeviceEvaluation {
            task: &experiment.task,
            personal,
            training: &experiment.training,
            federation: self.federation,
            shared: &self.global,
            initial: &initial,
            most_devices: experiment.most_devices,
        };
        let extra = is_last.then_some((&experiment.extra, &self.root));
        let [test, validation] = evaluation.run(extra)?;
        let means = [&test, &validation].map(|report| report.as_ref().map(DeviceReport::means));
        if is_last {
            self.devices = test;
        }
        Ok(means)
    }

    /// How good the encoder's representations are: by their neighbours and, after the last round, by a linear
    /// probe. Then there are also figures of each device, and a picture.
    fn judge(&mut self, plan: &ContrastPlan, is_last: bool, only: &mut SimulationOnly) {
        let judge = Judge {
            plan,
            parameters: &self.global,
            federation: self.federation,
        };
        let Some(Judged {
            bank,
            test,
            validation,
        }) = judge.samples(is_last)
        else {
            return;
        };
        only.knn_accuracy = knn_accuracy(&bank, &test, plan.neighbours);
        only.validation_knn_accuracy = knn_accuracy(&bank, &validation, plan.neighbours);
        if !is_last {
            return;
        }
        let classes = self.federation.class_count().unwrap_or(0);
        let names = self.federation.names().classes;
        let devices = judge.heads(&self.root, self.experiment.most_devices);
        self.picture = Picture::new(&test, names);
        self.devices = devices;
        only.probe_accuracy = probe_accuracy(&bank, &test, classes);
    }

    /// What representations look like after the last round, if the method learns an encoder.
    #[must_use]
    pub const fn picture(&self) -> Option<&Picture> {
        self.picture.as_ref()
    }

    /// The figures of each device after the last round, on its own test samples.
    #[must_use]
    pub const fn devices(&self) -> Option<&DeviceReport> {
        self.devices.as_ref()
    }

    /// Runs one round with the updates that `updates` brings.
    ///
    /// `charge` is called with the round and what it releases, after the check of the budget and
    /// before anything of the round is used; if it fails, nothing is.
    ///
    /// # Errors
    /// [`RoundError`]; the global model is then that of the round before.
    pub fn step(
        &mut self,
        updates: &mut dyn Updates,
        charge: &mut dyn FnMut(u32, PrivacyEvent) -> Result<(), LedgerError>,
    ) -> Result<RoundRecord, RoundError> {
        let started = Instant::now();
        let round = self.round;
        let experiment = self.experiment;
        let privacy = &experiment.privacy;
        let epsilon = self.epsilon_after(round + 1)?;
        if let Some(budget) = privacy.budget.filter(|budget| epsilon > budget.get()) {
            return Err(RoundError::Budget {
                round,
                epsilon,
                budget: budget.get(),
                delta: privacy.delta,
                accountant: privacy.accountant,
            });
        }

        if privacy.event.releases > 0 {
            charge(round, privacy.event)?;
        }
        for event in experiment.matrix_events_in(round) {
            charge(round, event)?;
        }
        let drawn = updates.draw(&experiment.sampling, &self.root, round)?;
        let Some(Draw { number, cohort }) = drawn else {
            return Ok(self.burned(epsilon));
        };
        let plan = RoundPlan {
            task: experiment.task,
            training: experiment.training_in(round),
            encoding: experiment.encoding,
            weight_cap: experiment.weight_cap,
            device_noise: privacy.noise.as_ref().filter(|_| privacy.is_local()),
            round,
            number,
        };
        let trained = updates.sum(&plan, &self.root, &self.global, &cohort)?;
        let is_left_out = |outcome: &Outcome| matches!(outcome, Outcome::LeftOut { .. });
        if let Some(Outcome::LeftOut { reason }) = trained.outcomes.first()
            && trained.outcomes.iter().all(is_left_out)
        {
            return Err(RoundError::NobodyTrained {
                round,
                reason: reason.clone(),
            });
        }
        let only = SimulationOnly::new(&trained.outcomes, &trained.left_out_matrices);

        // The sum is private until the noise is in it.
        let mut integers = trained.sum;
        let is_last = round + 1 == experiment.config.rounds;
        // What real devices sent is never kept without noise.
        let is_simulation = !matches!(experiment.origin, Origin::Fleet { .. });
        let clean = (is_last && is_simulation && !privacy.is_local()).then(|| integers.clone());
        if let Some(noise) = privacy.noise.as_ref().filter(|_| !privacy.is_local()) {
            add_noise(&mut integers, noise, &self.root, number);
        }

        // From here on everything is post-processing.
        let noisy = NoisySum {
            integers: &integers,
            step: experiment.step_in(round),
            noise_std: experiment.noise_std_in(round, cohort.len()),
            cohort_size: cohort.len(),
        };
        let mut average = experiment.server.average(&noisy);
        let before = is_last.then(|| average.clone());
        let tensors = experiment.shared_tensors();
        experiment
            .server
            .apply(&mut self.global, &mut average, &noisy, &tensors);
        if let Some(before) = before {
            let clean = clean.map(|integers| {
                experiment.server.average(&NoisySum {
                    integers: &integers,
                    ..noisy
                })
            });
            let weights = tensors.first().copied().unwrap_or(0);
            self.spectrum = Some(Spectrum::new(clean.as_deref(), &before, &average, weights));
        }
        self.round += 1;

        let every = experiment.config.evaluate_every;
        let is_due = is_last || (every > 0 && self.round.is_multiple_of(every));
        let target_unit = self.federation.target_scale().std();
        let evaluated = |samples| match is_due && experiment.shares_a_model() {
            true => evaluate(&experiment.task, &self.global, samples, target_unit),
            false => Ok(None),
        };
        let test = evaluated(self.federation.test())?;
        let validation = evaluated(self.federation.validation())?;
        let [mut devices, mut devices_validation] = [None, None];
        let mut only = only;
        if let Some(plan) = experiment.contrast.as_ref().filter(|_| is_due) {
            self.judge(plan, is_last, &mut only);
            devices = self.devices.as_ref().map(DeviceReport::means);
        } else if is_due && is_simulation {
            [devices, devices_validation] = self.evaluate_devices(updates, is_last)?;
        }
        Ok(RoundRecord {
            round,
            cohort: cohort.len(),
            epsilon: epsilon.is_finite().then_some(epsilon),
            learning_rate: plan.training.learning_rate.get(),
            test,
            burned: false,
            simulation_only: SimulationOnly {
                validation,
                devices,
                devices_validation,
                ..only
            },
            seconds: started.elapsed().as_secs_f64(),
        })
    }
}
