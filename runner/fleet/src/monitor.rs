//! The live figures of a run (rounds, ε, metrics, counts of devices) for the live page and
//! `/metrics`, and the access to them with or without the token.
//!
//! *Released* figures are public anyway: rounds, the model's metrics on public test samples, ε.
//! Figures that follow from *participation* are not: amplification by sampling assumes that nobody
//! knows the cohort. Counts reveal the cohort as well: under Poisson sampling its size depends on
//! each device, and under any secret sampling a count of one missing device tells an observer who
//! knows that a certain device is switched off that it was drawn. Where cohorts are secret, all
//! counts of a round and all their sums therefore need the token ([`Access::Operator`]). Where all
//! devices are drawn, or come by a timetable, nothing is amplified and counts are public.
//!
//! Answers to questions are released under noise, so anybody may see them. Without noise, no finite
//! ε covers them, and only the operator may see them.

pub mod answers;
pub mod drift;
mod thin;
pub mod windows;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;

use self::answers::{AnswerHistory, Answers, LatestAnswer};
use self::thin::thinned;
use self::windows::WindowFigures;
use crate::exchange::ExchangeOutcome;
use crate::lock::lock;
use crate::stopping::Stopping;
use crate::windows::WindowResult;
use smolfed_engine::round::RoundRecord;
use smolfed_engine::tables::CohortSampling;

/// Kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anyone who can reach the address.
    Public,
    /// A client with the token.
    Operator,
}

/// Information about a run before it begins.
#[derive(Clone, Debug, Default)]
pub struct RunInfo {
    /// Its name.
    pub name: String,
    /// T.
    pub rounds: u32,
    /// ε after all rounds. `None` without noise.
    pub epsilon: Option<f64>,
    /// Whether it is an upper bound, under the conditions of the privacy statement. `None` without
    /// noise.
    pub epsilon_is_upper_bound: Option<bool>,
    /// The limit on ε.
    pub epsilon_limit: Option<f64>,
    /// δ.
    pub delta: Option<f64>,
    /// Whether only the operator may know the number of selected devices and of answers.
    pub is_cohort_secret: bool,
    /// Time for a device to complete its part in a round.
    pub timeout: Duration,
    /// Whether it is to stop.
    pub stopping: Arc<Stopping>,
}

/// Returns whether privacy assumes that the cohort is secret.
#[must_use]
pub const fn is_secret(sampling: CohortSampling) -> bool {
    match sampling {
        CohortSampling::Uniform | CohortSampling::Poisson | CohortSampling::BlockCyclic => true,
        CohortSampling::Full
        | CohortSampling::Rotation
        | CohortSampling::Arrival
        | CohortSampling::Buffered => false,
    }
}

/// The model after a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The round, from 0.
    pub round: u32,
    /// Share of correctly classified public test samples.
    pub accuracy: Option<f64>,
    /// Root of the mean squared error on them.
    pub rmse: Option<f64>,
    /// ε spent after it.
    pub epsilon: Option<f64>,
}

impl From<&RoundRecord> for Point {
    fn from(record: &RoundRecord) -> Self {
        // Test samples that belong to devices are private, and ε does not cover metrics on them.
        let test = record.test.filter(|_| !record.test_is_simulation_only);
        Self {
            round: record.round,
            accuracy: test.and_then(|test| test.accuracy),
            rmse: test.and_then(|test| test.rmse),
            epsilon: record.epsilon,
        }
    }
}

/// Maximum time between two looks at the devices while a round waits for them. It looks several
/// times a second, but a write to a slow disk may come in between.
const LOOKS_WITHIN: Duration = Duration::from_secs(60);

/// A round in progress.
#[derive(Clone, Copy, Debug)]
struct Current {
    since: Instant,
    /// Length of a window of time. Other rounds end at the time-out.
    length: Option<Duration>,
    drawn: usize,
    awaited: usize,
    /// Time of the last look at the devices. `None` once they are no longer awaited.
    looked: Option<Instant>,
}

/// Outcomes of the selected real devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Selected devices.
    pub drawn: u64,
    /// Devices that answered.
    pub answered: u64,
    /// The others, by reason.
    pub missing: BTreeMap<String, u64>,
    /// Duration in seconds.
    pub seconds: f64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.drawn += other.drawn;
        self.answered += other.answered;
        self.seconds += other.seconds;
        for (reason, count) in &other.missing {
            *self.missing.entry(reason.clone()).or_default() += count;
        }
    }
}

