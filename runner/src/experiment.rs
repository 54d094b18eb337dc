//! An experiment that can run: the configuration settled for its federation.
//!
//! This is the one place where keys are checked against each other and against the data; what comes
//! out needs no further checks.

mod origin;
mod personal;
mod privacy_plan;
pub(crate) mod weighting;

use smolfed_core::params::{ClipNorm, LearningRate, ParamError, Penalty};
use smolfed_core::personal::PmtlUpdate;
use smolfed_core::quantize::Grid;
use smolfed_core::smooth::{LaplacianSmoothing, NarrowSmoothing};
use smolfed_core::train::{Clipping, LocalTraining};

use crate::config::{
    ClipTime, CohortConfig, Config, DenoiserKind, Denominator, Method, PmtlUpdateName,
    SamplingScheme, ServerConfig, TrainConfig, Weighting,
};
use crate::data::federation::Federation;
use crate::personal::evaluate::Extra;
use crate::personal::{PersonalKind, PersonalPlan};
use crate::privacy::accountant::AccountingError;
use crate::privacy::calibrate::CalibrationError;
use crate::privacy::event::{PrivacyEvent, Sampling};
use crate::privacy::params as privacy_params;
use crate::server::{Denoiser, ServerStep};
use crate::simulate::Encoding;
use crate::task::{Task, TaskError};

pub use origin::Origin;
pub use privacy_plan::PrivacyPlan;
use privacy_plan::Released;

/// Why an experiment cannot run; each names the key, the value and what would be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// A number out of range.
    #[error("`{key}` is {value}: it {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        reason: ParamError,
    },
    /// A number out of a range that is special to the key.
    #[error("`{key}` is {value}: it must be {expected}")]
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        expected: String,
    },
    /// Two keys that exclude each other.
    #[error("`{first}` and `{second}` contradict each other: {advice}")]
    Contradiction {
        /// One key.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A key that is needed.
    #[error("`{key}` is missing: {purpose}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What it is for.
        purpose: &'static str,
    },
    /// A number of the privacy settings or the cohort.
    #[error("`{key}` is {value}: {}", without_value(value, reason))]
    Privacy {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What is wrong.
        reason: privacy_params::ParamError,
    },
    /// The model does not fit the data.
    #[error("`model.kind` is {0}")]
    Task(#[from] TaskError),
    /// The target ε cannot be met.
    #[error("`privacy.epsilon` is {epsilon}: {reason}")]
    Calibration {
        /// The target.
        epsilon: f64,
        /// Why not.
        reason: CalibrationError,
    },
    /// The accountant has no figure for this experiment.
    #[error("`privacy.accountant` is \"{accountant}\": {reason}")]
    Accounting {
        /// Its name.
        accountant: &'static str,
        /// Why not.
        reason: AccountingError,
    },
}

/// An experiment that can run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The configuration, complete.
    pub config: Config,
    /// The model.
    pub task: Task,
    /// How cohorts are drawn and accounted.
    pub sampling: Sampling,
    /// Local training in the first round.
    pub training: LocalTraining,
    /// Factor on the learning rate from one round to the next.
    pub learning_rate_decay: f64,
    /// How updates become integers.
    pub encoding: Encoding,
    /// Noise and accounting.
    pub privacy: PrivacyPlan,
    /// Samples from which on an update has weight 1; `None` if all count the same.
    pub weight_cap: Option<u32>,
    /// The server's step.
    pub server: ServerStep,
    /// Models of a device's own, if the method has them.
    pub personal: Option<PersonalPlan>,
    /// Fine-tuning and training alone, for the last evaluation of devices.
    pub extra: Extra,
    /// Devices whose own samples are evaluated on, at most.
    pub most_devices: u32,
    /// Where devices and randomness come from.
    pub origin: Origin,
}

impl Experiment {
    /// Settles a configuration for a federation.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first key that cannot hold.
    pub fn new(config: Config, federation: &Federation) -> Result<Self, ExperimentError> {
        Self::with_spent(config, federation, Vec::new(), Origin::Simulation)
    }

