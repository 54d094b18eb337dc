//! Canaries: a method whose devices send the worst update that clipping allows, each along a
//! different coordinate.
//!
//! No update of norm L is easier to detect than ±L along one coordinate, and with different
//! coordinates canaries do not interfere. All else is the round that `smolfed run` runs: the draw
//! of the cohort, clipping, the grid and its checks, the exact sum, the noise, its streams, the
//! denominator.

use smolfed_accounting::Sampling;
use smolfed_core::stream::Root;
use smolfed_core::train::{TrainError, TrainReport};

use crate::data::federation::Federation;
use crate::method::contract::{Assignment, Learner, Method, Store, Trainer};
use crate::method::state::StateError;
use crate::release::{Contribution, Encoding, PrivateSum};
use crate::source::simulated::train_cohort;
use crate::source::{CohortSum, Draw, Simulated, Source, SourceError};
use crate::task::Task;

/// The update before it is clipped, in clip norms.
const LENGTH: f32 = 10.0;

/// What a canary sends that does not take part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OtherWorld {
    /// Nothing: it is absent (add-remove).
    Absent,
    /// A zero update: an observer of each upload sees that it took part in any case.
    Zero,
    /// The opposite update (replace-one).
    Opposite,
}

/// Device j is a canary at coordinate j; the devices after the canaries send zeros.
#[derive(Clone, Debug)]
pub struct Canaries {
    /// The layout of the experiment's model, which is not trained.
    pub task: Task,
    /// The length of the model.
    pub coordinates: usize,
    /// Whether each canary takes part.
    pub is_in: Vec<bool>,
    /// What those send that do not.
    pub other: OtherWorld,
    /// Whether the attacker sees each upload by itself (local trust).
    pub sees_uploads: bool,
}

impl Canaries {
    /// Whether a device can be drawn.
    fn is_present(&self, device: u32) -> bool {
        let is_out = self.is_in.get(device as usize) == Some(&false);
        !(is_out && self.other == OtherWorld::Absent)
    }

    /// What a device sends, in units of its update.
    fn sign(&self, device: u32) -> f32 {
        match (self.is_in.get(device as usize), self.other) {
            (None, _) | (Some(false), OtherWorld::Absent | OtherWorld::Zero) => 0.0,
            (Some(true), _) => 1.0,
            (Some(false), OtherWorld::Opposite) => -1.0,
        }
    }
}

impl Method for Canaries {
    fn task(&self) -> &Task {
        &self.task
    }

    fn shared_count(&self) -> usize {
        self.coordinates
    }

    fn shares_a_model(&self) -> bool {
        false
    }

    fn initial(&self, _: &Root) -> Vec<f32> {
        vec![0.0; self.coordinates]
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
        let update = contribution.update();
        update.fill(0.0);
        if let Some(entry) = update.get_mut(device as usize) {
            *entry = self.canaries.sign(device) * LENGTH * grid.clip_norm().get();
        }
        let mut report = TrainReport::default();
        contribution
            .clip(&mut report)
            .map_err(|error| error.to_string())?;
        Ok(report)
    }
}

/// Simulated devices of which some canaries are absent. Under local trust the attacker sees each
/// upload by itself, and looks only at the device's own coordinate.
pub struct CanarySource<'a> {
    /// The devices.
    pub federation: &'a Federation,
    /// The canaries.
    pub canaries: &'a Canaries,
}

impl Source for CanarySource<'_> {
    fn draw(
        &mut self,
        sampling: &Sampling,
        root: &Root,
        round: u32,
    ) -> Result<Option<Draw>, SourceError> {
        let drawn = Simulated(self.federation).draw(sampling, root, round)?;
        Ok(drawn.map(|mut draw| {
            draw.cohort
                .retain(|device| self.canaries.is_present(*device));
            draw
        }))
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        if !self.canaries.sees_uploads {
            return Ok(train_cohort(assignment, learner, self.federation, cohort)?);
        }
        let mut total = CohortSum {
            sum: PrivateSum::zero(assignment.global.len()),
            outcomes: Vec::with_capacity(cohort.len()),
            left_out_messages: Vec::new(),
        };
        for device in cohort {
            let upload = train_cohort(assignment, learner, self.federation, &[*device])?;
            total.sum.absorb(&upload.sum.only(*device as usize));
            total.outcomes.extend(upload.outcomes);
        }
        Ok(total)
    }
}
