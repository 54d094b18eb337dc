//! The keys of an experiment whose values can be checked by themselves: each is parsed here, once,
//! into the type that is used.

use std::num::NonZeroU32;

use smolfed_accounting::{ClipNorm, Epsilon, NoiseMultiplier, Sampling, TrustModel};
use smolfed_core::params::{ClipNorm as CoreClipNorm, LearningRate, Penalty};
use smolfed_core::quantize::{BITS, Grid};
use smolfed_core::smooth::{LaplacianSmoothing, NarrowSmoothing};
use smolfed_core::train::{Clipping, LocalTraining};

use super::cohort::sampling;
use crate::config::Config;
use crate::config::check::{
    ExperimentError, at_least_one, contradiction, number, out_of_range, refuse,
};
use crate::config::privacy::PrivacyConfig;
use crate::config::train::ClipTime;
use crate::privacy::plan::{NoiseAmount, PrivacyKeys};
use crate::release::Encoding;
use crate::server::keys::ServerKeys;

/// The parsed keys.
pub(super) struct Keys {
    /// How cohorts are drawn and accounted.
    pub sampling: Sampling,
    /// How updates become integers.
    pub encoding: Encoding,
    /// Local training in the first round.
    pub training: LocalTraining,
    /// Factor on the learning rate from one round to the next.
    pub learning_rate_decay: f64,
    /// Of `[server]`.
    pub server: ServerKeys,
    /// Of `[privacy]`.
    pub privacy: PrivacyKeys,
}

impl Keys {
    /// Parses the keys for a federation of so many devices.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn parse(config: &Config, device_count: u32) -> Result<Self, ExperimentError> {
        names_a_directory(&config.name)?;
        let sampling = sampling(&config.cohort, device_count)?;
        let encoding = encoding(&config.privacy)?;
        let (train, server) = (&config.train, &config.server);
        at_least_one("rounds", config.rounds)?;
        at_least_one("cohort.weight_cap", config.cohort.weight_cap.unwrap_or(1))?;
        at_least_one("train.epochs", train.epochs)?;
        let batch_size = NonZeroU32::new(train.batch_size)
            .ok_or_else(|| out_of_range("train.batch_size", 0.0, "at least 1"))?;
        let smoothing = train.gradient_smoothing;
        let gradient_smoothing = NarrowSmoothing::new(smoothing as f32)
            .map_err(|_| out_of_range("train.gradient_smoothing", smoothing, "from 0 to 256"))?;
        let decay = train.learning_rate_decay;
        if !(decay > 0.0 && decay <= 1.0) {
            let expected = "above 0 and at most 1";
            return Err(out_of_range("train.learning_rate_decay", decay, expected));
        }
        let rate = number(
            "train.learning_rate",
            train.learning_rate,
            LearningRate::new,
        )?;
        let training = LocalTraining {
            epochs: train.epochs,
            batch_size,
            learning_rate: rate,
            weight_decay: number("train.weight_decay", train.weight_decay, Penalty::new)?,
            proximal: number("train.proximal", train.proximal, Penalty::new)?,
            clip_norm: encoding.grid().map(|grid| grid.clip_norm()),
            clipping: match train.clip {
                ClipTime::EveryStep => Clipping::EveryStep,
                ClipTime::Final => Clipping::Final,
            },
            gradient_smoothing: (smoothing > 0.0).then_some(gradient_smoothing),
        };
        let factor = server.smoothing_factor;
        let wanted = "a finite number, 0 or more";
        let smoothing = LaplacianSmoothing::new(factor as f32)
            .map_err(|_| out_of_range("server.smoothing_factor", factor, wanted))?;
        let rate = number(
            "server.learning_rate",
            server.learning_rate,
            LearningRate::new,
        )?;
        Ok(Self {
            sampling,
            encoding,
            training,
            learning_rate_decay: decay,
            server: ServerKeys {
                learning_rate: rate,
                // 0 is none.
                smoothing: (factor > 0.0).then_some(smoothing),
            },
            privacy: privacy(&config.privacy, device_count)?,
        })
    }
}

