//! Simulated devices that wake, train and sleep, and the time windows in which their updates
//! arrive.
//!
//! Window r has a fixed length and begins with version r of the model. A device that wakes without
//! an update asks for the newest version v. The device gets v if its ledger allows a round, at
//! least b + s after its last one, and if fewer than `cohort_size` devices have asked in this
//! window. It trains while it is awake, over several wakes if necessary, and sends its update at
//! once. The update counts in its arrival window, from v to v + s, and never later.
//!
//! Nothing here reads device data: arrivals follow from the seed alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;
use std::sync::OnceLock;

use smolfed_accounting::correlated::Participation;
use smolfed_core::stream::{Purpose, Root, Stream, StreamId, below};

use crate::tables::cohort::{AvailabilityConfig, Pattern};

/// A day and half a day, in milliseconds.
const DAY: u64 = 86_400_000;
const HALF_A_DAY: u64 = DAY / 2;

/// The rule of windows.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Length of a window in milliseconds.
    pub length: u64,
    /// Maximum staleness s.
    pub staleness: u32,
    /// D: maximum number of devices that get the model in a window, and the divisor of its sum.
    pub cohort_size: u32,
    /// (k, b) of the windows in which a device's updates count.
    pub allowed: Participation,
}

/// The devices whose updates arrive in one window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Ascending.
    pub devices: Vec<u32>,
    /// Version that each device has trained from, in the same order.
    pub versions: Vec<u32>,
    /// Devices that finished their update too late.
    pub wasted: Vec<u32>,
}

/// The windows of a run.
#[derive(Clone, Debug)]
pub struct Buffered {
    rule: Windows,
    devices: u32,
    availability: AvailabilityConfig,
    root: Root,
    /// Simulated on first use: a run with real devices only never needs them.
    windows: OnceLock<Vec<Arrivals>>,
}

/// A device between two wakes.
#[derive(Clone, Copy, Debug, Default)]
struct Sleeper {
    /// Last version that the device trained from, and the number of versions.
    last: Option<u32>,
    count: u32,
    /// Version in training, and the awake time that training still needs.
    busy: Option<(u32, u64)>,
    /// Milliseconds from one wake to the next.
    period: u64,
    /// `None` without zones. Otherwise, whether the device sleeps in the second half of each day
    /// instead of the first.
    zone: Option<bool>,
}

impl Buffered {
    /// Creates the windows of `devices` devices with this availability.
    #[must_use]
    pub const fn new(
        devices: u32,
        availability: AvailabilityConfig,
        rule: Windows,
        root: Root,
    ) -> Self {
        Self {
            rule,
            devices,
            availability,
            root,
            windows: OnceLock::new(),
        }
    }

    fn simulate(&self) -> Vec<Arrivals> {
        let (rule, availability) = (self.rule, &self.availability);
        let mut stream = self.root.stream(StreamId {
            purpose: Purpose::CohortSampling,
            round: 0,
            device: 1,
        });
        let mut simulation = Simulation {
            rule,
            awake: availability.awake.millis(),
            training: availability.training.millis(),
            sleepers: Vec::new(),
            asked: vec![0; rule.allowed.rounds() as usize],
            windows: vec![Arrivals::default(); rule.allowed.rounds() as usize],
        };
        // The next wakes, earliest first. A random number breaks ties.
        let mut wakings = BinaryHeap::new();
        for device in 0..self.devices {
            let sleeper = Sleeper::new(availability, &mut stream);
            let first = sleeper.awake_from(uniform(sleeper.period, &mut stream));
            wakings.push(Reverse((
                first,
                below(NonZeroU32::MAX, &mut stream),
                device,
            )));
            simulation.sleepers.push(sleeper);
        }
        while let Some(Reverse((time, order, device))) = wakings.pop() {
            if let Some(next) = simulation.wakes(device, time) {
                wakings.push(Reverse((next, order, device)));
            }
        }
        simulation.windows.into_iter().map(sorted).collect()
    }

