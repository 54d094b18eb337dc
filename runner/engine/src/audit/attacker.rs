//! The attacker: knowledge of the claim, and the pairs of runs to compare.
//!
//! A canary is a user, whose devices all act together. The sampling decides whether they take part.
//! With secret cohorts, the likelihood ratio is a mixture over the number of drawn devices. If the
//! attacker sees individual uploads, it is the sum over uploads.

use smolfed_accounting::{Adjacency, Sampling};
use smolfed_core::stream::Root;

use super::canaries::{Canary, Sends};
use super::channels::moments::Moments;
use super::channels::score::Score;
use super::selection::Scores;
use super::source::Asks;
use super::statistics::{Claimed, Seen, coins};
use super::target::{Course, Joining, Observation, Target, TargetError};
use crate::question::AskedQuestion;

/// An attacker who knows the claim.
pub struct Attacker<'a> {
    target: &'a Target<'a>,
    /// Canaries in a run.
    pub canaries: u32,
    /// Devices of each canary.
    devices: u32,
    /// Rounds in which a canary may take part.
    joins: u32,
    claimed: Claimed,
    moments: Option<Moments<'a>>,
    score: Option<Score<'a>>,
    /// Claims about the answers to questions, by question index.
    answers: Vec<(u8, Claimed)>,
    /// The question whose answers are the only target.
    asked: Option<&'a AskedQuestion>,
}

impl<'a> Attacker<'a> {
    /// Creates an attacker with at most `canaries` canaries.
    #[must_use]
    pub fn new(target: &'a Target<'a>, canaries: u32) -> Self {
        let event = target.event();
        let devices = target.devices_per_user().min(target.device_count());
        let canaries = canaries.clamp(1, target.device_count() / devices);
        let multipliers = target.multipliers(&event);
        let mut claimed = Claimed {
            counts: counts_for(target, &event.sampling, devices),
            multiplier: multipliers.update,
            bit_multiplier: None,
            is_replaced: event.adjacency() == Adjacency::ReplaceOne,
        };
        claimed.bit_multiplier = multipliers.bit.map(|z| match target.is_local() {
            true => z,
            false => among(canaries, z, &claimed),
        });
        Self {
            target,
            canaries,
            devices,
            joins: target.joins(),
            claimed,
            moments: Moments::from_target(target),
            score: Score::from_target(target),
            answers: answers_of(target, devices),
            asked: None,
        }
    }

    /// Creates an attacker of the answers to one question alone.
    #[must_use]
    pub fn of_answers(target: &'a Target<'a>, canaries: u32, asked: &'a AskedQuestion) -> Self {
        let mut attacker = Self::new(target, canaries);
        attacker.answers.retain(|(index, _)| *index == asked.index);
        if let Some((_, claimed)) = attacker.answers.first() {
            attacker.claimed = claimed.clone();
        }
        Self {
            moments: None,
            score: None,
            asked: Some(asked),
            ..attacker
        }
    }

    /// Makes both runs of a pair.
    ///
    /// # Errors
    /// [`TargetError`] if a round breaks down.
    pub fn pair(&self, seed: u64, number: u64) -> Result<[Scores; 2], TargetError> {
        let seed = seed.wrapping_add(number);
        let coins = coins(&Root::from_seed(seed), self.canaries);
        let opposite = coins.iter().map(|coin| !coin).collect();
        Ok([self.run(seed, coins)?, self.run(seed, opposite)?])
    }

