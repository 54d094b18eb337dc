//! The moments of a private scale, which all devices release once before the first round: noise,
//! sensitivity, and the substitutes that canaries send.

use std::ops::Range;

use rayon::prelude::*;
use smolfed_accounting::PrivacyEvent;
use smolfed_core::stream::Root;

use crate::audit::canaries::{Canary, Sends};
use crate::audit::channel::{COST, Channel, Draws, Names, transposed};
use crate::audit::check::Check;
use crate::audit::sensitivity::{Difference, bound, supports};
use crate::audit::statistics::Claimed;
use crate::audit::target::{Joining, Observation, Target, TargetError};
use crate::experiment::scaling::ScaleRelease;
use smolfed_release::Released;

/// First seeds of the tests of noise and of sensitivity.
const SEEDS: [u64; 2] = [7 << 40, 8 << 40];
const MAX_RUNS: usize = 4096;
/// A device whose individual upload is visible (local trust), and the canary of the sensitivity.
const DEVICE: u32 = 0;

/// The moments of a target.
pub struct Moments<'a> {
    target: &'a Target<'a>,
    release: &'a ScaleRelease,
}

impl<'a> Moments<'a> {
    /// Returns `None` if no scale is released with noise.
    #[must_use]
    pub fn from_target(target: &'a Target<'a>) -> Option<Self> {
        let release = target.moments()?;
        Some(Self { target, release })
    }

    const fn event(&self) -> PrivacyEvent {
        self.release.side.event
    }

    fn multiplier(&self) -> f64 {
        self.event().mechanism.noise_multiplier().get()
    }

    /// Returns the claim about a value that contains the coordinate of a canary with `devices`
    /// devices.
    #[must_use]
    pub fn claimed(&self, devices: u32, is_replaced: bool) -> Claimed {
        Claimed::of_all(devices, self.multiplier(), is_replaced)
    }

    /// Returns the release of vectors of `length`, in units of their bound. Under local trust,
    /// these are the uploads of the canaries, one after the other.
    #[must_use]
    pub fn released(&self, root: &Root, canaries: &[Canary], length: usize) -> Vec<f64> {
        self.released_of(root, canaries, length, false)
    }

    /// Returns the same release, with vectors longer than their bound if `is_too_long`.
    fn released_of(
        &self,
        root: &Root,
        canaries: &[Canary],
        length: usize,
        is_too_long: bool,
    ) -> Vec<f64> {
        let sends = |canary: &&Canary| canary.sends != Sends::Nothing;
        let senders: Vec<(u32, &Canary)> = canaries
            .iter()
            .filter(sends)
            .flat_map(|canary| canary.devices.clone().map(move |device| (device, canary)))
            .collect();
        let of = |senders: &[(u32, &Canary)]| -> Released {
            let devices: Vec<u32> = senders.iter().map(|(device, _)| *device).collect();
            self.release
                .released(&devices, root, length, |device, moments| {
                    let found = senders.binary_search_by_key(&device, |(device, _)| *device);
                    if let Ok(found) = found {
                        senders[found].1.write(1.0, is_too_long, moments);
                    }
                })
        };
        let values = |released: Released| released.over(1.0).into_iter().map(f64::from);
        match self.target.is_local() {
            true => senders.chunks(1).flat_map(|one| values(of(one))).collect(),
            false => values(of(&senders)).collect(),
        }
    }

    fn canary(support: Range<usize>, sends: Sends) -> Canary {
        Canary {
            devices: DEVICE..DEVICE + 1,
            support,
            sends,
            is_clipped: false,
        }
    }
}

impl Channel for Moments<'_> {
    fn draws(&self, seed: u64, values: usize) -> Result<Draws, TargetError> {
        let length = self.release.length;
        let runs = (values / COST / length).clamp(2, MAX_RUNS);
        let first_round = self.target.shortened(1);
        let update = self.target.multipliers(&self.target.event()).update;
        let canaries: Vec<Canary> = match self.target.is_local() {
            true => vec![Self::canary(0..0, Sends::Zero)],
            false => Vec::new(),
        };
        let observe = |run: usize| -> Result<[Vec<f64>; 2], TargetError> {
            let seed = seed.wrapping_add(SEEDS[0] + run as u64);
            let moments = self.released(&Root::from_seed(seed), &canaries, length);
            let mut updates = Vec::new();
            let see = |round: &Observation<'_>| {
                updates = round.values.iter().map(|x| x / update).collect();
            };
            let (canaries, joins) = (canaries.clone(), Joining::Always);
            first_round.observe(seed, length, canaries, joins, see)?;
            let scaled = moments.iter().map(|x| x / self.multiplier());
            Ok([scaled.collect(), updates])
        };
        let seen = (0..runs).into_par_iter().map(observe);
        let seen = seen.collect::<Result<Vec<_>, _>>()?;
        let (moments, updates): (Vec<_>, Vec<_>) = seen.into_iter().map(|[a, b]| (a, b)).unzip();
        let same_coordinate = transposed(&updates).into_iter().map(|values| vec![values]);
        Ok(Draws {
            names: Names {
                std: "standard deviation of the noise on moments",
                independence: "noise of moments and other noise",
                group: "moment",
            },
            steps: self.multiplier() * self.release.steps_per_bound(),
            groups: transposed(&moments),
            distances: vec![1, 2],
            others: same_coordinate.collect(),
        })
    }

    fn changes(&self, seed: u64) -> Result<Option<Check>, TargetError> {
        let length = self.release.length;
        let bound = bound(&self.event());
        let mut worst: Option<Difference> = None;
        for (index, support) in supports(&[], length).into_iter().enumerate() {
            let root = Root::from_seed(seed.wrapping_add(SEEDS[1] + index as u64));
            for is_too_long in [false, true] {
                let run = |sends| {
                    let canary = Self::canary(support.clone(), sends);
                    self.released_of(&root, &[canary], length, is_too_long)
                };
                let (with, without) = (run(Sends::Update), run(self.target.other_world()));
                let difference = Difference::new(&with, &without, |index| support.contains(&index));
                let excess = difference.excess(bound);
                if worst
                    .as_ref()
                    .is_none_or(|worst| excess > worst.excess(bound))
                {
                    worst = Some(difference);
                }
            }
        }
        let worst = worst.unwrap_or_default();
        Ok(Some(Check {
            test: "what one device changes in the moments",
            is_as_claimed: worst.excess(bound) <= 0.0,
            evidence: format!("{:.5} of {bound} claimed", worst.norm),
        }))
    }
}
