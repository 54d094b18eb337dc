//! Correlation matrices, which devices send beside their updates under noise of their own: an
//! attack on one example of a device, and direct tests of the noise. Both go through
//! [`Messages::send`], which every matrix goes through.
//!
//! The worst that an example can do is to fill one entry of the diagonal, and its replacement to
//! fill another one. A device sends as many matrices as is claimed.

use std::collections::HashSet;
use std::convert::Infallible;

use smolfed_accounting::event::ROUNDING_STD;
use smolfed_accounting::{AccountingError, PrivacyEvent, PrivacyUnit, Sampling};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::stream::Root;

use super::Confidence;
use super::attack::{self, Attack, Size};
use super::check::{Check, ERROR};
use super::direct::tails::{Worst, mean_product, mean_square};
use super::selection::Scores;
use super::statistics::{Claimed, Seen, coins};
use crate::experiment::Experiment;
use crate::privacy::PrivacyStatement;
use crate::release::{Fault, Messages};

/// Seeds of the direct tests and of the attack begin here.
const SEEDS: [u64; 2] = [4 << 40, 5 << 40];
/// Rounds, devices and entries of the direct tests.
const ROUNDS: usize = 16;
const DEVICES: usize = 32;
const LENGTH: usize = 512;

/// The matrices of an experiment, with a fault if one is planted.
#[derive(Debug, Clone)]
pub struct Matrices {
    messages: Messages,
    event: PrivacyEvent,
    /// The claim about one example.
    pub claim: PrivacyStatement,
    /// Matrices of a device.
    releases: u32,
}

impl Matrices {
    /// Those of `experiment`; `None` if it has none, or none with noise.
    ///
    /// # Errors
    /// [`AccountingError`] if the accountant has no figure for them.
    pub fn new(experiment: &Experiment, fault: Fault) -> Result<Option<Self>, AccountingError> {
        let method = &experiment.method;
        let both = method.messages().copied().zip(method.message_privacy());
        let Some((mut messages, privacy)) = both.filter(|(messages, _)| messages.noise.is_some())
        else {
            return Ok(None);
        };
        let releases = match privacy.event.sampling {
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
            event: privacy.event,
            claim,
            releases,
        }))
    }

    /// So many pairs of runs as take a few seconds.
    #[must_use]
    pub fn default_pairs(&self, canaries: u32) -> u32 {
        /// Nanoseconds of a matrix, on two cores.
        const COST: f64 = 200.0;
        const BUDGET: f64 = 3e9;
        let matrices = 2.0 * f64::from(canaries) * f64::from(self.releases);
        (BUDGET / (COST * matrices)).clamp(200.0, 20_000.0) as u32
    }

    /// The std of the noise that is claimed, in steps.
    fn std(&self) -> f64 {
        let multiplier = self.event.mechanism.noise_multiplier().get();
        let steps = multiplier * f64::from(self.messages.grid.bits()).exp2();
        steps.hypot(ROUNDING_STD)
    }

    /// What a device sends that has these integers at the beginning of its matrix.
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
        // The difference of two entries: ±1 with noise of √2 times the std of one.
        let claimed = Claimed {
            rate: 1.0,
            multiplier: self.std() / one * std::f64::consts::SQRT_2,
            is_replaced: true,
        };
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
                seen.add(&claimed, &values);
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

    /// Has the noise the std that is claimed, and is it independent between devices and rounds?
    #[must_use]
    pub fn checks(&self, seed: u64) -> Vec<Check> {
        let root = Root::from_seed(seed.wrapping_add(SEEDS[0]));
        let claimed = self.std();
        let message = |index: usize| -> Vec<f64> {
            let (round, device) = ((index / DEVICES) as u32, (index % DEVICES) as u32);
            let sent = self.sent(&root, round, device, LENGTH, &[]);
            sent.into_iter().map(|q| q / claimed).collect()
        };
        let all: Vec<Vec<f64>> = (0..ROUNDS * DEVICES).map(message).collect();
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let n = LENGTH as f64;
        let (mut std, mut independence) = (Worst::default(), Worst::default());
        let mut total = 0.0;
        for (index, values) in all.iter().enumerate() {
            let square = product(values, values) / n;
            total += square;
            let words = || format!("message {index}: {:.4}", square.sqrt());
            std.add(mean_square(n, square), words);
            // The next device of the round, and the same device in the next round.
            for other in [index + 1, index + DEVICES] {
                if let Some(others) = all.get(other) {
                    let mean = product(values, others) / n;
                    let words = || format!("messages {index} and {other}: {mean:.4}");
                    independence.add(mean_product(n, mean), words);
                }
            }
        }
        let mean = total / all.len() as f64;
        std.add(mean_square(n * all.len() as f64, mean), || "all".to_owned());
        let bits = |values: &Vec<f64>| values.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
        let different: HashSet<Vec<u64>> = all.iter().map(bits).collect();
        vec![
            Check {
                test: "standard deviation of the noise on matrices",
                is_as_claimed: !std.fails(ERROR),
                evidence: format!(
                    "{:.4} of the claimed one in {} entries; worst: {}",
                    mean.sqrt(),
                    all.len() * LENGTH,
                    std.words
                ),
            },
            Check {
                test: "noise on different matrices",
                is_as_claimed: !independence.fails(ERROR) && different.len() == all.len(),
                evidence: format!("largest correlation: {}", independence.words),
            },
        ]
    }
}
