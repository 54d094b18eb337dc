//! A federation of real and simulated devices: the coordinator as a source of updates for the round
//! loop, and what its run directory says about the fleet.
//!
//! The devices that the keys name are real: what they hold is theirs, and what they compute is checked
//! as far as it can be. All others are simulated. The sum is exact, whoever computed what.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use smolfed_core::model::ModelKind as WireKind;
use smolfed_core::stream::Root;
use smolfed_core::wire::message::{Invitation, Shape, update_chunks};

use crate::config::ModelKind;
use crate::coordinator::exchange::{Offer, Verdict};
use crate::coordinator::fleet::{Fleet, FleetError};
use crate::coordinator::keys::FleetKeys;
use crate::coordinator::peer::Terms;
use crate::data::federation::Federation;
use crate::experiment::Experiment;
use crate::participation::Participation;
use crate::privacy::event::Sampling;
use crate::rounds::{Draw, RoundError, Updates};
use crate::run_dir::RecordFile;
use crate::sampling::draw_cohort;
use crate::simulate::{CohortSum, Encoding, Outcome, RoundPlan, train_cohort};
use crate::task::Task;

/// Why an experiment cannot be run with real devices.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Updates without a bound have no form on the wire.
    #[error(
        "`privacy.clip_norm` is missing: real devices send their updates on the grid of a clip norm"
    )]
    NoClipNorm,
    /// A method or a model that real devices do not speak of.
    #[error(
        "{what} is for simulations: version 1 of the protocol knows one model, without a hidden layer, \
         that is the same on all devices"
    )]
    SimulationOnly {
        /// Which.
        what: String,
    },
    /// A model that the wire cannot carry.
    #[error(
        "the model has {features} features and {outputs} scores: a device can have up to 65,535 of \
         each, and an update of up to 65,535 chunks"
    )]
    TooLarge {
        /// Features.
        features: usize,
        /// Scores.
        outputs: usize,
    },
    /// A key for a device that the federation does not have.
    #[error("the keys name device {device}, but the federation has devices 0 to {last}")]
    NoSuchDevice {
        /// The device.
        device: u32,
        /// The last device of the federation.
        last: u32,
    },
    /// The numbers of real and simulated devices do not add up.
    #[error(
        "the federation has {devices} devices, {real} of which have keys: `--simulated {rest}` \
         simulates the others, and `--simulated 0` makes it a federation of {real}"
    )]
    Count {
        /// Devices of the federation.
        devices: u32,
        /// Devices with keys.
        real: u32,
        /// The difference.
        rest: u32,
    },
    /// The fleet.
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

impl ServeError {
    /// Whether the input is to blame, not the run.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        !matches!(
            self,
            Self::Fleet(FleetError::Listen { .. } | FleetError::Entropy(_) | FleetError::Thread(_))
        )
    }
}

/// What `fleet.toml` of a run directory says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetFile {
    /// Tells the run from others of the same experiment; random.
    pub id: String,
    /// The seed of the coordinator's randomness; absent if that is secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What is added to a round to get the number that names its streams.
    pub first_number: u32,
    /// The file with the keys.
    pub keys: PathBuf,
    /// Simulated devices.
    pub simulated: u32,
    /// Milliseconds that a device has for its part in a round.
    pub timeout_ms: u64,
    /// Where the coordinator connects to devices.
    pub devices: Vec<String>,
    /// Where devices connect to the coordinator.
    pub listen: Vec<String>,
}

/// Checks that the devices with keys and the simulated ones are those of the federation.
///
/// # Errors
/// [`ServeError::NoSuchDevice`], [`ServeError::Count`].
pub fn check_devices(
    federation: &Federation,
    keys: &FleetKeys,
    simulated: u32,
) -> Result<(), ServeError> {
    let devices = federation.device_count();
    let real = keys.keys().len() as u32;
    if let Some(device) = keys.keys().keys().find(|device| **device >= devices) {
        return Err(ServeError::NoSuchDevice {
            device: *device,
            last: devices.saturating_sub(1),
        });
    }
    if real.checked_add(simulated) != Some(devices) {
        return Err(ServeError::Count {
            devices,
            real,
            rest: devices.saturating_sub(real),
        });
    }
    Ok(())
}

/// What the federation asks of its devices.
///
/// # Errors
/// [`ServeError::NoClipNorm`], [`ServeError::TooLarge`], [`ServeError::SimulationOnly`].
pub fn terms(experiment: &Experiment) -> Result<Terms, ServeError> {
    if experiment.encoding == Encoding::Unbounded {
        return Err(ServeError::NoClipNorm);
    }
    let simulation_only = |what: String| Err(ServeError::SimulationOnly { what });
    if experiment.personal.is_some() || experiment.contrast.is_some() {
        return simulation_only(format!("method \"{}\"", experiment.config.method.name()));
    }
    if experiment.weight_cap.is_some() {
        return simulation_only("`cohort.weighting` by \"samples\"".to_owned());
    }
    if matches!(experiment.task, Task::Encoder(_)) {
        return simulation_only("`model.hidden`".to_owned());
    }
    let shape = shape(&experiment.task).ok_or(ServeError::TooLarge {
        features: experiment.task.feature_count(),
        outputs: experiment.task.output_count(),
    })?;
    let privacy = &experiment.privacy;
    Ok(Terms {
        shape,
        local_noise: privacy.is_local() && privacy.noise.is_some(),
    })
}

