//! Attendance: the devices of each round, drawn by a sampling scheme, or by a timetable (schedule)
//! of check-ins at hours of the day, which assumes only (k, b) participation.
//!
//! Devices may also be drawn in turn (`block-cyclic`): round t secretly draws from the devices of
//! part t modulo b. The parts come from the public shuffle of `rotation`, which depends on the
//! experiment's seed alone, so that a restarted server has the same parts.
//!
//! A timetable simulates devices that come when they can. It is public, like its seed: correlated
//! noise does not rely on it.
//!
//! * `rotation`: after a shuffle, device i takes part in the rounds t with t ≡ i modulo b.
//! * `arrival`: in every round devices check in, in random order, and the first S admissible ones
//!   take part. A device is likely to check in at a certain hour of its day and does not twelve
//!   hours later. A round takes an hour, and the devices' time zones are spread unevenly.

use std::num::NonZeroU32;
use std::sync::Arc;

use smolfed_accounting::Sampling;
use smolfed_accounting::correlated::Participation;
use smolfed_core::stream::{Purpose, Root, Stream, StreamId, below};

use smolfed_release::Fault;
use smolfed_release::admission::Admissions;
use smolfed_release::sampling::{draw_cohort, draw_of_part};

pub mod buffered;

use buffered::{Arrivals, Buffered, Windows};

/// Rounds in a day.
const HOURS: u32 = 24;
/// Maximum check-ins in a round per requested device.
const CHECK_INS: u32 = 24;

/// Which devices take part in the rounds of a run.
#[derive(Clone, Debug)]
pub enum Attendance {
    /// The cohort of the accounted sampling.
    Drawn(Sampling),
    /// The cohort of a timetable.
    Scheduled(Timetable),
    /// The accounted sampling draws from the round's part of all devices.
    InTurn {
        /// [`Sampling::BlockCyclic`].
        sampling: Sampling,
        /// A cohort for each part.
        parts: Timetable,
    },
    /// Devices whose updates arrive in a time window.
    Buffered(Arc<Buffered>),
    /// A faulty draw, for audits only.
    Faulty {
        /// The fault.
        fault: Fault,
        /// The draw without the fault.
        drawn: Box<Attendance>,
    },
}

/// Cohorts fixed before the run.
#[derive(Clone, Debug)]
pub struct Timetable {
    /// Ascending devices. Round t has the cohort at t modulo the number of cohorts.
    cohorts: Vec<Vec<u32>>,
    /// Expected cohort size, the divisor of the sum.
    expected: f64,
}

impl Attendance {
    /// Returns the cohort of `round` in ascending order. `number` names its random streams.
    #[must_use]
    pub fn cohort(&self, root: &Root, round: u32, number: u32) -> Vec<u32> {
        match self {
            Self::Drawn(sampling) => draw_cohort(sampling, root, number),
            Self::Scheduled(timetable) => timetable.cohort(round).to_vec(),
            Self::InTurn { sampling, parts } => {
                draw_of_part(sampling, parts.cohort(round), root, number)
            }
            Self::Buffered(buffered) => buffered.window(round).devices.clone(),
            Self::Faulty { fault, drawn } => {
                let number = fault.draw_number(number, drawn.turns());
                fault.drawn(drawn.cohort(root, round, number))
            }
        }
    }

    /// Returns the cohort of `round`, with the version that each device has trained from where
    /// versions may differ.
    #[must_use]
    pub fn arrivals(&self, root: &Root, round: u32, number: u32) -> Arrivals {
        match self {
            Self::Buffered(buffered) => buffered.window(round).clone(),
            _ => Arrivals {
                devices: self.cohort(root, round, number),
                ..Arrivals::default()
            },
        }
    }

    /// Returns the rule of windows, if rounds are time windows.
    #[must_use]
    pub fn windows(&self) -> Option<&Windows> {
        match self {
            Self::Buffered(buffered) => Some(buffered.rule()),
            Self::Faulty { drawn, .. } => drawn.windows(),
            _ => None,
        }
    }

    /// Returns the number of rounds after which the same devices have their turn again.
    fn turns(&self) -> u32 {
        match self {
            Self::Drawn(_) | Self::Buffered(_) => 1,
            Self::Scheduled(timetable)
            | Self::InTurn {
                parts: timetable, ..
            } => timetable.cohorts.len() as u32,
            Self::Faulty { drawn, .. } => drawn.turns(),
        }
    }

    /// Adds a fault to the draw.
    #[must_use]
    pub fn with_fault(self, fault: Fault) -> Self {
        let drawn = Box::new(self);
        Self::Faulty { fault, drawn }
    }