/// Counts of all devices at one time.
#[derive(Clone, Debug, Default)]
pub struct DeviceCounts {
    /// Devices with keys.
    pub devices: usize,
    /// Devices with a session.
    pub connected: usize,
    /// Refused frames in the names of devices, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Refused frames that no device is known to have sent, by reason.
    pub unattributed: BTreeMap<String, u32>,
}

/// The helpers of a run with masked updates. None of this follows from which devices take part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HelperFigures {
    /// Helpers of the federation.
    pub count: usize,
    /// Helpers that answered the last question.
    pub connected: usize,
    /// Rounds lost for lack of an answer, by reason.
    pub lost: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct State {
    helpers: HelperFigures,
    info: RunInfo,
    points: Vec<Point>,
    answers: AnswerHistory,
    burned: u32,
    /// Whether the run waits for devices before its next round.
    is_paused: bool,
    /// Number of pauses so far.
    pauses: u64,
    /// Minimum number of devices for a round to begin.
    needed: u32,
    second_sessions: u64,
    session_conflicts: u64,
    current: Option<Current>,
    last: Option<Tally>,
    total: Tally,
    windows: Option<WindowFigures>,
    rounds_without_updates: u64,
}

/// The live figures of a run.
#[derive(Debug, Default)]
pub struct Monitor {
    state: Mutex<State>,
}

/// Figures to show.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// The run.
    pub run: String,
    /// "running", "paused" while too few devices are connected, or "stopping".
    pub state: &'static str,
    /// Number of pauses of the run.
    pub pauses: u64,
    /// T.
    pub rounds: u32,
    /// Completed rounds.
    pub done: u32,
    /// Completed rounds that failed.
    pub burned: u32,
    /// ε spent.
    pub epsilon: Option<f64>,
    /// ε after all rounds.
    pub epsilon_planned: Option<f64>,
    /// Whether it is an upper bound, under the conditions of the privacy statement.
    pub epsilon_is_upper_bound: Option<bool>,
    /// The limit on ε.
    pub epsilon_limit: Option<f64>,
    /// δ.
    pub delta: Option<f64>,
    /// The model after the last round.
    pub latest: Option<Point>,
    /// The newest answer to each question. The page gets them separately, and less often.
    #[serde(skip)]
    pub answers: Vec<LatestAnswer>,
    /// Devices with keys.
    pub devices: usize,
    /// Devices with a session.
    pub connected: usize,
    /// Minimum number of devices for a round to begin.
    pub needed: u32,
    /// Sessions that replaced one whose connection was open.
    pub second_sessions: u64,
    /// Times that sessions of one device replaced each other three times within a minute.
    pub session_conflicts: u64,
    /// Refused frames that no device is known to have sent, by reason.
    #[serde(rename = "strangers")]
    pub unattributed: BTreeMap<String, u32>,
    /// The helpers. `None` if updates are not masked.
    pub helpers: Option<HelperFigures>,
    /// Figures about participation. `None` if the client may not see them.
    pub attendance: Option<Attendance>,
}

/// Figures about participation.
#[derive(Debug, Serialize)]
pub struct Attendance {
    /// The round in progress.
    pub current: Option<InProgress>,
    /// The last round that ended.
    pub last: Option<Tally>,
    /// All rounds of this process.
    pub total: Tally,
    /// Rounds in which real devices were drawn and none answered.
    pub rounds_without_updates: u64,
    /// Updates by age and wasted participations. `None` before the first window of time has ended.
    pub windows: Option<WindowFigures>,
    /// Updates per second in the last round.
    pub updates_per_second: Option<f64>,
    /// Refused frames in the names of devices, by reason.
    pub refused: BTreeMap<String, u64>,
}

/// A round in progress.
#[derive(Debug, Serialize)]
pub struct InProgress {
    /// Seconds since it began.
    pub seconds: f64,
    /// Seconds after which it ends.
    pub timeout: f64,
    /// Selected real devices.
    pub drawn: usize,
    /// Devices that it still waits for.
    pub awaited: usize,
}

