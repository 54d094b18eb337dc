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
    /// Which devices take part in a round.
    #[serde(deserialize_with = "of_experiments")]
    pub sampling: SamplingScheme,
    /// S: number of devices in a round. Give either this key or the sampling rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohort_size: Option<u32>,
    /// S / N. This is τ except for block-cyclic sampling, where a device of the round's part is
    /// drawn with b times this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<f64>,
    /// The divisor of the sum: "expected", "realised" or a number of updates.
    #[schemars(with = "crate::config::schema::NumberOrText")]
    pub denominator: Denominator,
    /// The weight of an update in the sum. The default is "samples" for encoders that learn without
    /// labels and clip nothing, and "uniform" for everything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighting: Option<Weighting>,
    /// The number of samples at which the weight stops growing. Private updates require it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_cap: Option<u32>,
    /// The length of a round of "buffered", a window of time such as "1h". A simulation has "1h" by
    /// default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<TimeSpan>,
    /// s: for "buffered", the number of windows after its model's window in which an update still
    /// counts. The default is 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staleness: Option<u32>,
    /// For "buffered": when simulated devices are awake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability: Option<AvailabilityConfig>,
}

/// `[cohort.availability]`: when simulated devices are awake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AvailabilityConfig {
    /// Which devices wake when.
    pub pattern: Pattern,
    /// How long a device stays awake.
    pub awake: TimeSpan,
    /// The time from one waking to the next.
    pub period: TimeSpan,
    /// The time awake that a device needs from the model to its update.
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