    /// The same for a population on which other runs have `spent` before.
    ///
    /// # Errors
    /// As [`Self::new`]; also if what was spent leaves no room for a round.
    pub fn with_spent(
        config: Config,
        federation: &Federation,
        spent: Vec<PrivacyEvent>,
        origin: Origin,
    ) -> Result<Self, ExperimentError> {
        let task = Task::new(
            &config.model,
            federation.feature_count(),
            federation.class_count(),
        )?;
        names_a_directory(&config.name)?;
        at_least_one("rounds", config.rounds)?;
        let sampling = sampling(&config.cohort, federation.device_count())?;
        let clip_norm = config
            .privacy
            .clip_norm
            .map(|value| number("privacy.clip_norm", value, ClipNorm::new))
            .transpose()?;
        let encoding = match clip_norm {
            None => Encoding::Unbounded,
            Some(clip_norm) => Encoding::Clipped(grid(clip_norm, config.privacy.grid_bits)?),
        };
        let mut training = local_training(&config.train, clip_norm)?;
        if config.method == Method::Fedprox {
            if training.proximal != Penalty::NONE {
                return Err(ExperimentError::Contradiction {
                    first: "train.proximal",
                    second: "personalise.lambda",
                    advice: "with method \"fedprox\" the proximal term is `personalise.lambda`",
                });
            }
            training.proximal = personal::strength(&config)?;
        }
        let personal = personal::plan(&config, &task)?;
        let extra = personal::extra(&config, &task, personal.as_ref(), sampling)?;
        let most_devices = personal::most_devices(&config)?;
        let learning_rate_decay = config.train.learning_rate_decay;
        if !(learning_rate_decay > 0.0 && learning_rate_decay <= 1.0) {
            return Err(out_of_range(
                "train.learning_rate_decay",
                learning_rate_decay,
                "above 0 and at most 1",
            ));
        }
        let privacy = PrivacyPlan::new(
            &config,
            &Released {
                sampling,
                encoding,
                personal,
            },
            spent,
            &origin,
        )?;
        let weight_cap = weighting::cap(&config, federation)?;
        let mut server = server_step(&config, &task, sampling, personal.as_ref())?;
        if let (Some(cap), Some(denominator)) = (weight_cap, &mut server.fixed_denominator)
            && privacy.noise.is_none()
        {
            // With noise it stays as it is: the sum of the weights tells of the devices' data.
            *denominator *= weighting::mean(cap, federation);
        }
        Ok(Self {
            config,
            task,
            sampling,
            training,
            learning_rate_decay,
            encoding,
            privacy,
            weight_cap,
            server,
            personal,
            extra,
            most_devices,
            origin,
        })
    }

    /// Parameters that are shared, and travel.
    #[must_use]
    pub fn shared_count(&self) -> usize {
        match &self.personal {
            Some(plan) => plan.shared,
            None => self.task.parameter_count(),
        }
    }

    /// Whether the shared parameters are a model by themselves.
    #[must_use]
    pub fn shares_a_model(&self) -> bool {
        self.personal.is_none_or(|plan| plan.shares_a_model())
    }

    /// Lengths of the tensors that are shared.
    #[must_use]
    pub fn shared_tensors(&self) -> Vec<usize> {
        let shared = self.shared_count();
        let tensors = self.task.tensors();
        let mut total = 0;
        let is_shared = |length: &&usize| {
            total += **length;
            total <= shared
        };
        tensors
            .as_slice()
            .iter()
            .take_while(is_shared)
            .copied()
            .collect()
    }

    /// One step of the integers of `round`, in units of the parameters: what devices release in each
    /// local step are gradients.
    #[must_use]
    pub fn step_in(&self, round: u32) -> f64 {
        let step = self.encoding.step();
        match self.personal.map(|plan| plan.kind) {
            Some(PersonalKind::Split { each_step: true }) => {
                step * f64::from(self.training_in(round).learning_rate.get())
            }
            _ => step,
        }
    }

    /// Std of the noise on the sum of `round`, in units of the parameters, from so many devices with noise of
    /// their own, or from the server.
    #[must_use]
    pub fn noise_std_in(&self, round: u32, cohort: usize) -> f64 {
        let sources = if self.privacy.is_local() {
            cohort as f64
        } else {
            1.0
        };
        let releases = sources * f64::from(self.privacy.event.releases);
        // What is released in each step are gradients.
        let unit = self.step_in(round) / self.encoding.step();
        self.privacy.noise_std() * releases.sqrt() * unit
    }

    /// Local training in `round`: the learning rate decays from round to round.
    #[must_use]
    pub fn training_in(&self, round: u32) -> LocalTraining {
        // One multiplication a round in f64, the same on every machine; `powi` is not.
        let mut rate = f64::from(self.training.learning_rate.get());
        for _ in 0..round {
            rate *= self.learning_rate_decay;
        }
        // A decayed rate only leaves the range by vanishing; the first one then stays in force as
        // the least positive number does no harm either.
        let least = f64::from(f32::MIN_POSITIVE);
        let learning_rate =
            LearningRate::new(rate.max(least) as f32).unwrap_or(self.training.learning_rate);
        LocalTraining {
            learning_rate,
            ..self.training
        }
    }
}

