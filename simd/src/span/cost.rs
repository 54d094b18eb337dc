//! Choice between training in the span of a device's samples and direct training, by counting
//! operations.

use std::num::NonZeroU32;

use smolfed_core::personal::Effort;

/// Work of a device in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Number of samples n.
    pub samples: usize,
    /// Number of features D.
    pub features: usize,
    /// Number of scores C per sample.
    pub outputs: usize,
    /// Number of local steps.
    pub steps: u64,
    /// Number of sample visits over all steps and epochs.
    pub visits: u64,
    /// Whether a model other than the start of training pulls.
    pub is_pulled: bool,
}

impl Work {
    /// Returns the work of a device with these numbers of samples, features and outputs.
    #[must_use]
    pub fn new(
        samples: usize,
        features: usize,
        outputs: usize,
        effort: Effort,
        batch_size: NonZeroU32,
    ) -> Self {
        let batch = u64::from(batch_size.get());
        let of_epoch = samples as u64;
        let steps_of_epoch = of_epoch.div_ceil(batch);
        let (steps, visits) = match effort {
            Effort::Epochs(epochs) => {
                let epochs = u64::from(epochs);
                (epochs * steps_of_epoch, epochs * of_epoch)
            }
            Effort::Steps(steps) => {
                let steps = u64::from(steps.get());
                let steps_of_epoch = steps_of_epoch.max(1);
                let begun = (steps % steps_of_epoch * batch).min(of_epoch);
                (steps, steps / steps_of_epoch * of_epoch + begun)
            }
        };
        Self {
            samples,
            features,
            outputs,
            steps,
            visits,
            is_pulled: false,
        }
    }

    /// Returns the same work with a pull to a model other than the start of training.
    #[must_use]
    pub const fn with_pull(self, is_pulled: bool) -> Self {
        Self { is_pulled, ..self }
    }
}

/// Returns whether training in the span of the samples takes fewer operations than direct training.
///
/// Counts multiplications and additions, in the symbols of [`Work`], with v visits in s steps:
///
/// | direct | |
/// | --- | --- |
/// | scores and gradients | 4 v C D |
/// | a step with its norm and the model | 12 s C (D + 1) |
///
/// | in the span | |
/// | --- | --- |
/// | first scores, and again with a pull | 2 n C D, or 4 n C D |
/// | the update | 2 n C D |
/// | the Gram matrix | n (n + 1) D |
/// | products with its columns | 2 v n C |
/// | norms | 6 s n C |
///
/// The Gram matrix counts in full although it may be cached, so the choice, and therefore the bits,
/// does not depend on memory. Operations in the span take about half the time of direct ones, which
/// is also ignored. The choice errs towards the direct way.
#[must_use]
pub fn is_cheaper(work: &Work) -> bool {
    let Work {
        samples,
        features,
        outputs,
        steps,
        visits,
        is_pulled,
    } = *work;
    // In floating point, where nothing overflows and rounding does not matter.
    let [n, d, c] = [samples, features, outputs].map(|x| x as f64);
    let [s, v] = [steps, visits].map(|x| x as f64);
    let direct = 4.0 * v * c * d + 12.0 * s * c * (d + 1.0);
    let bases = if is_pulled { 2.0 } else { 1.0 };
    let passes = (2.0 * bases + 2.0) * n * c * d;
    let gram = n * (n + 1.0) * d;
    passes + gram + 2.0 * v * n * c + 6.0 * s * n * c < direct
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: NonZeroU32 = NonZeroU32::new(10).unwrap();

    #[test]
    fn work_counts_the_steps_of_epochs_and_of_broken_off_ones() {
        let work = |effort| Work::new(25, 3, 2, effort, TEN);
        let found = work(Effort::Epochs(4));
        assert_eq!((found.steps, found.visits), (12, 100));
        let found = work(Effort::Steps(TEN));
        // Three epochs of three steps each, and one step of ten samples in a fourth epoch.
        assert_eq!((found.steps, found.visits), (10, 85));
    }

    #[test]
    fn the_span_is_for_few_samples_in_many_dimensions_and_several_epochs() {
        let is_cheaper =
            |n, d, c, epochs| is_cheaper(&Work::new(n, d, c, Effort::Epochs(epochs), TEN));
        assert!(is_cheaper(50, 784, 10, 5), "the reference round");
        assert!(is_cheaper(1, 784, 10, 5), "one sample");
        assert!(!is_cheaper(50, 784, 10, 1), "one epoch");
        assert!(!is_cheaper(600, 784, 10, 5), "many samples");
        assert!(!is_cheaper(50, 8, 1, 5), "few dimensions");
        assert!(is_cheaper(600, 784, 10, 100), "many epochs");
        assert!(!is_cheaper(0, 784, 10, 5), "no samples");
    }

    #[test]
    fn a_pull_costs_another_pass() {
        let work = Work::new(50, 784, 10, Effort::Epochs(2), TEN);
        assert!(is_cheaper(&work) && !is_cheaper(&work.with_pull(true)));
    }
}