    /// Returns the rule of the windows.
    #[must_use]
    pub const fn rule(&self) -> &Windows {
        &self.rule
    }

    /// Returns the updates of one window.
    #[must_use]
    pub fn window(&self, round: u32) -> &Arrivals {
        const NOBODY: &Arrivals = &Arrivals {
            devices: Vec::new(),
            versions: Vec::new(),
            wasted: Vec::new(),
        };
        let windows = self.windows.get_or_init(|| self.simulate());
        windows.get(round as usize).unwrap_or(NOBODY)
    }

    /// Returns the largest possible number of updates in a window: real devices may all come at
    /// once.
    #[must_use]
    pub const fn largest(&self) -> usize {
        self.devices as usize
    }
}

/// Sorts the devices of a window.
fn sorted(window: Arrivals) -> Arrivals {
    let mut pairs: Vec<(u32, u32)> = window.devices.into_iter().zip(window.versions).collect();
    pairs.sort_unstable();
    let (devices, versions) = pairs.into_iter().unzip();
    Arrivals {
        devices,
        versions,
        ..window
    }
}

/// The wakes of all devices in chronological order.
struct Simulation {
    rule: Windows,
    awake: u64,
    training: u64,
    sleepers: Vec<Sleeper>,
    /// Devices that got the model, in each window.
    asked: Vec<u32>,
    windows: Vec<Arrivals>,
}

impl Simulation {
    /// Wakes a device at `time`. Returns the time of its next wake with something to do, if the run
    /// lasts until then.
    fn wakes(&mut self, device: u32, time: u64) -> Option<u64> {
        let (mut now, end) = (time, time.saturating_add(self.awake));
        // Earliest time at which it may ask for a model again.
        let mut asks_from = 0;
        while now < end {
            let round = self.round_at(now)?;
            let busy = self.sleeper(device)?.busy;
            let (version, needed) = match busy {
                Some(busy) => busy,
                None if self.asks(device, round) => (round, self.training),
                None => {
                    asks_from = self.may_ask_from(device, round)?;
                    break;
                }
            };
            let spent = needed.min(end - now);
            now += spent;
            let sleeper = self.sleeper(device)?;
            sleeper.busy = (spent < needed).then_some((version, needed - spent));
            if spent == needed {
                self.arrives(device, version, now);
            }
        }
        let sleeper = self.sleeper(device)?;
        let mut next = sleeper.awake_from(time.saturating_add(sleeper.period));
        // Earlier wakes would change nothing.
        while next < asks_from {
            next = sleeper.awake_from(next.saturating_add(sleeper.period));
        }
        self.round_at(next).map(|_| next)
    }

    /// Returns the earliest time at which a device may get a model, after a refusal in `round`.
    /// Returns `None` if it has no participation left.
    fn may_ask_from(&mut self, device: u32, round: u32) -> Option<u64> {
        let (rule, apart) = (self.rule, self.distance());
        let sleeper = self.sleeper(device)?;
        let has_rounds = sleeper.count < rule.allowed.participations();
        let next = sleeper.last.map_or(0, |last| last.saturating_add(apart));
        let next = next.max(round.saturating_add(1));
        has_rounds.then(|| rule.length.saturating_mul(next.into()))
    }

    /// Returns b + s.
    const fn distance(&self) -> u32 {
        let rule = &self.rule;
        rule.allowed.separation().saturating_add(rule.staleness)
    }

    /// Returns whether a device gets the model in this window. If so, its ledger counts a round.
    fn asks(&mut self, device: u32, round: u32) -> bool {
        let (rule, apart) = (self.rule, self.distance());
        let Some(asked) = self.asked.get_mut(round as usize) else {
            return false;
        };
        let Some(sleeper) = self.sleepers.get_mut(device as usize) else {
            return false;
        };
        let is_apart = sleeper.last.is_none_or(|last| round - last >= apart);
        let is_allowed = is_apart && sleeper.count < rule.allowed.participations();
        let is_asked = is_allowed && *asked < rule.cohort_size;
        if is_asked {
            *asked += 1;
            (sleeper.last, sleeper.count) = (Some(round), sleeper.count + 1);
        }
        is_asked
    }

