//! Simulated devices that take part according to a record (`participation.jsonl`). The run ends
//! with the same model if the random streams are the same.

use std::collections::BTreeMap;

use smolfed_accounting::correlated::StrategyKind;
use smolfed_core::stream::Root;

use super::contract::{CohortSum, Draw, Source, SourceError, Step};
use super::participation::Participation;
use super::simulated::{answer_cohort, train_with_remote};
use crate::attendance::Attendance;
use crate::combinations::Setting;
use crate::combinations::rules::RESTARTED_TREE;
use crate::experiment::Experiment;
use crate::method::contract::{Assignment, Learner};
use crate::method::remote::{MessageOutcome, MessageRequest, RemoteDevices};
use crate::question::Inquiry;
use smolfed_data::federation::Federation;
use smolfed_release::Outcome;
use smolfed_release::admission::Admissions;

/// Simulated devices that take part according to a record.
#[derive(Debug)]
pub struct Replayed<'a> {
    federation: &'a Federation,
    rounds: Vec<Participation>,
    /// The last drawn round. In a time window, devices train for earlier rounds.
    drawn: u32,
}

impl<'a> Replayed<'a> {
    /// Replays `rounds`.
    ///
    /// # Errors
    /// A description of the problem: a method that cannot replay a participation, a device that the
    /// federation does not have, or too few rounds.
    pub fn new(
        federation: &'a Federation,
        rounds: Vec<Participation>,
        experiment: &Experiment,
    ) -> Result<Self, String> {
        let config = &experiment.config;
        experiment
            .fits_source(Setting::Recorded)
            .map_err(|conflict| conflict.to_string())?;
        let devices = federation.device_count();
        let stranger = rounds
            .iter()
            .flat_map(|record| &record.cohort)
            .find(|device| **device >= devices);
        if let Some(device) = stranger {
            return Err(format!(
                "it names device {device}, but there are {devices} devices"
            ));
        }
        let (found, needed) = (rounds.len(), config.rounds);
        if found < needed as usize {
            return Err(format!("it has {found} rounds, but `rounds` is {needed}"));
        }
        check_versions(&rounds, experiment)?;
        if let Some(strategy) = &experiment.privacy.mechanism.strategy {
            let burned = rounds
                .iter()
                .any(|record| record.burned || record.history_lost);
            if burned && matches!(strategy.kind(), StrategyKind::Tree(_)) {
                let reason = RESTARTED_TREE.advice;
                return Err(format!("the server of its rounds restarted: {reason}"));
            }
        }
        if let Some(allowed) = experiment.allowed() {
            let cohorts = rounds.iter().map(|record| record.cohort.as_slice());
            if let Some((round, device)) = Admissions::first_breach(allowed, cohorts) {
                let (k, b) = (allowed.participations(), allowed.separation());
                return Err(format!(
                    "device {device} takes part in round {round}, too early or once too often for \
                     noise with `privacy.separation` {b} and at most {k} participations"
                ));
            }
        }
        Ok(Self {
            federation,
            rounds,
            drawn: 0,
        })
    }

    fn record(&self, round: u32) -> Option<&Participation> {
        self.rounds.get(round as usize)
    }
}

/// Checks that each device of a window has an accepted version, and no other round has versions.
fn check_versions(rounds: &[Participation], experiment: &Experiment) -> Result<(), String> {
    let Some(windows) = experiment.attendance.windows() else {
        return match rounds.iter().all(|record| record.versions.is_empty()) {
            true => Ok(()),
            false => {
                Err("its rounds are windows of time: `cohort.sampling` is \"buffered\"".into())
            }
        };
    };
    for Participation {
        round,
        cohort,
        versions,
        ..
    } in rounds
    {
        let is_in_time = |version: &u32| {
            let age = round.checked_sub(*version);
            age.is_some_and(|age| age <= windows.staleness)
        };
        if versions.len() != cohort.len() || !versions.iter().all(is_in_time) {
            return Err(format!(
                "round {round} is not a window of time with a version of the last {} for each \
                 device",
                windows.staleness
            ));
        }
    }
    Ok(())
}

/// Devices whose messages did not arrive.
struct Recorded<'a>(Option<&'a Participation>);

impl RemoteDevices for Recorded<'_> {
    fn has(&self, device: u32) -> bool {
        self.0
            .is_some_and(|record| record.without_matrix.contains_key(&device))
    }

    fn messages(
        &mut self,
        _: &MessageRequest<'_>,
        devices: &[u32],
    ) -> BTreeMap<u32, MessageOutcome> {
        let lost = self.0.map_or(&[][..], |record| &record.lost_matrices);
        let outcome = |device| match lost.contains(device) {
            true => MessageOutcome::Lost,
            false => MessageOutcome::Absent,
        };
        let outcomes = devices.iter().map(|device| (*device, outcome(device)));
        outcomes.collect()
    }
}

impl Source for Replayed<'_> {
    fn draw(&mut self, _: &Attendance, _: &Root, step: Step) -> Result<Option<Draw>, SourceError> {
        self.drawn = step.round;
        let record = self.record(step.round).filter(|record| !record.burned);
        Ok(record.map(|record| Draw {
            number: record.number,
            cohort: record.cohort.clone(),
            versions: record.versions.clone(),
            wasted: record.wasted.clone(),
            history_lost: record.history_lost,
        }))
    }

    /// The record has no answers, and experiments with questions are refused.
    fn answers(&mut self, inquiry: &Inquiry<'_>, cohort: &[u32]) -> Result<CohortSum, SourceError> {
        Ok(answer_cohort(inquiry, self.federation, cohort))
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        let record = self.record(self.drawn);
        let is_missing = |device: &u32| record.is_some_and(|x| x.missing.contains_key(device));
        let present: Vec<u32> = cohort.iter().copied().filter(|x| !is_missing(x)).collect();
        let remote = &mut Recorded(record);
        let federation = self.federation;
        let trained = train_with_remote(remote, assignment, learner, federation, cohort, &present)?;
        let mut outcomes = trained.outcomes.into_iter();
        let outcome = |device| match is_missing(device) {
            true => Some(Outcome::Missing),
            false => outcomes.next(),
        };
        let outcomes = cohort.iter().filter_map(outcome).collect();
        Ok(CohortSum {
            outcomes,
            ..trained
        })
    }
}
