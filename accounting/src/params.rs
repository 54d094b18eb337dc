//! Types of ε, δ, noise multiplier, sampling rate, clip norm and sensitivity, whose ranges are
//! checked once, on construction. Errors for numbers outside these ranges, and texts of δ such as
//! `1/N^1.1`.
//!
//! ```
//! use smolfed_accounting::params::{Delta, DeltaSpec};
//! let spec: DeltaSpec = "1/N^1.1".parse()?;
//! assert!((spec.resolve(1_000)?.get() - 5.011_872e-4).abs() < 1e-9);
//! # Ok::<(), smolfed_accounting::params::ParamError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An invalid number: its name, its value and the valid range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// The number lies outside the range of its type.
    #[error("the {name} is {value}: it must be {range}")]
    OutOfRange {
        /// The name of the number.
        name: &'static str,
        /// The refused value.
        value: f64,
        /// The valid range.
        range: &'static str,
    },
    /// A delta is neither a number nor of the form `1/N^p`.
    #[error("delta is `{text}`: write a number such as 1e-5, or `1/N` or `1/N^1.1`")]
    DeltaText {
        /// The given text.
        text: String,
    },
    /// A power of the number of devices for one device.
    #[error("with a single device, 1/N^p is 1: write a number such as 1e-5")]
    DeltaOfOneDevice,
    /// A trust model is none of the three.
    #[error(
        "the trust model is `{text}`: write `central`, `local`, `distributed`, or \
         `distributed=M/T` with M helpers, if T of them and the coordinator may collude"
    )]
    TrustText {
        /// The given text.
        text: String,
    },
    /// No party is left to be trusted, or there are too many parties.
    #[error(
        "{helpers} helpers, and {colluding} parties that may collude: there must be 1 to 8 \
         helpers, and at least one of the helpers and the coordinator, but not all, may collude"
    )]
    Parties {
        /// m.
        helpers: u8,
        /// t.
        colluding: u8,
    },
    /// The cohort has more devices than the federation, or none.
    #[error(
        "the cohort size is {cohort_size}: it must be from 1 to the device count {device_count}"
    )]
    CohortSize {
        /// Requested devices in each round.
        cohort_size: u32,
        /// The number of devices.
        device_count: u32,
    },
    /// A user has no device, or more than the federation has.
    #[error(
        "the number of devices per user is {devices}: it must be from 1 to the device count \
         {device_count}"
    )]
    DevicesPerUser {
        /// Maximum number of devices of one user.
        devices: u32,
        /// The number of devices.
        device_count: u32,
    },
    /// Users have several devices, but an example is protected.
    #[error(
        "the number of devices per user is {devices}: it must be 1 if the unit of privacy is an \
         example of one device"
    )]
    UsersOfExamples {
        /// Maximum number of devices of one user.
        devices: u32,
    },
    /// Users have several devices, which may be in different parts of the population.
    #[error(
        "the number of devices per user is {devices}: it must be 1 with block-cyclic sampling, \
         where the rounds of a user's devices would overlap"
    )]
    UsersOfParts {
        /// Maximum number of devices of one user.
        devices: u32,
    },
    /// There are more parts than devices, or none.
    #[error(
        "the number of parts that take turns is {parts}: it must be from 1 to the device count \
         {device_count}"
    )]
    Parts {
        /// Number of parts of the population.
        parts: u32,
        /// The number of devices.
        device_count: u32,
    },
    /// The federation has no devices.
    #[error("the device count is 0: a federation has at least one device")]
    NoDevices,
    /// No device may ever take part in an `unsampled` federation.
    #[error("`max_participations` is 0: a device that never takes part needs no accounting")]
    NoParticipations,
}

