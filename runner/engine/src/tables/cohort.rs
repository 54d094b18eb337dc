//! `[cohort]`: the sampling of the devices that take part in a round, the divisor (denominator) of
//! their sum, and the weight of each update.

use std::fmt;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smolfed_release::SamplingScheme;

use super::time_span::TimeSpan;
use crate::combinations::{Setting, Settings};

/// How the devices of a round are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CohortSampling {
    /// A cohort of fixed size, drawn without replacement.
    #[default]
    Uniform,
    /// Each device independently with the same probability.
    Poisson,
    /// All devices in every round.
    Full,
    /// With correlated noise: every device in every b-th round, where b is the separation.
    Rotation,
    /// With correlated noise: devices take part when they are available, at most as often and at
    /// least as far apart as the noise allows.
    Arrival,
    /// Devices wake, train from the newest model and send their update when they are awake again.
    /// It counts in the window of time in which it arrives.
    Buffered,
    /// With correlated noise: the population is split into b parts, which take turns. Each device
    /// of the current part is drawn independently.
    BlockCyclic,
}

impl From<CohortSampling> for SamplingScheme {
    /// The scheme of the accounting.
    fn from(sampling: CohortSampling) -> Self {
        match sampling {
            CohortSampling::Uniform => Self::Uniform,
            CohortSampling::Poisson => Self::Poisson,
            CohortSampling::Full => Self::Full,
            CohortSampling::BlockCyclic => Self::BlockCyclic,
            CohortSampling::Rotation | CohortSampling::Arrival | CohortSampling::Buffered => {
                Self::Unsampled
            }
        }
    }
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
    pub sampling: CohortSampling,
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
        use CohortSampling::{Arrival, BlockCyclic, Buffered, Full, Poisson, Rotation, Uniform};
        let is = |schemes: &[CohortSampling]| schemes.contains(&self.sampling);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `unsampled` is for accounting alone: it does not say when devices come.
    #[test]
    fn the_schema_names_the_schemes_that_files_accept() {
        let schema = serde_json::to_value(schemars::schema_for!(CohortSampling)).unwrap();
        let variants = schema["oneOf"].as_array().unwrap().iter();
        let names: Vec<&str> = variants.filter_map(|of| of["const"].as_str()).collect();
        assert_eq!(names.len(), 7, "{schema}");
        let read = |name: &str| toml::from_str::<CohortConfig>(&format!("sampling = \"{name}\""));
        for name in &names {
            assert!(read(name).is_ok(), "{name}");
        }
        assert!(!names.contains(&"unsampled") && read("unsampled").is_err());
    }
}
