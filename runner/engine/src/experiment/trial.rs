//! A trial of a private selection: the run is the best of a random number of runs with different
//! settings and noise, by a score that each of them releases (Papernot, Steinke 2022,
//! arXiv:2110.03620). The sweep draws the trials and keeps only the best.
//!
//! **The score.** After the last round each device evaluates the shared model on its validation
//! samples, and sends `2 a - 1` for its accuracy a, a number from -1 to 1. One device moves the sum
//! by at most 1 under add-remove, where `2 a` would move it by 2, and by at most 2 if its data are
//! replaced. A device without such samples sends 0, like an absent one. The numbers take the
//! release path of updates: quantised on a grid of bound 1, checked in integers, summed exactly,
//! and covered by the server's exact discrete Gaussian from its own stream. All devices send one,
//! so no sampling amplifies it.
//!
//! **The charge.** The score is one more release of a trial, charged with its last round. The
//! trial's events, including the score, are the base mechanism of the theorems. The ε that is
//! calibrated, checked before each round and stated is the ε of the selection ([`PrivacyPlan`]). A
//! candidate is drawn independently of the data and all candidates have the same events, so their
//! mixture has the divergence of each.
//!
//! [`PrivacyPlan`]: smolfed_release::plan::PrivacyPlan

use smolfed_accounting::event::{Mechanism, Sampling};
use smolfed_accounting::params::NoiseMultiplier;
use smolfed_accounting::selection::Trials;
use smolfed_core::model::ModelError;
use smolfed_core::quantize::DEFAULT_BITS;
use smolfed_core::stream::Root;
use smolfed_core::train::TrainReport;

use super::scaling::noise;
use crate::check::{ExperimentError, contradiction, out_of_range, refuse};
use crate::config::Config;
use crate::evaluation::samples::evaluate;
use crate::tables::privacy::{SelectionConfig, TrialSeed, TrialsName};
use crate::tables::simulation::ArithmeticName;
use crate::task::Task;
use smolfed_data::dataset::DeviceBuffer;
use smolfed_data::federation::Federation;
use smolfed_release::number::lower;
use smolfed_release::plan::{NoiseAmount, PrivacyKeys, SideReleases, release_of_all};
use smolfed_release::sum::ReleaseAt;
use smolfed_release::{self, Channel, PrivateSum, ReleaseSettings, Uploads};

/// Key of the score's noise.
const SCORE_NOISE: &str = "privacy.selection.score_noise_multiplier";
/// Expected numbers of trials for which the drawn law matches the theorems, by the argument of
/// [`Trials::draw`]. Below them, there is nothing to choose from.
const MEANS: std::ops::RangeInclusive<f64> = 2.0..=100.0;
/// Values of η for which it matches.
const SHAPES: std::ops::RangeInclusive<f64> = 0.0..=10.0;

/// The release of a trial's score, and the number of trials.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Distribution of the number of trials.
    pub trials: Trials,
    /// One-time cost of the score.
    pub side: SideReleases,
    seeded: bool,
    release: ReleaseSettings,
}

impl Trial {
    /// Creates the trial if the configuration is a private selection. Returns `None` for others.
    ///
    /// # Errors
    /// [`ExperimentError`] for an invalid key, and for unsupported settings of a private selection.
    pub(super) fn new(
        config: &Config,
        federation: &Federation,
        keys: &PrivacyKeys,
        sampling: Sampling,
    ) -> Result<Option<Self>, ExperimentError> {
        let Some(selection) = &config.privacy.selection else {
            return Ok(None);
        };
        let trials = trials(selection)?;
        can_be_scored(keys.noise, federation)?;
        let Some(seed) = selection.seed else {
            return Err(ExperimentError::Missing {
                key: "privacy.selection.seed",
                purpose: "a trial is drawn by `smolfed sweep` with `sweep.choose` = \"private\"",
            });
        };
        // The statement says where the trial came from.
        if selection.seeded != matches!(seed, TrialSeed::Known(_)) {
            return Err(contradiction(
                "privacy.selection.seeded",
                "privacy.selection.seed",
                "the seed of a trial is a number with `seeded = true`, and \"secret\" without",
            ));
        }
        let value = selection.score_noise_multiplier;
        let multiplier = NoiseMultiplier::new(value).map_err(refuse(SCORE_NOISE, value))?;
        let Some(sampler) = noise(SCORE_NOISE, multiplier)? else {
            return Err(out_of_range(SCORE_NOISE, value, "above 0"));
        };
        let mechanism = Mechanism::Score {
            noise_multiplier: multiplier,
            grid_bits: DEFAULT_BITS as u8,
        };
        let (devices, trust) = (federation.device_count(), keys.trust);
        let event = release_of_all(mechanism, devices, sampling, trust, keys.devices_per_user)?;
        let release = ReleaseSettings::once(Channel::Score, event, Some(sampler));
        Ok(release.map(|release| Self {
            trials,
            side: SideReleases::once(event, config.rounds.saturating_sub(1)),
            seeded: selection.seeded,
            release,
        }))
    }

