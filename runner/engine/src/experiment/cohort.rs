//! The cohort rule: how devices are drawn in a federation of a given size. Experiment files,
//! `smolfed account` and `smolfed plan` share it. Each names its own keys or flags in errors.

use smolfed_accounting::{ParamError, Sampling, SamplingRate};

use crate::check::{ExperimentError, refuse};
use crate::combinations::Conflict;
use crate::combinations::rules::{RATE_OF_ALL, SIZE_OF_ALL, TWO_SIZES};
use crate::tables::cohort::CohortConfig;
use smolfed_release::SamplingScheme;

/// The rule for drawing devices, as given by the user.
#[derive(Clone, Copy, Debug)]
pub struct CohortRule {
    /// The scheme.
    pub scheme: SamplingScheme,
    /// N.
    pub device_count: u32,
    /// S, for schemes that draw. Excludes the rate.
    pub cohort_size: Option<u32>,
    /// τ = S / N.
    pub sampling_rate: Option<f64>,
    /// Maximum number of rounds per device, for `Unsampled`.
    pub max_participations: Option<u32>,
    /// Number b of parts that take turns, for `BlockCyclic`.
    pub parts: Option<u32>,
}

/// A number of a [`CohortRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// N.
    DeviceCount,
    /// S.
    CohortSize,
    /// τ.
    SamplingRate,
    /// Maximum number of rounds in which a device takes part.
    MaxParticipations,
    /// Number of parts of the population that take turns.
    Parts,
}

/// Why a rule is invalid.
#[derive(Clone, Debug, PartialEq)]
pub enum CohortError {
    /// Both a cohort size and a sampling rate.
    TwoSizes,
    /// The scheme needs this number.
    Missing(Part),
    /// The scheme has no use for this number.
    Unused(Part),
    /// A number out of range.
    Number {
        /// The number.
        part: Part,
        /// Its value.
        value: f64,
        /// The requirement.
        reason: ParamError,
    },
    /// More devices in a round, or a larger share of all, than one of `parts` parts has.
    LargerThanPart {
        /// The number.
        part: Part,
        /// Its value.
        value: f64,
        /// The largest valid value.
        most: f64,
    },
}

impl CohortRule {
    /// Returns the sampling of an event.
    ///
    /// # Errors
    /// [`CohortError`] for the first number that does not fit.
    pub fn sampling(&self) -> Result<Sampling, CohortError> {
        let devices = self.device_count;
        let bad_devices = number(Part::DeviceCount, f64::from(devices));
        if devices == 0 {
            return Err(bad_devices(ParamError::NoDevices));
        }
        let is_unsampled = self.scheme == SamplingScheme::Unsampled;
        if self.max_participations.is_some() && !is_unsampled {
            return Err(CohortError::Unused(Part::MaxParticipations));
        }
        match (self.scheme, self.cohort_size, self.sampling_rate) {
            (_, Some(_), Some(_)) => Err(CohortError::TwoSizes),
            (SamplingScheme::Full, None, None) => Sampling::full(devices).map_err(bad_devices),
            (_, None, None) if is_unsampled => self.unsampled(),
            (
                SamplingScheme::Uniform | SamplingScheme::Poisson | SamplingScheme::BlockCyclic,
                None,
                None,
            ) => Err(CohortError::Missing(Part::CohortSize)),
            (SamplingScheme::Uniform, Some(size), None) => self.uniform(size),
            (SamplingScheme::Uniform, None, Some(rate)) => {
                let size = sampling_rate(rate)?.get() * f64::from(devices);
                self.uniform((size.round() as u32).max(1))
            }
            (SamplingScheme::Poisson, Some(size), None) => {
                // Refuses a cohort that is empty or larger than the federation.
                self.uniform(size)?;
                let rate = sampling_rate(f64::from(size) / f64::from(devices))?;
                Sampling::poisson(devices, rate).map_err(bad_devices)
            }
            (SamplingScheme::Poisson, None, Some(rate)) => {
                Sampling::poisson(devices, sampling_rate(rate)?).map_err(bad_devices)
            }
            (SamplingScheme::BlockCyclic, Some(size), None) => {
                self.uniform(size)?;
                self.block_cyclic(Part::CohortSize, f64::from(size), f64::from(devices))
            }
            (SamplingScheme::BlockCyclic, None, Some(rate)) => {
                let share = sampling_rate(rate)?.get();
                self.block_cyclic(Part::SamplingRate, share, 1.0)
            }
            (_, Some(_), None) => Err(CohortError::Unused(Part::CohortSize)),
            (_, None, _) => Err(CohortError::Unused(Part::SamplingRate)),
        }
    }

