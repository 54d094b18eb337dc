//! What is attacked: the rounds of an experiment, with canaries in the place of its devices.
//!
//! The attacker sees the noisy average of every round. What follows is post-processing and cannot
//! increase the loss.

use std::sync::Arc;

use smolfed_accounting::{Adjacency, PrivacyEvent, Sampling, SamplingRate};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::stream::Root;

use super::canaries::{Canaries, Canary, CanarySource, Sends};
use crate::data::federation::Federation;
use crate::experiment::Experiment;
use crate::method::contract::Method;
use crate::method::state::StateError;
use crate::release::{Encoding, Fault, Mechanism};
use crate::round::{RoundError, Start, Training};
use crate::source::attendance::Attendance;

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
#[derive(Debug)]
pub struct Observation<'a> {
    /// The round.
    pub round: u32,
    /// The noisy average times the denominator, in clip norms; under local trust the uploads of the
    /// canaries, one after the other.
    pub values: Vec<f64>,
    /// The cohort that was drawn, which the attacker does not see: for tests of the draw.
    pub drawn: &'a [u32],
}

/// The rounds of an experiment, with a fault if one is planted.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    experiment: Experiment,
    federation: &'a Federation,
    fault: Fault,
    /// From averages to clip norms on the sum.
    unit: f64,
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
        let (Encoding::Clipped(grid), Mechanism::Independent(_)) =
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
        let expected = expected_size(&experiment.sampling);
        let denominator = experiment.server.fixed_denominator.unwrap_or(expected);
        let unit = denominator / f64::from(grid.clip_norm().get());
        // Updates may be weighted by samples; canaries send as much as the largest weight allows.
        experiment.release.weight_cap = None;
        experiment.config.evaluate_every = 0;
        let fault = fault.placed(
            experiment.config.rounds,
            experiment.task().tensors().as_slice(),
        );
        plant(fault, &mut experiment, denominator);
        Ok(Self {
            experiment,
            federation,
            fault,
            unit,
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

    /// Lengths of the tensors that devices share.
    #[must_use]
    pub fn tensors(&self) -> Vec<usize> {
        self.experiment.shared_tensors()
    }

    /// The same with the first `rounds` rounds alone.
    #[must_use]
    pub fn shortened(&self, rounds: u32) -> Self {
        let mut short = self.clone();
        short.experiment.config.rounds = rounds.min(self.rounds());
        short
    }

    /// Whether the attacker sees each upload by itself.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.experiment.release.is_local()
    }

    /// What the experiment claims about its updates: one round.
    #[must_use]
    pub const fn event(&self) -> PrivacyEvent {
        self.experiment.privacy.event
    }

    /// What is charged for the updates, round after round, as a run writes it to its ledger.
    #[must_use]
    pub fn charges(&self) -> Vec<(u32, PrivacyEvent)> {
        let kind = std::mem::discriminant(&self.event().mechanism);
        let of_updates = |event: &PrivacyEvent| {
            event.unit == self.event().unit && std::mem::discriminant(&event.mechanism) == kind
        };
        let in_round = |round| {
            let events = self.experiment.events_in(round).into_iter();
            events.filter(of_updates).map(move |event| (round, event))
        };
        let mut charges: Vec<_> = (0..self.rounds()).flat_map(in_round).collect();
        match self.fault {
            Fault::EventNeverCharged => {
                charges.pop();
            }
            Fault::EventChargedTwice => charges.extend(charges.last().copied()),
            Fault::EventWithAnotherRate => {
                for (_, event) in &mut charges {
                    event.sampling = with_rate(&event.sampling, 0.9);
                }
            }
            _ => {}
        }
        charges
    }

    /// How often a device takes part at most: the largest number that is claimed for.
    #[must_use]
    pub fn joins(&self) -> u32 {
        match self.experiment.sampling {
            Sampling::Unsampled {
                max_participations, ..
            } => max_participations.min(self.rounds()),
            _ => self.rounds(),
        }
    }

    /// What a canary sends that does not take part.
    #[must_use]
    pub fn other_world(&self) -> Sends {
        match self.event().adjacency() {
            Adjacency::ReplaceOne => Sends::Opposite,
            Adjacency::AddRemove if self.is_local() => Sends::Zero,
            Adjacency::AddRemove => Sends::Nothing,
        }
    }

    /// One run with these canaries; `see` is shown every round.
    ///
    /// `coordinates` is the length of an update.
    ///
    /// # Errors
    /// [`TargetError`] if a round breaks down.
    pub fn observe(
        &self,
        root: &Root,
        coordinates: usize,
        canaries: Vec<Canary>,
        joins: Joining,
        mut see: impl FnMut(&Observation<'_>),
    ) -> Result<(), TargetError> {
        let canaries = Canaries {
            task: *self.experiment.task(),
            coordinates,
            canaries,
            is_forced: joins == Joining::Always || self.is_local(),
            joins: match joins {
                Joining::Always => self.rounds(),
                Joining::AsClaimed => self.joins(),
            },
            sees_uploads: self.is_local(),
        };
        let experiment = Experiment {
            method: Arc::new(canaries.clone()),
            ..self.experiment.clone()
        };
        let mut source = CanarySource::new(self.federation, &canaries, self.fault);
        let start = Start {
            global: canaries.initial(root),
            round: 0,
            root: root.clone(),
        };
        let learner = canaries.begin(self.federation, None)?;
        let mut training = Training::new(&experiment, self.federation, learner, start);
        while !training.is_done() {
            let round = training.round();
            let Some(released) = training.step(&mut source)?.released else {
                continue;
            };
            let average = experiment.server.average(&released);
            let values = average.iter().map(|x| f64::from(*x) * self.unit).collect();
            see(&Observation {
                round,
                values,
                drawn: &source.drawn,
            });
        }
        Ok(())
    }
}

/// When canaries take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// Whenever they are drawn (under local trust in every round), as often as is claimed.
    AsClaimed,
    /// In every round: for tests of what a device sends.
    Always,
}

