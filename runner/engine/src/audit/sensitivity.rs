//! The effect of one device: two runs of one seed have the same noise, so the difference of their
//! releases is exactly the canary's contribution. Its norm must be at most the claimed sensitivity,
//! whatever part of a long update the canary fills, and nothing else may change: a denominator that
//! counts the cohort would scale all noise.

use std::ops::Range;

use rayon::prelude::*;
use smolfed_accounting::{Adjacency, PrivacyEvent};

use crate::audit::canaries::{Canary, Sends};
use crate::audit::check::Check;
use crate::audit::target::{Joining, Multipliers, Observation, Target, TargetError};

/// First seed of these runs.
const SEEDS: u64 = 3 << 40;
/// Number of rounds. The first ones are enough, as the noise does not matter.
const ROUNDS: u32 = 3;

/// Returns the claimed sensitivity, in clip norms.
#[must_use]
pub fn bound(event: &PrivacyEvent) -> f64 {
    match event.adjacency() {
        Adjacency::AddRemove => 1.0,
        Adjacency::ReplaceOne => 2.0,
    }
}

/// Measures the largest difference that a canary makes, for updates of `length` coordinates.
///
/// With an adaptive clip norm, the differences of the update and of the bit are weighted by their
/// noise. Together they may be as large as the change of one update under the claimed noise
/// multiplier.
///
/// # Errors
/// [`TargetError`] if a round breaks down.
pub fn check(target: &Target<'_>, seed: u64, length: usize) -> Result<Check, TargetError> {
    let event = target.event();
    let bound = bound(&event);
    let Multipliers { update, bit } = target.multipliers(&event);
    let total = bit.map_or(update, |_| event.mechanism.noise_multiplier().get());
    let short = target.shortened(ROUNDS);
    let supports = supports(&target.tensors(), length);
    let differences = supports.par_iter().enumerate().map(|(index, support)| {
        let seed = seed.wrapping_add(SEEDS + index as u64);
        let device = index as u32 % target.device_count();
        let run = |sends: Sends, is_clipped: bool| {
            let canary = Canary {
                devices: device..device + 1,
                support: support.clone(),
                sends,
                is_clipped,
            };
            let mut rounds = Vec::new();
            let see = |seen: &Observation<'_>| {
                // The last values are bits.
                let mut values: Vec<f64> = seen.values.iter().map(|x| x * total / update).collect();
                values.extend(
                    bit.iter()
                        .flat_map(|z| seen.bits.iter().map(move |x| x * total / z)),
                );
                rounds.push(values);
            };
            let joins = Joining::Always;
            short.observe(seed, length, vec![canary], joins, see)?;
            Ok::<_, TargetError>(rounds)
        };
        let is_changed = |index| index >= length || support.contains(&index);
        let mut found = Vec::new();
        for is_clipped in [true, false] {
            let with = run(Sends::Update, is_clipped)?;
            let without = run(target.other_world(), is_clipped)?;
            let pairs = with.iter().zip(&without);
            found.extend(pairs.map(|(with, without)| Difference::new(with, without, is_changed)));
        }
        Ok::<_, TargetError>(found)
    });
    let differences: Vec<Vec<Difference>> = differences.collect::<Result<_, _>>()?;
    let mut worst = Difference::default();
    let mut words = String::new();
    for (support, found) in supports.iter().zip(differences) {
        for difference in found {
            if difference.excess(bound) > worst.excess(bound) || words.is_empty() {
                worst = difference;
                words = format!("{} to {}", support.start, support.end - 1);
            }
        }
    }
    Ok(Check {
        test: "what one device changes",
        is_as_claimed: worst.excess(bound) <= 0.0,
        evidence: format!(
            "{:.5} clip norms of {bound} claimed, and {:.1e} where it sent zeros, for an update of \
             coordinates {words}",
            worst.norm, worst.outside
        ),
    })
}

/// Returns the parts of an update that a canary fills: single coordinates, each tensor, everything.
#[must_use]
pub fn supports(tensors: &[usize], length: usize) -> Vec<Range<usize>> {
    let mut supports: Vec<Range<usize>> = Vec::new();
    for coordinate in [0, 1, 511, 512, length / 2, 4095, 4096, length - 1] {
        if coordinate < length {
            supports.push(coordinate..coordinate + 1);
        }
    }
    let mut start = 0;
    for tensor in tensors {
        supports.push(start..start + tensor);
        start += tensor;
    }
    supports.push(0..length);
    supports.retain(|support| !support.is_empty() && support.end <= length);
    supports
}

/// The difference of two releases, in clip norms.
#[derive(Debug, Default)]
pub struct Difference {
    /// Norm of the difference.
    pub norm: f64,
    /// Its part at coordinates where the canary sent zeros.
    outside: f64,
    /// Possible error from rounding to `f32`.
    rounding: f64,
}

impl Difference {
    /// Compares two releases. All values outside `changed` must be the same.
    #[must_use]
    pub fn new(with: &[f64], without: &[f64], changed: impl Fn(usize) -> bool) -> Self {
        let mut difference = Self::default();
        let mut squares = 0.0;
        for (index, (a, b)) in with.iter().zip(without).enumerate() {
            let square = (a - b).powi(2);
            difference.norm += square;
            squares += a * a + b * b;
            if !changed(index) {
                difference.outside += square;
            }
        }
        difference.norm = difference.norm.sqrt();
        difference.outside = difference.outside.sqrt();
        difference.rounding = f64::from(f32::EPSILON) * squares.sqrt();
        difference
    }

    /// Returns the excess over the claim. A relative error of 10⁻⁶ counts as rounding.
    #[must_use]
    pub fn excess(&self, bound: f64) -> f64 {
        let norm = self.norm - bound * (1.0 + 1e-6);
        norm.max(self.outside) - self.rounding
    }
}
