//! The figures of a run while it goes on, and who may see which.
//!
//! What is *released* anyway is public: rounds, the model's figures on public test samples, ε. What
//! follows from *participation* is not: amplification by sampling assumes that nobody knows who was
//! drawn. Counts tell that as well: under Poisson sampling the size of a cohort depends on each
//! device, and under any secret sampling a count of one missing device tells an observer who knows
//! that a certain device is switched off that it was drawn. So where cohorts are secret, all counts
//! of a round and all that adds them up need the token ([`Access::Operator`]). Where everybody is
//! drawn, or comes by a timetable, nothing is amplified and counts are public.
//!
//! Answers to questions are released under noise, so that anybody may see them. Without noise, of
//! which no finite ε tells, they are the operator's.

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
use smolfed_release::SamplingScheme;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anyone who can reach the address.
    Public,
    /// Whoever has the token.
    Operator,
}

/// What is known of a run before it begins.
#[derive(Clone, Debug, Default)]
pub struct RunInfo {
    /// Its name.
    pub name: String,
    /// T.
    pub rounds: u32,
    /// ε after all rounds; `None` without noise.
    pub epsilon: Option<f64>,
    /// Whether it is an upper bound, under the conditions of the privacy statement; `None` without
    /// noise.
    pub epsilon_is_upper_bound: Option<bool>,
    /// The limit on ε.
    pub epsilon_limit: Option<f64>,
    /// δ.
    pub delta: Option<f64>,
    /// Whether nobody but the operator may know how many devices were drawn, and answered.
    pub is_cohort_secret: bool,
    /// Time for a device to complete its part in a round.
    pub timeout: Duration,
    /// Whether it is to stop.
    pub stopping: Arc<Stopping>,
}

/// Whether privacy assumes that nobody knows who is drawn.
#[must_use]
pub const fn is_secret(sampling: SamplingScheme) -> bool {
    match sampling {
        SamplingScheme::Uniform | SamplingScheme::Poisson | SamplingScheme::BlockCyclic => true,
        SamplingScheme::Full
        | SamplingScheme::Unsampled
        | SamplingScheme::Rotation
        | SamplingScheme::Arrival
        | SamplingScheme::Buffered => false,
    }
}

/// The model after a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The round, from 0.
    pub round: u32,
    /// Part of the public test samples whose class is predicted.
    pub accuracy: Option<f64>,
    /// Root of the mean squared error on them.
    pub rmse: Option<f64>,
    /// ε spent after it.
    pub epsilon: Option<f64>,
}

impl From<&RoundRecord> for Point {
    fn from(record: &RoundRecord) -> Self {
        // Test samples that belong to devices are private, and ε does not cover what is read there.
        let test = record.test.filter(|_| !record.test_is_simulation_only);
        Self {
            round: record.round,
            accuracy: test.and_then(|test| test.accuracy),
            rmse: test.and_then(|test| test.rmse),
            epsilon: record.epsilon,
        }
    }
}

/// How long a round may wait for devices without looking at them, which it does several times a
/// second: some write to a slow disk comes in between.
const LOOKS_WITHIN: Duration = Duration::from_secs(60);

/// A round in progress.
#[derive(Clone, Copy, Debug)]
struct Current {
    since: Instant,
    /// How long a window of time lasts; other rounds end at the time-out.
    length: Option<Duration>,
    drawn: usize,
    awaited: usize,
    /// When it last looked at the devices; `None` once they are not waited for any more.
    looked: Option<Instant>,
}

/// What became of the real devices that were drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Those that were drawn.
    pub drawn: u64,
    /// Those that answered.
    pub answered: u64,
    /// The others, by reason.
    pub missing: BTreeMap<String, u64>,
    /// How long that took.
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
    /// Those with a session.
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
    /// Those that answered when they were last asked anything.
    pub connected: usize,
    /// Rounds that came to nothing for the want of an answer, by reason.
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
    /// How often it has.
    pauses: u64,
    /// Devices without which no round begins.
    needed: u32,
    second_sessions: u64,
    session_conflicts: u64,
    current: Option<Current>,
    last: Option<Tally>,
    total: Tally,
    windows: Option<WindowFigures>,
    rounds_without_updates: u64,
}

/// The figures of a run while it goes on.
#[derive(Debug, Default)]
pub struct Monitor {
    state: Mutex<State>,
}