/// The devices that are drawn on average.
fn expected_size(sampling: &Sampling) -> f64 {
    f64::from(sampling.device_count()) * sampling.sampling_rate().unwrap_or(1.0)
}

/// Plants what is not in the release path itself.
fn plant(fault: Fault, experiment: &mut Experiment, denominator: f64) {
    let factor = match fault {
        Fault::NoiseDividedTwice => 1.0 / denominator,
        Fault::NoiseTooSmall => 0.9,
        _ => 1.0,
    };
    if factor < 1.0
        && let Some(noise) = scaled_noise(experiment, factor)
    {
        experiment.release.mechanism = Mechanism::Independent(noise);
    }
    match fault {
        Fault::RealisedDenominator => experiment.server.fixed_denominator = None,
        Fault::SamplingRateTooLarge => {
            experiment.attendance = Attendance::Drawn(with_rate(&experiment.sampling, 1.1));
        }
        _ => {}
    }
    experiment.release.fault = fault;
}

/// The experiment's noise with another standard deviation.
fn scaled_noise(experiment: &Experiment, factor: f64) -> Option<DiscreteGaussian> {
    const DENOMINATOR: u64 = 1 << 10;
    let steps = f64::from(experiment.release.encoding.grid()?.bits()).exp2();
    let multiplier = experiment.privacy.multiplier().get();
    let std = multiplier * steps * DENOMINATOR as f64 * factor;
    DiscreteGaussian::new(std.ceil() as u64, DENOMINATOR).ok()
}

/// The same sampling with another rate, where devices are sampled.
fn with_rate(sampling: &Sampling, factor: f64) -> Sampling {
    let other = match *sampling {
        Sampling::Poisson {
            device_count,
            sampling_rate,
            ..
        } => SamplingRate::new((sampling_rate.get() * factor).min(1.0))
            .and_then(|rate| Sampling::poisson(device_count, rate)),
        Sampling::Uniform {
            device_count,
            cohort_size,
            ..
        } => {
            let size = (f64::from(cohort_size) * factor).round() as u32;
            Sampling::uniform(device_count, size.clamp(1, device_count))
        }
        other => Ok(other),
    };
    other.unwrap_or(*sampling)
}
