//! The score of a trial of a private selection, which all devices release once after the last
//! round: its noise, and the effect of one device.

use rayon::prelude::*;
use smolfed_accounting::{Adjacency, PrivacyEvent};
use smolfed_core::stream::Root;

use crate::audit::canaries::{Canary, Sends};
use crate::audit::channel::{COST, Channel, Draws, Names, transposed};
use crate::audit::check::Check;
use crate::audit::sensitivity::bound;
use crate::audit::statistics::Claimed;
use crate::audit::target::{Joining, Observation, Target, TargetError};
use crate::experiment::trial::Trial;

/// First seeds of the tests of noise and of sensitivity.
const SEEDS: [u64; 2] = [10 << 40, 11 << 40];
const MAX_RUNS: usize = 1 << 14;
/// Number of coordinates of the updates to compare with the score.
const COORDINATES: usize = 8;

/// The score of a target.
pub struct Score<'a> {
    target: &'a Target<'a>,
    trial: &'a Trial,
}

impl<'a> Score<'a> {
    /// Returns `None` without a private selection.
    #[must_use]
    pub fn from_target(target: &'a Target<'a>) -> Option<Self> {
        let trial = target.trial()?;
        Some(Self { target, trial })
    }

    const fn event(&self) -> PrivacyEvent {
        self.trial.side.event
    }

    /// Returns the claim about the sum of all scores, to which each device of a canary adds 1.
    #[must_use]
    pub fn claimed(&self, devices: u32, is_replaced: bool) -> Claimed {
        let multiplier = self.event().mechanism.noise_multiplier().get();
        Claimed::of_all(devices, multiplier, is_replaced)
    }

    /// Returns the noisy sum of the canaries' numbers. Each device of a canary sends 1, or -1 if
    /// its canary's sign is negative. The other devices send nothing.
    #[must_use]
    pub fn released(&self, seed: u64, canaries: impl Iterator<Item = (Canary, f64)>) -> f64 {
        let numbers = canaries.flat_map(|(canary, sign)| {
            let number = match canary.sends {
                Sends::Update => Some(sign),
                Sends::Opposite => Some(-sign),
                Sends::Zero | Sends::Nothing => None,
            };
            let accuracy = number.map(|number| f64::midpoint(number, 1.0));
            canary.devices.map(move |device| (device, accuracy))
        });
        self.sum(seed, numbers)
    }

    /// Returns the noisy sum of the devices' numbers from -1 to 1, which are given as accuracies.
    /// The other devices send nothing.
    fn sum(&self, seed: u64, of_devices: impl IntoIterator<Item = (u32, Option<f64>)>) -> f64 {
        let devices = self.target.device_count();
        let mut accuracies = vec![None; devices as usize];
        for (device, accuracy) in of_devices {
            if let Some(own) = accuracies.get_mut(device as usize) {
                *own = accuracy;
            }
        }
        let mean = self.trial.release(&accuracies, &Root::from_seed(seed));
        (2.0 * mean - 1.0) * f64::from(devices)
    }
}

impl Channel for Score<'_> {
    fn draws(&self, seed: u64, values: usize) -> Result<Draws, TargetError> {
        let claimed = self.event().mechanism.noise_multiplier().get();
        let first_round = self.target.shortened(1);
        let runs = (values / COST).clamp(2, MAX_RUNS);
        let observe = |run: usize| -> Result<(f64, Vec<f64>), TargetError> {
            let seed = seed.wrapping_add(SEEDS[0] + run as u64);
            let mut updates = Vec::new();
            let see = |round: &Observation<'_>| {
                updates = round.values.iter().take(COORDINATES).copied().collect();
            };
            first_round.observe(seed, COORDINATES, Vec::new(), Joining::Always, see)?;
            Ok((self.sum(seed, []) / claimed, updates))
        };
        let seen = (0..runs).into_par_iter().map(observe);
        let seen = seen.collect::<Result<Vec<_>, _>>()?;
        let (scores, mut updates): (Vec<f64>, Vec<_>) = seen.into_iter().unzip();
        let std = self.target.multipliers(&self.target.event()).update;
        updates.iter_mut().flatten().for_each(|x| *x /= std);
        Ok(Draws {
            names: Names {
                std: "standard deviation of the noise on scores",
                independence: "noise of scores and other noise",
                group: "trial",
            },
            steps: claimed * self.trial.steps_per_bound(),
            groups: vec![scores],
            distances: Vec::new(),
            others: vec![transposed(&updates)],
        })
    }

    fn changes(&self, seed: u64) -> Result<Option<Check>, TargetError> {
        let seed = seed.wrapping_add(SEEDS[1]);
        let claimed = bound(&self.event());
        let pairs = match self.event().adjacency() {
            Adjacency::AddRemove => [(Some(1.0), None), (Some(0.0), None)],
            Adjacency::ReplaceOne => [(Some(1.0), Some(0.0)), (Some(0.0), None)],
        };
        let moved = pairs
            .map(|(one, other)| (self.sum(seed, [(0, one)]) - self.sum(seed, [(0, other)])).abs());
        let largest = moved.into_iter().fold(0.0, f64::max);
        // A mean is rounded to `f32`.
        let rounding = f64::from(f32::EPSILON) * f64::from(self.target.device_count());
        Ok(Some(Check {
            test: "what one device changes in the score",
            is_as_claimed: largest <= claimed * (1.0 + 1e-6) + rounding,
            evidence: format!("{largest:.5} of {claimed} claimed"),
        }))
    }
}
