//! Canaries: a method whose devices send the worst update that clipping allows, each along other
//! coordinates.
//!
//! No update of norm L is easier to detect than ±L along one coordinate, and with different
//! coordinates canaries do not interfere. All else is the round that `smolfed run` runs: the draw
//! of the cohort, clipping, the grid and its checks, the exact sum, the noise, its streams, the
//! denominator. The other devices of a cohort do not answer, which is a zero update as it is in a
//! fleet, and costs no time.

use std::ops::Range;

use smolfed_core::stream::Root;
use smolfed_core::train::{TrainError, TrainReport};

use crate::data::federation::Federation;
use crate::method::contract::{Assignment, Learner, Method, Store, Trainer};
use crate::method::state::StateError;
use crate::release::{Contribution, Encoding, Fault, Outcome, PrivateSum};
use crate::source::attendance::Attendance;
use crate::source::simulated::train_cohort;
use crate::source::{CohortSum, Draw, Simulated, Source, SourceError};
use crate::task::Task;

/// The entries of an update before it is clipped, in clip norms.
const LENGTH: f32 = 10.0;

/// What a canary sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// Its update.
    Update,
    /// The opposite update: it does not take part (replace-one).
    Opposite,
    /// A zero update: it does not take part, as an observer of each upload sees it.
    Zero,
    /// Nothing: it does not take part and is absent (add-remove).
    Nothing,
}

/// A device that is a canary.
#[derive(Clone, Debug)]
pub struct Canary {
    /// The device.
    pub device: u32,
    /// The coordinates of its update that are not zero.
    pub support: Range<usize>,
    /// What it sends.
    pub sends: Sends,
}

/// The canaries of a run, in ascending order of devices.
#[derive(Clone, Debug)]
pub struct Canaries {
    /// The layout of the experiment's model, which is not trained.
    pub task: Task,
    /// Coordinates of an update.
    pub coordinates: usize,
    /// The devices.
    pub canaries: Vec<Canary>,
    /// Whether the canaries take part in every round, drawn or not.
    pub is_forced: bool,
    /// Rounds from this one on have no canaries: they have taken part as often as is claimed.
    pub joins: u32,
    /// Whether the attacker sees each upload by itself (local trust): what is released are then
    /// the uploads of the canaries, one after the other.
    pub sees_uploads: bool,
}

impl Canaries {
    fn of(&self, device: u32) -> Option<&Canary> {
        let found = self.canaries.binary_search_by_key(&device, |c| c.device);
        found.ok().and_then(|index| self.canaries.get(index))
    }

    /// The cohort that was drawn, with the canaries that take part in any case and without those
    /// that are absent.
    fn cohort(&self, mut drawn: Vec<u32>, round: u32) -> Vec<u32> {
        let is_late = round >= self.joins;
        if self.is_forced && !is_late {
            drawn.extend(self.canaries.iter().map(|canary| canary.device));
            drawn.sort_unstable();
            drawn.dedup();
        }
        let is_absent = |canary: &Canary| is_late || canary.sends == Sends::Nothing;
        drawn.retain(|device| !self.of(*device).is_some_and(is_absent));
        drawn
    }
}

impl Method for Canaries {
    fn task(&self) -> &Task {
        &self.task
    }

    fn shared_count(&self) -> usize {
        match self.sees_uploads {
            true => self.coordinates * self.canaries.len(),
            false => self.coordinates,
        }
    }

    fn shares_a_model(&self) -> bool {
        false
    }

    fn initial(&self, _: &Root) -> Vec<f32> {
        vec![0.0; self.shared_count()]
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
        if let Some(canary) = self.canaries.of(device) {
            let entry = LENGTH * grid.clip_norm().get();
            let support = update.get_mut(canary.support.clone()).unwrap_or_default();
            match canary.sends {
                Sends::Update => support.fill(entry),
                Sends::Opposite => support.fill(-entry),
                Sends::Zero | Sends::Nothing => {}
            }
        }
        let mut report = TrainReport::default();
        contribution
            .clip(&mut report)
            .map_err(|error| error.to_string())?;
        Ok(report)
    }
}

/// Simulated devices of which some are canaries.
pub struct CanarySource<'a> {
    federation: &'a Federation,
    canaries: &'a Canaries,
    fault: Fault,
    /// The cohort of the last round, as it was drawn.
    pub drawn: Vec<u32>,
}

impl<'a> CanarySource<'a> {
    /// Before the first round.
    #[must_use]
    pub const fn new(federation: &'a Federation, canaries: &'a Canaries, fault: Fault) -> Self {
        Self {
            federation,
            canaries,
            fault,
            drawn: Vec::new(),
        }
    }

    /// The uploads of the canaries, one after the other.
    fn uploads(
        &self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<PrivateSum, SourceError> {
        let length = self.canaries.coordinates;
        let one = Assignment {
            global: assignment.global.get(..length).unwrap_or_default(),
            ..*assignment
        };
        let mut all = PrivateSum::zero(0);
        for canary in &self.canaries.canaries {
            let is_there = cohort.binary_search(&canary.device).is_ok();
            let devices: &[u32] = if is_there { &[canary.device] } else { &[] };
            all.append(&train_cohort(&one, learner, self.federation, devices)?.sum);
        }
        Ok(all)
    }
}

impl Source for CanarySource<'_> {
    fn draw(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        round: u32,
    ) -> Result<Option<Draw>, SourceError> {
        let from = if self.fault == Fault::CohortKept {
            0
        } else {
            round
        };
        let Some(draw) = Simulated(self.federation).draw(attendance, root, from)? else {
            return Ok(None);
        };
        self.drawn.clone_from(&draw.cohort);
        Ok(Some(Draw {
            number: round,
            cohort: self.canaries.cohort(draw.cohort, round),
            begins_anew: false,
        }))
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        if self.canaries.sees_uploads {
            return Ok(CohortSum {
                sum: self.uploads(assignment, learner, cohort)?,
                outcomes: Vec::new(),
                left_out_messages: Vec::new(),
            });
        }
        let canaries = |device: &&u32| self.canaries.of(**device).is_some();
        let answering: Vec<u32> = cohort.iter().filter(canaries).copied().collect();
        let mut sum = train_cohort(assignment, learner, self.federation, &answering)?;
        sum.outcomes.resize(cohort.len(), Outcome::Missing);
        Ok(sum)
    }
}
