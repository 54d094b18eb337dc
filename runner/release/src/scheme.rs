//! The sampling schemes of the devices of a round (uniform, Poisson, full, unsampled,
//! block-cyclic), as the accounting distinguishes them.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use smolfed_accounting::Sampling;

/// How the devices of a round are drawn, in statements and on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum SamplingScheme {
    /// A cohort of fixed size, drawn without replacement. The adjacency is replace-one.
    Uniform,
    /// Each device independently with the same probability. The adjacency is add-remove.
    Poisson,
    /// All devices in every round. The adjacency is add-remove.
    Full,
    /// Devices take part when they are available: no amplification. The adjacency is add-remove.
    Unsampled,
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
            SamplingScheme::BlockCyclic,
        ] {
            let text = serde_json::to_string(&scheme).unwrap();
            assert_eq!(text, format!("\"{}\"", scheme.name()));
        }
    }
}