/// What is wrong with a number whose value the sentence already has.
fn without_value(value: &str, reason: &privacy_params::ParamError) -> String {
    let text = reason.to_string();
    match text.split_once(&format!(" is {value}: ")) {
        Some((_, advice)) => advice.to_owned(),
        None => text,
    }
}

/// The name becomes a part of the run directory's: it must not lead elsewhere.
fn names_a_directory(name: &str) -> Result<(), ExperimentError> {
    /// Leaves room for the time below the 255 bytes of common file systems.
    const LONGEST: usize = 100;
    let is_plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
    if name.is_empty()
        || name.len() > LONGEST
        || name.starts_with(['.', ' '])
        || !name.chars().all(is_plain)
    {
        return Err(ExperimentError::Range {
            key: "name",
            value: format!("{name:?}"),
            expected: format!(
                "up to {LONGEST} bytes of letters, digits, `-`, `_`, `.` and blanks, and begin \
                 with none of the last two"
            ),
        });
    }
    Ok(())
}

fn at_least_one(key: &'static str, value: u32) -> Result<(), ExperimentError> {
    if value == 0 {
        Err(out_of_range(key, 0.0, "at least 1"))
    } else {
        Ok(())
    }
}

fn out_of_range(key: &'static str, value: f64, expected: &str) -> ExperimentError {
    ExperimentError::Range {
        key,
        value: value.to_string(),
        expected: expected.to_owned(),
    }
}

/// Parses a number of the core, which is `f32`.
fn number<T>(
    key: &'static str,
    value: f64,
    parse: impl Fn(f32) -> Result<T, ParamError>,
) -> Result<T, ExperimentError> {
    parse(value as f32).map_err(|reason| ExperimentError::Value { key, value, reason })
}

fn grid(clip_norm: ClipNorm, bits: u32) -> Result<Grid, ExperimentError> {
    let range = smolfed_core::quantize::BITS;
    Grid::new(clip_norm, bits).map_err(|_| ExperimentError::Range {
        key: "privacy.grid_bits",
        value: bits.to_string(),
        expected: format!("from {} to {}", range.start(), range.end()),
    })
}

/// The cohort's scheme for a federation of `device_count` devices.
fn sampling(cohort: &CohortConfig, device_count: u32) -> Result<Sampling, ExperimentError> {
    let rate = |value: f64| {
        privacy_params::SamplingRate::new(value).map_err(|reason| ExperimentError::Privacy {
            key: "cohort.sampling_rate",
            value: value.to_string(),
            reason,
        })
    };
    let size = |value: u32| {
        Sampling::uniform(device_count, value).map_err(|reason| ExperimentError::Privacy {
            key: "cohort.cohort_size",
            value: value.to_string(),
            reason,
        })
    };
    let needed = ExperimentError::Missing {
        key: "cohort.cohort_size",
        purpose: "the number of devices in a round; or give `cohort.sampling_rate`",
    };
    let no_devices = |reason| ExperimentError::Privacy {
        key: "data.devices",
        value: device_count.to_string(),
        reason,
    };
    match (cohort.sampling, cohort.cohort_size, cohort.sampling_rate) {
        (_, Some(_), Some(_)) => Err(ExperimentError::Contradiction {
            first: "cohort.cohort_size",
            second: "cohort.sampling_rate",
            advice: "give one of them",
        }),
        (SamplingScheme::Full, None, None) => Sampling::full(device_count).map_err(no_devices),
        (SamplingScheme::Full, Some(_), _) => Err(ExperimentError::Contradiction {
            first: "cohort.sampling",
            second: "cohort.cohort_size",
            advice: "with \"full\" every device takes part in every round",
        }),
        (SamplingScheme::Full, _, Some(_)) => Err(ExperimentError::Contradiction {
            first: "cohort.sampling",
            second: "cohort.sampling_rate",
            advice: "with \"full\" every device takes part in every round",
        }),
        (_, None, None) => Err(needed),
        (SamplingScheme::Uniform, Some(value), None) => size(value),
        (SamplingScheme::Uniform, None, Some(value)) => {
            let devices = rate(value)?.get() * f64::from(device_count);
            size((devices.round() as u32).max(1))
        }
        (SamplingScheme::Poisson, Some(value), None) => {
            // Refuses a cohort that is larger than the federation, or empty.
            size(value)?;
            let value = rate(f64::from(value) / f64::from(device_count))?;
            Sampling::poisson(device_count, value).map_err(no_devices)
        }
        (SamplingScheme::Poisson, None, Some(value)) => {
            Sampling::poisson(device_count, rate(value)?).map_err(no_devices)
        }
    }
}

