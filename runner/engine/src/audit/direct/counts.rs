//! Does each device of a cohort count once, whoever adds it up? Two runs of one seed have the same
//! noise. In one of them all devices send an update along a coordinate of their own, in the other
//! none: the difference at each coordinate is what the source has made of one device.

use crate::audit::canaries::{Canary, Sends};
use crate::audit::check::Check;
use crate::audit::target::{Joining, Observation, Target, TargetError};

/// Seeds of these runs begin here.
const SEEDS: u64 = 9 << 40;
/// Devices that are tested, the first ones.
const DEVICES: u32 = 4096;

/// How often each device counts.
///
/// # Errors
/// [`TargetError`] if a round breaks down.
pub fn check(target: &Target<'_>, seed: u64) -> Result<Check, TargetError> {
    // In later rounds an adaptive clip norm would be another one.
    let first_round = target.summed().shortened(1);
    let devices = target.device_count().min(DEVICES);
    let run = |sends: Sends| {
        let canary = |device: u32| Canary {
            devices: device..device + 1,
            support: device as usize..device as usize + 1,
            sends,
            is_clipped: true,
        };
        let canaries = (0..devices).map(canary).collect();
        let mut values = Vec::new();
        let see = |seen: &Observation<'_>| values.clone_from(&seen.values);
        let (seed, joins) = (seed.wrapping_add(SEEDS), Joining::Always);
        first_round.observe(seed, devices as usize, canaries, joins, see)?;
        Ok::<Vec<f64>, TargetError>(values)
    };
    let (with, without) = (run(Sends::Update)?, run(Sends::Zero)?);
    let (mut worst, mut words, mut others) = (0.0_f64, "none".to_owned(), 0);
    for (device, (a, b)) in with.iter().zip(&without).enumerate() {
        let count = a - b;
        // Two steps of the grid, and averages that are rounded to `f32`.
        let rounding = f64::from(f32::EPSILON) * (a.abs() + b.abs());
        let excess = (count - 1.0).abs() - 2.0 / target.steps_per_clip_norm() - rounding - 1e-5;
        others += usize::from(excess > 0.0);
        if device == 0 || excess > worst {
            (worst, words) = (excess, format!("device {device} {count:.5} times"));
        }
    }
    Ok(Check {
        test: "how often a device counts",
        is_as_claimed: others == 0 && with.len() == devices as usize,
        evidence: format!("{others} of {devices} devices not once; worst: {words}"),
    })
}
