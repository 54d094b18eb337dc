//! Waiting for devices: no round is drawn or charged while too few of them are connected.
//!
//! # Privacy
//! Whether a round begins is public, so it must depend on nothing that ε does not cover. The rule
//! reads [`Presence`] alone: which devices have a key, and a connection or had one a short time
//! ago. It does not read the coins of a cohort, updates, the reasons for which they are missing, or
//! quarantine, which follows from having been drawn. A pause after rounds without updates would say
//! that those who were drawn were away. A cohort of connected devices would say the same. So the
//! next cohort is drawn from all devices of the federation, with or without a key, with the
//! sampling of the statement, and the sum is divided by the same denominator. An operator decides
//! which keys are revoked, and must not decide it by who was drawn.
//!
//! Given when devices are connected, the rounds that take place are therefore those of a plan that
//! is fixed in advance, and the accounting of that plan holds. The statement names the rest. It
//! does not cover when rounds begin or when devices are connected, and assumes that connections
//! depend neither on data nor on who was drawn.
//!
//! Transports keep to that as far as they can. A dead connection is noticed as late for devices
//! that were drawn as for others (`transport::tcp`). Two short interruptions remain: the
//! coordinator closes the connection of a device that does not read what it is sent, and a device
//! without any message for ten minutes connects again. Such a device is back within seconds, and
//! counts as present for `--away-after`.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use super::registry::Registry;
use super::service::Service;
use crate::stopping::Stopping;

/// How long the run waits without any device before it ends, by default: longer than a router or a
/// broker takes to restart, and short enough to be noticed on the same day.
pub const DEFAULT_GIVE_UP_AFTER: Duration = Duration::from_secs(3600);

/// How often the coordinator looks, though nothing happens.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// How long it waits after a change for others: when a fleet comes back, thousands come at a time.
const GATHER: Duration = Duration::from_millis(20);

/// Pauses up to this length are not reported: a fleet that has just been started connects.
const UNREPORTED: Duration = Duration::from_secs(1);

/// What an operator has chosen; `None` is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceSettings {
    /// Devices without which no round begins; half of the devices with keys of an expected cohort.
    pub min_devices: Option<u32>,
    /// How long a device counts as present after its connection was lost; the time-out of a round.
    pub away_after: Option<Duration>,
    /// How long the run waits without any device; [`DEFAULT_GIVE_UP_AFTER`].
    pub give_up_after: Option<Duration>,
}

/// Settings that contradict each other or the keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PresenceError {
    /// More devices than there are.
    #[error(
        "`--min-devices {min_devices}`: {keys} devices have keys, so that no round would ever begin"
    )]
    TooMany {
        /// What was asked for.
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
        /// How long a device counts as present.
        away_after: Duration,
        /// How long the run waits.
        give_up_after: Duration,
    },
}

/// No device was connected for too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no device has been connected for {}, and no round was charged meanwhile; `--give-up-after` is \
     how long the run waits",
    humantime::format_duration(*.0)
)]
pub struct NobodyConnected(Duration);

/// How many devices of a federation are drawn in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedCohort {
    /// The expected number of devices that are drawn.
    pub size: f64,
    /// All devices from which they are drawn, at least 1.
    pub device_count: u32,
}

/// When a round may begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PresenceRule {
    min_devices: Option<u32>,
    cohort: ExpectedCohort,
    away_after: Duration,
    give_up_after: Duration,
}

/// Who is connected at one time, of the real devices of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// Devices with keys: those whose key was revoked cannot come.
    pub devices: u32,
    /// Those with a session on an open connection.
    pub connected: u32,
    /// These, and those whose connection was lost a short time ago.
    pub present: u32,
}

/// Checks the number of devices that an operator asks for, of a fleet with this number of keys.
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
    /// The rule for a federation with these cohorts, whose rounds take up to `timeout`.
    ///
    /// # Errors
    /// [`PresenceError::Contradiction`].
    pub fn new(
        settings: PresenceSettings,
        cohort: ExpectedCohort,
        timeout: Duration,
    ) -> Result<Self, PresenceError> {
        let give_up_after = settings.give_up_after.unwrap_or(DEFAULT_GIVE_UP_AFTER);
        // A device that sleeps is waited for in a round for as long. With more than that, rounds
        // would go on without a device that no round waits for any more.
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

    /// Devices without which no round begins, if this number of real devices have keys: keys may be
    /// revoked while the run goes on.
    fn needed(&self, devices: u32) -> u32 {
        let ExpectedCohort { size, device_count } = self.cohort;
        // Their part of an expected cohort. The product comes first: it is exact.
        let expected = size * f64::from(devices) / f64::from(device_count.max(1));
        let half = (expected / 2.0).ceil().max(1.0) as u32;
        self.min_devices.unwrap_or(half).min(devices)
    }

    /// Who of the real devices of the run is connected now.
    pub(super) fn presence(
        &self,
        registry: &Registry,
        members: &BTreeSet<u32>,
        now: Duration,
    ) -> Presence {
        let mut presence = Presence::default();
        registry.for_each(|device, peer| {
            // One that was added since the run began is not drawn in it.
            if members.contains(&device) {
                presence.devices += 1;
                presence.connected += u32::from(peer.is_reachable());
                presence.present += u32::from(peer.is_present(now, self.away_after));
            }
        });
        presence
    }

    /// Whether a round may begin.
    pub(super) fn is_met(&self, presence: Presence) -> bool {
        presence.connected > 0 && presence.present >= self.needed(presence.devices)
    }

    /// Waits until a round may begin, or the run is to stop; whether it had to wait. `look` takes
    /// over keys that were changed meanwhile, and says who is connected.
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
            "the run pauses: {connected} of {devices} devices are connected, and {present} were \
             within {recently}; no round begins, and no epsilon is spent, until there are {needed}"
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
        "the run goes on after a pause of {seconds} s: {connected} of {devices} devices are \
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

    /// The others of a cohort are simulated, or have no key any more.
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