    /// Returns the average or maximum cohort size.
    #[must_use]
    pub fn expected_size(&self) -> f64 {
        match self {
            Self::Drawn(sampling) | Self::InTurn { sampling, .. } => sampling.expected_cohort(),
            Self::Scheduled(timetable) => timetable.expected,
            Self::Buffered(buffered) => buffered.rule().cohort_size.into(),
            Self::Faulty { drawn, .. } => drawn.expected_size(),
        }
    }

    /// Returns the largest possible cohort size.
    #[must_use]
    pub fn largest(&self) -> usize {
        match self {
            Self::Drawn(sampling) => sampling.device_count() as usize,
            Self::Scheduled(timetable)
            | Self::InTurn {
                parts: timetable, ..
            } => {
                let sizes = timetable.cohorts.iter().map(Vec::len);
                sizes.max().unwrap_or(0)
            }
            Self::Buffered(buffered) => buffered.largest(),
            Self::Faulty { drawn, .. } => drawn.largest(),
        }
    }

    /// Returns the maximum cohort size. Where devices are drawn independently, a round exceeds it
    /// with a probability of e^-72.
    #[must_use]
    pub fn largest_drawn(&self) -> usize {
        match self {
            Self::Drawn(Sampling::Uniform { cohort_size, .. }) => *cohort_size as usize,
            Self::Drawn(sampling) | Self::InTurn { sampling, .. } => {
                let rate = sampling.sampling_rate().unwrap_or(1.0);
                most_of_binomial(self.largest(), rate)
            }
            Self::Scheduled(_) | Self::Buffered(_) => self.largest(),
            Self::Faulty { drawn, .. } => drawn.largest_drawn(),
        }
    }

    /// Returns the first device, and its round, that would come too early or too often under
    /// `allowed`.
    #[must_use]
    pub fn first_breach(&self, allowed: Participation) -> Option<(u32, u32)> {
        let rounds = 0..allowed.rounds();
        match self {
            // Every device may be in every round.
            Self::Drawn(sampling) => {
                let all: Vec<u32> = (0..sampling.device_count()).collect();
                Admissions::first_breach(allowed, rounds.map(|_| all.as_slice()))
            }
            // A device may be drawn whenever its part has its turn.
            Self::Scheduled(timetable)
            | Self::InTurn {
                parts: timetable, ..
            } => {
                let cohorts = rounds.map(|round| timetable.cohort(round));
                Admissions::first_breach(allowed, cohorts)
            }
            // The simulation respects the rule, and the release path checks arrivals.
            Self::Buffered(_) => None,
            Self::Faulty { drawn, .. } => drawn.first_breach(allowed),
        }
    }
}

impl Timetable {
    /// Returns the devices of a round.
    pub(crate) fn cohort(&self, round: u32) -> &[u32] {
        let round = (round as usize).checked_rem(self.cohorts.len());
        let cohort = round.and_then(|round| self.cohorts.get(round));
        cohort.map(Vec::as_slice).unwrap_or_default()
    }

    /// Schedules every device in every b-th round.
    #[must_use]
    pub fn rotation(device_count: u32, separation: u32, root: &Root) -> Self {
        let mut devices: Vec<u32> = (0..device_count).collect();
        let mut stream = stream(root, 0, 1);
        // Fisher-Yates.
        for last in (1..device_count).rev() {
            let other = uniform(last + 1, &mut stream);
            devices.swap(last as usize, other as usize);
        }
        let mut cohorts = vec![Vec::new(); separation as usize];
        for (cohort, device) in (0..cohorts.len()).cycle().zip(devices) {
            if let Some(cohort) = cohorts.get_mut(cohort) {
                cohort.push(device);
            }
        }
        cohorts.iter_mut().for_each(|cohort| cohort.sort_unstable());
        Self {
            cohorts,
            expected: f64::from(device_count) / f64::from(separation),
        }
    }

    /// Schedules devices by their availability, at most `cohort_size` in a round.
    #[must_use]
    pub fn arrival(
        device_count: u32,
        cohort_size: u32,
        allowed: Participation,
        root: &Root,
    ) -> Self {
        let mut zones = stream(root, 0, 1);
        // Two dice: most devices live in the middle zones.
        let zones: Vec<u32> = (0..device_count)
            .map(|_| uniform(HOURS / 2, &mut zones) + uniform(HOURS / 2, &mut zones))
            .collect();
        let mut admissions = Admissions::new(allowed);
        let round = |round: u32| {
            let mut stream = stream(root, round, 0);
            let mut cohort = Vec::new();
            for _ in 0..cohort_size.saturating_mul(CHECK_INS) {
                if cohort.len() == cohort_size as usize {
                    break;
                }
                let device = uniform(device_count, &mut stream);
                let zone = zones.get(device as usize).copied().unwrap_or(0);
                let is_there = uniform(HOURS / 2, &mut stream) < likelihood(round, zone);
                if is_there && admissions.admit(round, &[device]).has(device) {
                    cohort.push(device);
                }
            }
            cohort.sort_unstable();
            cohort
        };
        Self {
            cohorts: (0..allowed.rounds()).map(round).collect(),
            expected: f64::from(cohort_size),
        }
    }
}

