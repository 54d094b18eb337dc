//! The keys of an experiment whose values can be checked individually. Each is parsed here, once,
//! into its final type.

use std::num::NonZeroU32;

use smolfed_accounting::correlated::Participation;
use smolfed_accounting::{ClipNorm, Epsilon, NoiseMultiplier, Sampling, TrustModel};
use smolfed_core::params::{ClipNorm as CoreClipNorm, LearningRate, Penalty};
use smolfed_core::quantize::{BITS, Grid};
use smolfed_core::smooth::{LaplacianSmoothing, NarrowSmoothing};
use smolfed_core::train::{Clipping, LocalTraining};
use smolfed_core::wire::message::ModelGrid;

use super::buffered;
use super::cohort::sampling;
use super::correlated::Correlated;
use super::step::automatic;
use crate::attendance::Attendance;
use crate::check::{ExperimentError, at_least_one, number, out_of_range, refuse};
use crate::config::Config;
use crate::server::adaptive::AdaptiveClip;
use crate::server::keys::ServerKeys;
use crate::tables::privacy::{ClipNormSetting, PrivacyConfig};
use crate::tables::server::ServerConfig;
use crate::tables::train::{ClipTime, LearningRateSetting, TrainConfig};
use smolfed_data::federation::Federation;
use smolfed_release::Encoding;
use smolfed_release::plan::{BitNoise, NoiseAmount, PrivacyKeys};

/// The parsed keys.
pub(crate) struct Keys {
    /// The accounted sampling of cohorts.
    pub sampling: Sampling,
    /// The devices of a round.
    pub attendance: Attendance,
    /// Correlated noise, if configured.
    pub correlated: Option<Correlated>,
    /// The bound on the rounds of a device with independent noise, if there is one.
    pub window_bound: Option<Participation>,
    /// Conversion of updates to integers.
    pub encoding: Encoding,
    /// Local training in the first round.
    pub training: LocalTraining,
    /// Factor on the learning rate from one round to the next.
    pub learning_rate_decay: f64,
    /// Keys of `[server]`.
    pub server: ServerKeys,
    /// Keys of `[privacy]`.
    pub privacy: PrivacyKeys,
    /// Changes of the clip norm, if it is adaptive.
    pub adaptive: Option<AdaptiveClip>,
}

impl Keys {
    /// Parses the keys for a federation.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn parse(config: &Config, federation: &Federation) -> Result<Self, ExperimentError> {
        let device_count = federation.device_count();
        names_a_directory(&config.name)?;
        let correlated = Correlated::parse(config, device_count)?;
        let window_bound = match &correlated {
            Some(_) => None,
            None => buffered::participation(config)?,
        };
        let (sampling, attendance) = match (&correlated, window_bound) {
            (Some(correlated), _) => correlated.cohorts(config, device_count)?,
            (None, Some(allowed)) => buffered::cohorts(config, allowed, device_count)?,
            (None, None) => {
                let sampling = sampling(&config.cohort, device_count, None)?;
                (sampling, Attendance::Drawn(sampling))
            }
        };
        let adaptive = adaptive(config, sampling)?;
        let encoding = encoding(&config.privacy, adaptive.as_ref())?;
        at_least_one("rounds", config.rounds)?;
        at_least_one("cohort.weight_cap", config.cohort.weight_cap.unwrap_or(1))?;
        Ok(Self {
            sampling,
            attendance,
            encoding,
            training: training(&config.train, step(config, federation)?, encoding)?,
            learning_rate_decay: decay(&config.train)?,
            server: server(&config.server)?,
            privacy: PrivacyKeys {
                bit_noise: adaptive
                    .map(|_| bit_noise(&config.privacy, sampling))
                    .transpose()?,
                ..privacy(
                    &config.privacy,
                    adaptive.as_ref(),
                    correlated.as_ref(),
                    device_count,
                )?
            },
            adaptive,
            correlated,
            window_bound,
        })
    }

    /// Returns a note for readers of the statement if the requested number of participations is
    /// impossible.
    ///
    /// # Errors
    /// [`ExperimentError::Range`] for an invalid staleness.
    pub fn note(&self, config: &Config) -> Result<Option<String>, ExperimentError> {
        let of_strategy = self
            .correlated
            .as_ref()
            .map(|of| of.strategy.participation());
        let Some(allowed) = of_strategy.or(self.window_bound) else {
            return Ok(None);
        };
        let (k, n, b) = (
            allowed.participations(),
            allowed.rounds(),
            allowed.separation(),
        );
        let apart = buffered::distance(config, b)?.unwrap_or(b);
        let asked = config.privacy.participations.filter(|asked| *asked > k);
        Ok(asked.map(|asked| {
            format!(
                "`privacy.participations` is {asked}, but no more than {k} of {n} rounds are \
                 {apart} rounds apart: that many are counted."
            )
        }))
    }
}