fn local_training(
    train: &TrainConfig,
    clip_norm: Option<ClipNorm>,
) -> Result<LocalTraining, ExperimentError> {
    at_least_one("train.epochs", train.epochs)?;
    let batch_size = std::num::NonZeroU32::new(train.batch_size)
        .ok_or_else(|| out_of_range("train.batch_size", 0.0, "at least 1"))?;
    let factor = train.gradient_smoothing;
    let gradient_smoothing = NarrowSmoothing::new(factor as f32)
        .map_err(|_| out_of_range("train.gradient_smoothing", factor, "from 0 to 256"))?;
    Ok(LocalTraining {
        epochs: train.epochs,
        batch_size,
        learning_rate: number(
            "train.learning_rate",
            train.learning_rate,
            LearningRate::new,
        )?,
        weight_decay: number("train.weight_decay", train.weight_decay, Penalty::new)?,
        proximal: number("train.proximal", train.proximal, Penalty::new)?,
        clip_norm,
        clipping: match train.clip {
            ClipTime::EveryStep => Clipping::EveryStep,
            ClipTime::Final => Clipping::Final,
        },
        gradient_smoothing: (factor > 0.0).then_some(gradient_smoothing),
    })
}

fn server_step(
    config: &Config,
    task: &Task,
    sampling: Sampling,
    personal: Option<&PersonalPlan>,
) -> Result<ServerStep, ExperimentError> {
    let ServerConfig {
        learning_rate,
        smoothing_factor,
        axes,
        denoiser,
    } = &config.server;
    // 0 is none.
    let smoothing = LaplacianSmoothing::new(*smoothing_factor as f32).map_err(|_| {
        let wanted = "a finite number, 0 or more";
        out_of_range("server.smoothing_factor", *smoothing_factor, wanted)
    })?;
    let smoothing = (*smoothing_factor > 0.0).then_some(smoothing);
    if smoothing.is_some() && config.method == Method::DpFed {
        return Err(ExperimentError::Contradiction {
            first: "method",
            second: "server.smoothing_factor",
            advice: "use method \"dp-fed-ls\" to smooth, or a factor of 0",
        });
    }
    if smoothing.is_some() && *denoiser != DenoiserKind::None {
        return Err(ExperimentError::Contradiction {
            first: "server.denoiser",
            second: "server.smoothing_factor",
            advice: "compare them in runs of their own",
        });
    }
    if !axes.is_empty() && matches!(task, Task::Encoder(_)) {
        return Err(ExperimentError::Contradiction {
            first: "server.axes",
            second: "model.hidden",
            advice: "axes are for models whose weights are as long as a sample",
        });
    }
    let cells = axes
        .iter()
        .try_fold(1usize, |product, axis| product.checked_mul(*axis));
    if !axes.is_empty() && cells != Some(task.feature_count()) {
        return Err(ExperimentError::Range {
            key: "server.axes",
            value: format!("{axes:?}"),
            expected: format!(
                "lengths whose product is the {} features",
                task.feature_count()
            ),
        });
    }
    let denoiser = match (denoiser, smoothing) {
        (DenoiserKind::JamesStein, _) => Denoiser::JamesStein,
        (DenoiserKind::SoftThreshold, _) => Denoiser::SoftThreshold,
        (DenoiserKind::None, None) => Denoiser::None,
        (DenoiserKind::None, Some(smoothing)) => Denoiser::Laplacian {
            smoothing,
            axes: axes.clone(),
        },
    };
    let devices = f64::from(sampling.device_count());
    if config.cohort.denominator == Denominator::Realised {
        let realised = |first, advice| {
            Err(ExperimentError::Contradiction {
                first,
                second: "cohort.denominator",
                advice,
            })
        };
        if config.personalise.update == Some(PmtlUpdateName::MeanOverAll)
            && config.method == Method::Pmtl
        {
            return realised(
                "personalise.update",
                "\"mean-over-all\" divides by all devices, not by those that were drawn",
            );
        }
        if config.cohort.weighting == Weighting::Samples {
            return realised(
                "cohort.weighting",
                "weights by \"samples\" are divided by their expected sum, not by the number drawn",
            );
        }
    }
    let over_all = PersonalKind::Pmtl(PmtlUpdate::MeanOverAll);
    let expected = match personal {
        Some(plan) if plan.kind == over_all => devices,
        _ => sampling.sampling_rate().unwrap_or(1.0) * devices,
    };
    Ok(ServerStep {
        learning_rate: number("server.learning_rate", *learning_rate, LearningRate::new)?,
        denoiser,
        fixed_denominator: match config.cohort.denominator {
            Denominator::Expected => Some(expected),
            Denominator::Realised => None,
        },
    })
}

#[cfg(test)]
mod tests;
