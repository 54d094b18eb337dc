//! Does each device of a cohort count once, whoever computes the sum? Two runs of one seed have the
//! same noise. In one of them, each device sends an update along a separate coordinate. In the
//! other one, none does. The difference at each coordinate is the source's weight of one device.

use crate::audit::canaries::{Canary, Sends};
use crate::audit::check::Check;
use crate::audit::target::{Joining, Observation, Target, TargetError};

/// First seed of these runs.
const SEEDS: u64 = 9 << 40;
/// Maximum number of tested devices, from device 0 on.
const DEVICES: u32 = 4096;

/// Minimum count of a device that counts once. In a fleet, later training steps may shorten its
/// update a little.
const LEAST: f64 = 0.9;

/// Checks how often each device counts.
///
/// # Errors
/// [`TargetError`] if a round breaks down.
pub fn check(target: &Target<'_>, seed: u64) -> Result<Check, TargetError> {
    // An adaptive clip norm would change in later rounds.
    let first_round = target.summed().shortened(1);
    let devices = devices(target);
    let run = |sends: Sends| {
        let canaries = canaries(devices, sends);
        let mut values = Vec::new();
        let see = |seen: &Observation<'_>| values.clone_from(&seen.values);
        let (seed, joins) = (seed.wrapping_add(SEEDS), Joining::Alone);
        // The last coordinate may be a bias, which not every canary of a fleet reaches.
        first_round.observe(seed, devices as usize + 1, canaries, joins, see)?;
        Ok::<Vec<f64>, TargetError>(values)
    };
    let (with, without) = (run(Sends::Update)?, run(Sends::Zero)?);
    let test = "how often a device counts";
    Ok(verdict(test, devices as usize, &with, &without))
}

/// Checks whether each device has made a difference of one at its coordinate.
#[must_use]
pub fn verdict(test: &'static str, devices: usize, with: &[f64], without: &[f64]) -> Check {
    let (mut worst, mut words, mut others) = (0.0_f64, "none".to_owned(), 0);
    let values = with.iter().zip(without).take(devices);
    for (device, (a, b)) in values.enumerate() {
        let count = a - b;
        // Averages are rounded to `f32`.
        let rounding = f64::from(f32::EPSILON) * (a.abs() + b.abs());
        let excess = (count - 1.0 - rounding - 1e-6).max(LEAST - count);
        others += usize::from(excess > 0.0);
        if device == 0 || excess > worst {
            (worst, words) = (excess, format!("device {device} {count:.5} times"));
        }
    }
    Check {
        test,
        is_as_claimed: others == 0 && with.len() > devices,
        evidence: format!("{others} of {devices} devices not once; worst: {words}"),
    }
}

/// Returns the number of tested devices, all in one cohort.
#[must_use]
pub fn devices(target: &Target<'_>) -> u32 {
    let experiment = target.experiment();
    // Helpers know the maximum cohort size.
    let most = match experiment.release.masking {
        Some(_) => experiment.attendance.largest_drawn() as u32,
        None => DEVICES,
    };
    target.device_count().min(DEVICES).min(most)
}

/// Returns one canary per device, each along a separate coordinate.
#[must_use]
pub fn canaries(devices: u32, sends: Sends) -> Vec<Canary> {
    let canary = |device: u32| Canary {
        devices: device..device + 1,
        support: device as usize..device as usize + 1,
        sends,
        is_clipped: true,
    };
    (0..devices).map(canary).collect()
}