/// Returns the step of local training in the first round.
fn step(config: &Config, federation: &Federation) -> Result<LearningRate, ExperimentError> {
    match config.train.learning_rate {
        LearningRateSetting::Fixed(rate) => number("train.learning_rate", rate, LearningRate::new),
        LearningRateSetting::Auto => automatic(&config.model, federation),
    }
}

/// Returns the settings of local training in the first round.
fn training(
    train: &TrainConfig,
    learning_rate: LearningRate,
    encoding: Encoding,
) -> Result<LocalTraining, ExperimentError> {
    at_least_one("train.epochs", train.epochs)?;
    let batch_size = NonZeroU32::new(train.batch_size)
        .ok_or_else(|| out_of_range("train.batch_size", 0.0, "at least 1"))?;
    let smoothing = train.gradient_smoothing;
    let gradient_smoothing = NarrowSmoothing::new(smoothing as f32)
        .map_err(|_| out_of_range("train.gradient_smoothing", smoothing, "from 0 to 256"))?;
    Ok(LocalTraining {
        epochs: train.epochs,
        batch_size,
        learning_rate,
        weight_decay: number("train.weight_decay", train.weight_decay, Penalty::new)?,
        proximal: number("train.proximal", train.proximal, Penalty::new)?,
        clip_norm: encoding.grid().map(|grid| grid.clip_norm()),
        clipping: match train.clip {
            ClipTime::EveryStep => Clipping::EveryStep,
            ClipTime::Final => Clipping::Final,
        },
        gradient_smoothing: (smoothing > 0.0).then_some(gradient_smoothing),
    })
}

/// Returns the factor on the learning rate from one round to the next.
fn decay(train: &TrainConfig) -> Result<f64, ExperimentError> {
    let decay = train.learning_rate_decay;
    match decay > 0.0 && decay <= 1.0 {
        true => Ok(decay),
        false => Err(out_of_range(
            "train.learning_rate_decay",
            decay,
            "above 0 and at most 1",
        )),
    }
}

fn server(server: &ServerConfig) -> Result<ServerKeys, ExperimentError> {
    let (factor, rate) = (server.smoothing_factor, server.learning_rate);
    let smoothing = LaplacianSmoothing::new(factor as f32).map_err(|_| {
        out_of_range(
            "server.smoothing_factor",
            factor,
            "a finite number, 0 or more",
        )
    })?;
    Ok(ServerKeys {
        learning_rate: number("server.learning_rate", rate, LearningRate::new)?,
        // 0 means none.
        smoothing: (factor > 0.0).then_some(smoothing),
        grid: server.model_places.map(grid).transpose()?,
    })
}

/// Returns the grid of the model.
fn grid(places: u8) -> Result<ModelGrid, ExperimentError> {
    ModelGrid::new(places).ok_or_else(|| {
        let expected = format!("from 0 to {}", ModelGrid::MAX_PLACES);
        out_of_range("server.model_places", f64::from(places), &expected)
    })
}

