//! The flags that say what is released, of `smolfed account` and `smolfed plan`.

use std::path::Path;
use std::str::FromStr;

use crate::cli::CliError;
use crate::privacy::accountant::Accountant;
use crate::privacy::event::{Mechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel};
use crate::privacy::params::{
    ClipNorm, Delta, DeltaSpec, HonestFraction, NoiseMultiplier, ParamError, SamplingRate,
};

/// How devices come to take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Scheme {
    /// A cohort of fixed size without replacement; replace-one.
    Uniform,
    /// Each device by a coin of its own; add-remove.
    Poisson,
    /// All devices in every round; add-remove.
    Full,
    /// Devices come when they can; no amplification; add-remove.
    Unsampled,
}

/// What is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Unit {
    Device,
    Example,
}

/// What is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// The discrete Gaussian on the integer grid, as `smolfed run` adds it.
    DiscreteGaussian,
    /// A real-valued Gaussian.
    Gaussian,
    /// FedSC's correlation matrices; the clip norm is mu/|D|.
    CorrelationMatrix,
}

/// `central`, `local`, or `distributed=0.9`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trust(TrustModel);

impl FromStr for Trust {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let model = match text.split_once('=') {
            None if text == "central" => TrustModel::Central,
            None if text == "local" => TrustModel::Local,
            Some(("distributed", share)) => {
                let share: f64 = share.parse().map_err(|_| "no number after `=`")?;
                let honest = HonestFraction::new(share).map_err(|error| error.to_string())?;
                TrustModel::Distributed { honest }
            }
            _ => {
                return Err(
                    "choose central, local, or distributed=H with H the part of the noise \
                             that is left, for example distributed=0.9"
                        .to_owned(),
                );
            }
        };
        Ok(Self(model))
    }
}

/// Flags that both commands share.
#[derive(Debug, clap::Args)]
pub(super) struct MechanismArgs {
    /// Devices there are.
    #[arg(long, value_name = "N")]
    devices: Option<u32>,
    /// How they are sampled.
    #[arg(long, value_enum)]
    sampling: Option<Scheme>,
    /// Devices in a round (on average, for poisson).
    #[arg(long, value_name = "S", conflicts_with = "sampling_rate")]
    cohort: Option<u32>,
    /// The share of devices in a round, instead of --cohort.
    #[arg(long, value_name = "RATE")]
    sampling_rate: Option<f64>,
    /// The most rounds in which one device takes part, for unsampled.
    #[arg(long, value_name = "K")]
    max_participations: Option<u32>,
    /// Rounds.
    #[arg(long, value_name = "T")]
    pub(super) rounds: Option<u64>,
    /// Noise std on the sum over the clip norm.
    #[arg(long, value_name = "Z", conflicts_with = "noise_std")]
    noise_multiplier: Option<f64>,
    /// Noise std on the sum, with --clip-norm, instead of --noise-multiplier.
    #[arg(long, value_name = "STD", requires = "clip_norm")]
    noise_std: Option<f64>,
    /// The clip norm of one device's update.
    #[arg(long, value_name = "L")]
    clip_norm: Option<f64>,
    /// The delta: a number, or like 1/N^1.1.
    #[arg(long, value_name = "DELTA", default_value = "1/N^1.1")]
    delta: DeltaSpec,
    /// Against whom: central, local, or distributed=H where the part H of the noise is honest.
    #[arg(long, value_name = "TRUST", default_value = "central")]
    trust: Trust,
    /// What is protected.
    #[arg(long, value_enum, default_value = "device")]
    unit: Unit,
    /// What is released.
    #[arg(long, value_enum, default_value = "discrete-gaussian")]
    mechanism: Kind,
    /// The grid's step is clip norm * 2^-BITS, for discrete-gaussian.
    #[arg(long, value_name = "BITS", default_value_t = smolfed_core::quantize::DEFAULT_BITS as u8)]
    grid_bits: u8,
    /// One accountant by name, or all that apply.
    #[arg(long, value_name = "NAME", default_value = "all")]
    accountant: String,
    /// Print one JSON document to standard output and nothing else.
    #[arg(long)]
    pub(super) json: bool,
    /// Draw the trade-off curve and epsilon over rounds into this file.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<std::path::PathBuf>,
}

/// The flags, checked. What is searched for is `None` or a placeholder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settled {
    /// The event; its noise is 0 and its count 1 where they are not given.
    pub(super) event: PrivacyEvent,
    pub(super) delta: Delta,
    pub(super) clip_norm: Option<ClipNorm>,
    pub(super) has_noise: bool,
    pub(super) has_rounds: bool,
    pub(super) has_cohort: bool,
}

impl MechanismArgs {
    /// The accountants that were asked for, the tightest first.
    pub(super) fn accountants(&self) -> Result<Vec<Accountant>, CliError> {
        if self.accountant == "all" {
            return Ok(Accountant::ALL.to_vec());
        }
        let one = self.accountant.parse();
        let one = one.map_err(|error| CliError::Usage(format!("--accountant: {error}, all")))?;
        Ok(vec![one])
    }

    /// δ for events that are known otherwise.
    pub(super) fn delta(&self, device_count: u32) -> Result<Delta, CliError> {
        self.delta.resolve(device_count).map_err(bad("--delta"))
    }

    /// The clip norm, if there is one.
    pub(super) fn clip_norm(&self) -> Result<Option<ClipNorm>, CliError> {
        let clip_norm = self.clip_norm.map(ClipNorm::new).transpose();
        clip_norm.map_err(bad("--clip-norm"))
    }

