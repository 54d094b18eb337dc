//! Correlation matrices, which devices send alongside their updates under separate noise: an attack
//! on one example of a device, and direct tests of the noise. Both use [`Messages::send`], as every
//! matrix does.
//!
//! In the worst case, an example fills one entry of the diagonal, and its replacement fills another
//! one. A device sends as many matrices as claimed.

use std::convert::Infallible;

use smolfed_accounting::event::ROUNDING_STD;
use smolfed_accounting::{AccountingError, PrivacyEvent, PrivacyUnit, Sampling};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::stream::Root;

use crate::audit::Confidence;
use crate::audit::attack::{self, Attack, Size};
use crate::audit::channel::{Channel, Draws, Names};
use crate::audit::selection::Scores;
use crate::audit::statistics::{Claimed, Seen, coins};
use crate::audit::target::TargetError;
use crate::experiment::Experiment;
use smolfed_release::PrivacyStatement;
use smolfed_release::{Fault, Messages};

/// First seeds of the direct tests and of the attack.
const SEEDS: [u64; 2] = [4 << 40, 5 << 40];
/// Rounds, devices and entries of the direct tests.
const ROUNDS: usize = 16;
const DEVICES: usize = 32;
const LENGTH: usize = 512;

/// The matrices of an experiment, and possibly an injected fault.
#[derive(Debug, Clone)]
pub struct Matrices {
    messages: Messages,
    event: PrivacyEvent,
    /// The claim about one example.
    pub claim: PrivacyStatement,
    /// Number of matrices per device.
    releases: u32,
}

impl Matrices {
    /// Returns the matrices of `experiment`, or `None` if it has none, or none with noise.
    ///
    /// # Errors
    /// [`AccountingError`] if the accountant has no figure for them.
    pub fn new(experiment: &Experiment, fault: Fault) -> Result<Option<Self>, AccountingError> {
        let fault = fault.compiled();
        let message = experiment.method.second_message();
        let Some(message) = message.filter(|message| message.release.noise.is_some()) else {
            return Ok(None);
        };
        let (mut messages, privacy) = (message.release, &message.of_unit);
        let releases = match privacy.event().sampling {
            Sampling::Unsampled {
                max_participations, ..
            } => max_participations,
            _ => experiment.config.rounds,
        };
        if fault == Fault::MatrixNoiseTooSmall {
            messages.noise = DiscreteGaussian::new((messages.noise_std * 0.9) as u64, 1).ok();
        }
        let claims = privacy.statements(u64::from(releases))?;
        Ok(claims.into_iter().next().map(|claim| Self {
            messages,
            event: privacy.event(),
            claim,
            releases,
        }))
    }

    /// Returns the number of pairs of runs that takes a few seconds.
    #[must_use]
    pub fn default_pairs(&self, canaries: u32) -> u32 {
        /// Nanoseconds for a matrix on two cores.
        const COST: f64 = 200.0;
        const BUDGET: f64 = 3e9;
        let matrices = 2.0 * f64::from(canaries) * f64::from(self.releases);
        (BUDGET / (COST * matrices)).clamp(200.0, 20_000.0) as u32
    }

    /// Returns the claimed std of the noise, in steps.
    fn std(&self) -> f64 {
        let multiplier = self.event.mechanism.noise_multiplier().get();
        let steps = multiplier * f64::from(self.messages.grid.bits()).exp2();
        steps.hypot(ROUNDING_STD)
    }

    /// Returns the message of a device whose matrix begins with these integers.
    fn sent(&self, root: &Root, round: u32, device: u32, length: usize, write: &[i64]) -> Vec<f64> {
        let sent = self.messages.send(root, round, device, length, |_, sum| {
            sum[..write.len()].copy_from_slice(write);
            Ok(true)
        });
        let integers = sent.map(|message| message.integers().to_vec());
        let integers = integers.unwrap_or_default().into_iter();
        integers.map(|q| q as f64).collect()
    }

    /// Attacks one example of each of `size.canaries` devices.
    #[must_use]
    pub fn attack(&self, size: Size, confidence: Confidence) -> Attack {
        debug_assert_eq!(self.event.unit, PrivacyUnit::Example);
        let one = f64::from(self.messages.grid.bits()).exp2();
        // The difference of two entries: ±1 with √2 times the noise std of one entry.
        let claimed = Claimed::of_one(self.std() / one * std::f64::consts::SQRT_2, true);
        let run = |root: &Root, is_in: Vec<bool>| {
            let mut seen = Seen::new(is_in.len());
            for round in 0..self.releases {
                let value = |(device, is_in): (usize, &bool)| {
                    let write = match is_in {
                        true => [one as i64, 0],
                        false => [0, one as i64],
                    };
                    let sent = self.sent(root, round, device as u32, write.len(), &write);
                    (sent[0] - sent[1]) / one
                };
                let values: Vec<f64> = is_in.iter().enumerate().map(value).collect();
                seen.add(&claimed, &values, &[]);
            }
            seen.scores(&claimed, is_in)
        };
        let pair = |number: u64| -> [Scores; 2] {
            let root = Root::from_seed(size.seed.wrapping_add(SEEDS[1]).wrapping_add(number));
            let coins = coins(&root, size.canaries);
            let opposite = coins.iter().map(|coin| !coin).collect();
            [run(&root, coins), run(&root, opposite)]
        };
        let Ok(attack) = attack::evaluate(size, confidence, |n| Ok::<_, Infallible>(pair(n)));
        attack
    }
}

impl Channel for Matrices {
    fn draws(&self, seed: u64, _: usize) -> Result<Draws, TargetError> {
        let root = Root::from_seed(seed.wrapping_add(SEEDS[0]));
        let claimed = self.std();
        let message = |index: usize| -> Vec<f64> {
            let (round, device) = ((index / DEVICES) as u32, (index % DEVICES) as u32);
            let sent = self.sent(&root, round, device, LENGTH, &[]);
            sent.into_iter().map(|q| q / claimed).collect()
        };
        Ok(Draws {
            names: Names {
                std: "standard deviation of the noise on matrices",
                independence: "noise on different matrices",
                group: "message",
            },
            steps: claimed,
            groups: (0..ROUNDS * DEVICES).map(message).collect(),
            // The next device of the round, and the same device in the next round.
            distances: vec![1, DEVICES],
            others: Vec::new(),
        })
    }
}