impl Monitor {
    /// Notes that a run begins, or continues after `records`.
    pub fn run_begins(&self, info: RunInfo, records: &[RoundRecord]) {
        let mut state = lock(&self.state);
        state.info = info;
        state.points = records.iter().map(Point::from).collect();
        state.answers = AnswerHistory::default();
        state.windows = None;
        for record in records {
            state.answers.add(record);
            WindowFigures::add(&mut state.windows, record);
        }
        state.burned = records.iter().filter(|record| record.burned).count() as u32;
    }

    /// Adds a recorded round, and logs answers that have drifted.
    pub fn round_done(&self, record: &RoundRecord) {
        let mut state = lock(&self.state);
        state.points.push(record.into());
        state.burned += u32::from(record.burned);
        WindowFigures::add(&mut state.windows, record);
        let drifts = state.answers.add(record);
        drop(state);
        for drift in drifts.into_iter().filter(|drift| drift.is_new) {
            let (question, round) = (drift.name.as_str(), drift.round);
            tracing::warn!(reason = "drift", question, round, "{drift}");
        }
    }

    /// Notes how many of the helpers answered.
    pub fn helpers_are(&self, connected: usize, count: usize) {
        let helpers = &mut lock(&self.state).helpers;
        (helpers.connected, helpers.count) = (connected, count);
    }

    /// Notes that a round failed because a helper did not answer.
    pub fn helper_failed(&self, reason: &str) {
        let helpers = &mut lock(&self.state).helpers;
        *helpers.lost.entry(reason.to_owned()).or_default() += 1;
    }

    /// Sets the number of devices without which the next round does not begin.
    pub fn needs(&self, devices: u32) {
        lock(&self.state).needed = devices;
    }

    /// Notes that the run waits because too few devices are connected for a round.
    pub fn pauses(&self) {
        let mut state = lock(&self.state);
        state.is_paused = true;
        state.pauses += 1;
    }

    /// Notes a session opened while another one under the same key was open.
    pub fn second_session(&self) {
        lock(&self.state).second_sessions += 1;
    }

    /// Notes that sessions of one device replaced each other repeatedly. Only the log file names
    /// the device: a series of counts with its number would show when that device comes and goes.
    pub fn session_conflict(&self) {
        lock(&self.state).session_conflicts += 1;
    }

    /// Notes that enough devices are connected again.
    pub fn resumes(&self) {
        lock(&self.state).is_paused = false;
    }

    /// Notes that real devices are invited.
    pub fn round_begins(&self, drawn: usize) {
        self.begins(drawn, None);
    }

    /// Notes that a window of time of this length begins.
    pub fn window_begins(&self, devices: usize, length: Duration) {
        self.begins(devices, Some(length));
    }

    fn begins(&self, drawn: usize, length: Option<Duration>) {
        lock(&self.state).current = Some(Current {
            since: Instant::now(),
            length,
            drawn,
            awaited: drawn,
            looked: Some(Instant::now()),
        });
    }

    /// Sets the number of awaited devices.
    pub fn awaits(&self, awaited: usize) {
        let mut state = lock(&self.state);
        if let Some(current) = &mut state.current {
            current.awaited = awaited;
            current.looked = Some(Instant::now());
        }
    }

    /// Notes that devices are no longer awaited. The rest of the round has no time limit.
    pub fn awaits_no_more(&self) {
        let mut state = lock(&self.state);
        if let Some(current) = &mut state.current {
            current.looked = None;
        }
    }

    /// Returns whether a round waits for devices and has stopped looking at them.
    #[must_use]
    pub fn is_stuck(&self, now: Instant) -> bool {
        let looked = lock(&self.state).current.and_then(|current| current.looked);
        looked.is_some_and(|looked| now.saturating_duration_since(looked) > LOOKS_WITHIN)
    }