/// What is shown.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// The run.
    pub run: String,
    /// "running", "paused" while too few devices are connected, or "stopping".
    pub state: &'static str,
    /// How often the run has paused.
    pub pauses: u64,
    /// T.
    pub rounds: u32,
    /// Rounds that are done.
    pub done: u32,
    /// Those of them that came to nothing.
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
    /// The newest answer to each question. The page gets them apart, and less often.
    #[serde(skip)]
    pub answers: Vec<LatestAnswer>,
    /// Devices with keys.
    pub devices: usize,
    /// Those with a session.
    pub connected: usize,
    /// Those without which no round begins.
    pub needed: u32,
    /// Sessions that replaced one whose connection was open.
    pub second_sessions: u64,
    /// Times that sessions of one device replaced each other three times within a minute.
    pub session_conflicts: u64,
    /// Refused frames that no device is known to have sent, by reason.
    #[serde(rename = "strangers")]
    pub unattributed: BTreeMap<String, u32>,
    /// The helpers; `None` where updates are not masked.
    pub helpers: Option<HelperFigures>,
    /// What follows from who takes part; `None` if the asker may not see it.
    pub attendance: Option<Attendance>,
}

/// What follows from who takes part.
#[derive(Debug, Serialize)]
pub struct Attendance {
    /// The round in progress.
    pub current: Option<InProgress>,
    /// The last round that ended.
    pub last: Option<Tally>,
    /// All rounds of this process.
    pub total: Tally,
    /// Those of them for which real devices were drawn, and none of them answered.
    pub rounds_without_updates: u64,
    /// Updates by age and wasted participations; `None` before the first window of time has ended.
    pub windows: Option<WindowFigures>,
    /// Updates a second in the last round.
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
    /// Real devices that were drawn.
    pub drawn: usize,
    /// Those that it still waits for.
    pub awaited: usize,
}

impl Monitor {
    /// A run begins, of which `records` were made before.
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

    /// A round is recorded. The log tells of answers that have drifted.
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

    /// So many of the helpers answered.
    pub fn helpers_are(&self, connected: usize, count: usize) {
        let helpers = &mut lock(&self.state).helpers;
        (helpers.connected, helpers.count) = (connected, count);
    }

    /// A round came to nothing since a helper did not answer.
    pub fn helper_failed(&self, reason: &str) {
        let helpers = &mut lock(&self.state).helpers;
        *helpers.lost.entry(reason.to_owned()).or_default() += 1;
    }

    /// The next round does not begin without this number of devices.
    pub fn needs(&self, devices: u32) {
        lock(&self.state).needed = devices;
    }

    /// The run waits for devices: too few are connected for a round.
    pub fn pauses(&self) {
        let mut state = lock(&self.state);
        state.is_paused = true;
        state.pauses += 1;
    }

    /// A device has opened a session while another one under its key was open.
    pub fn second_session(&self) {
        lock(&self.state).second_sessions += 1;
    }

    /// Sessions of one device have replaced each other again and again. Which device it is stays in
    /// the log file: a series of counts with its number would show when that device comes and goes.
    pub fn session_conflict(&self) {
        lock(&self.state).session_conflicts += 1;
    }

    /// Enough devices are connected again.
    pub fn resumes(&self) {
        lock(&self.state).is_paused = false;
    }

    /// Real devices are invited.
    pub fn round_begins(&self, drawn: usize) {
        self.begins(drawn, None);
    }

    /// A window of time begins, which lasts as long as this.
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

    /// So many devices are waited for.
    pub fn awaits(&self, awaited: usize) {
        if let Some(current) = &mut lock(&self.state).current {
            current.awaited = awaited;
            current.looked = Some(Instant::now());
        }
    }

    /// Devices are not waited for any more: what is left of the round takes as long as it takes.
    pub fn awaits_no_more(&self) {
        if let Some(current) = &mut lock(&self.state).current {
            current.looked = None;
        }
    }

    /// Whether at this time a round waits for devices and does not look at them.
    #[must_use]
    pub fn is_stuck(&self, now: Instant) -> bool {
        let looked = lock(&self.state).current.and_then(|current| current.looked);
        looked.is_some_and(|looked| now.saturating_duration_since(looked) > LOOKS_WITHIN)
    }

    /// The outcomes of a round's real devices are known.
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

    /// A window of time has ended with this.
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

    /// The model after each round, thinned to as many as a screen can show.
    pub fn history(&self) -> Vec<Point> {
        thinned(&lock(&self.state).points)
    }

    /// The answers so far, as far as the asker may see them.
    pub fn answers(&self, access: Access) -> Answers {
        lock(&self.state).answers.shown(access == Access::Operator)
    }

    /// The figures now, as far as the asker may see them.
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
        // The models of simulated devices, or a large test set, take as long as they take.
        monitor.awaits_no_more();
        assert!(!monitor.is_stuck(later(3600)));
        monitor.round_ends(std::iter::empty());
        assert!(!monitor.is_stuck(later(3600)));
    }
}