    /// Returns the notes of the privacy statement, for an experiment with this seed.
    pub(super) fn notes(&self, seed: u64) -> [String; 2] {
        let theorem = self.trials.theorem();
        let (mean, score) = (self.trials.mean(), &self.side.event.mechanism);
        let covered = format!(
            "If this run was written by a private sweep, it is the best of a random number of \
             trials, {mean:.1} on average, by a score that each of them releases with noise of {} \
             times the largest contribution of a device. Epsilon covers the whole selection, \
             including the score (Papernot, Steinke 2022, Theorem {theorem}), and holds as long as \
             the number of trials, the time they took and the other trials stay secret. A run with \
             a seed or settings from elsewhere was not selected, and epsilon does not cover how \
             they were chosen.",
            lower(score.noise_multiplier().get(), 5)
        );
        let drawn = match self.seeded {
            true => format!(
                "A private sweep draws the trials of this simulation from the known seed {seed}: \
                 anyone who knows the seed can repeat all of them. The statement holds for trials \
                 that are drawn in secret."
            ),
            false => "A private sweep takes the number of trials, their settings and their \
                      randomness from the operating system, and keeps neither these nor the other \
                      trials."
                .to_owned(),
        };
        [covered, drawn]
    }

    /// Returns the noisy mean over devices of a model's accuracy on their validation samples. A
    /// device without any counts as one half.
    ///
    /// # Errors
    /// [`ModelError`] if the model does not fit the samples.
    pub(crate) fn score(
        &self,
        task: &Task,
        parameters: &[f32],
        federation: &Federation,
        root: &Root,
    ) -> Result<f64, ModelError> {
        let arithmetic = ArithmeticName::F32;
        let mut buffer = DeviceBuffer::default();
        let mut accuracies = Vec::with_capacity(federation.device_count() as usize);
        for device in 0..federation.device_count() {
            let own = federation.device_validation(device, &mut buffer);
            let found =
                own.map(|samples| evaluate(task, arithmetic, parameters, samples.into(), 1.0));
            let found = found.transpose()?.flatten();
            accuracies.push(found.and_then(|found| found.accuracy));
        }
        Ok(self.release(&accuracies, root))
    }

    /// Returns the release settings of the score, for audits.
    pub(crate) const fn release_mut(&mut self) -> &mut ReleaseSettings {
        &mut self.release
    }

    /// Returns the number of grid steps in the largest number that a device sends.
    pub(crate) fn steps_per_bound(&self) -> f64 {
        self.release.encoding.step().recip()
    }

    /// Returns the noisy mean of accuracies. A trial uses the stream of the noise once.
    pub(crate) fn release(&self, accuracies: &[Option<f64>], root: &Root) -> f64 {
        let at = ReleaseAt {
            number: 0,
            learning_rate: 1.0,
            cohort_size: accuracies.len(),
        };
        let released = self.sum(accuracies, root).release(&self.release, root, &at);
        let mean = released.over(accuracies.len() as f64);
        0.5 + 0.5 * mean.first().map_or(0.0, |mean| f64::from(*mean))
    }

    /// Returns the exact sum of the devices' numbers.
    fn sum(&self, accuracies: &[Option<f64>], root: &Root) -> PrivateSum {
        let mut uploads = Uploads::new(&self.release, root, 0, 1);
        for (device, accuracy) in (0..).zip(accuracies) {
            // Failed uploads count as zero, like updates.
            let _ = uploads.device(device, 1, |contribution| {
                let number = accuracy.map_or(0.0, |accuracy| 2.0 * accuracy - 1.0);
                contribution.update().fill(number as f32);
                Ok(TrainReport::default())
            });
        }
        uploads.into_sum()
    }
}

/// Returns the distribution of the number of trials.
fn trials(selection: &SelectionConfig) -> Result<Trials, ExperimentError> {
    const MEAN: &str = "privacy.selection.mean";
    let (mean, shape) = (selection.mean, selection.shape.unwrap_or(0.0));
    if !MEANS.contains(&mean) {
        return Err(out_of_range(MEAN, mean, "from 2 to 100"));
    }
    if !SHAPES.contains(&shape) {
        return Err(out_of_range(
            "privacy.selection.shape",
            shape,
            "from 0 to 10",
        ));
    }
    let trials = match selection.trials {
        TrialsName::NegativeBinomial => Trials::negative_binomial_of_mean(shape, mean),
        TrialsName::Poisson => Trials::poisson(mean),
    };
    trials.map_err(refuse(MEAN, mean))
}

/// Refuses a configuration without noise, and devices without validation samples.
fn can_be_scored(noise: NoiseAmount, federation: &Federation) -> Result<(), ExperimentError> {
    if noise.is_none() {
        return Err(ExperimentError::Missing {
            key: "privacy.epsilon",
            purpose: "a private selection needs trials with noise",
        });
    }
    let mut buffer = DeviceBuffer::default();
    let mut devices = 0..federation.device_count();
    let has_samples = devices.any(|device| {
        let own = federation.device_validation(device, &mut buffer);
        own.is_some_and(|samples| !samples.is_empty())
    });
    if !has_samples {
        return Err(ExperimentError::Missing {
            key: "data.device_validation",
            purpose: "devices score the model on their own validation samples, a share like 0.1 \
                      (with natural devices, of `data.validation`)",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