/// Returns the least k that n draws of probability `rate` exceed with probability at most e^-72, by
/// the Chernoff bound exp(-n KL(k/n, rate)).
fn most_of_binomial(n: usize, rate: f64) -> usize {
    const CERTAINTY: f64 = 72.0;
    if rate >= 1.0 {
        return n;
    }
    let is_rare = |k: usize| {
        let share = k as f64 / n as f64;
        let rest = 1.0 - share;
        let of_rest = if rest > 0.0 {
            rest * (rest / (1.0 - rate)).ln()
        } else {
            0.0
        };
        share > rate && n as f64 * (share * (share / rate).ln() + of_rest) >= CERTAINTY
    };
    let (mut below, mut most) = (0, n);
    while most - below > 1 {
        let middle = below + (most - below) / 2;
        match is_rare(middle) {
            true => most = middle,
            false => below = middle,
        }
    }
    most
}

/// Returns the availability of a device in a time zone, in twelfths: 12 at its best hour, 0 twelve
/// hours before and after.
fn likelihood(round: u32, zone: u32) -> u32 {
    let hour = (round + zone) % HOURS;
    hour.abs_diff(HOURS / 2)
}

fn stream(root: &Root, round: u32, device: u32) -> Stream {
    root.stream(StreamId {
        purpose: Purpose::CohortSampling,
        round,
        device,
    })
}

/// Draws a number below `bound`, or 0 if `bound` is 0.
fn uniform(bound: u32, stream: &mut Stream) -> u32 {
    NonZeroU32::new(bound).map_or(0, |bound| below(bound, stream))
}

#[cfg(test)]
mod tests {
    use smolfed_accounting::SamplingRate;

    use super::*;

    fn allowed(rounds: u32, separation: u32, participations: u32) -> Participation {
        Participation::new(rounds, separation, participations).unwrap()
    }

    fn cohorts(timetable: Timetable, rounds: u32) -> Vec<Vec<u32>> {
        let root = Root::from_seed(99);
        let attendance = Attendance::Scheduled(timetable);
        let cohort = |round| attendance.cohort(&root, round, round + 1_000);
        (0..rounds).map(cohort).collect()
    }

    #[test]
    fn rotation_takes_every_device_in_turn() {
        let root = Root::from_seed(5);
        let rounds = cohorts(Timetable::rotation(23, 5, &root), 12);
        let mut once: Vec<u32> = rounds[..5].concat();
        once.sort_unstable();
        assert_eq!(once, (0..23).collect::<Vec<u32>>());
        assert_eq!((&rounds[0], &rounds[4]), (&rounds[5], &rounds[9]));
        assert!(rounds.iter().all(|cohort| [4, 5].contains(&cohort.len())));
        assert_ne!(rounds[0], [0, 5, 10, 15, 20], "it is shuffled");
        let attendance = Attendance::Scheduled(Timetable::rotation(23, 5, &root));
        assert_eq!((attendance.expected_size(), attendance.largest()), (4.6, 5));
        assert_eq!(attendance.first_breach(allowed(12, 5, 3)), None);
        assert!(matches!(
            attendance.first_breach(allowed(12, 5, 2)),
            Some((10, _))
        ));
        assert!(matches!(
            attendance.first_breach(allowed(12, 6, 2)),
            Some((5, _))
        ));
    }

    #[test]
    fn arrivals_keep_to_the_bound_and_follow_the_hours() {
        let allowed = allowed(96, 7, 4);
        let timetable = Timetable::arrival(300, 12, allowed, &Root::from_seed(5));
        let attendance = Attendance::Scheduled(timetable.clone());
        assert_eq!(attendance.first_breach(allowed), None);
        assert_eq!(attendance.expected_size(), 12.0);
        let rounds = cohorts(timetable, 96);
        let sizes: Vec<usize> = rounds.iter().map(Vec::len).collect();
        assert!(
            sizes.iter().all(|size| *size <= 12) && sizes.contains(&12),
            "{sizes:?}"
        );
        // 300 devices have 1,200 participations, and the run needs 1,152.
        let visits = |device| {
            rounds
                .iter()
                .filter(|cohort| cohort.contains(&device))
                .count()
        };
        let visits: Vec<usize> = (0..300).map(visits).collect();
        assert!(visits.iter().all(|count| *count <= 4));
        assert!(visits.contains(&4) && visits.iter().sum::<usize>() < 1_200);
        assert_ne!(rounds[0], rounds[24]);
    }