    /// Adds the outcomes of a round's real devices.
    pub fn round_ends<'a>(&self, outcomes: impl Iterator<Item = &'a ExchangeOutcome>) {
        let mut tally = Tally::default();
        for outcome in outcomes {
            tally.drawn += 1;
            match outcome {
                ExchangeOutcome::Answered(_) | ExchangeOutcome::Message(_) => {
                    tally.answered += 1;
                }
                ExchangeOutcome::Missing(absence) => {
                    *tally.missing.entry(absence.to_string()).or_default() += 1;
                }
            }
        }
        self.tallied(tally);
    }

    fn tallied(&self, mut tally: Tally) {
        let mut state = lock(&self.state);
        let since = state.current.take().map(|current| current.since);
        tally.seconds = since.map_or(0.0, |since| since.elapsed().as_secs_f64());
        state.total.add(&tally);
        let is_without = tally.drawn > 0 && tally.answered == 0;
        state.rounds_without_updates += u64::from(is_without);
        state.last = Some(tally);
    }

    /// Adds the result of a window of time.
    pub fn window_ends(&self, result: &WindowResult) {
        let mut tally = Tally {
            answered: result.arrivals.len() as u64,
            ..Tally::default()
        };
        for (device, absence) in &result.missing {
            if !result.arrivals.contains_key(device) {
                *tally.missing.entry(absence.to_string()).or_default() += 1;
            }
        }
        tally.drawn = tally.answered + tally.missing.values().sum::<u64>();
        self.tallied(tally);
    }

    /// Returns the model after each round, thinned to as many points as a screen can show.
    pub fn history(&self) -> Vec<Point> {
        thinned(&lock(&self.state).points)
    }

    /// Returns the answers so far that the client may see.
    pub fn answers(&self, access: Access) -> Answers {
        lock(&self.state).answers.shown(access == Access::Operator)
    }

    /// Returns the current figures that the client may see.
    pub fn figures(&self, counts: DeviceCounts, access: Access) -> Figures {
        let state = lock(&self.state);
        let info = &state.info;
        let latest = state.points.last().copied();
        let is_visible = access == Access::Operator || !info.is_cohort_secret;
        let attendance = is_visible.then(|| Attendance::new(&state, counts.refused));
        Figures {
            run: info.name.clone(),
            state: match (info.stopping.is_asked(), state.is_paused) {
                (true, _) => "stopping",
                (false, true) => "paused",
                (false, false) => "running",
            },
            pauses: state.pauses,
            second_sessions: state.second_sessions,
            session_conflicts: state.session_conflicts,
            rounds: info.rounds,
            done: latest.map_or(0, |point| point.round + 1),
            burned: state.burned,
            epsilon: latest.map_or(info.epsilon.map(|_| 0.0), |point| point.epsilon),
            epsilon_planned: info.epsilon,
            epsilon_is_upper_bound: info.epsilon_is_upper_bound,
            epsilon_limit: info.epsilon_limit,
            delta: info.delta,
            latest,
            answers: state.answers.latest(access == Access::Operator),
            devices: counts.devices,
            connected: counts.connected,
            needed: state.needed,
            unattributed: counts.unattributed,
            helpers: Some(&state.helpers).filter(|x| x.count > 0).cloned(),
            attendance,
        }
    }
}

impl Attendance {
    fn new(state: &State, refused: BTreeMap<String, u64>) -> Self {
        let current = state.current.map(|current| InProgress {
            seconds: current.since.elapsed().as_secs_f64(),
            timeout: current.length.unwrap_or(state.info.timeout).as_secs_f64(),
            drawn: current.drawn,
            awaited: current.awaited,
        });
        let timed = state.last.as_ref().filter(|last| last.seconds > 0.0);
        Self {
            current,
            last: state.last.clone(),
            total: state.total.clone(),
            rounds_without_updates: state.rounds_without_updates,
            windows: state.windows.clone(),
            updates_per_second: timed.map(|last| last.answered as f64 / last.seconds),
            refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_stuck_if_it_waits_and_does_not_look() {
        let monitor = Monitor::default();
        let later = |seconds| Instant::now() + Duration::from_secs(seconds);
        assert!(!monitor.is_stuck(later(3600)), "there is no round");
        monitor.round_begins(3);
        assert!(!monitor.is_stuck(later(59)));
        assert!(monitor.is_stuck(later(61)));
        monitor.awaits(2);
        assert!(!monitor.is_stuck(later(59)));
        // The models of simulated devices, or a large test set, have no time limit.
        monitor.awaits_no_more();
        assert!(!monitor.is_stuck(later(3600)));
        monitor.round_ends(std::iter::empty());
        assert!(!monitor.is_stuck(later(3600)));
    }
}
