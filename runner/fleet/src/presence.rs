//! Waiting for devices: no round is drawn or charged while too few of them are connected.
//!
//! # Privacy
//! Whether a round begins is public, so it must not depend on anything that ε does not cover. The
//! rule reads only [`Presence`]: which devices have a key, and a connection now or a short time
//! ago. It does not read the coins of a cohort, updates, the reasons for missing updates, or
//! quarantine, which follows from having been drawn. A pause after rounds without updates would
//! reveal that the selected devices were away, and so would a cohort of connected devices. The next
//! cohort is therefore drawn from all devices of the federation, with or without a key, with the
//! sampling of the statement, and the sum is divided by the same denominator. An operator decides
//! which keys are revoked, and must not base that decision on cohorts.
//!
//! Given the times at which devices are connected, the rounds therefore follow a plan that is fixed
//! in advance, and the accounting of that plan holds. The statement names the remaining
//! assumptions. It does not cover when rounds begin or when devices are connected, and assumes that
//! connections depend neither on data nor on the cohorts.
//!
//! Transports ensure this as far as they can. A dead connection is noticed equally late for
//! selected devices and for others (`transport::tcp`). Two short interruptions remain: the
//! coordinator closes the connection of a device that does not read its messages, and a device
//! without any message for ten minutes reconnects. Such a device is back within seconds, and counts
//! as present for `--away-after`.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use super::registry::Registry;
use super::service::Service;
use crate::stopping::Stopping;

/// Default time that the run waits without any device before it ends: longer than a router or a
/// broker takes to restart, and short enough to be noticed on the same day.
pub const DEFAULT_GIVE_UP_AFTER: Duration = Duration::from_secs(3600);

/// Interval at which the coordinator looks, even if nothing happens.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Time to wait after a change for others: a returning fleet connects by the thousands.
const GATHER: Duration = Duration::from_millis(20);

/// Pauses up to this length are not reported: a new fleet needs time to connect.
const UNREPORTED: Duration = Duration::from_secs(1);

/// Choices of an operator. `None` is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceSettings {
    /// Minimum number of devices for a round. Default: half the keyed devices of an expected
    /// cohort.
    pub min_devices: Option<u32>,
    /// Time for which a disconnected device counts as present. Default: the time-out of a round.
    pub away_after: Option<Duration>,
    /// Time that the run waits without any device. Default: [`DEFAULT_GIVE_UP_AFTER`].
    pub give_up_after: Option<Duration>,
}

/// Settings that contradict each other or the keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PresenceError {
    /// More devices than there are.
    #[error(
        "`--min-devices {min_devices}`: {keys} devices have keys, so no round would ever begin"
    )]
    TooMany {
        /// The requested number.
        min_devices: u32,
        /// Devices with keys.
        keys: u32,
    },
    /// The run would end while devices count as present.
    #[error(
        "`--away-after {}` is longer than `--give-up-after {}`: the run would end while devices \
         still count as connected",
        humantime::format_duration(*away_after),
        humantime::format_duration(*give_up_after)
    )]
    Contradiction {
        /// Time for which a disconnected device counts as present.
        away_after: Duration,
        /// Time that the run waits without any device.
        give_up_after: Duration,
    },
}

/// No device was connected for too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no device has been connected for {}, and no round was charged meanwhile; `--give-up-after` \
     sets how long the run waits",
    humantime::format_duration(*.0)
)]
pub struct NobodyConnected(Duration);

/// Expected cohort of a federation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedCohort {
    /// Expected number of selected devices.
    pub size: f64,
    /// Number of devices in the federation, at least 1.
    pub device_count: u32,
}

/// Rule for the start of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PresenceRule {
    min_devices: Option<u32>,
    cohort: ExpectedCohort,
    away_after: Duration,
    give_up_after: Duration,
}

/// Connection counts of a run's real devices at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// Devices with keys. Revoked devices cannot connect.
    pub devices: u32,
    /// Devices with a session on an open connection.
    pub connected: u32,
    /// Connected devices, and devices whose connection was lost a short time ago.
    pub present: u32,
}

/// Checks the requested number of devices for a fleet with this number of keys.
///
/// # Errors
/// [`PresenceError::TooMany`].
pub const fn check_min_devices(min_devices: u32, keys: u32) -> Result<(), PresenceError> {
    match min_devices > keys {
        true => Err(PresenceError::TooMany { min_devices, keys }),
        false => Ok(()),
    }
}

impl PresenceRule {
    /// Returns the rule for a federation with these cohorts, whose rounds take up to `timeout`.
    ///
    /// # Errors
    /// [`PresenceError::Contradiction`].
    pub fn new(
        settings: PresenceSettings,
        cohort: ExpectedCohort,
        timeout: Duration,
    ) -> Result<Self, PresenceError> {
        let give_up_after = settings.give_up_after.unwrap_or(DEFAULT_GIVE_UP_AFTER);
        // A round waits as long for a sleeping device. With a longer time, rounds would continue
        // without a device that no round waits for any more.
        let away_after = settings.away_after.unwrap_or(timeout.min(give_up_after));
        if away_after > give_up_after {
            return Err(PresenceError::Contradiction {
                away_after,
                give_up_after,
            });
        }
        Ok(Self {
            min_devices: settings.min_devices,
            cohort,
            away_after,
            give_up_after,
        })
    }

