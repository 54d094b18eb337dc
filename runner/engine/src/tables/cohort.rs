//! `[cohort]`: which devices take part in a round, and the weight of each update.

use std::fmt;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smolfed_release::SamplingScheme;

use super::time_span::TimeSpan;
use crate::combinations::{Setting, Settings};

/// The schemes of an experiment, which has to say when devices that are not drawn come.
fn of_experiments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SamplingScheme, D::Error> {
    const NAMES: [&str; 7] = [
        "uniform",
        "poisson",
        "full",
        "rotation",
        "arrival",
        "buffered",
        "block-cyclic",
    ];
    let text = String::deserialize(deserializer)?;
    [
        SamplingScheme::Uniform,
        SamplingScheme::Poisson,
        SamplingScheme::Full,
        SamplingScheme::Rotation,
        SamplingScheme::Arrival,
        SamplingScheme::Buffered,
        SamplingScheme::BlockCyclic,
    ]
    .into_iter()
    .find(|scheme| scheme.name() == text)
    .ok_or_else(|| D::Error::unknown_variant(&text, &NAMES))
}

/// The divisor of the sum of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Denominator {
    /// The cohort size, or its expectation τN under Poisson sampling: known beforehand.
    #[default]
    Expected,
    /// The number of devices drawn, as in the paper. Under Poisson sampling, the result reveals
    /// that number.
    Realised,
    /// This number, also known beforehand: the number of updates expected where more devices are
    /// drawn.
    Updates(NonZeroU32),
}

/// The names of denominators that are not numbers.
const EXPECTED: &str = "expected";
const REALISED: &str = "realised";

impl Denominator {
    /// The expected number of updates, where `cohort` devices are drawn on average.
    #[must_use]
    pub fn expected_updates(self, cohort: f64) -> f64 {
        match self {
            Self::Expected | Self::Realised => cohort,
            Self::Updates(count) => count.get().into(),
        }
    }
}

impl Serialize for Denominator {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Expected => serializer.serialize_str(EXPECTED),
            Self::Realised => serializer.serialize_str(REALISED),
            Self::Updates(count) => serializer.serialize_u32(count.get()),
        }
    }
}

impl<'de> Deserialize<'de> for Denominator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl Visitor<'_> for Names {
            type Value = Denominator;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"expected\", \"realised\" or a number of updates from 1 on")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
                let count = u32::try_from(value).ok().and_then(NonZeroU32::new);
                let invalid = || E::invalid_value(Unexpected::Signed(value), &self);
                count.map(Denominator::Updates).ok_or_else(invalid)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                match text {
                    EXPECTED => Ok(Denominator::Expected),
                    REALISED => Ok(Denominator::Realised),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(Names)
    }
}

/// `[cohort]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CohortConfig {
    /// `"uniform"`: a fixed number without replacement. `"poisson"`: each device independently.
    /// `"full"`: all. `"buffered"`: windows of time, for devices that sleep (docs/sleeping.md).
    /// `"rotation"`, `"arrival"`, `"block-cyclic"`: only with correlated noise
    /// (docs/experiments-privacy.md#correlated-noise).
    #[serde(deserialize_with = "of_experiments")]
    pub sampling: SamplingScheme,
    /// S, the number of devices in a cohort (with `"arrival"`, the maximum). With `"buffered"`, the
    /// number of devices that receive a model in a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohort_size: Option<u32>,
    /// τ = S / N. With `"block-cyclic"`, b S / N, at most 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<f64>,
    /// Divisor of the sum. `"expected"`: S or τN. `"realised"`, as in the paper: the number of
    /// devices drawn, which the result reveals under Poisson sampling. A number: that number, as
    /// for over-selection (docs/waiting.md#over-selection-and-quorum).
    #[schemars(with = "crate::config::schema::NumberOrText")]
    pub denominator: Denominator,
    /// `"samples"`: weights an update by `min(n, weight_cap) / weight_cap`, where n is the device's
    /// number of samples.
    ///
    /// Default: `"uniform"`, or `"samples"` for encoders without clipping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighting: Option<Weighting>,
    /// The number of samples at which the weight reaches its maximum. Required with `"samples"`
    /// when updates are clipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_cap: Option<u32>,
    /// For `"buffered"`: the length of a window, such as `"90s"` or `"1d"`.
    ///
    /// Default: `"1h"` in a simulation, required with real devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<TimeSpan>,
    /// For `"buffered"`: s. An update counts up to s windows after its model's window. At most 64.
    ///
    /// Default: 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staleness: Option<u32>,
    /// For `"buffered"`: when simulated devices are awake.
    ///
    /// Default: see docs/sleeping.md#simulate-the-fleet-first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability: Option<AvailabilityConfig>,
}

/// `[cohort.availability]`: when simulated devices are awake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AvailabilityConfig {
    /// `"periodic"`: each device wakes once per period. `"two-zones"`: half of the devices sleep
    /// for the first twelve hours of each day, the others for the last twelve. `"once-a-day"`: a
    /// third wake once a day.
    pub pattern: Pattern,
    /// How long a device stays awake.
    pub awake: TimeSpan,
    /// The time from one wake to the next.
    pub period: TimeSpan,
    /// How long a device must be awake between receiving the model and sending the update.
    pub training: TimeSpan,
}

impl Default for AvailabilityConfig {
    fn default() -> Self {
        Self {
            pattern: Pattern::default(),
            awake: TimeSpan::from_secs(20),
            period: TimeSpan::from_secs(600),
            training: TimeSpan::from_secs(5),
        }
    }
}

/// Which simulated devices wake when. Where in its period a device wakes is uniform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// All devices wake once in a period.
    #[default]
    Periodic,
    /// Half of the devices sleep through the first twelve hours of each day, and the other half
    /// through the last twelve.
    TwoZones,
    /// A third of the devices wake once a day, and the others once in a period.
    OnceADay,
}

impl CohortConfig {
    /// The settings that it declares ([`crate::combinations`]).
    pub(crate) fn settings(&self) -> Settings {
        use SamplingScheme::{Arrival, BlockCyclic, Buffered, Full, Poisson, Rotation, Uniform};
        let is = |schemes: &[SamplingScheme]| schemes.contains(&self.sampling);
        Settings::of([
            (Setting::DrawnFromAll, is(&[Uniform, Poisson])),
            (Setting::ByTurns, is(&[Rotation, Arrival, BlockCyclic])),
            (Setting::Arrival, is(&[Arrival])),
            (Setting::Buffered, is(&[Buffered])),
            (Setting::Synchronous, !is(&[Buffered])),
            (Setting::Window, self.window.is_some()),
            (Setting::Staleness, self.staleness.is_some()),
            (Setting::Availability, self.availability.is_some()),
            (Setting::BlockCyclic, is(&[BlockCyclic])),
            (Setting::AllDevices, is(&[Full])),
            (Setting::WholeParts, is(&[Rotation, Full])),
            (Setting::CohortSize, self.cohort_size.is_some()),
            (Setting::SamplingRate, self.sampling_rate.is_some()),
            (Setting::Realised, self.denominator == Denominator::Realised),
            (
                Setting::GivenDenominator,
                matches!(self.denominator, Denominator::Updates(_)),
            ),
            (Setting::WeightCap, self.weight_cap.is_some()),
        ])
    }
}

/// The weight of an update in the sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// All updates have weight 1.
    #[default]
    Uniform,
    /// The device's number of samples over the cap, at most 1.
    Samples,
}
