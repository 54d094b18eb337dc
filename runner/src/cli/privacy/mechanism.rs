//! The flags of `smolfed account` and `smolfed plan` for the release: mechanism, sampling, numbers
//! of devices, noise, δ and unit of privacy.

use std::path::Path;

use smolfed_core::quantize::{BITS, DEFAULT_BITS};

use super::correlated::{CorrelatedArgs, Setting};
use crate::cli::CliError;
use smolfed_accounting::accountant::Accountant;
use smolfed_accounting::event::{Mechanism, PrivacyEvent, PrivacyUnit, TrustModel};
use smolfed_accounting::params::{
    ClipNorm, Delta, DeltaSpec, NoiseMultiplier, ParamError, SamplingRate,
};
use smolfed_engine::experiment::cohort::{CohortError, CohortRule, Part};
use smolfed_release::SamplingScheme;

/// Delta for correlated noise where neither it nor the number of devices is given.
const DELTA_OF_FLEETS: f64 = 1e-6;

/// Unit of protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Unit {
    /// All data of one device.
    Device,
    /// One example of one device.
    Example,
}

impl Unit {
    const fn protected(self) -> PrivacyUnit {
        match self {
            Self::Device => PrivacyUnit::Device,
            Self::Example => PrivacyUnit::Example,
        }
    }
}

/// Mechanism of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// Discrete Gaussian on the integer grid, as in `smolfed run`.
    DiscreteGaussian,
    /// Real-valued Gaussian.
    Gaussian,
    /// FedSC's correlation matrices. The clip norm is mu/|D|.
    CorrelationMatrix,
    /// Discrete Gaussian noise, correlated over the rounds of a run, for fleets without sampling.
    /// Needs --rounds, --separation and --participations (or --staleness). With --sampling
    /// block-cyclic, --separation parts of the devices take turns, and each round draws devices
    /// from one part.
    Correlated,
}

/// Flags of both commands.
#[derive(Debug, clap::Args)]
pub(super) struct MechanismArgs {
    /// Set the number of devices in the federation.
    #[arg(long, value_name = "N")]
    devices: Option<u32>,
    /// Sample the devices of a round with this scheme.
    #[arg(long, value_name = "SCHEME", value_enum)]
    sampling: Option<SamplingScheme>,
    /// Set the number of devices in each round (the expected number for poisson).
    #[arg(long, value_name = "S", conflicts_with = "sampling_rate")]
    cohort: Option<u32>,
    /// Set the fraction of the devices in each round, instead of --cohort.
    #[arg(long, value_name = "RATE")]
    sampling_rate: Option<f64>,
    /// Set the maximum number of rounds in which one device takes part, for unsampled.
    #[arg(long, value_name = "K")]
    max_participations: Option<u32>,
    /// Set the number of rounds.
    #[arg(long, value_name = "T")]
    pub(super) rounds: Option<u64>,
    /// Set the noise std on the sum of the updates, divided by the clip norm.
    ///
    /// For correlated, it is the noise std on each release, divided by the sensitivity and by the
    /// clip norm.
    #[arg(long, value_name = "Z", conflicts_with = "noise_std")]
    noise_multiplier: Option<f64>,
    /// Set the noise std on the sum of updates, instead of --noise-multiplier (needs --clip-norm).
    #[arg(long, value_name = "STD", requires = "clip_norm")]
    noise_std: Option<f64>,
    /// Set the clip norm, the bound on the L2 norm of one device's update.
    #[arg(long, value_name = "L")]
    clip_norm: Option<f64>,
    /// Set delta: a number such as 1e-5, or 1/N^P with N the number of devices [default: 1/N^1.1].
    ///
    /// For correlated without --devices, the default is 1e-6.
    #[arg(long, value_name = "DELTA")]
    delta: Option<DeltaSpec>,
    /// Set the trust model: central, local, distributed or distributed=M/T.
    ///
    /// With central, the server adds the noise. With local, each device adds the full noise to its
    /// own update. With distributed, the server and a helper each add noise to masked sums. With
    /// distributed=M/T, there are M helpers, and any T of the M + 1 parties may collude (M if T is
    /// left out).
    #[arg(long, value_name = "TRUST", default_value = "central")]
    trust: TrustModel,
    /// Set the unit of protection.
    #[arg(long, value_enum, default_value = "device")]
    unit: Unit,
    /// Set the maximum number of devices of one user.
    ///
    /// Epsilon then protects all of them together.
    #[arg(long, value_name = "K", default_value_t = 1)]
    devices_per_user: u32,
    /// Set the mechanism of the release.
    #[arg(long, value_enum, default_value = "discrete-gaussian")]
    mechanism: Kind,
    #[command(flatten)]
    correlated: CorrelatedArgs,
    /// Set the bits of the grid: updates are multiples of the clip norm times 2^-BITS.
    ///
    /// It applies to discrete-gaussian and correlated.
    #[arg(
        long,
        value_name = "BITS",
        default_value_t = DEFAULT_BITS as u8,
        value_parser = clap::value_parser!(u8)
            .range(i64::from(*BITS.start())..=i64::from(*BITS.end()))
    )]
    grid_bits: u8,
    /// Use only this accountant, one of those listed in docs/accounting.md, or all.
    #[arg(long, value_name = "NAME", default_value = "all")]
    accountant: String,
    /// Print one JSON document to standard output and nothing else.
    #[arg(long)]
    pub(super) json: bool,
    /// Plot the trade-off curve, and epsilon over the rounds, in this SVG file.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<std::path::PathBuf>,
}