    fn uniform(&self, size: u32) -> Result<Sampling, CohortError> {
        Sampling::uniform(self.device_count, size)
            .map_err(number(Part::CohortSize, f64::from(size)))
    }

    /// Returns rounds with `value` of `whole` devices on average, all of one of b parts. Each
    /// device of the part is drawn at b times the overall rate.
    fn block_cyclic(&self, part: Part, value: f64, whole: f64) -> Result<Sampling, CohortError> {
        let parts = self.parts.ok_or(CohortError::Missing(Part::Parts))?;
        // Exactly 1 where all devices of a part are drawn.
        let rate = SamplingRate::new(f64::from(parts) * value / whole);
        let rate = rate.map_err(|_| CohortError::LargerThanPart {
            part,
            value,
            most: whole / f64::from(parts),
        })?;
        Sampling::block_cyclic(self.device_count, parts, rate)
            .map_err(number(Part::Parts, f64::from(parts)))
    }

    fn unsampled(&self) -> Result<Sampling, CohortError> {
        let part = Part::MaxParticipations;
        let max = self.max_participations.ok_or(CohortError::Missing(part))?;
        Sampling::unsampled(self.device_count, max).map_err(number(part, f64::from(max)))
    }
}

fn number(part: Part, value: f64) -> impl FnOnce(ParamError) -> CohortError {
    move |reason| CohortError::Number {
        part,
        value,
        reason,
    }
}

fn sampling_rate(value: f64) -> Result<SamplingRate, CohortError> {
    SamplingRate::new(value).map_err(number(Part::SamplingRate, value))
}

/// Returns the sampling of an experiment on `device_count` devices, in `parts` parts if they take
/// turns.
///
/// # Errors
/// [`ExperimentError`] for the first invalid key.
pub fn sampling(
    cohort: &CohortConfig,
    device_count: u32,
    parts: Option<u32>,
) -> Result<Sampling, ExperimentError> {
    let rule = CohortRule {
        scheme: cohort.sampling.into(),
        device_count,
        cohort_size: cohort.cohort_size,
        sampling_rate: cohort.sampling_rate,
        max_participations: None,
        parts,
    };
    rule.sampling().map_err(|error| match error {
        CohortError::TwoSizes => Conflict::of(&TWO_SIZES).into(),
        CohortError::Missing(part) => ExperimentError::Missing {
            key: key(part),
            purpose: "the number of devices in a round; or give `cohort.sampling_rate`",
        },
        CohortError::Unused(Part::SamplingRate) => Conflict::of(&RATE_OF_ALL).into(),
        CohortError::Unused(_) => Conflict::of(&SIZE_OF_ALL).into(),
        CohortError::Number {
            part,
            value,
            reason,
        } => refuse(key(part), value)(reason),
        CohortError::LargerThanPart { part, value, most } => ExperimentError::Range {
            key: key(part),
            value: value.to_string(),
            expected: format!(
                "at most {most}: each round draws from one of the `privacy.separation` parts of \
                 the devices"
            ),
        },
    })
}

const fn key(part: Part) -> &'static str {
    match part {
        Part::DeviceCount => "data.devices",
        Part::CohortSize => "cohort.cohort_size",
        Part::SamplingRate => "cohort.sampling_rate",
        Part::MaxParticipations => "cohort.max_participations",
        Part::Parts => "privacy.separation",
    }
}
