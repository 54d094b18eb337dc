//! Waiting for devices: no round is drawn or charged while too few of them are connected.
//!
//! # Privacy
//! Whether a round begins is public, so it must depend on nothing that ε does not cover. The rule
//! reads [`Presence`] alone: which devices have a connection, or had one a short time ago. It does
//! not read the coins of a cohort, updates, the reasons for which they are missing, or quarantine,
//! which follows from having been drawn. A pause after rounds without updates would say that those
//! who were drawn were away. A cohort of connected devices would say the same. So the next cohort
//! is drawn from all devices with keys, with the sampling of the statement, and the sum is divided
//! by the same denominator.
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
    /// Devices without which no round begins; half of the real devices of an expected cohort.
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

/// When a round may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresenceRule {
    min_devices: u32,
    away_after: Duration,
    give_up_after: Duration,
}

/// Who is connected at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// Devices with keys.
    pub devices: u32,
    /// Those with a session on an open connection.
    pub connected: u32,
    /// These, and those whose connection was lost a short time ago.
    pub present: u32,
}

impl PresenceRule {
    /// The rule for a fleet of `keys` real devices, of which an expected cohort has `expected`, and
    /// whose rounds take up to `timeout`.
    ///
    /// # Errors
    /// [`PresenceError`].
    pub fn new(
        settings: PresenceSettings,
        keys: u32,
        expected: f64,
        timeout: Duration,
    ) -> Result<Self, PresenceError> {
        // At most the number of keys, which is a u32.
        let half = (expected / 2.0).ceil().max(1.0) as u32;
        let min_devices = settings.min_devices.unwrap_or(half.min(keys));
        if min_devices > keys {
            return Err(PresenceError::TooMany { min_devices, keys });
        }
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
            min_devices,
            away_after,
            give_up_after,
        })
    }

    /// Devices without which no round begins.
    #[must_use]
    pub const fn min_devices(&self) -> u32 {
        self.min_devices
    }

    /// Who is connected now.
    pub(super) fn presence(&self, registry: &Registry, now: Duration) -> Presence {
        let mut presence = Presence::default();
        registry.for_each(|_, peer| {
            presence.devices += 1;
            presence.connected += u32::from(peer.is_reachable());
            presence.present += u32::from(peer.is_present(now, self.away_after));
        });
        presence
    }

    /// Whether a round may begin. Keys may have been revoked since the run began.
    pub(super) fn is_met(&self, presence: Presence) -> bool {
        let needed = self.min_devices.min(presence.devices);
        presence.connected > 0 && presence.present >= needed
    }

    /// Waits until a round may begin, or the run is to stop; whether it had to wait. `take_over`
    /// takes over keys that were changed meanwhile.
    pub(super) fn wait(
        &self,
        service: &Service,
        stopping: &Stopping,
        take_over: &mut dyn FnMut(),
    ) -> Result<bool, NobodyConnected> {
        let began = Instant::now();
        let (mut last_connected, mut has_waited, mut is_reported) = (began, false, false);
        loop {
            take_over();
            let presence = self.presence(service.registry(), service.now());
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
            self.min_devices,
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

    #[test]
    fn by_default_half_of_the_expected_cohort_is_needed() {
        let rule = |settings, expected| {
            PresenceRule::new(settings, 20, expected, Duration::from_secs(30)).unwrap()
        };
        let none = PresenceSettings::default();
        for (expected, needed) in [(20.0, 10), (5.0, 3), (0.3, 1), (60.0, 20)] {
            assert_eq!(rule(none, expected).min_devices, needed, "{expected}");
        }
        assert_eq!(rule(none, 1.0).away_after, Duration::from_secs(30));
        let settings = PresenceSettings {
            min_devices: Some(20),
            give_up_after: Some(Duration::from_secs(10)),
            ..none
        };
        let rule = rule(settings, 1.0);
        assert_eq!((rule.min_devices, rule.away_after.as_secs()), (20, 10));
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let new = |settings| PresenceRule::new(settings, 3, 3.0, Duration::from_secs(30));
        let settings = PresenceSettings {
            min_devices: Some(4),
            ..PresenceSettings::default()
        };
        let error = new(settings).unwrap_err().to_string();
        assert!(error.contains("3 devices have keys"), "{error}");
        let settings = PresenceSettings {
            away_after: Some(Duration::from_secs(120)),
            give_up_after: Some(Duration::from_secs(60)),
            ..PresenceSettings::default()
        };
        let error = new(settings).unwrap_err().to_string();
        assert!(
            error.contains("`--away-after 2m` is longer than `--give-up-after 1m`"),
            "{error}"
        );
    }
}