/// Returns the changes of the clip norm, or `None` if it is fixed.
fn adaptive(config: &Config, sampling: Sampling) -> Result<Option<AdaptiveClip>, ExperimentError> {
    let (cohort, privacy) = (&config.cohort, &config.privacy);
    let updates = cohort
        .denominator
        .expected_updates(sampling.expected_cohort());
    match (privacy.clip_norm, &privacy.adaptive) {
        (Some(ClipNormSetting::Adaptive), keys) => {
            let keys = keys.clone().unwrap_or_default();
            AdaptiveClip::new(&keys, updates).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the noise of the bit: a twentieth of the expected cohort on the sum, as in the paper.
fn bit_noise(privacy: &PrivacyConfig, sampling: Sampling) -> Result<BitNoise, ExperimentError> {
    let given = privacy.adaptive.as_ref().and_then(|keys| keys.bit_noise);
    if let Some(std) = given {
        return match std.is_finite() && std > 0.0 {
            true => Ok(BitNoise::Given(std)),
            false => Err(out_of_range(
                "privacy.adaptive.bit_noise",
                std,
                "a finite number above 0",
            )),
        };
    }
    let cohort = sampling.expected_cohort();
    Ok(BitNoise::Default(match privacy.trust {
        // The noise of all devices adds up to that.
        TrustModel::Local => cohort.sqrt() / 20.0,
        _ => cohort / 20.0,
    }))
}

/// Returns the conversion of updates to integers: on the grid of their clip norm, if there is one.
fn encoding(
    privacy: &PrivacyConfig,
    adaptive: Option<&AdaptiveClip>,
) -> Result<Encoding, ExperimentError> {
    let clip_norm = match (adaptive, privacy.clip_norm.and_then(ClipNormSetting::fixed)) {
        (Some(adaptive), _) => adaptive.initial,
        (None, Some(value)) => number("privacy.clip_norm", value, CoreClipNorm::new)?,
        (None, None) => return Ok(Encoding::Unbounded),
    };
    match Grid::new(clip_norm, privacy.grid_bits) {
        Ok(grid) => Ok(Encoding::Clipped(grid)),
        Err(_) => Err(ExperimentError::Range {
            key: "privacy.grid_bits",
            value: privacy.grid_bits.to_string(),
            expected: format!("from {} to {}", BITS.start(), BITS.end()),
        }),
    }
}

fn privacy(
    privacy: &PrivacyConfig,
    adaptive: Option<&AdaptiveClip>,
    correlated: Option<&Correlated>,
    device_count: u32,
) -> Result<PrivacyKeys, ExperimentError> {
    let sensitivity = correlated.map(|of| of.strategy.sensitivity());
    let (clip_norm, noise) = noise(privacy, adaptive, sensitivity.unwrap_or(1.0))?;
    let delta = privacy.delta.resolve(device_count);
    let max_epsilon = match privacy.max_epsilon {
        None => None,
        Some(value) => Some(Epsilon::new(value).map_err(refuse("privacy.max_epsilon", value))?),
    };
    Ok(PrivacyKeys {
        delta: delta.map_err(refuse("privacy.delta", privacy.delta))?,
        accountant: privacy.accountant,
        trust: privacy.trust,
        clip_norm,
        max_epsilon,
        noise,
        bit_noise: None,
        devices_per_user: privacy.devices_per_user.unwrap_or(1),
    })
}

/// Returns the clip norm (of the first round, if it changes) and the amount of noise, from any of
/// the keys. A noise std is relative to the sensitivity, in clip norms.
fn noise(
    privacy: &PrivacyConfig,
    adaptive: Option<&AdaptiveClip>,
    sensitivity: f64,
) -> Result<(Option<ClipNorm>, NoiseAmount), ExperimentError> {
    let (key, value) = match (adaptive, privacy.clip_norm.and_then(ClipNormSetting::fixed)) {
        (Some(adaptive), _) => (
            "privacy.adaptive.initial",
            Some(f64::from(adaptive.initial.get())),
        ),
        (None, value) => ("privacy.clip_norm", value),
    };
    let parse = |value| ClipNorm::new(value).map_err(refuse(key, value));
    let clip_norm = value.map(parse).transpose()?;
    let multiplier = match (privacy.epsilon, privacy.noise_multiplier, privacy.noise_std) {
        (Some(value), _, _) => {
            let target = Epsilon::new(value).map_err(refuse("privacy.epsilon", value))?;
            return Ok((clip_norm, NoiseAmount::Target(target)));
        }
        (None, Some(value), _) => {
            NoiseMultiplier::new(value).map_err(refuse("privacy.noise_multiplier", value))?
        }
        (None, None, Some(value)) => {
            let clip_norm = clip_norm.ok_or(NoiseAmount::NO_CLIP_NORM)?;
            NoiseMultiplier::from_noise_std(value / sensitivity, clip_norm)
                .map_err(refuse("privacy.noise_std", value))?
        }
        (None, None, None) => NoiseMultiplier::NONE,
    };
    Ok((clip_norm, NoiseAmount::Multiplier(multiplier)))
}

/// Checks the name. It becomes a part of the run directory's name and must not lead elsewhere.
fn names_a_directory(name: &str) -> Result<(), ExperimentError> {
    /// Leaves room for the time within the 255 bytes of common file systems.
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