    /// Returns the number of devices without which no round begins, if this number of real devices
    /// have keys. Keys may be revoked during the run.
    fn needed(&self, devices: u32) -> u32 {
        let ExpectedCohort { size, device_count } = self.cohort;
        // The real devices' share of an expected cohort. The product comes first: it is exact.
        let expected = size * f64::from(devices) / f64::from(device_count.max(1));
        let half = (expected / 2.0).ceil().max(1.0) as u32;
        self.min_devices.unwrap_or(half).min(devices)
    }

    /// Counts the connected devices among the run's real devices.
    pub(super) fn presence(
        &self,
        registry: &Registry,
        members: &BTreeSet<u32>,
        now: Duration,
    ) -> Presence {
        let mut presence = Presence::default();
        registry.for_each(|device, peer| {
            // A device added since the run began is not drawn in it.
            if members.contains(&device) {
                presence.devices += 1;
                presence.connected += u32::from(peer.is_reachable());
                presence.present += u32::from(peer.is_present(now, self.away_after));
            }
        });
        presence
    }

    /// Returns whether a round may begin.
    pub(super) fn is_met(&self, presence: Presence) -> bool {
        presence.connected > 0 && presence.present >= self.needed(presence.devices)
    }

    /// Waits until a round may begin, or the run is to stop. Returns whether it had to wait. `look`
    /// reloads changed keys and counts the connected devices.
    pub(super) fn wait(
        &self,
        service: &Service,
        stopping: &Stopping,
        look: &mut dyn FnMut() -> Presence,
    ) -> Result<bool, NobodyConnected> {
        let began = Instant::now();
        let (mut last_connected, mut has_waited, mut is_reported) = (began, false, false);
        loop {
            let presence = look();
            service.monitor().needs(self.needed(presence.devices));
            if self.is_met(presence) {
                if is_reported {
                    service.monitor().resumes();
                    report_end(presence, began.elapsed());
                }
                return Ok(has_waited);
            }
            if stopping.is_asked() {
                return Ok(true);
            }
            if presence.connected > 0 {
                last_connected = Instant::now();
            }
            if last_connected.elapsed() >= self.give_up_after {
                return Err(NobodyConnected(self.give_up_after));
            }
            if began.elapsed() >= UNREPORTED && !is_reported {
                service.monitor().pauses();
                self.report_begin(presence);
                is_reported = true;
            }
            if !service.registry().changes(LOOK_INTERVAL).is_empty() {
                thread::sleep(GATHER);
            }
            has_waited = true;
        }
    }

    fn report_begin(&self, presence: Presence) {
        let Presence {
            devices,
            connected,
            present,
        } = presence;
        let (needed, recently) = (
            self.needed(devices),
            humantime::format_duration(self.away_after),
        );
        tracing::warn!(
            reason = "paused",
            devices,
            connected,
            needed,
            "the run is paused: {connected} of {devices} devices are connected, and {present} were \
             connected within {recently}; no round begins, and no epsilon is spent, until there \
             are {needed}"
        );
    }
}

fn report_end(presence: Presence, pause: Duration) {
    let Presence {
        devices, connected, ..
    } = presence;
    let seconds = pause.as_secs();
    tracing::warn!(
        reason = "resumed",
        devices,
        connected,
        seconds,
        "the run continues after a pause of {seconds} s: {connected} of {devices} devices are \
         connected"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the devices are drawn in a round, on average.
    const HALF: ExpectedCohort = ExpectedCohort {
        size: 30.0,
        device_count: 60,
    };

    fn rule(settings: PresenceSettings, cohort: ExpectedCohort) -> PresenceRule {
        PresenceRule::new(settings, cohort, Duration::from_secs(30)).unwrap()
    }

    #[test]
    fn by_default_half_of_the_expected_cohort_is_needed() {
        let none = PresenceSettings::default();
        for (size, needed) in [(20.0, 10), (5.0, 3), (0.3, 1)] {
            let device_count = 20;
            let rule = rule(none, ExpectedCohort { size, device_count });
            assert_eq!(rule.needed(20), needed, "{size}");
        }
        assert_eq!(rule(none, HALF).away_after, Duration::from_secs(30));
        let settings = PresenceSettings {
            min_devices: Some(20),
            give_up_after: Some(Duration::from_secs(10)),
            ..none
        };
        let rule = rule(settings, HALF);
        assert_eq!((rule.needed(20), rule.away_after.as_secs()), (20, 10));
    }

    /// The others of a cohort are simulated, or no longer have a key.
    #[test]
    fn only_devices_with_keys_are_needed() {
        let by_default = rule(PresenceSettings::default(), HALF);
        for (devices, needed) in [(60, 15), (20, 5), (3, 1), (1, 1), (0, 0)] {
            assert_eq!(by_default.needed(devices), needed, "{devices}");
        }
        let settings = PresenceSettings {
            min_devices: Some(20),
            ..PresenceSettings::default()
        };
        let asked = rule(settings, HALF);
        for (devices, needed) in [(60, 20), (20, 20), (3, 3), (0, 0)] {
            assert_eq!(asked.needed(devices), needed, "{devices}");
        }
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let error = check_min_devices(4, 3).unwrap_err().to_string();
        assert!(error.contains("3 devices have keys"), "{error}");
        assert_eq!(check_min_devices(3, 3), Ok(()));
        let settings = PresenceSettings {
            away_after: Some(Duration::from_secs(120)),
            give_up_after: Some(Duration::from_secs(60)),
            ..PresenceSettings::default()
        };
        let error = PresenceRule::new(settings, HALF, Duration::from_secs(30));
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("`--away-after 2m` is longer than `--give-up-after 1m`"),
            "{error}"
        );
    }
}
