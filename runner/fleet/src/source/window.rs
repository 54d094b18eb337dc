//! Windows of time with real devices: the offer of a version, the wait until a window ends, and the
//! record of arrived updates. The updates are known at the end of a window, and each is added to
//! the sum of the window with the devices of its version.

use std::collections::BTreeMap;

use smolfed_core::stream::Root;

use super::{Fleet, missing};
use crate::windows::WindowResult;
use smolfed_engine::attendance::Attendance;
use smolfed_engine::method::contract::{Assignment, Learner};
use smolfed_engine::source::contract::{CohortSum, Draw, SourceError, Step};
use smolfed_engine::source::participation::Participation;
use smolfed_engine::source::simulated::train_here;
use smolfed_release::Outcome;
use smolfed_release::admission::REASON;

impl Fleet<'_> {
    /// Prepares the offer to devices that ask in the window.
    pub(super) fn offer_version(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &dyn Learner,
    ) -> Result<(), SourceError> {
        let number = self.first_number.saturating_add(assignment.number);
        let assignment = Assignment {
            number,
            ..*assignment
        };
        let offer = self
            .invitation(&assignment)
            .map(|invitation| self.offer_of(&assignment, learner, invitation, &[]));
        if let Some(open) = &mut self.open {
            open.offer = offer;
            open.is_combined = assignment.release.mechanism.strategy.is_some();
        }
        Ok(())
    }

    /// Waits until the window ends. Returns the devices whose updates have arrived in it.
    pub(super) fn draw_window(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        step: Step,
    ) -> Result<Option<Draw>, SourceError> {
        let number = self.first_number.saturating_add(step.number);
        let simulated = attendance.arrivals(root, step.round, number);
        let Some((open, offer)) = self.open.as_mut().and_then(|open| {
            let offer = open.offer.take()?;
            Some((open, offer))
        }) else {
            return Ok(Some(Draw::of(number, simulated)));
        };
        let result = self.fleet.window(offer, &mut open.windows);
        let result = result.map_err(|error| SourceError::Fleet(error.into()))?;
        let is_real = |device: &u32| self.fleet.has(*device);
        let pairs = simulated.devices.into_iter().zip(simulated.versions);
        let mut versions: BTreeMap<u32, u32> =
            pairs.filter(|(device, _)| !is_real(device)).collect();
        versions.extend(result.arrivals.iter().map(|(device, arrival)| {
            // Versions are numbered like rounds.
            let age = number.saturating_sub(arrival.number);
            (*device, step.round.saturating_sub(age))
        }));
        let mut wasted = simulated.wasted;
        wasted.retain(|device| !is_real(device));
        wasted.extend(&result.wasted);
        let (cohort, versions) = versions.into_iter().unzip();
        let draw = Draw {
            number,
            cohort,
            versions,
            wasted,
            // This process has nothing to forget.
            history_lost: false,
        };
        self.note_arrivals(step.round, &draw, result);
        Ok(Some(draw))
    }

    /// Prepares the record of the window.
    fn note_arrivals(&mut self, round: u32, draw: &Draw, result: WindowResult) {
        let words = result.missing.iter();
        let record = Participation {
            round,
            number: draw.number,
            cohort: draw.cohort.clone(),
            versions: draw.versions.clone(),
            wasted: draw.wasted.clone(),
            missing: words
                .map(|(device, absence)| (*device, absence.to_string()))
                .collect(),
            ..Participation::default()
        };
        let reasons = record.missing.iter();
        let reasons = reasons.map(|(device, reason)| (*device, reason.clone()));
        missing::report(&format!("window {round}"), round, reasons);
        let is_combined = self.open.as_ref().is_some_and(|open| open.is_combined);
        self.pending = Some(Participation {
            history_lost: self.is_resumed && is_combined,
            ..record
        });
        self.is_resumed = false;
        if let Some(open) = &mut self.open {
            open.arrived = result.arrivals;
        }
    }

    /// Returns the sum of the updates from one version.
    pub(super) fn sum_of_version(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &dyn Learner,
        cohort: &[u32],
    ) -> CohortSum {
        let is_real = |device: &u32| self.fleet.has(*device);
        let simulated: Vec<u32> = cohort.iter().copied().filter(|x| !is_real(x)).collect();
        let (mut sum, outcomes) = train_here(assignment, learner, self.federation, &simulated);
        let mut outcomes = outcomes.into_iter();
        let mut outcome = |device: &u32| {
            if !self.fleet.has(*device) {
                return outcomes.next().unwrap_or(Outcome::Missing);
            }
            let arrival = self
                .open
                .as_mut()
                .and_then(|open| open.arrived.remove(device));
            let Some(Ok(update)) = arrival.map(|arrival| arrival.update) else {
                return Outcome::Missing;
            };
            if !assignment.admitted.has(*device) {
                let reason = REASON.to_owned();
                if let Some(record) = &mut self.pending {
                    record.missing.insert(*device, reason.clone());
                    record.wasted.push(*device);
                }
                return Outcome::LeftOut { reason };
            }
            sum.add_received(*device, &update, assignment.admitted);
            if let Some(record) = &mut self.pending {
                record.answered.push(*device);
            }
            Outcome::Answered
        };
        let outcomes = cohort.iter().map(&mut outcome).collect();
        CohortSum {
            sum,
            outcomes,
            left_out_messages: Vec::new(),
            asked: None,
        }
    }
}
