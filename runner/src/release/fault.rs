//! Faults that `smolfed audit --fault` plants in the release path, to see that the audit finds
//! them.

/// A fault injected to test whether the audit detects it. Only audits have one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// None: the code as it is.
    #[default]
    None,
    /// The noise is divided by the cohort size, and the noisy sum is then divided by it again.
    NoiseDividedTwice,
    /// Updates are neither clipped nor checked; the canary's is ten times too long.
    ClipSkipped,
    /// The sum is divided by the number of devices drawn.
    RealisedDenominator,
    /// All rounds draw the same noise.
    NoiseStreamReused,
}

impl Fault {
    /// All that can be planted.
    pub const ALL: [Self; 4] = [
        Self::NoiseDividedTwice,
        Self::ClipSkipped,
        Self::RealisedDenominator,
        Self::NoiseStreamReused,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::NoiseDividedTwice => "noise-divided-twice",
            Self::ClipSkipped => "clip-skipped",
            Self::RealisedDenominator => "realised-denominator",
            Self::NoiseStreamReused => "noise-stream-reused",
        }
    }

    /// The number that names the noise streams of a round.
    pub(super) fn noise_number(self, number: u32) -> u32 {
        match self {
            Self::NoiseStreamReused => 0,
            _ => number,
        }
    }
}