    /// Any two rounds have independent draws, including rounds of one part in two turns. By its
    /// place in the part, a device agrees in two rounds with probability 1/2. Over 512 places, the
    /// number of differences is off by 78 or more with a probability of at most
    /// 2 exp(-2 · 78² / 512) (Hoeffding), and for any of the 8,128 pairs of rounds below 1e-6.
    #[test]
    fn no_draw_is_repeated_between_turns() {
        let sampling = Sampling::block_cyclic(2_048, 4, SamplingRate::new(0.5).unwrap()).unwrap();
        let parts = Timetable::rotation(2_048, 4, &Root::from_seed(5));
        let attendance = Attendance::InTurn {
            sampling,
            parts: parts.clone(),
        };
        let root = Root::from_seed(99);
        let drawn = |round| -> Vec<bool> {
            let cohort = attendance.cohort(&root, round, round);
            let part = parts.cohort(round).iter();
            part.map(|device| cohort.binary_search(device).is_ok())
                .collect()
        };
        let rounds: Vec<Vec<bool>> = (0..128).map(drawn).collect();
        for (round, one) in rounds.iter().enumerate() {
            assert_eq!(one.len(), 512);
            for (other, two) in rounds.iter().enumerate().skip(round + 1) {
                let differ = one.iter().zip(two).filter(|(a, b)| a != b).count();
                assert!(differ.abs_diff(256) < 78, "{round}, {other}: {differ}");
            }
        }
    }

    #[test]
    fn devices_that_are_drawn_in_turn_are_of_the_rounds_part_and_come_at_its_rate() {
        let rate = SamplingRate::new(0.3).unwrap();
        let sampling = Sampling::block_cyclic(103, 4, rate).unwrap();
        let parts = Timetable::rotation(103, 4, &Root::from_seed(5));
        let attendance = Attendance::InTurn {
            sampling,
            parts: parts.clone(),
        };
        assert_eq!(attendance.largest(), 26);
        assert!((attendance.expected_size() - 0.3 * 103.0 / 4.0).abs() < 1e-12);
        // A device drawn in every turn respects the bound and uses all of it.
        assert_eq!(attendance.first_breach(allowed(12, 4, 3)), None);
        assert!(attendance.first_breach(allowed(12, 4, 2)).is_some());
        assert!(attendance.first_breach(allowed(12, 5, 3)).is_some());
        let rounds = 8_000;
        let (root, mut drawn) = (Root::from_seed(99), [0_u32; 103]);
        for round in 0..rounds {
            // As in a fleet, whose rounds are numbered differently.
            let cohort = attendance.cohort(&root, round, round + 1_001);
            assert!(cohort.is_sorted_by(|a, b| a < b));
            for device in cohort {
                assert!(parts.cohort(round).contains(&device), "{round}: {device}");
                drawn[device as usize] += 1;
            }
        }
        // Each is Binomial(2000, 0.3), with a standard deviation of 20.5. One of 103 devices is
        // more than 6 deviations off with a probability below 103 · 3e-9 < 1e-6. All 206,000 coins
        // have a deviation of 208.
        assert!(drawn.iter().all(|n| n.abs_diff(600) < 123), "{drawn:?}");
        let total: u32 = drawn.iter().sum();
        assert!(total.abs_diff(61_800) < 1_248, "{total}");
        let certain = SamplingRate::new(1.0).unwrap();
        let all = Attendance::InTurn {
            sampling: Sampling::block_cyclic(103, 4, certain).unwrap(),
            parts: parts.clone(),
        };
        assert_eq!(all.cohort(&root, 6, 6), parts.cohort(2));
    }

    #[test]
    fn everybody_comes_to_every_round_of_full_participation() {
        let attendance = Attendance::Drawn(Sampling::unsampled(3, 9).unwrap());
        assert_eq!(attendance.cohort(&Root::from_seed(1), 4, 4), [0, 1, 2]);
        assert_eq!(attendance.expected_size(), 3.0);
        assert_eq!(attendance.first_breach(allowed(9, 1, 9)), None);
        assert!(attendance.first_breach(allowed(9, 1, 8)).is_some());
        assert!(attendance.first_breach(allowed(9, 2, 5)).is_some());
    }
}
