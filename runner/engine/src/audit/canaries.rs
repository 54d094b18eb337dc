//! Canaries: a method whose devices send the worst update that clipping allows. Each user sends
//! along different coordinates.
//!
//! A canary is a user whose devices all send the same. With an adaptive clip norm, some canaries
//! are clipped and others send the longest unclipped update, so that both bits occur.
//!
//! No update of norm L is easier to detect than ±L along one coordinate, and with different
//! coordinates canaries do not interfere. All else is the round that `smolfed run` runs: the draw
//! of the cohort, clipping, the grid and its checks, the exact sum, the noise, its streams, the
//! denominator. The other devices of a cohort are left out, like devices whose training fails.

use std::ops::Range;

use smolfed_core::stream::Root;
use smolfed_core::train::{TrainError, TrainReport};

use crate::method::contract::{Assignment, Learner, Method, MethodProperties, Store, Trainer};
use crate::method::state::StateError;
use smolfed_data::federation::Federation;
use smolfed_release::{Contribution, Encoding};

/// The entries of an update before clipping, in clip norms.
const LENGTH: f32 = 10.0;
/// The norm of an unclipped update, in clip norms. Rounding does not lift it above 1.
const INSIDE: f32 = 1.0 - 1e-6;

/// Reason for leaving out a device.
const NO_UPDATE: &str = "it sends no update";

/// Message of a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// Its update.
    Update,
    /// The opposite update: it does not take part (replace-one).
    Opposite,
    /// Its noise alone: it does not take part, according to an observer of each upload. A zero
    /// update would have a bit.
    Zero,
    /// Nothing: it does not take part and is absent (add-remove).
    Nothing,
}

/// A user who is a canary.
#[derive(Clone, Debug)]
pub struct Canary {
    /// The devices of the user.
    pub devices: Range<u32>,
    /// The nonzero coordinates of their updates.
    pub support: Range<usize>,
    /// Their message.
    pub sends: Sends,
    /// Whether their updates are clipped. If not, the opposite update is.
    pub is_clipped: bool,
}

impl Canary {
    /// Returns whether its update is clipped.
    fn sends_a_clipped_update(&self) -> bool {
        self.is_clipped != (self.sends == Sends::Opposite)
    }

    /// Writes its update: as long as `bound` allows, or longer.
    pub fn write(&self, bound: f32, is_too_long: bool, update: &mut [f32]) {
        let sign = match self.sends {
            Sends::Update => 1.0,
            Sends::Opposite => -1.0,
            Sends::Zero | Sends::Nothing => 0.0,
        };
        let length = match is_too_long {
            true => LENGTH,
            false => INSIDE / (self.support.len() as f32).sqrt(),
        };
        update.fill(0.0);
        let support = update.get_mut(self.support.clone()).unwrap_or_default();
        support.fill(sign * length * bound);
    }
}

/// The canaries of a run, in ascending order of devices.
#[derive(Clone, Debug)]
pub struct Canaries {
    /// Has the layout of the experiment's model, which is not trained.
    pub properties: MethodProperties,
    /// Number of coordinates of an update.
    pub coordinates: usize,
    /// The canaries.
    pub canaries: Vec<Canary>,
    /// Whether the canaries take part in every round, drawn or not.
    pub is_forced: bool,
    /// Whether the canaries are the only participants.
    pub are_alone: bool,
    /// First round without canaries: they have then taken part as often as claimed.
    pub joins: u32,
    /// Whether the attacker sees individual uploads (local trust). The releases are then the
    /// uploads of the canaries, one after the other.
    pub sees_uploads: bool,
}

impl Canaries {
    /// Returns the canary of this device.
    #[must_use]
    pub fn canary_of(&self, device: u32) -> Option<&Canary> {
        let first = self.canaries.partition_point(|c| c.devices.end <= device);
        let found = self.canaries.get(first);
        found.filter(|canary| canary.devices.contains(&device))
    }

    /// Returns the devices of all canaries in ascending order.
    pub fn devices(&self) -> impl Iterator<Item = u32> {
        self.canaries.iter().flat_map(|c| c.devices.clone())
    }