/// The model as the wire names it, if it can be carried.
#[must_use]
pub fn shape(task: &Task) -> Option<Shape> {
    let shape = Shape {
        kind: match task.kind() {
            ModelKind::Linear => WireKind::Linear,
            ModelKind::Logistic => WireKind::Logistic,
            ModelKind::Softmax => WireKind::Softmax,
        },
        features: task.feature_count().try_into().ok()?,
        outputs: task.output_count().try_into().ok()?,
    };
    // The widest update has values of 57 bits.
    u16::try_from(update_chunks(shape.parameters(), 57)).ok()?;
    Some(shape)
}

/// Real devices among simulated ones.
#[derive(Debug)]
pub struct Served<'a> {
    fleet: Fleet,
    federation: &'a Federation,
    terms: Terms,
    first_number: u32,
    /// Rounds below were paid for by an earlier process, whatever came of them.
    paid: u32,
    participation: RecordFile<Participation>,
}

impl<'a> Served<'a> {
    /// A fleet at work for a run whose first `paid` rounds were paid for.
    #[must_use]
    pub const fn new(
        fleet: Fleet,
        federation: &'a Federation,
        terms: Terms,
        (first_number, paid): (u32, u32),
        participation: RecordFile<Participation>,
    ) -> Self {
        Self {
            fleet,
            federation,
            terms,
            first_number,
            paid,
            participation,
        }
    }

    /// The fleet.
    #[must_use]
    pub const fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    fn record(&mut self, record: &Participation) -> Result<(), RoundError> {
        self.participation.append(record)?;
        self.participation.sync()?;
        Ok(())
    }

    /// The invitation of a round; `None` without a clip norm, which [`terms`] has seen to.
    fn invitation(&self, plan: &RoundPlan<'_>) -> Option<Invitation> {
        let Encoding::Clipped(grid) = plan.encoding else {
            return None;
        };
        Some(Invitation {
            shape: self.terms.shape,
            epochs: plan.training.epochs,
            batch_size: plan.training.batch_size,
            learning_rate: plan.training.learning_rate,
            weight_decay: plan.training.weight_decay,
            proximal: plan.training.proximal,
            clipping: plan.training.clipping,
            gradient_smoothing: plan.training.gradient_smoothing,
            grid,
            noise: plan.device_noise.copied(),
        })
    }
}

impl Updates for Served<'_> {
    fn draw(
        &mut self,
        sampling: &Sampling,
        root: &Root,
        round: u32,
    ) -> Result<Option<Draw>, RoundError> {
        let number = self.first_number.saturating_add(round);
        if round < self.paid {
            self.record(&Participation {
                round,
                number,
                burned: true,
                ..Participation::default()
            })?;
            return Ok(None);
        }
        let cohort = draw_cohort(sampling, root, number);
        Ok(Some(Draw { number, cohort }))
    }

    fn sum(
        &mut self,
        plan: &RoundPlan<'_>,
        root: &Root,
        global: &[f32],
        cohort: &[u32],
    ) -> Result<CohortSum, RoundError> {
        let is_real = |device: &u32| self.fleet.has(*device);
        let simulated: Vec<u32> = cohort.iter().copied().filter(|x| !is_real(x)).collect();
        let federation = self.federation;
        let simulate = || train_cohort(plan, federation, root, global, &simulated);
        let Some(invitation) = self.invitation(plan) else {
            return Ok(simulate());
        };
        let offer = Offer {
            number: plan.number,
            invitation,
            model: global.to_vec(),
        };
        let (mut verdicts, trained) = self.fleet.round(offer, cohort, simulate)?;
        let mut record = Participation {
            round: plan.round,
            number: plan.number,
            cohort: cohort.to_vec(),
            ..Participation::default()
        };
        let mut sum = trained.sum;
        let mut simulated = trained.outcomes.into_iter();
        let mut outcomes = Vec::with_capacity(cohort.len());
        for device in cohort {
            match verdicts.remove(device) {
                None => outcomes.extend(simulated.next()),
                Some(Verdict::Answered(integers)) => {
                    // With noise of the devices' own the values may wrap around, as they do there.
                    for (entry, q) in sum.iter_mut().zip(&integers) {
                        *entry = entry.wrapping_add(*q);
                    }
                    record.answered.push(*device);
                    outcomes.push(Outcome::Answered);
                }
                Some(Verdict::Missing(absence)) => {
                    let round = plan.round;
                    self.fleet
                        .say(&format!("round {round}: device {device}: {absence}"));
                    record.missing.insert(*device, absence.to_string());
                    outcomes.push(Outcome::Missing);
                }
            }
        }
        self.record(&record)?;
        Ok(CohortSum {
            sum,
            outcomes,
            left_out_matrices: Vec::new(),
        })
    }
}
