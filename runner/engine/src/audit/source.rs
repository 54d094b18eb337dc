//! The source of an audit: one that runs have, with canaries in its cohorts.
//!
//! The source draws the cohorts and sums them up, and the canaries replace local training
//! ([`canaries`](super::canaries)). An audit changes two things: canaries that must take part, or
//! must not, join a cohort or leave it. And an attacker who sees each upload by itself is shown the
//! sums of single devices.

use crate::attendance::Attendance;
use crate::audit::canaries::Canaries;
use crate::method::contract::{Assignment, Learner, Store};
use crate::source::{CohortSum, Draw, Source, SourceError};
use smolfed_core::stream::Root;
use smolfed_release::PrivateSum;
use smolfed_release::sum::ReleaseAt;

/// The devices of a source, some of which are canaries.
pub struct CanarySource<'a> {
    devices: &'a mut dyn Source,
    canaries: &'a Canaries,
    /// The cohort of the last round, as it was drawn.
    pub drawn: Vec<u32>,
    /// Where each upload is seen by itself and the clip norm is adaptive, the bit of each in the
    /// last round, with its noise, in units of one half.
    pub bits: Vec<f64>,
}

impl<'a> CanarySource<'a> {
    /// Before the first round.
    #[must_use]
    pub const fn new(devices: &'a mut dyn Source, canaries: &'a Canaries) -> Self {
        Self {
            devices,
            canaries,
            drawn: Vec::new(),
            bits: Vec::new(),
        }
    }

    /// The uploads of the canaries, one after the other.
    fn uploads(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        let length = self.canaries.coordinates;
        let one = Assignment {
            global: assignment.global.get(..length).unwrap_or_default(),
            ..*assignment
        };
        let at = ReleaseAt {
            number: assignment.number,
            learning_rate: assignment.training.learning_rate.get(),
            cohort_size: 1,
        };
        let mut all = PrivateSum::zero(0);
        self.bits.clear();
        for device in self.canaries.devices() {
            let is_there = cohort.binary_search(&device).is_ok();
            let devices: &[u32] = if is_there { &[device] } else { &[] };
            let upload = self.devices.sum(&one, learner, devices)?.sum;
            all.append(&upload);
            // The bit alone: its noise is in it.
            let mut bit = PrivateSum::zero(0);
            bit.absorb(&upload);
            let released = bit.release(assignment.release, assignment.root, &at);
            self.bits
                .extend(released.unclipped_excess().map(|x| 2.0 * x));
        }
        Ok(CohortSum {
            sum: all,
            outcomes: Vec::new(),
            left_out_messages: Vec::new(),
            asked: None,
        })
    }
}

impl Source for CanarySource<'_> {
    fn begin(&mut self, store: Option<&Store<'_>>) -> Result<(), SourceError> {
        self.devices.begin(store)
    }

    fn draw(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        round: u32,
    ) -> Result<Option<Draw>, SourceError> {
        let Some(draw) = self.devices.draw(attendance, root, round)? else {
            return Ok(None);
        };
        self.drawn.clone_from(&draw.cohort);
        Ok(Some(Draw {
            cohort: self.canaries.cohort(draw.cohort, round),
            ..draw
        }))
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        match self.canaries.sees_uploads {
            true => self.uploads(assignment, learner, cohort),
            false => self.devices.sum(assignment, learner, cohort),
        }
    }

    fn round_finished(&mut self, is_lost: bool) -> Result<(), SourceError> {
        self.devices.round_finished(is_lost)
    }
}