    /// Writes the answer of a device to a question, whose bound is 1.
    ///
    /// # Errors
    /// A sentence, if it has no answer.
    pub(super) fn answer(&self, device: u32, vector: &mut [f32]) -> Result<(), String> {
        let sender = self.canary_of(device);
        let sender = sender.filter(|canary| canary.sends != Sends::Zero);
        let canary = sender.ok_or(NO_UPDATE)?;
        canary.write(1.0, canary.sends_a_clipped_update(), vector);
        Ok(())
    }

    /// Returns the drawn cohort, plus the canaries that take part in any case, and without the
    /// absent ones.
    #[must_use]
    pub fn cohort(&self, mut drawn: Vec<u32>, round: u32) -> Vec<u32> {
        let is_late = round >= self.joins;
        if self.are_alone {
            drawn.clear();
        }
        if self.is_forced && !is_late {
            drawn.extend(self.devices());
            drawn.sort_unstable();
            drawn.dedup();
        }
        let is_absent = |canary: &Canary| is_late || canary.sends == Sends::Nothing;
        drawn.retain(|device| !self.canary_of(*device).is_some_and(is_absent));
        drawn
    }
}

impl Method for Canaries {
    fn properties(&self) -> &MethodProperties {
        &self.properties
    }

    fn initial(&self, _: &Root) -> Vec<f32> {
        vec![0.0; self.properties.shared_count]
    }

    fn begin<'a>(
        &'a self,
        _: &'a Federation,
        _: Option<Store<'_>>,
    ) -> Result<Box<dyn Learner + 'a>, StateError> {
        Ok(Box::new(CanaryLearner(self)))
    }
}

struct CanaryLearner<'a>(&'a Canaries);

impl Learner for CanaryLearner<'_> {
    /// Returns zeros: a canary's message does not depend on earlier rounds.
    fn model_for_devices(&self, shared: &[f32]) -> Vec<f32> {
        vec![0.0; shared.len()]
    }

    fn trainer<'a>(&'a self, assignment: &'a Assignment<'a>) -> Box<dyn Trainer + 'a> {
        Box::new(CanaryTrainer {
            canaries: self.0,
            assignment,
        })
    }
}

struct CanaryTrainer<'a> {
    canaries: &'a Canaries,
    assignment: &'a Assignment<'a>,
}

impl Trainer for CanaryTrainer<'_> {
    fn train(
        &mut self,
        device: u32,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, String> {
        let Encoding::Clipped(grid) = self.assignment.release.encoding else {
            return Err(TrainError::Diverged.to_string());
        };
        let sender = self.canaries.canary_of(device);
        let bound = grid.clip_norm().get();
        if let (Some(canary), true) = (sender, contribution.steps().is_some()) {
            return self.train_in_steps(device, canary, bound, contribution);
        }
        let sender = sender.filter(|canary| canary.sends != Sends::Zero);
        let canary = sender.ok_or(NO_UPDATE)?;
        let is_too_long = canary.sends_a_clipped_update();
        canary.write(bound, is_too_long, contribution.update());
        let mut report = TrainReport::default();
        contribution
            .clip(&mut report)
            .map_err(|error| error.to_string())?;
        Ok(report)
    }
}

impl CanaryTrainer<'_> {
    /// Releases a gradient in each step. A device that sends zeros has gradients of zeros, with the
    /// noise of others. Every second device without a coordinate has no update, and draws its noise
    /// in another order.
    fn train_in_steps(
        &self,
        device: u32,
        canary: &Canary,
        bound: f32,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, String> {
        if canary.support.is_empty() && device.is_multiple_of(2) {
            return Err(NO_UPDATE.to_owned());
        }
        let mut gradient = vec![0.0; self.assignment.global.len()];
        for _ in 0..self.assignment.release.timing.releases() {
            canary.write(-bound, canary.sends_a_clipped_update(), &mut gradient);
            let steps = contribution.steps().ok_or(NO_UPDATE)?;
            let released = steps.release(&mut gradient);
            released.map_err(|error| error.to_string())?;
        }
        Ok(TrainReport::default())
    }
}
