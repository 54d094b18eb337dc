//! Drawing more devices than the number of needed updates, so that stragglers delay no round.
//!
//! Of S(1 + x) selected devices the first S updates count, and the sum is divided by S. This is a
//! quorum of a larger cohort: the privacy argument of [`crate::quorum`] holds, and ε counts all
//! selected devices, since any of them may be among the first. The denominator S is known
//! beforehand. A round that ends with fewer updates is still divided by it.
//!
//! Source: Bonawitz et al. 2019, "Towards federated learning at scale: system design",
//! arXiv:1902.01046, section 2.2, which draws 130 % of the target.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use smolfed_engine::config::Config;
use smolfed_engine::tables::CohortSampling;
use smolfed_engine::tables::Denominator;

/// Additional devices to draw, as a share of the needed updates: above 0, at most 9.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverSelection(f64);

/// Error for impossible over-selection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverSelectionError {
    /// The share is out of range.
    #[error("expected a share of the cohort above 0 and up to 9, for example 0.25")]
    Share,
    /// Devices are not drawn by number.
    #[error(
        "`--over-select` draws more devices than a cohort of fixed size: use `cohort.sampling` = \
         \"uniform\" and set `cohort.cohort_size`"
    )]
    Sampling,
    /// The experiment sets another denominator.
    #[error(
        "`--over-select` divides the sum by `cohort.cohort_size`: leave out `cohort.denominator`"
    )]
    Denominator,
    /// The federation has too few devices.
    #[error(
        "`--over-select {share}` of a `cohort.cohort_size` of {updates} draws {drawn} devices, and \
         the federation has {devices}: use a smaller share, or smaller cohorts"
    )]
    TooMany {
        /// The share.
        share: String,
        /// S.
        updates: u32,
        /// Number of devices to draw.
        drawn: u32,
        /// Number of existing devices.
        devices: u32,
    },
}

impl FromStr for OverSelection {
    type Err = OverSelectionError;

    fn from_str(text: &str) -> Result<Self, OverSelectionError> {
        let share: f64 = text.parse().map_err(|_| OverSelectionError::Share)?;
        match share > 0.0 && share <= 9.0 {
            true => Ok(Self(share)),
            false => Err(OverSelectionError::Share),
        }
    }
}

impl fmt::Display for OverSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl OverSelection {
    /// Enlarges the cohorts of the experiment and keeps the denominator, for a federation of this
    /// many devices. Returns how many updates end a round.
    ///
    /// # Errors
    /// [`OverSelectionError`], except [`OverSelectionError::Share`]. The experiment is then
    /// unchanged.
    pub fn apply(self, config: &mut Config, devices: u32) -> Result<u32, OverSelectionError> {
        let cohort = &mut config.cohort;
        let updates = cohort.cohort_size.and_then(NonZeroU32::new);
        let (CohortSampling::Uniform, Some(updates)) = (cohort.sampling, updates) else {
            return Err(OverSelectionError::Sampling);
        };
        if cohort.denominator != Denominator::Expected {
            return Err(OverSelectionError::Denominator);
        }
        let drawn = self.drawn(updates.get());
        if drawn > devices {
            return Err(OverSelectionError::TooMany {
                share: self.to_string(),
                updates: updates.get(),
                drawn,
                devices,
            });
        }
        cohort.cohort_size = Some(drawn);
        cohort.denominator = Denominator::Updates(updates);
        Ok(updates.get())
    }

    /// Returns how many devices are drawn for this many updates, rounded up.
    fn drawn(self, updates: u32) -> u32 {
        // Saturates. No federation has that many devices.
        (f64::from(updates) * (1.0 + self.0)).ceil() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFORM: &str = "cohort={sampling=\"uniform\",cohort_size=100}";

    fn config(cohort: &str) -> Config {
        Config::load(None, &[cohort.parse().unwrap()]).unwrap()
    }

    fn over(share: &str) -> OverSelection {
        share.parse().unwrap()
    }

    #[test]
    fn shares_are_parsed() {
        for text in ["0", "-0.1", "9.1", "nan", "inf", "", "25%"] {
            let refused = text.parse::<OverSelection>();
            assert_eq!(refused, Err(OverSelectionError::Share), "{text}");
        }
        for (share, updates, drawn) in [("0.25", 100, 125), ("0.3", 3, 4), ("1e-9", 1, 2)] {
            assert_eq!(over(share).drawn(updates), drawn, "{share} of {updates}");
        }
    }

    /// The accounting uses the number of selected devices, and the denominator the number of
    /// updates that end a round.
    #[test]
    fn cohorts_are_larger_and_the_denominator_is_that_of_before() {
        let mut config = config(UNIFORM);
        assert_eq!(over("0.25").apply(&mut config, 125), Ok(100));
        assert_eq!(config.cohort.cohort_size, Some(125));
        let updates = NonZeroU32::new(100).unwrap();
        assert_eq!(config.cohort.denominator, Denominator::Updates(updates));
        // The run directory has both: a replay divides by the same number.
        let written = config.to_toml().unwrap();
        assert!(written.contains("\ndenominator = 100\n"), "{written}");
        assert_eq!(Config::parse(&written, "written", &[]).unwrap(), config);
    }

    #[test]
    fn experiments_without_a_fixed_cohort_are_refused() {
        for cohort in [
            "cohort={sampling=\"poisson\",cohort_size=100}",
            "cohort={sampling=\"uniform\",sampling_rate=0.5}",
            "cohort={sampling=\"full\"}",
        ] {
            let refused = over("0.25").apply(&mut config(cohort), 280);
            assert_eq!(refused, Err(OverSelectionError::Sampling), "{cohort}");
        }
        let mut divided = config(UNIFORM);
        divided.cohort.denominator = Denominator::Realised;
        let refused = over("0.25").apply(&mut divided, 280);
        assert_eq!(refused, Err(OverSelectionError::Denominator));
        let mut config = config(UNIFORM);
        let refused = over("0.25").apply(&mut config, 124).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`--over-select 0.25` of a `cohort.cohort_size` of 100 draws 125 devices, and the \
             federation has 124: use a smaller share, or smaller cohorts"
        );
        assert_eq!(config.cohort.cohort_size, Some(100));
    }
}
