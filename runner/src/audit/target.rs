//! What is attacked: the rounds of an experiment, with canaries in the place of its devices.
//!
//! The attacker sees the noisy average of every round. What follows is post-processing and cannot
//! increase the loss.

use std::sync::Arc;

use smolfed_accounting::Adjacency;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::stream::Root;

use super::canaries::{Canaries, CanarySource, OtherWorld};
use crate::data::federation::Federation;
use crate::experiment::Experiment;
use crate::method::contract::Method;
use crate::method::state::StateError;
use crate::release::{Encoding, Fault, Mechanism};
use crate::round::{RoundError, Start, Training};

/// Why an experiment cannot be audited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// Without clipping or without noise there is no claim.
    #[error(
        "there is nothing to audit: without `privacy.clip_norm` and noise no epsilon is claimed"
    )]
    NothingClaimed,
    /// Devices that release something in each local step.
    #[error(
        "the audit sends one update per round, but this experiment releases {releases}: set \
         `personalise.noise` to \"each-round\""
    )]
    Steps {
        /// Releases of a device in a round.
        releases: u32,
    },
    /// A clip norm that changes from round to round.
    #[error(
        "the audit compares rounds of one clip norm, but `privacy.clip_norm` is \"adaptive\": give \
         a number, such as the last clip norm of a run"
    )]
    Adaptive,
    /// A round broke down.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// The canaries could not be set up.
    #[error(transparent)]
    States(#[from] StateError),
}

/// What the attacker sees of one round.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The noisy average, or under local trust what each canary uploaded at its coordinate.
    pub average: Vec<f32>,
}

/// The rounds of an experiment, with a fault if one is planted.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    experiment: Experiment,
    federation: &'a Federation,
    other: OtherWorld,
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
        let mut experiment = experiment.clone();
        let (Encoding::Clipped(_), Mechanism::Independent(_)) =
            (experiment.release.encoding, experiment.release.mechanism)
        else {
            return Err(TargetError::NothingClaimed);
        };
        let releases = experiment.release.timing.releases();
        if releases != 1 {
            return Err(TargetError::Steps { releases });
        }
        if experiment.adaptive.is_some() {
            return Err(TargetError::Adaptive);
        }
        experiment.release.fault = fault;
        match fault {
            Fault::NoiseDividedTwice => {
                if let Some(noise) = divided_noise(&experiment) {
                    experiment.release.mechanism = Mechanism::Independent(noise);
                }
            }
            Fault::RealisedDenominator => experiment.server.fixed_denominator = None,
            Fault::None | Fault::ClipSkipped | Fault::NoiseStreamReused => {}
        }
        // Updates may be weighted by samples; canaries send as much as the largest weight allows.
        experiment.release.weight_cap = None;
        experiment.config.evaluate_every = 0;
        let other = match experiment.sampling.adjacency() {
            Adjacency::ReplaceOne => OtherWorld::Opposite,
            Adjacency::AddRemove if experiment.release.is_local() => OtherWorld::Zero,
            Adjacency::AddRemove => OtherWorld::Absent,
        };
        Ok(Self {
            experiment,
            federation,
            other,
        })
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

    /// One run: device j is a canary at coordinate j, and takes part if `is_in[j]`.
    ///
    /// `coordinates` is the length of the model, at least that of `is_in`. The devices after the
    /// canaries send zeros. A canary that does not take part is absent under add-remove, and sends
    /// −L under replace-one.
    ///
    /// # Errors
    /// [`TargetError`] if a round breaks down.
    pub fn observe(
        &self,
        root: &Root,
        is_in: &[bool],
        coordinates: usize,
    ) -> Result<Vec<Observation>, TargetError> {
        let canaries = Canaries {
            task: *self.experiment.task(),
            coordinates,
            is_in: is_in.to_vec(),
            other: self.other,
            sees_uploads: self.experiment.release.is_local(),
        };
        let experiment = Experiment {
            method: Arc::new(canaries.clone()),
            ..self.experiment.clone()
        };
        let source = &mut CanarySource {
            federation: self.federation,
            canaries: &canaries,
        };
        let start = Start {
            global: canaries.initial(root),
            round: 0,
            root: root.clone(),
        };
        let learner = canaries.begin(self.federation, None)?;
        let mut training = Training::new(&experiment, self.federation, learner, start);
        let mut observations = Vec::with_capacity(self.rounds() as usize);
        while !training.is_done() {
            if let Some(released) = training.step(source)?.released {
                let average = experiment.server.average(&released);
                observations.push(Observation { average });
            }
        }
        Ok(observations)
    }
}

/// The noise of a server that divides it by the cohort size before the sum is divided as well.
fn divided_noise(experiment: &Experiment) -> Option<DiscreteGaussian> {
    const DENOMINATOR: u64 = 1 << 10;
    let cohort = experiment.server.fixed_denominator?;
    let steps = f64::from(experiment.release.encoding.grid()?.bits()).exp2();
    let multiplier = experiment.privacy.multiplier().get();
    let std = multiplier * steps * DENOMINATOR as f64 / cohort;
    DiscreteGaussian::new(std.ceil() as u64, DENOMINATOR).ok()
}