    fn run(&self, seed: u64, is_in: Vec<bool>) -> Result<Scores, TargetError> {
        let coordinates = if self.target.is_local() {
            1
        } else {
            is_in.len()
        };
        let canaries: Vec<Canary> = (0..)
            .zip(&is_in)
            .map(|(i, is_in)| self.canary(i, *is_in))
            .collect();
        let mut seen = Seen::new(is_in.len());
        if let Some(moments) = &self.moments {
            let values = moments.released(&Root::from_seed(seed), &canaries, coordinates);
            let claimed = moments.claimed(self.devices / self.uploads(), self.claimed.is_replaced);
            for upload in 0..self.uploads() {
                seen.add_once(&claimed, &self.of_upload(upload, &values), &[]);
            }
        }
        let see = |observation: &Observation<'_>| {
            self.read_answers(observation, &mut seen);
            if observation.round < self.joins && self.asked.is_none() {
                for upload in 0..self.uploads() {
                    let values = self.of_upload(upload, &observation.values);
                    let bits = self.bits(upload, &observation.bits);
                    seen.add(&self.claimed, &values, &bits);
                }
            }
        };
        let (joins, canaries_of_run) = (Joining::AsClaimed, canaries.clone());
        let rounds: Option<Vec<u32>> = self
            .asked
            .map(|asked| self.target.asked_in(asked).collect());
        let course = Course {
            rounds: rounds.as_deref(),
            has_updates: self.asked.is_none(),
            asks: self.asked.map_or(Asks::All, |asked| Asks::One(asked.index)),
        };
        let target = self.target;
        target.observe_course(seed, coordinates, canaries_of_run, joins, &course, see)?;
        if let Some(score) = &self.score {
            let mut claimed = score.claimed(self.devices, self.claimed.is_replaced);
            let sum = score.released(seed, canaries.into_iter().zip(alternating()));
            let values = of_canaries(sum, &claimed, alternating().take(is_in.len()));
            claimed.multiplier = among(self.canaries, claimed.multiplier, &claimed);
            seen.add_shared(&claimed, &values);
        }
        Ok(seen.scores(&self.claimed, is_in))
    }

    /// Adds the answers after a round: as the values of a round if only answers are attacked, and
    /// otherwise in addition to them.
    fn read_answers(&self, observation: &Observation<'_>, seen: &mut Seen) {
        for answer in observation.answers {
            let mut claims = self.answers.iter();
            let Some((_, claimed)) = claims.find(|(index, _)| *index == answer.question) else {
                continue;
            };
            for upload in 0..self.uploads() {
                let values = self.of_upload(upload, &answer.values);
                match self.asked {
                    Some(_) => seen.add(claimed, &values, &[]),
                    None => seen.add_once(claimed, &values, &[]),
                }
            }
        }
    }

    fn canary(&self, index: u32, is_in: bool) -> Canary {
        // Under local trust, every upload has one coordinate.
        let coordinate = if self.target.is_local() {
            0
        } else {
            index as usize
        };
        Canary {
            devices: index * self.devices..(index + 1) * self.devices,
            support: coordinate..coordinate + 1,
            sends: match is_in {
                true => Sends::Update,
                false => self.target.other_world(),
            },
            is_clipped: self.sign(index) < 0.0,
        }
    }

    /// Returns the sign of a canary's bit. Without bits, every update is clipped.
    fn sign(&self, canary: u32) -> f64 {
        match self.claimed.bit_multiplier.is_some() && canary % 2 == 1 {
            true => 1.0,
            false => -1.0,
        }
    }

    /// Returns the number of a canary's visible uploads in a round. With a trusted server, this is
    /// one: its coordinate in the sum.
    fn uploads(&self) -> u32 {
        match self.target.is_local() {
            true => self.devices,
            false => 1,
        }
    }

    /// Returns one value per canary, from its upload number `upload`.
    fn of_upload(&self, upload: u32, values: &[f64]) -> Vec<f64> {
        let of_canary = values.iter().skip(upload as usize);
        of_canary
            .step_by(self.uploads() as usize)
            .copied()
            .collect()
    }

    /// Returns the contribution of each canary to the bits, such that each participating device
    /// adds 1: the bit of its upload, or the sum of all bits minus the expectation of the other
    /// canaries.
    fn bits(&self, upload: u32, bits: &[f64]) -> Vec<f64> {
        let signs = (0..self.canaries).map(|canary| self.sign(canary));
        match (self.target.is_local(), bits.first()) {
            (_, None) => Vec::new(),
            (true, _) => {
                let of_upload = self.of_upload(upload, bits);
                signs.zip(of_upload).map(|(sign, bit)| sign * bit).collect()
            }
            (false, Some(sum)) => of_canaries(*sum, &self.claimed, signs),
        }
    }
}

/// Returns the claims about the answers to each question, for users with `devices` devices.
fn answers_of(target: &Target<'_>, devices: u32) -> Vec<(u8, Claimed)> {
    let questions = target.questions().iter();
    let claimed = |asked: &AskedQuestion| {
        let event = target.event_of(asked)?;
        let multiplier = event.mechanism.noise_multiplier().get();
        let claimed = Claimed {
            counts: counts_for(target, &event.sampling, devices),
            multiplier,
            bit_multiplier: None,
            is_replaced: event.adjacency() == Adjacency::ReplaceOne,
        };
        (multiplier > 0.0).then_some((asked.index, claimed))
    };
    questions.filter_map(claimed).collect()
}