/// How updates become integers: on the grid of their clip norm, if there is one.
fn encoding(privacy: &PrivacyConfig) -> Result<Encoding, ExperimentError> {
    let Some(value) = privacy.clip_norm else {
        return Ok(Encoding::Unbounded);
    };
    let clip_norm = number("privacy.clip_norm", value, CoreClipNorm::new)?;
    match Grid::new(clip_norm, privacy.grid_bits) {
        Ok(grid) => Ok(Encoding::Clipped(grid)),
        Err(_) => Err(ExperimentError::Range {
            key: "privacy.grid_bits",
            value: privacy.grid_bits.to_string(),
            expected: format!("from {} to {}", BITS.start(), BITS.end()),
        }),
    }
}

fn privacy(privacy: &PrivacyConfig, device_count: u32) -> Result<PrivacyKeys, ExperimentError> {
    let trust = trust(privacy)?;
    let (clip_norm, noise) = noise(privacy)?;
    let delta = privacy.delta.resolve(device_count);
    let max_epsilon = match privacy.max_epsilon {
        None => None,
        Some(value) => Some(Epsilon::new(value).map_err(refuse("privacy.max_epsilon", value))?),
    };
    Ok(PrivacyKeys {
        delta: delta.map_err(refuse("privacy.delta", privacy.delta))?,
        accountant: privacy.accountant,
        trust,
        clip_norm,
        max_epsilon,
        noise,
        devices_per_user: privacy.devices_per_user.unwrap_or(1),
    })
}

/// Who adds the noise. Runs have no distributed noise.
fn trust(privacy: &PrivacyConfig) -> Result<TrustModel, ExperimentError> {
    match privacy.trust {
        trust @ (TrustModel::Central | TrustModel::Local) => Ok(trust),
        TrustModel::Distributed { .. } => Err(ExperimentError::Range {
            key: "privacy.trust",
            value: "\"distributed\"".to_owned(),
            expected: "\"central\" or \"local\"".to_owned(),
        }),
    }
}

/// The clip norm, and how much noise there is, from whichever key says so.
fn noise(privacy: &PrivacyConfig) -> Result<(Option<ClipNorm>, NoiseAmount), ExperimentError> {
    let clip_norm = match privacy.clip_norm {
        None => None,
        Some(value) => Some(ClipNorm::new(value).map_err(refuse("privacy.clip_norm", value))?),
    };
    let twice = |first, second| {
        let advice = "set the noise with one of them only";
        Err(contradiction(first, second, advice))
    };
    let multiplier = match (privacy.epsilon, privacy.noise_multiplier, privacy.noise_std) {
        (None, None, None) => NoiseMultiplier::NONE,
        (Some(value), None, None) => {
            if privacy.max_epsilon.is_some() {
                return Err(contradiction(
                    "privacy.epsilon",
                    "privacy.max_epsilon",
                    "a target is also the limit",
                ));
            }
            let target = Epsilon::new(value).map_err(refuse("privacy.epsilon", value))?;
            return Ok((clip_norm, NoiseAmount::Target(target)));
        }
        (None, Some(value), None) => {
            NoiseMultiplier::new(value).map_err(refuse("privacy.noise_multiplier", value))?
        }
        (None, None, Some(value)) => {
            let clip_norm = clip_norm.ok_or(NoiseAmount::NO_CLIP_NORM)?;
            NoiseMultiplier::from_noise_std(value, clip_norm)
                .map_err(refuse("privacy.noise_std", value))?
        }
        (Some(_), Some(_), _) => return twice("privacy.epsilon", "privacy.noise_multiplier"),
        (Some(_), None, Some(_)) => return twice("privacy.epsilon", "privacy.noise_std"),
        (None, Some(_), Some(_)) => return twice("privacy.noise_multiplier", "privacy.noise_std"),
    };
    Ok((clip_norm, NoiseAmount::Multiplier(multiplier)))
}

/// The name becomes a part of the run directory's: it must not lead elsewhere.
fn names_a_directory(name: &str) -> Result<(), ExperimentError> {
    /// Leaves room for the time below the 255 bytes of common file systems.
    const MAX_BYTES: usize = 100;
    let is_plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
    if name.is_empty()
        || name.len() > MAX_BYTES
        || name.starts_with(['.', ' '])
        || !name.chars().all(is_plain)
    {
        return Err(ExperimentError::Range {
            key: "name",
            value: format!("{name:?}"),
            expected: format!(
                "1 to {MAX_BYTES} bytes of letters, digits, `-`, `_`, `.` and spaces, and must not \
                 begin with `.` or a space"
            ),
        });
    }
    Ok(())
}