/// The flags, checked. What is searched for is `None` or a placeholder.
#[derive(Debug)]
pub(super) struct ParsedFlags {
    /// The event. Its noise is 0 and its count 1 where they are not given.
    pub(super) event: PrivacyEvent,
    pub(super) delta: Delta,
    pub(super) clip_norm: Option<ClipNorm>,
    pub(super) has_noise: bool,
    pub(super) has_rounds: bool,
    pub(super) has_cohort: bool,
    /// What was planned, for correlated noise.
    pub(super) correlated: Option<Setting>,
}

impl MechanismArgs {
    /// The requested accountants, the tightest first.
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
        /// 1/N^1.1.
        const DEFAULT: DeltaSpec = DeltaSpec::PowerOfDevices { power: 1.1 };
        let delta = self.delta.unwrap_or(DEFAULT);
        delta.resolve(device_count).map_err(bad("--delta"))
    }

    /// The clip norm, if there is one.
    pub(super) fn clip_norm(&self) -> Result<Option<ClipNorm>, CliError> {
        let clip_norm = self.clip_norm.map(ClipNorm::new).transpose();
        clip_norm.map_err(bad("--clip-norm"))
    }

    /// Returns the requested unit of protection.
    pub(super) const fn unit(&self) -> PrivacyUnit {
        self.unit.protected()
    }

    /// The events of a ledger that protect the requested unit.
    pub(super) fn of_unit(
        &self,
        path: &Path,
        events: Vec<PrivacyEvent>,
    ) -> Result<Vec<PrivacyEvent>, CliError> {
        let (name, other) = match self.unit {
            Unit::Device => ("device", "example"),
            Unit::Example => ("example", "device"),
        };
        let unit = self.unit();
        let is_empty = events.is_empty();
        let found: Vec<PrivacyEvent> = events.into_iter().filter(|e| e.unit == unit).collect();
        // The ledger's events are about users with the devices that its runs configured, or more.
        let asked = |event: PrivacyEvent| match event.devices_per_user.get() {
            of_run if of_run >= self.devices_per_user && self.devices_per_user > 0 => Ok(event),
            _ => event.with_devices_per_user(self.devices_per_user),
        };
        let found: Result<Vec<PrivacyEvent>, _> = found.into_iter().map(asked).collect();
        let found = found.map_err(bad("--devices-per-user"))?;
        if found.is_empty() && !is_empty {
            let path = path.display();
            return Err(CliError::Usage(format!(
                "{path} has no event that protects one {name}: use --unit {other}"
            )));
        }
        Ok(found)
    }

    /// The noise, if it is given.
    fn noise(&self, clip_norm: Option<ClipNorm>) -> Result<Option<NoiseMultiplier>, CliError> {
        Ok(match (self.noise_multiplier, self.noise_std, clip_norm) {
            (Some(value), _, _) => {
                Some(NoiseMultiplier::new(value).map_err(bad("--noise-multiplier"))?)
            }
            (None, Some(std), Some(clip_norm)) => {
                let noise = NoiseMultiplier::from_noise_std(std, clip_norm);
                Some(noise.map_err(bad("--noise-std"))?)
            }
            _ => None,
        })
    }

    /// Checks the flags against each other.
    pub(super) fn parse(&self) -> Result<ParsedFlags, CliError> {
        if self.mechanism == Kind::Correlated {
            return self.parse_correlated();
        }
        let in_turn = self.sampling == Some(SamplingScheme::BlockCyclic);
        let in_turn = in_turn.then_some("--sampling block-cyclic");
        if let Some(flag) = self.correlated.given().or(in_turn) {
            return Err(CliError::Usage(format!(
                "{flag} belongs to --mechanism correlated"
            )));
        }
        let (Some(devices), Some(scheme)) = (self.devices, self.sampling) else {
            return Err(usage(
                "the devices and their sampling are missing: give --devices N and \
                 --sampling uniform, poisson, full or unsampled",
            ));
        };
        let sampling = self.rule(scheme, devices).sampling().map_err(refused)?;
        let delta = self.delta(devices)?;
        let clip_norm = self.clip_norm()?;
        let noise = self.noise(clip_norm)?;
        if self.rounds == Some(0) {
            return Err(usage("--rounds is 0: nothing would be released"));
        }
        let is_central = self.trust == TrustModel::Central;
        if self.mechanism == Kind::CorrelationMatrix && (self.unit == Unit::Device || is_central) {
            return Err(usage(
                "--mechanism correlation-matrix protects one example of a device, which adds the \
                 noise itself: give --unit example --trust local",
            ));
        }
        let noise_multiplier = noise.unwrap_or(NoiseMultiplier::NONE);
        let mechanism = match self.mechanism {
            Kind::Gaussian => Mechanism::Gaussian { noise_multiplier },
            Kind::DiscreteGaussian | Kind::Correlated => Mechanism::DiscreteGaussian {
                noise_multiplier,
                grid_bits: self.grid_bits,
            },
            Kind::CorrelationMatrix => Mechanism::CorrelationMatrix { noise_multiplier },
        };
        let event = PrivacyEvent {
            mechanism,
            sampling,
            trust: self.trust,
            unit: self.unit.protected(),
            count: self.rounds.unwrap_or(1),
            releases: 1,
            devices_per_user: std::num::NonZeroU32::MIN,
        };
        let event = event.with_devices_per_user(self.devices_per_user);
        let event = event.map_err(bad("--devices-per-user"))?;
        Ok(ParsedFlags {
            event,
            delta,
            clip_norm,
            has_noise: noise.is_some(),
            has_rounds: self.rounds.is_some(),
            has_cohort: self.has_cohort() || !is_drawn(scheme),
            correlated: None,
        })
    }

    /// The same for correlated noise. It assumes nothing about participation, unless devices are
    /// drawn in turn.
    fn parse_correlated(&self) -> Result<ParsedFlags, CliError> {
        if self
            .sampling
            .is_some_and(|scheme| scheme != SamplingScheme::BlockCyclic)
        {
            return Err(usage(
                "--sampling does not apply to --mechanism correlated, unless it is block-cyclic: \
                 the noise makes no assumption about which devices take part (--cohort or \
                 --sampling-rate are for the comparison with Poisson sampling)",
            ));
        }
        if self.max_participations.is_some() {
            return Err(usage(
                "--max-participations does not apply to --mechanism correlated: give \
                 --participations",
            ));
        }
        if self.trust == TrustModel::Local || self.unit != Unit::Device {
            return Err(usage(
                "--mechanism correlated protects devices, and the sums of several rounds are \
                 combined before noise is added, by a trusted server or under masks: leave out \
                 --unit, and --trust or give --trust distributed",
            ));
        }
        // Without --devices, only users with several devices bound their number.
        let device_count = self.devices.unwrap_or(self.devices_per_user.max(1));
        let delta = match (self.devices, self.delta) {
            (Some(devices), _) => self.delta(devices)?,
            (None, None) => Delta::new(DELTA_OF_FLEETS).map_err(bad("--delta"))?,
            (None, Some(DeltaSpec::Number(delta))) => delta,
            (None, Some(DeltaSpec::PowerOfDevices { .. })) => {
                return Err(usage(
                    "--delta is a power of the devices: give --devices as well",
                ));
            }
        };
        let sampling_rate = self.rate_of_a_part()?;
        let setting = self.correlated.setting(self.rounds, sampling_rate)?;
        setting.fits(self.cohort, self.grid_bits)?;
        let clip_norm = self.clip_norm()?;
        let noise = match (self.noise_multiplier, self.noise_std, clip_norm) {
            (Some(value), _, _) => {
                Some(NoiseMultiplier::new(value).map_err(bad("--noise-multiplier"))?)
            }
            (None, Some(std), Some(clip_norm)) => {
                let relative = std / (setting.best().sensitivity() * clip_norm.get());
                Some(NoiseMultiplier::new(relative).map_err(bad("--noise-std"))?)
            }
            _ => None,
        };
        let noise_multiplier = noise.unwrap_or(NoiseMultiplier::NONE);
        let best = setting.best();
        let event = PrivacyEvent::correlated(best, noise_multiplier, self.grid_bits, device_count);
        let event = PrivacyEvent {
            trust: self.trust,
            ..event.map_err(bad("--devices"))?
        };
        let event = event.with_devices_per_user(self.devices_per_user);
        Ok(ParsedFlags {
            event: event.map_err(bad("--devices-per-user"))?,
            delta,
            clip_norm,
            has_noise: noise.is_some(),
            has_rounds: true,
            has_cohort: true,
            correlated: Some(setting.beside(self.poisson_rate()?, self.devices.is_some())),
        })
    }

    /// τ of block-cyclic sampling, or `None` without it.
    fn rate_of_a_part(&self) -> Result<Option<SamplingRate>, CliError> {
        let Some(scheme) = self.sampling else {
            return Ok(None);
        };
        let Some(devices) = self.devices else {
            return Err(usage(
                "--sampling block-cyclic needs --devices N, of which each round draws from one of \
                 --separation parts",
            ));
        };
        let rule = CohortRule {
            parts: self.correlated.separation(),
            ..self.rule(scheme, devices)
        };
        let drawn = rule.sampling().map_err(refused)?.sampling_rate();
        let drawn = drawn.map(SamplingRate::new).transpose();
        drawn.map_err(bad("--sampling-rate"))
    }

    /// τ of the Poisson sampling that correlated noise is compared with, if it is given.
    fn poisson_rate(&self) -> Result<Option<SamplingRate>, CliError> {
        let (rate, flag) = match (self.sampling_rate, self.cohort, self.devices) {
            (Some(rate), _, _) => (rate, "--sampling-rate"),
            (None, Some(cohort), Some(devices)) => {
                (f64::from(cohort) / f64::from(devices), "--cohort")
            }
            _ => return Ok(None),
        };
        SamplingRate::new(rate).map(Some).map_err(bad(flag))
    }

    const fn has_cohort(&self) -> bool {
        self.cohort.is_some() || self.sampling_rate.is_some()
    }

    fn rule(&self, scheme: SamplingScheme, device_count: u32) -> CohortRule {
        // One device stands for the cohort that `smolfed plan` searches for.
        let placeholder = (is_drawn(scheme) && !self.has_cohort()).then_some(1);
        CohortRule {
            scheme,
            device_count,
            cohort_size: self.cohort.or(placeholder),
            sampling_rate: self.sampling_rate,
            max_participations: self.max_participations,
            parts: None,
        }
    }
}

