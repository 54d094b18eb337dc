//! An experiment that can run: the configuration settled for its federation.
//!
//! This is the one place where keys are checked against each other and against the data; what comes
//! out needs no further checks.

mod contrast;
mod error;
mod origin;
mod personal;
mod privacy_plan;
mod server_step;
pub(crate) mod weighting;

use smolfed_core::contrast::Representation;
use smolfed_core::params::{ClipNorm, LearningRate, ParamError, Penalty};
use smolfed_core::quantize::Grid;
use smolfed_core::smooth::NarrowSmoothing;
use smolfed_core::train::{Clipping, LocalTraining};

use crate::config::{ClipTime, CohortConfig, Config, Method, SamplingScheme, TrainConfig};
use crate::contrast::ContrastPlan;
use crate::data::federation::Federation;
use crate::personal::evaluate::Extra;
use crate::personal::{PersonalKind, PersonalPlan};
use crate::privacy::accountant::AccountingError;
use crate::privacy::event::{PrivacyEvent, Sampling};
use crate::privacy::params as privacy_params;
use crate::privacy::statement::PrivacyStatement;
use crate::server::ServerStep;
use crate::simulate::Encoding;
use crate::task::Task;

pub use error::ExperimentError;
pub use origin::Origin;
pub use privacy_plan::PrivacyPlan;
use privacy_plan::Released;

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
    /// How an encoder is learned without labels, if the method does.
    pub contrast: Option<ContrastPlan>,
    /// Noise and accounting of its correlation matrices, if devices send them.
    pub matrix_privacy: Option<PrivacyPlan>,
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
        let features = federation.feature_count();
        let task = match config.method.is_contrastive() {
            true => {
                let width = contrast::width(&config)? as usize;
                Task::encoder(&config.model, features, width)?
            }
            false => Task::new(&config.model, features, federation.class_count())?,
        };
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
        let contrast = contrast::plan(&config, &task, federation, &spent, &origin)?;
        let (contrast, matrix_privacy) =
            contrast.map_or((None, None), |(plan, privacy)| (Some(plan), privacy));
        let sharing = contrast.as_ref().and_then(|plan| plan.sharing.as_ref());
        let released = Released {
            sampling,
            encoding,
            personal,
            matrices: matrix_privacy.as_ref().zip(sharing),
        };
        let privacy = PrivacyPlan::new(&config, &released, &spent, &origin)?;
        let weight_cap = weighting::cap(&config, federation)?;
        let mut server = server_step::server_step(&config, &task, sampling, personal.as_ref())?;
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
            contrast,
            matrix_privacy,
            extra,
            most_devices,
            origin,
        })
    }

    /// Parameters that are shared, and travel.
    #[must_use]
    pub fn shared_count(&self) -> usize {
        match (&self.personal, &self.contrast) {
            (Some(plan), _) => plan.shared,
            (None, Some(plan)) => plan.network.parameter_count(),
            (None, None) => self.task.parameter_count(),
        }
    }

    /// Whether the shared parameters are a model by themselves.
    #[must_use]
    pub fn shares_a_model(&self) -> bool {
        self.contrast.is_none() && self.personal.is_none_or(|plan| plan.shares_a_model())
    }

    /// What the correlation matrices of `round` cost a whole device and one example of it; nothing if none are sent.
    #[must_use]
    pub fn matrix_events_in(&self, round: u32) -> Vec<PrivacyEvent> {
        let sharing = self
            .contrast
            .as_ref()
            .and_then(|plan| plan.sharing.as_ref());
        let is_due = sharing.is_some_and(|sharing| sharing.is_in(round));
        let of_example = self.matrix_privacy.as_ref().filter(|_| is_due);
        let of_device = self.privacy.matrices_in(round);
        of_device
            .into_iter()
            .chain(of_example.map(|privacy| privacy.event))
            .collect()
    }

    /// The privacy statements for `rounds` rounds in which devices sent between the two of `releases` correlation
    /// matrices: of the updates and, if there are matrices, of these.
    ///
    /// # Errors
    /// As [`PrivacyPlan::estimate`].
    pub fn statements(
        &self,
        rounds: u32,
        releases: Option<(u32, u32)>,
    ) -> Result<Vec<PrivacyStatement>, AccountingError> {
        let mut statements = self.privacy.statements(u64::from(rounds))?;
        if let Some((privacy, range)) = self.matrix_privacy.as_ref().zip(releases) {
            statements.extend(privacy.statements_of_matrices(range)?);
        }
        Ok(statements)
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

#[cfg(test)]
mod tests;
