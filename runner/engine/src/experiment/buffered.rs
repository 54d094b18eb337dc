//! The keys of rounds that are time windows (asynchronous, buffered rounds): staleness and length
//! of a window, with their defaults and limits.
//!
//! A device's ledger keeps the versions that it trains from at least b + s apart, and an update of
//! version v counts in a window from v to v + s, or in none. So the windows in which a device
//! counts are at least b apart: r2 - r1 >= v2 - (v1 + s) >= b. Of n windows it counts in at most
//! ceil(n / (b + s)), whatever its limit k. Correlated noise is planned for that, and independent
//! noise costs as many compositions: there is no claim about arrival times.

use smolfed_accounting::Sampling;
use smolfed_accounting::correlated::Participation;
use smolfed_core::stream::Root;

use crate::attendance::Attendance;
use crate::attendance::buffered::{Buffered, Windows};
use crate::check::{ExperimentError, of_participation, out_of_range, refuse};
use crate::config::Config;
use crate::tables::CohortSampling;
use crate::tables::time_span::TimeSpan;

/// Default s.
const DEFAULT_STALENESS: u32 = 2;
/// Maximum s. The server keeps s models in memory and in each checkpoint.
const MAX_STALENESS: u32 = 64;
/// Default length of a window in a simulation.
const DEFAULT_WINDOW: TimeSpan = TimeSpan::from_secs(3_600);

/// Returns s, or `None` without windows.
///
/// # Errors
/// [`ExperimentError::Range`] for too large a number.
pub(super) fn staleness(config: &Config) -> Result<Option<u32>, ExperimentError> {
    if config.cohort.sampling != CohortSampling::Buffered {
        return Ok(None);
    }
    let staleness = config.cohort.staleness.unwrap_or(DEFAULT_STALENESS);
    if staleness > MAX_STALENESS {
        let expected = format!("at most {MAX_STALENESS}");
        return Err(out_of_range(
            "cohort.staleness",
            staleness.into(),
            &expected,
        ));
    }
    Ok(Some(staleness))
}

/// Returns the bound on the windows of a device under independent noise, or `None` without windows.
///
/// # Errors
/// [`ExperimentError`] for the first invalid key.
pub(super) fn participation(config: &Config) -> Result<Option<Participation>, ExperimentError> {
    let separation = config.privacy.separation.unwrap_or(1);
    let Some(distance) = distance(config, separation)? else {
        return Ok(None);
    };
    let participations = cut(config, distance);
    let allowed = Participation::new(config.rounds, separation, participations);
    allowed.map(Some).map_err(of_participation(config.rounds))
}

/// Returns the least number of windows between two versions that a device takes, if the run has
/// windows.
///
/// # Errors
/// As [`staleness`].
pub(super) fn distance(config: &Config, separation: u32) -> Result<Option<u32>, ExperimentError> {
    let staleness = staleness(config)?;
    Ok(staleness.map(|staleness| separation.saturating_add(staleness).max(1)))
}

/// Returns k, limited to the largest possible number of participations.
pub(super) fn cut(config: &Config, distance: u32) -> u32 {
    let possible = config.rounds.div_ceil(distance);
    let asked = config.privacy.participations.unwrap_or(u32::MAX);
    asked.min(possible)
}

/// Returns the accounting of windows under independent noise, and the attendance.
///
/// # Errors
/// [`ExperimentError`] for the first invalid key of `[cohort]`.
pub(super) fn cohorts(
    config: &Config,
    allowed: Participation,
    devices: u32,
) -> Result<(Sampling, Attendance), ExperimentError> {
    let sampling = Sampling::unsampled(devices, allowed.participations());
    let sampling = sampling.map_err(refuse("data.devices", devices))?;
    Ok((sampling, attendance(config, allowed, devices)?))
}

/// Returns simulated devices that wake according to `[cohort.availability]`.
///
/// # Errors
/// [`ExperimentError`] for the first invalid key of `[cohort]`.
pub(super) fn attendance(
    config: &Config,
    allowed: Participation,
    devices: u32,
) -> Result<Attendance, ExperimentError> {
    let cohort = &config.cohort;
    let Some(cohort_size) = cohort.cohort_size else {
        return Err(ExperimentError::Missing {
            key: "cohort.cohort_size",
            purpose: "the number of devices that get the model in a window, and the divisor of its \
                      sum",
        });
    };
    if !(1..=devices).contains(&cohort_size) {
        let expected = format!("from 1 to the number of devices, {devices}");
        return Err(out_of_range(
            "cohort.cohort_size",
            cohort_size.into(),
            &expected,
        ));
    }
    let availability = cohort.availability.clone().unwrap_or_default();
    if availability.awake.duration() > availability.period.duration() {
        return Err(ExperimentError::Range {
            key: "cohort.availability.awake",
            value: format!("\"{}\"", availability.awake),
            expected: format!("at most the period, \"{}\"", availability.period),
        });
    }
    let rule = Windows {
        length: cohort.window.unwrap_or(DEFAULT_WINDOW).millis(),
        staleness: staleness(config)?.unwrap_or(DEFAULT_STALENESS),
        cohort_size,
        allowed,
    };
    let root = Root::from_seed(config.seed);
    let buffered = Buffered::new(devices, availability, rule, root);
    Ok(Attendance::Buffered(buffered.into()))
}