    /// Counts an update in the window in which it arrives, or as wasted.
    fn arrives(&mut self, device: u32, version: u32, now: u64) {
        let Some(round) = self.round_at(now) else {
            return;
        };
        let Some(window) = self.windows.get_mut(round as usize) else {
            return;
        };
        if round - version > self.rule.staleness {
            window.wasted.push(device);
            return;
        }
        window.devices.push(device);
        window.versions.push(version);
    }

    /// Returns the window at `time`, or `None` after the run.
    fn round_at(&self, time: u64) -> Option<u32> {
        let round = time.checked_div(self.rule.length)?;
        let rounds = self.rule.allowed.rounds();
        u32::try_from(round).ok().filter(|round| *round < rounds)
    }

    fn sleeper(&mut self, device: u32) -> Option<&mut Sleeper> {
        self.sleepers.get_mut(device as usize)
    }
}

impl Sleeper {
    fn new(availability: &AvailabilityConfig, stream: &mut Stream) -> Self {
        let period = availability.period.millis();
        let (mut zone, mut is_rare) = (None, false);
        match availability.pattern {
            Pattern::Periodic => {}
            Pattern::TwoZones => zone = Some(uniform(2, stream) == 1),
            Pattern::OnceADay => is_rare = uniform(3, stream) == 0,
        }
        Self {
            period: if is_rare { DAY } else { period },
            zone,
            ..Self::default()
        }
    }

    /// Returns the first time from `time` on at which the device may be awake. While its zone
    /// sleeps, this is half a day later.
    const fn awake_from(&self, time: u64) -> u64 {
        let is_second_half = time % DAY >= HALF_A_DAY;
        match self.zone {
            Some(sleeps_second) if sleeps_second == is_second_half => time + HALF_A_DAY,
            _ => time,
        }
    }
}

