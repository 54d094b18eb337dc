//! The private scale of features: its cost, and its one release before the first round.
//!
//! Every device sends its moments once, over the release path of updates: quantised on a grid of
//! bound 1, checked in integers, summed exactly, and covered with exact discrete Gaussian noise by
//! the server or by each device. The release is charged to the ledger with round 0, before anything
//! derived from it is written. A resumed run draws the same noise for the same sum, and is charged
//! once.

use smolfed_accounting::accountant::Accountant;
use smolfed_accounting::calibrate::CalibrationProblem;
use smolfed_accounting::event::{Mechanism, PrivacyEvent, Sampling};
use smolfed_accounting::params::{Delta, Epsilon, NoiseMultiplier};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::quantize::DEFAULT_BITS;
use smolfed_core::stream::Root;
use smolfed_core::train::TrainReport;

use crate::check::{ExperimentError, refuse};
use smolfed_data::federation::Federation;
use smolfed_data::scale::moments::ScaleNoise;
use smolfed_release::plan::{
    NoiseAmount, PlanError, PrivacyKeys, SideReleases, release_of_all, sampler,
};
use smolfed_release::sum::ReleaseAt;
use smolfed_release::{self, Channel, PrivateSum, ReleaseSettings, Released, Uploads};

/// Key of the noise.
const KEY: &str = "data.scale_noise_multiplier";
/// Default z of a private scale if the noise of updates is also given. Alone, it costs an ε of
/// about 0.4 at δ = 10⁻⁵.
const DEFAULT_MULTIPLIER: f64 = 10.0;

/// The release of the devices' moments.
#[derive(Clone, Debug)]
pub struct ScaleRelease {
    /// Its one-time cost.
    pub side: SideReleases,
    /// Number of values per device.
    pub length: usize,
    release: ReleaseSettings,
}

impl ScaleRelease {
    /// Creates the release for a federation with an open scale. Returns `None` for others.
    ///
    /// # Errors
    /// [`ExperimentError`] if no noise meets its share of the target, or the grid cannot carry it.
    pub(super) fn new(
        federation: &Federation,
        keys: &PrivacyKeys,
        sampling: Sampling,
    ) -> Result<Option<Self>, ExperimentError> {
        let Some(scale) = federation.private_scale() else {
            return Ok(None);
        };
        let moments = Mechanism::Moments {
            noise_multiplier: NoiseMultiplier::NONE,
            grid_bits: DEFAULT_BITS as u8,
        };
        let (devices, trust) = (federation.device_count(), keys.trust);
        let mut event = release_of_all(moments, devices, sampling, trust, keys.devices_per_user)?;
        let multiplier = multiplier(scale.noise, keys, event)?;
        event = event.with_noise_multiplier(multiplier);
        let noise = noise(KEY, multiplier)?;
        let release = ReleaseSettings::once(Channel::Moments, event, noise);
        Ok(release.map(|release| Self {
            side: SideReleases::once(event, 0),
            length: federation.moment_count(),
            release,
        }))
    }

    /// Returns the note of the privacy statement.
    pub(crate) fn note(&self) -> String {
        format!(
            "Features that are numbers are scaled by means and standard deviations that all \
             devices released together before the first round, from values clipped to the bounds \
             of the configuration, with a noise multiplier of {}: epsilon includes it.",
            smolfed_release::number::lower(self.side.event.mechanism.noise_multiplier().get(), 5)
        )
    }

    /// Returns the federation with the scale of its devices' moments, with the noise of `root`.
    pub(super) fn scaled(&self, federation: &Federation, root: &Root) -> Option<Federation> {
        federation.private_scale()?;
        let released = self.moments(federation, root);
        let devices = f64::from(federation.device_count());
        let noise_std = released.noise_std() / devices;
        Some(federation.scaled_by(&released.over(devices), noise_std))
    }

    /// Returns the noisy moments of all devices.
    fn moments(&self, federation: &Federation, root: &Root) -> Released {
        let devices: Vec<u32> = (0..federation.device_count()).collect();
        self.released(&devices, root, self.length, |device, moments| {
            federation.write_moments(device, moments);
        })
    }

    /// Releases the output of `write` for each of these devices, with noise: moments, or an audit's
    /// substitutes.
    pub(crate) fn released(
        &self,
        devices: &[u32],
        root: &Root,
        length: usize,
        write: impl Fn(u32, &mut [f32]),
    ) -> Released {
        let mut uploads = Uploads::new(&self.release, root, 0, length);
        for &device in devices {
            // Failed uploads count as zero, like updates. All devices have the same weight.
            let _ = uploads.device(device, 1, |contribution| {
                write(device, contribution.update());
                Ok(TrainReport::default())
            });
        }
        let sum: PrivateSum = uploads.into_sum();
        let at = ReleaseAt {
            number: 0,
            learning_rate: 1.0,
            cohort_size: devices.len(),
        };
        sum.release(&self.release, root, &at)
    }

    /// Returns the number of grid steps in the bound on a device's vector.
    pub(crate) fn steps_per_bound(&self) -> f64 {
        self.release.encoding.step().recip()
    }

    /// Returns the release settings, for an audit to inject its faults.
    pub(crate) const fn release_mut(&mut self) -> &mut ReleaseSettings {
        &mut self.release
    }
}

/// Returns z of the moments.
fn multiplier(
    noise: ScaleNoise,
    keys: &PrivacyKeys,
    event: PrivacyEvent,
) -> Result<NoiseMultiplier, ExperimentError> {
    let given = |value: f64| NoiseMultiplier::new(value).map_err(refuse(KEY, value));
    match (noise, keys.noise) {
        (ScaleNoise::Multiplier(value), _) => given(value),
        (ScaleNoise::Share(share), NoiseAmount::Target(target)) => {
            of_share(share, target, keys.delta, event)
        }
        (ScaleNoise::Share(_), NoiseAmount::Multiplier(updates)) => match updates.get() > 0.0 {
            true => given(DEFAULT_MULTIPLIER),
            // Without a promise there is no need for noise.
            false => Ok(NoiseMultiplier::NONE),
        },
    }
}

/// Returns z of moments that alone cost this share of the target.
fn of_share(
    share: f64,
    target: Epsilon,
    delta: Delta,
    event: PrivacyEvent,
) -> Result<NoiseMultiplier, ExperimentError> {
    if target.get().is_infinite() {
        return Ok(NoiseMultiplier::NONE);
    }
    let epsilon = share * target.get();
    let problem = CalibrationProblem {
        accountant: Accountant::tightest_for(&[event]),
        event,
        spent: &[],
        target: Epsilon::new(epsilon).map_err(refuse("data.scale_share", share))?,
        delta,
    };
    let found = problem.noise_multiplier();
    let found = found.map_err(|reason| PlanError::Calibration { epsilon, reason })?;
    Ok(found.value)
}

/// Returns the sampler of the noise on the grid 2^-b, or none for z = 0. `key` is the key of z.
pub(super) fn noise(
    key: &'static str,
    multiplier: NoiseMultiplier,
) -> Result<Option<DiscreteGaussian>, ExperimentError> {
    let value = multiplier.get();
    if value <= 0.0 {
        return Ok(None);
    }
    let steps = value * f64::from(DEFAULT_BITS).exp2();
    Ok(Some(sampler(key, value, steps)?.0))
}

#[cfg(test)]
mod tests;