const fn is_drawn(scheme: SamplingScheme) -> bool {
    matches!(scheme, SamplingScheme::Uniform | SamplingScheme::Poisson)
}

fn refused(error: CohortError) -> CliError {
    match error {
        CohortError::TwoSizes => usage("give either --cohort or --sampling-rate"),
        CohortError::Missing(Part::MaxParticipations) => usage(
            "--sampling unsampled needs --max-participations, a limit that the devices enforce",
        ),
        CohortError::Missing(part) => CliError::Usage(format!("{} is missing", flag(part))),
        CohortError::Unused(Part::MaxParticipations) => {
            usage("--max-participations belongs to --sampling unsampled")
        }
        CohortError::Unused(part) => {
            let flag = flag(part);
            CliError::Usage(format!("{flag} belongs to --sampling uniform or poisson"))
        }
        CohortError::Number { part, reason, .. } => bad(flag(part))(reason),
        CohortError::LargerThanPart { part, value, most } => CliError::Usage(format!(
            "{} is {value}: it must be at most {most}, as each round draws from one of the \
             --separation parts of the devices",
            flag(part)
        )),
    }
}

const fn flag(part: Part) -> &'static str {
    match part {
        Part::DeviceCount => "--devices",
        Part::CohortSize => "--cohort",
        Part::SamplingRate => "--sampling-rate",
        Part::MaxParticipations => "--max-participations",
        Part::Parts => "--separation",
    }
}

fn usage(text: &str) -> CliError {
    CliError::Usage(text.to_owned())
}

fn bad(flag: &'static str) -> impl FnOnce(ParamError) -> CliError {
    move |error| CliError::Usage(format!("{flag}: {error}"))
}
