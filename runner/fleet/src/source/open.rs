//! The time windows of a run with real devices, from one to the next: their rule, taken from the
//! experiment, and their state when a run continues (resumes).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::exchange::Offer;
use crate::windows::{Arrival, WindowRule, Windows};
use smolfed_engine::experiment::Experiment;
use smolfed_engine::source::participation::Participation;

/// The windows of a run, with the updates of the last ended window.
#[derive(Debug)]
pub(super) struct Open {
    pub windows: Windows,
    /// The newest version, for devices that ask for it.
    pub offer: Option<Offer>,
    /// Whether sums of several windows are combined.
    pub is_combined: bool,
    /// Updates that have arrived and are in no sum yet.
    pub arrived: BTreeMap<u32, Arrival>,
}

/// The rule of an experiment's windows for `real` devices, or `None` if its rounds are not windows.
#[must_use]
pub fn window_rule(experiment: &Experiment, real: usize) -> Option<WindowRule> {
    let windows = experiment.attendance().windows()?;
    // Real devices have their share of the places. The timetable gives simulated ones theirs.
    let share = u64::from(windows.cohort_size) * real as u64;
    let places = share.div_ceil(experiment.sampling().device_count().max(1).into());
    Some(WindowRule {
        length: Duration::from_millis(windows.length),
        staleness: windows.staleness,
        cohort_size: u32::try_from(places).unwrap_or(u32::MAX).max(1),
        separation: windows.allowed.separation() + windows.staleness,
        participations: windows.allowed.participations(),
    })
}

impl Open {
    /// Returns the windows after rounds with this record, if the first round had the number
    /// `first_number` in this process. Distances count rounds, as in the release path.
    pub fn after(rule: WindowRule, rounds: &[Participation], first_number: u32) -> Self {
        let mut windows = Windows::new(rule);
        let number_of = |round: u32| first_number.saturating_add(round);
        for record in rounds {
            if record.burned {
                windows.burned(number_of(record.round));
            }
            for (device, version) in record.cohort.iter().zip(&record.versions) {
                windows.takes(*device, number_of(*version));
            }
            for device in &record.wasted {
                windows.takes(*device, number_of(record.round));
            }
        }
        Self {
            windows,
            offer: None,
            is_combined: false,
            arrived: BTreeMap::new(),
        }
    }

    /// Returns whether this process has had a window.
    pub const fn have_begun(&self) -> bool {
        self.windows.have_begun()
    }
}
