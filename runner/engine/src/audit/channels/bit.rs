//! The bit of adaptive clipping: whether an update was clipped. The effect of one device on it is
//! tested together with the update, as claimed.

use rayon::prelude::*;

use crate::audit::canaries::{Canary, Sends};
use crate::audit::channel::DEVICES;
use crate::audit::channel::{COST, Channel, Draws, Names, transposed};
use crate::audit::target::{Joining, Observation, Target, TargetError};

/// First seed of these runs.
const SEEDS: u64 = 6 << 40;
/// Number of coordinates of the updates to compare with the bit.
const COORDINATES: usize = 8;

/// The bits of a target.
pub struct Bit<'a> {
    target: &'a Target<'a>,
    /// Claimed std of the noise, in units of one half.
    multiplier: f64,
}

impl<'a> Bit<'a> {
    /// Returns `None` unless the clip norm is adaptive.
    #[must_use]
    pub fn from_target(target: &'a Target<'a>) -> Option<Self> {
        let multiplier = target.multipliers(&target.event()).bit?;
        Some(Self { target, multiplier })
    }

    fn canaries(&self) -> Vec<Canary> {
        let devices = match self.target.is_local() {
            true => (DEVICES as u32).min(self.target.device_count()),
            false => 0,
        };
        let canary = |device| Canary {
            devices: device..device + 1,
            support: 0..0,
            sends: Sends::Zero,
            is_clipped: false,
        };
        (0..devices).map(canary).collect()
    }
}

/// The bits of a round, with the coordinates of the update next to each.
#[derive(Default)]
struct Round {
    bits: Vec<f64>,
    coordinates: Vec<Vec<f64>>,
}

impl Channel for Bit<'_> {
    fn draws(&self, seed: u64, values: usize) -> Result<Draws, TargetError> {
        let rounds = self.target.rounds() as usize;
        let update = self.target.multipliers(&self.target.event()).update;
        let runs = (values / COST / rounds).max(2);
        let observe = |run: usize| -> Result<Vec<Round>, TargetError> {
            let seed = seed.wrapping_add(SEEDS + run as u64);
            let mut seen = Vec::with_capacity(rounds);
            let see = |round: &Observation<'_>| {
                let values: Vec<f64> = round.values.iter().map(|x| x / update).collect();
                seen.push(Round {
                    bits: round.bits.iter().map(|x| x / self.multiplier).collect(),
                    coordinates: values.chunks(COORDINATES).map(<[f64]>::to_vec).collect(),
                });
            };
            let (canaries, joins) = (self.canaries(), Joining::Always);
            let target = self.target;
            target.observe(seed, COORDINATES, canaries, joins, see)?;
            Ok(seen)
        };
        let seen = (0..runs).into_par_iter().map(observe);
        let mut all: Vec<Round> = (0..rounds).map(|_| Round::default()).collect();
        for run in seen.collect::<Result<Vec<_>, _>>()? {
            for (round, more) in all.iter_mut().zip(run) {
                round.bits.extend(more.bits);
                round.coordinates.extend(more.coordinates);
            }
        }
        let others = all.iter().map(|round| transposed(&round.coordinates));
        Ok(Draws {
            names: Names {
                std: "standard deviation of the noise on bits",
                independence: "noise of bits and other noise",
                group: "round",
            },
            steps: self.multiplier * self.target.steps_per_clip_norm(),
            others: others.collect(),
            groups: all.into_iter().map(|round| round.bits).collect(),
            distances: vec![1, 2],
        })
    }
}
