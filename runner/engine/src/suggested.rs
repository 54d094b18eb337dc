//! Suggested training and privacy (rounds, cohort, local steps, clip norm) for data of which only
//! sizes are known: the defaults of `smolfed init` and of the estimators in Python.
//!
//! They follow from the number of devices, the number of features and, in `smolfed init` alone, the
//! median number of samples per device: no ε covers that number, and an estimator must not read it
//! unasked. None of them trades privacy for accuracy: ε, δ, adjacency and accountant are the
//! user's.

use smolfed_data::dataset::TaskKind;

/// With fewer devices than this, all of them take part in every round. Noise then hides much of
/// what an adaptive clip norm would follow, so the clip norm is fixed.
pub const FEW_DEVICES: u32 = 50;

/// Target number of devices in a round.
const COHORT: f64 = 50.0;

/// Rounds with many devices.
const ROUNDS: u32 = 60;

/// Samples per local step.
pub const BATCH_SIZE: u32 = 10;

/// Target number of local steps in a round, and bounds on the resulting passes over a device's
/// samples. With fewer steps, the step size that follows from the length of a sample is too small.
/// With more, devices drift apart.
const LOCAL_STEPS: u64 = 10;
const EPOCHS: [u64; 2] = [2, 10];

/// Passes if the samples of a device must not be counted.
const USUAL_EPOCHS: u32 = 5;

/// Rounds and clip norm for few devices that predict a value. The weights of a standardised target
/// have a length of at most about 1, which these rounds cover twice. A larger clip norm adds noise
/// to every prediction.
const OF_VALUES: (u32, f64) = (20, 0.1);

/// Rounds and clip norm for few devices that predict a class. The loss favours larger weights, and
/// a class does not change with their length.
const OF_CLASSES: (u32, f64) = (30, 0.2);

/// Settings that suit the sizes of a federation.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggested {
    /// T.
    pub rounds: u32,
    /// Share of the devices in a round, or `None` for all of them.
    pub sampling_rate: Option<f64>,
    /// Passes over the samples of a device.
    pub epochs: u32,
    /// L, or `None` for an adaptive one.
    pub clip_norm: Option<f64>,
}

impl Suggested {
    /// Suggests settings for `devices` devices with a median of `samples` samples. `samples` is
    /// `None` if it must not be read.
    #[must_use]
    pub fn new(devices: u32, samples: Option<u64>, task: TaskKind) -> Self {
        let is_few = devices < FEW_DEVICES;
        let (rounds, clip_norm) = match task {
            TaskKind::Classification => OF_CLASSES,
            TaskKind::Regression => OF_VALUES,
        };
        let rate = (COHORT / f64::from(devices)).clamp(0.01, 0.5);
        let epochs = |samples: u64| {
            let steps = samples.div_ceil(BATCH_SIZE.into()).max(1);
            LOCAL_STEPS.div_ceil(steps).clamp(EPOCHS[0], EPOCHS[1]) as u32
        };
        Self {
            rounds: if is_few { rounds } else { ROUNDS },
            // Two digits for readability.
            sampling_rate: (!is_few).then(|| libm::round(rate * 100.0) / 100.0),
            epochs: samples.map_or(USUAL_EPOCHS, epochs),
            clip_norm: is_few.then_some(clip_norm),
        }
    }
}

/// Returns the maximum length of samples with this number of standardised features, as
/// `data.norm_bound`: √2 times the length of a typical one, to one digit. A category counts as one
/// feature, whatever its number of values.
#[must_use]
pub fn norm_bound(features: usize) -> f64 {
    libm::ceil(libm::sqrt(2.0 * features as f64) * 10.0) / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cohorts_and_passes_follow_from_sizes() {
        use TaskKind::{Classification, Regression};
        let few = Suggested::new(49, Some(8), Regression);
        assert_eq!((few.rounds, few.sampling_rate), (20, None));
        assert_eq!((few.epochs, few.clip_norm), (10, Some(0.1)));
        let few = Suggested::new(49, Some(8), Classification);
        assert_eq!((few.rounds, few.clip_norm), (30, Some(0.2)));
        let many = Suggested::new(210, Some(45), Classification);
        assert_eq!((many.rounds, many.sampling_rate), (60, Some(0.24)));
        assert_eq!((many.epochs, many.clip_norm), (2, None));
        for (samples, epochs) in [(0, 10), (1, 10), (11, 5), (30, 4), (1_000_000, 2)] {
            assert_eq!(
                Suggested::new(100, Some(samples), Regression).epochs,
                epochs,
                "{samples}"
            );
        }
        assert_eq!(
            Suggested::new(1_000_000, None, Regression).sampling_rate,
            Some(0.01)
        );
    }

    #[test]
    fn a_typical_sample_is_not_shortened() {
        for features in 1..1000 {
            let typical = (features as f64).sqrt();
            let bound = norm_bound(features);
            assert!(
                bound > 1.4 * typical && bound < 1.42 * typical + 0.1,
                "{features}"
            );
        }
    }
}