/// Declares a newtype over `f64` whose constructor checks the range. Deserialisation uses it, too.
macro_rules! checked_number {
    ($(#[$doc:meta])* $type:ident, $name:literal, $range:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $type(f64);

        impl $type {
            #[doc = concat!("Takes a ", $name, ", which must be ", $range, ".")]
            ///
            /// # Errors
            /// [`ParamError::OutOfRange`] for anything else, NaN included.
            pub fn new(value: f64) -> Result<Self, ParamError> {
                let check: fn(f64) -> bool = $check;
                if check(value) {
                    Ok(Self(value))
                } else {
                    Err(ParamError::OutOfRange { name: $name, value, range: $range })
                }
            }

            /// Returns the plain number.
            #[must_use]
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $type {
            type Error = ParamError;
            fn try_from(value: f64) -> Result<Self, ParamError> {
                Self::new(value)
            }
        }

        impl From<$type> for f64 {
            fn from(number: $type) -> f64 {
                number.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

checked_number!(
    /// z: the noise std on the sum of the cohort's updates over the clip norm of one device.
    /// Relative to the clip norm for either adjacency. Zero means no noise and no privacy.
    NoiseMultiplier,
    "noise multiplier",
    "finite and at least 0",
    |value| value.is_finite() && value >= 0.0
);
checked_number!(
    /// ε as a target or a budget: above 0. Infinity means that no privacy is required.
    Epsilon,
    "epsilon",
    "above 0",
    |value| value > 0.0
);
checked_number!(
    /// δ: the probability with which the bound ε may fail, in (0, 1).
    Delta,
    "delta",
    "above 0 and below 1",
    |value| value > 0.0 && value < 1.0
);
checked_number!(
    /// τ: the probability with which one device is in a round, in (0, 1].
    SamplingRate,
    "sampling rate",
    "above 0 and at most 1",
    |value| value > 0.0 && value <= 1.0
);
checked_number!(
    /// L: the bound on the L2 norm of one device's update, in units of the parameters.
    ClipNorm,
    "clip norm",
    "finite and above 0",
    |value| value.is_finite() && value > 0.0
);
checked_number!(
    /// s: the L2 norm by which one device moves all releases of a run with correlated noise, in
    /// clip norms. At least 1, the norm of a single participation in the last round.
    Sensitivity,
    "sensitivity",
    "finite and at least 1",
    |value| value.is_finite() && value >= 1.0
);

impl NoiseMultiplier {
    /// No noise, and no privacy.
    pub const NONE: Self = Self(0.0);

    /// Returns ν = z · L: the noise std on the sum, in units of the parameters.
    #[must_use]
    pub fn noise_std(self, clip_norm: ClipNorm) -> f64 {
        self.0 * clip_norm.0
    }

    /// Returns z = ν / L from the noise std on the sum.
    ///
    /// # Errors
    /// [`ParamError::OutOfRange`] if the quotient is not a noise multiplier.
    pub fn from_noise_std(noise_std: f64, clip_norm: ClipNorm) -> Result<Self, ParamError> {
        Self::new(noise_std / clip_norm.0)
    }
}

/// δ as written: a number, or a power of the number of devices.
///
/// Text forms: `1e-5`, `1/N`, `1/N^1.1`. A δ of 1/N or more would allow a mechanism that publishes
/// all data of one random device. See [`Delta::is_dangerous`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DeltaSpec {
    /// The number itself.
    Number(Delta),
    /// `1/N^power`, N the device count.
    PowerOfDevices {
        /// The exponent p of 1/N^p, which is 1 for `1/N`.
        power: f64,
    },
}

impl DeltaSpec {
    /// Returns the δ of a federation of `device_count` devices.
    ///
    /// # Errors
    /// [`ParamError::DeltaOfOneDevice`], since 1/N is not below 1 for one device.
    /// [`ParamError::OutOfRange`] for a power that makes it 0 or 1.
    pub fn resolve(self, device_count: u32) -> Result<Delta, ParamError> {
        match self {
            Self::Number(delta) => Ok(delta),
            Self::PowerOfDevices { .. } if device_count == 1 => Err(ParamError::DeltaOfOneDevice),
            Self::PowerOfDevices { power } => Delta::new(f64::from(device_count).powf(-power)),
        }
    }
}

impl Delta {
    /// Returns whether δ ≥ 1/N, which would allow a mechanism that publishes one random device's
    /// data.
    #[must_use]
    pub fn is_dangerous(self, device_count: u32) -> bool {
        self.0 * f64::from(device_count) >= 1.0
    }
}

impl FromStr for DeltaSpec {
    type Err = ParamError;

    fn from_str(text: &str) -> Result<Self, ParamError> {
        let refused = || ParamError::DeltaText {
            text: text.to_owned(),
        };
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let Some(denominator) = compact.strip_prefix("1/") else {
            return Delta::new(compact.parse().map_err(|_| refused())?).map(Self::Number);
        };
        let Some(exponent) = denominator.strip_prefix(['N', 'n']) else {
            let number: f64 = denominator.parse().map_err(|_| refused())?;
            return Delta::new(1.0 / number).map(Self::Number);
        };
        let power = match exponent.strip_prefix('^') {
            Some(digits) => digits.parse().map_err(|_| refused())?,
            None if exponent.is_empty() => 1.0,
            None => return Err(refused()),
        };
        if f64::is_finite(power) && power > 0.0 {
            Ok(Self::PowerOfDevices { power })
        } else {
            Err(refused())
        }
    }
}

impl fmt::Display for DeltaSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(delta) => write!(f, "{:e}", delta.get()),
            Self::PowerOfDevices { power } if (power - 1.0).abs() < f64::EPSILON => {
                f.write_str("1/N")
            }
            Self::PowerOfDevices { power } => write!(f, "1/N^{power}"),
        }
    }
}

/// The form in files: a number as a number and a power as text. Both are accepted.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RawDelta {
    Number(f64),
    Text(String),
}

impl Serialize for DeltaSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(delta) => RawDelta::Number(delta.get()),
            Self::PowerOfDevices { .. } => RawDelta::Text(self.to_string()),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DeltaSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match RawDelta::deserialize(deserializer)? {
            RawDelta::Number(value) => Delta::new(value).map(Self::Number),
            RawDelta::Text(text) => text.parse(),
        }
        .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_refused_by_every_number() {
        assert!(NoiseMultiplier::new(f64::NAN).is_err());
        assert!(Epsilon::new(f64::NAN).is_err());
        assert!(Delta::new(f64::NAN).is_err());
        assert!(SamplingRate::new(f64::NAN).is_err());
        assert!(ClipNorm::new(f64::NAN).is_err());
        assert!(Sensitivity::new(f64::NAN).is_err());
    }

    #[test]
    fn the_ends_of_the_ranges_are_where_the_docs_say() {
        assert!(NoiseMultiplier::new(0.0).is_ok() && NoiseMultiplier::new(-1e-300).is_err());
        assert!(Epsilon::new(f64::INFINITY).is_ok() && Epsilon::new(0.0).is_err());
        assert!(Delta::new(0.0).is_err() && Delta::new(1.0).is_err());
        assert!(SamplingRate::new(1.0).is_ok() && SamplingRate::new(0.0).is_err());
        assert!(Sensitivity::new(1.0).is_ok() && Sensitivity::new(0.999).is_err());
    }

    #[test]
    fn delta_is_read_in_all_its_forms() {
        let read = |text: &str| text.parse::<DeltaSpec>().unwrap().resolve(1_000).unwrap();
        assert!((read("1e-5").get() - 1e-5).abs() < 1e-20);
        assert!((read("1/N").get() - 1e-3).abs() < 1e-18);
        assert!((read(" 1 / N^1.1 ").get() - 1000f64.powf(-1.1)).abs() < 1e-18);
        assert!((read("1/1000").get() - 1e-3).abs() < 1e-18);
    }

    #[test]
    fn wrong_deltas_are_refused_with_a_sentence() {
        for text in [
            "", "N", "1/N^", "1/N^x", "1/N^-1", "1/Nx", "2", "0", "1/0.5", "-1", "NaN",
        ] {
            let error = text.parse::<DeltaSpec>().unwrap_err().to_string();
            assert!(
                error.starts_with("delta is") || error.starts_with("the delta is"),
                "{error}"
            );
        }
        assert!("1/N".parse::<DeltaSpec>().unwrap().resolve(1).is_err());
    }

    #[test]
    fn delta_keeps_its_form_through_a_file() {
        for text in ["\"1/N^1.1\"", "\"1/N\"", "0.00001"] {
            let spec: DeltaSpec = serde_json::from_str(text).unwrap();
            let again: DeltaSpec =
                serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
            assert_eq!(spec, again);
        }
        assert!(serde_json::from_str::<DeltaSpec>("1.5").is_err());
    }

    #[test]
    fn a_delta_of_one_over_the_devices_is_dangerous() {
        assert!(Delta::new(1e-3).unwrap().is_dangerous(1_000));
        assert!(!Delta::new(9e-4).unwrap().is_dangerous(1_000));
    }
}