/// Draws a number below `bound`, or 0 if `bound` is 0.
fn uniform(bound: u64, stream: &mut Stream) -> u64 {
    let bound = u32::try_from(bound).unwrap_or(u32::MAX);
    NonZeroU32::new(bound).map_or(0, |bound| below(bound, stream).into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::tables::time_span::TimeSpan;

    fn availability(pattern: Pattern, [awake, period, training]: [u64; 3]) -> AvailabilityConfig {
        AvailabilityConfig {
            pattern,
            awake: TimeSpan::from_secs(awake),
            period: TimeSpan::from_secs(period),
            training: TimeSpan::from_secs(training),
        }
    }

    fn windows(rounds: u32, staleness: u32, cohort_size: u32, [b, k]: [u32; 2]) -> Windows {
        Windows {
            length: 3_600_000,
            staleness,
            cohort_size,
            allowed: Participation::new(rounds, b, k).unwrap(),
        }
    }

    fn count(buffered: &Buffered, rounds: u32) -> [usize; 2] {
        let windows = (0..rounds).map(|round| buffered.window(round));
        windows.fold([0, 0], |[arrived, wasted], window| {
            [arrived + window.devices.len(), wasted + window.wasted.len()]
        })
    }

    #[test]
    fn devices_that_wake_every_ten_minutes_fill_each_window_within_it() {
        let rule = windows(50, 2, 20, [10, 5]);
        let table = availability(Pattern::Periodic, [20, 600, 5]);
        let buffered = Buffered::new(300, table, rule, Root::from_seed(5));
        for round in 0..50 {
            let window = buffered.window(round);
            assert_eq!(window.devices.len(), 20, "{round}");
            assert!(window.versions.iter().all(|version| *version == round));
        }
        assert_eq!(count(&buffered, 50), [1_000, 0]);
        assert_eq!(buffered.largest(), 300);
    }

    /// Training takes seven wakes, ten minutes apart, so an update arrives one window after its
    /// model.
    #[test]
    fn training_goes_on_over_sleep() {
        let rule = windows(50, 1, 20, [10, 5]);
        let table = availability(Pattern::Periodic, [20, 600, 130]);
        let buffered = Buffered::new(300, table, rule, Root::from_seed(5));
        let ages = (0..50).flat_map(|round| {
            let versions = buffered.window(round).versions.iter();
            versions.map(move |version| round - version)
        });
        let late = ages.filter(|age| *age == 1).count();
        let [arrived, wasted] = count(&buffered, 50);
        assert!(
            late > 200 && arrived > 950 && wasted == 0,
            "{late}, {arrived}"
        );
    }

    #[test]
    fn updates_that_take_too_long_expire() {
        let rule = windows(50, 0, 20, [10, 5]);
        // Training takes 40 wakes, more than six windows.
        let table = availability(Pattern::Periodic, [20, 600, 800]);
        let buffered = Buffered::new(300, table, rule, Root::from_seed(5));
        let [arrived, wasted] = count(&buffered, 50);
        assert!(arrived == 0 && wasted > 500, "{arrived}, {wasted}");
    }

    #[test]
    fn zones_sleep_by_turns_and_rare_devices_come_once_a_day() {
        let rule = windows(48, 2, 1_000, [1, 48]);
        let table = availability(Pattern::TwoZones, [20, 600, 5]);
        let buffered = Buffered::new(200, table, rule, Root::from_seed(5));
        let of = |rounds: [u32; 2]| -> Vec<u32> {
            let rounds = rounds.into_iter();
            rounds
                .flat_map(|round| buffered.window(round).devices.clone())
                .collect()
        };
        let (day, night) = (of([3, 9]), of([15, 21]));
        assert!(!day.is_empty() && !night.is_empty());
        assert!(day.iter().all(|device| !night.contains(device)));
        let table = availability(Pattern::OnceADay, [20, 600, 5]);
        let buffered = Buffered::new(200, table, rule, Root::from_seed(5));
        let mut visits = BTreeMap::new();
        for round in 0..48 {
            for device in &buffered.window(round).devices {
                *visits.entry(*device).or_insert(0) += 1;
            }
        }
        let rare = visits.values().filter(|count| **count == 2).count();
        assert!((40..100).contains(&rare) && visits.len() == 200, "{rare}");
    }

    proptest! {
        /// No device counts in two windows closer than b, more than k times, twice for a version,
        /// or outside the windows of its version.
        #[test]
        fn arrivals_keep_to_the_rule(
            seed in 0u64..1_000,
            (b, k, staleness) in (1u32..5, 1u32..5, 0u32..4),
            (awake, period, training) in (1u64..30, 30u64..9_000, 1u64..200),
            pattern in prop::sample::select(vec![
                Pattern::Periodic, Pattern::TwoZones, Pattern::OnceADay,
            ]),
        ) {
            let rule = windows(40, staleness, 6, [b, k]);
            let table = availability(pattern, [awake, period, training]);
            let buffered = Buffered::new(30, table, rule, Root::from_seed(seed));
            let mut of_device: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
            for round in 0..40 {
                let window = buffered.window(round);
                prop_assert!(window.devices.is_sorted_by(|a, b| a < b));
                for (device, version) in window.devices.iter().zip(&window.versions) {
                    prop_assert!(*version <= round && round <= version + staleness);
                    of_device.entry(*device).or_default().push((round, *version));
                }
            }
            for visits in of_device.values() {
                prop_assert!(visits.len() <= rule.allowed.participations() as usize);
                for pair in visits.windows(2) {
                    prop_assert!(pair[1].0 - pair[0].0 >= b);
                    prop_assert!(pair[1].1 - pair[0].1 >= b + staleness);
                }
            }
        }
    }
}
