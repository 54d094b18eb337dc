//! How the devices of a round are drawn, as a statement names it.

use std::fmt;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smolfed_accounting::Sampling;

/// How the devices of a round are drawn.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum SamplingScheme {
    /// A cohort of fixed size, drawn without replacement. The adjacency is replace-one.
    #[default]
    Uniform,
    /// Each device independently with the same probability. The adjacency is add-remove.
    Poisson,
    /// All devices in every round. The adjacency is add-remove.
    Full,
    /// Devices take part when they are available: no amplification. The adjacency is add-remove.
    Unsampled,
    /// Every device in every b-th round, b the separation of correlated noise: experiments only,
    /// accounted as unsampled.
    #[value(skip)]
    Rotation,
    /// Devices take part when they are available, at most as often and at least as far apart as
    /// correlated noise allows: experiments only, accounted as unsampled.
    #[value(skip)]
    Arrival,
    /// Devices wake, train from the newest model and send their update when they are awake again.
    /// It counts in the window of time in which it arrives. Experiments only, accounted as
    /// unsampled.
    #[value(skip)]
    Buffered,
    /// With correlated noise: the population is split into --separation parts, which take turns.
    /// Each device of the current part is drawn independently. The adjacency is add-remove.
    BlockCyclic,
}

impl SamplingScheme {
    /// Returns the name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Poisson => "poisson",
            Self::Full => "full",
            Self::Unsampled => "unsampled",
            Self::Rotation => "rotation",
            Self::Arrival => "arrival",
            Self::Buffered => "buffered",
            Self::BlockCyclic => "block-cyclic",
        }
    }
}

impl fmt::Display for SamplingScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Sampling> for SamplingScheme {
    fn from(sampling: Sampling) -> Self {
        match sampling {
            Sampling::Uniform { .. } => Self::Uniform,
            Sampling::Poisson { .. } => Self::Poisson,
            Sampling::Full { .. } => Self::Full,
            Sampling::Unsampled { .. } => Self::Unsampled,
            Sampling::BlockCyclic { .. } => Self::BlockCyclic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_that_of_files() {
        for scheme in [
            SamplingScheme::Uniform,
            SamplingScheme::Poisson,
            SamplingScheme::Full,
            SamplingScheme::Unsampled,
            SamplingScheme::Rotation,
            SamplingScheme::Arrival,
            SamplingScheme::Buffered,
            SamplingScheme::BlockCyclic,
        ] {
            let text = serde_json::to_string(&scheme).unwrap();
            assert_eq!(text, format!("\"{}\"", scheme.name()));
        }
    }
}