    /// The events of a ledger that protect the unit that was asked for.
    pub(super) fn of_unit(
        &self,
        path: &Path,
        events: Vec<PrivacyEvent>,
    ) -> Result<Vec<PrivacyEvent>, CliError> {
        let (unit, name, other) = match self.unit {
            Unit::Device => (PrivacyUnit::Device, "device", "example"),
            Unit::Example => (PrivacyUnit::Example, "example", "device"),
        };
        let is_empty = events.is_empty();
        let found: Vec<PrivacyEvent> = events.into_iter().filter(|e| e.unit == unit).collect();
        if found.is_empty() && !is_empty {
            let path = path.display();
            return Err(CliError::Usage(format!(
                "{path} has nothing that protects a whole {name}: ask with --unit {other}"
            )));
        }
        Ok(found)
    }

    /// Checks the flags against each other.
    pub(super) fn settle(&self) -> Result<Settled, CliError> {
        let (Some(devices), Some(scheme)) = (self.devices, self.sampling) else {
            return Err(usage(
                "how many devices are there, and how are they sampled? give --devices N and \
                 --sampling uniform, poisson, full or unsampled",
            ));
        };
        let delta = self.delta(devices)?;
        let clip_norm = self.clip_norm()?;
        let noise = match (self.noise_multiplier, self.noise_std, clip_norm) {
            (Some(value), _, _) => {
                Some(NoiseMultiplier::new(value).map_err(bad("--noise-multiplier"))?)
            }
            (None, Some(std), Some(clip_norm)) => {
                let noise = NoiseMultiplier::from_noise_std(std, clip_norm);
                Some(noise.map_err(bad("--noise-std"))?)
            }
            _ => None,
        };
        if self.rounds == Some(0) {
            return Err(usage("--rounds is 0: nothing would be released"));
        }
        let is_central = matches!(self.trust.0, TrustModel::Central);
        if self.mechanism == Kind::CorrelationMatrix && (self.unit == Unit::Device || is_central) {
            return Err(usage(
                "--mechanism correlation-matrix protects one example of a device, which adds the noise itself: \
                 give --unit example --trust local",
            ));
        }
        let (sampling, has_cohort) = self.sampling(scheme, devices)?;
        let noise_multiplier = noise.unwrap_or(NoiseMultiplier::NONE);
        let mechanism = match self.mechanism {
            Kind::Gaussian => Mechanism::Gaussian { noise_multiplier },
            Kind::DiscreteGaussian => Mechanism::DiscreteGaussian {
                noise_multiplier,
                grid_bits: self.grid_bits,
            },
            Kind::CorrelationMatrix => Mechanism::CorrelationMatrix { noise_multiplier },
        };
        let event = PrivacyEvent {
            mechanism,
            sampling,
            trust: self.trust.0,
            unit: match self.unit {
                Unit::Device => PrivacyUnit::Device,
                Unit::Example => PrivacyUnit::Example,
            },
            count: self.rounds.unwrap_or(1),
            releases: 1,
        };
        Ok(Settled {
            event,
            delta,
            clip_norm,
            has_noise: noise.is_some(),
            has_rounds: self.rounds.is_some(),
            has_cohort,
        })
    }

    fn sampling(&self, scheme: Scheme, devices: u32) -> Result<(Sampling, bool), CliError> {
        let has_cohort = self.cohort.is_some() || self.sampling_rate.is_some();
        let is_drawn = matches!(scheme, Scheme::Uniform | Scheme::Poisson);
        if has_cohort && !is_drawn {
            return Err(usage(
                "--cohort and --sampling-rate belong to --sampling uniform or poisson",
            ));
        }
        if self.max_participations.is_some() && scheme != Scheme::Unsampled {
            return Err(usage(
                "--max-participations belongs to --sampling unsampled",
            ));
        }
        let rate = |rate| SamplingRate::new(rate).map_err(bad("--sampling-rate"));
        let sampling = match (scheme, self.cohort, self.sampling_rate) {
            (Scheme::Full, ..) => Sampling::full(devices),
            (Scheme::Unsampled, ..) => {
                let most = self.max_participations.ok_or_else(|| {
                    usage("--sampling unsampled needs --max-participations, which devices enforce")
                })?;
                Sampling::unsampled(devices, most)
            }
            (Scheme::Uniform, cohort, None) => Sampling::uniform(devices, cohort.unwrap_or(1)),
            (Scheme::Uniform, _, Some(value)) => {
                let cohort = rate(value)?.get() * f64::from(devices);
                Sampling::uniform(devices, (cohort.round() as u32).max(1))
            }
            (Scheme::Poisson, _, Some(value)) => Sampling::poisson(devices, rate(value)?),
            (Scheme::Poisson, cohort, None) => {
                let cohort = cohort.unwrap_or(1);
                // Refuses a cohort that is larger than the federation, or empty.
                Sampling::uniform(devices, cohort).map_err(bad("--cohort"))?;
                Sampling::poisson(devices, rate(f64::from(cohort) / f64::from(devices))?)
            }
        };
        Ok((
            sampling.map_err(bad("--devices, --cohort"))?,
            has_cohort || !is_drawn,
        ))
    }
}

fn usage(text: &str) -> CliError {
    CliError::Usage(text.to_owned())
}

fn bad(flag: &'static str) -> impl FnOnce(ParamError) -> CliError {
    move |error| CliError::Usage(format!("{flag}: {error}"))
}