/// Returns the probabilities that 0, 1, .. of a user's devices are in the visible part of a
/// release.
fn counts_for(target: &Target<'_>, sampling: &Sampling, devices: u32) -> Vec<f64> {
    match (target.is_local(), target.knows_cohorts()) {
        (true, _) => counts(1, |_, _| 1.0),
        (false, true) => counts(devices, |_, _| 1.0),
        (false, false) => counts_of(sampling, devices),
    }
}

/// Alternates the signs of the canaries' contributions. With both signs, the sum depends little on
/// the number of participating canaries.
fn alternating() -> impl Iterator<Item = f64> + Clone {
    [-1.0, 1.0].into_iter().cycle()
}

/// Returns the contribution of each canary to a sum to which it adds its sign per participating
/// device. It is scaled to 1: its sign times the sum, minus the expectation of the other canaries.
fn of_canaries(sum: f64, claimed: &Claimed, signs: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let mean = mean_in_sum(claimed);
    let all: f64 = signs.clone().sum::<f64>() * mean;
    signs.map(|sign| sign * (sum - all) + mean).collect()
}

/// Returns the std of such a value with this noise, where the coins of the other canaries are
/// unknown.
fn among(canaries: u32, multiplier: f64, claimed: &Claimed) -> f64 {
    let others = f64::from(canaries - 1) * variance_in_sum(claimed);
    (multiplier * multiplier + others).sqrt()
}

/// Returns the expected contribution of a canary to a sum with its sign, over its coin.
fn mean_in_sum(claimed: &Claimed) -> f64 {
    match claimed.is_replaced {
        true => 0.0,
        false => claimed.moments()[0] / 2.0,
    }
}

/// Returns the variance of that contribution.
fn variance_in_sum(claimed: &Claimed) -> f64 {
    let square = claimed.moments()[1];
    match claimed.is_replaced {
        true => square,
        false => square / 2.0 - mean_in_sum(claimed).powi(2),
    }
}

/// Returns the probabilities that 0, 1, .. of a user's devices are in a cohort.
fn counts_of(sampling: &Sampling, devices: u32) -> Vec<f64> {
    match *sampling {
        Sampling::Poisson { sampling_rate, .. } => counts(devices, |_, _| sampling_rate.get()),
        Sampling::Uniform {
            device_count,
            cohort_size,
            ..
        } => counts(devices, |before, drawn| {
            let (places, left) = (cohort_size.saturating_sub(drawn), device_count - before);
            f64::from(places.min(left)) / f64::from(left)
        }),
        _ => counts(devices, |_, _| 1.0),
    }
}

/// Returns the same probabilities. `probability` is the chance to draw a device after a number of
/// others, given the number drawn of these.
fn counts(devices: u32, probability: impl Fn(u32, u32) -> f64) -> Vec<f64> {
    let mut counts = vec![1.0];
    for before in 0..devices {
        let mut next = vec![0.0; counts.len() + 1];
        for (drawn, p) in (0..).zip(&counts) {
            let rate = probability(before, drawn);
            next[drawn as usize] += p * (1.0 - rate);
            next[drawn as usize + 1] += p * rate;
        }
        counts = next;
    }
    counts
}

#[cfg(test)]
mod tests {
    use smolfed_accounting::SamplingRate;

    use super::*;

    #[test]
    fn devices_of_a_user_are_drawn_separately_or_without_replacement() {
        let poisson = Sampling::poisson(50, SamplingRate::new(0.2).unwrap()).unwrap();
        let binomial = [0.512, 0.384, 0.096, 0.008];
        // Two of five in a cohort of three: 1, 6 and 3 of ten.
        let uniform = Sampling::uniform(5, 3).unwrap();
        let hypergeometric = [0.1, 0.6, 0.3];
        for (sampling, expected) in [
            (poisson, &binomial[..]),
            (uniform, &hypergeometric),
            (Sampling::full(50).unwrap(), &[0.0, 0.0, 1.0]),
        ] {
            let found = counts_of(&sampling, expected.len() as u32 - 1);
            let close = found
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(close && found.len() == expected.len(), "{found:?}");
        }
    }
}
