//! Which way is cheaper, by counting.

use std::num::NonZeroU32;

use smolfed_core::personal::Effort;

/// What a device has to do in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Samples n.
    pub samples: usize,
    /// Features D.
    pub features: usize,
    /// Scores of a sample C.
    pub outputs: usize,
    /// Local steps, and samples that they look at.
    pub steps: u64,
    /// Samples of all steps together: those of every epoch.
    pub visits: u64,
    /// Whether a model other than the one that training starts from pulls.
    pub is_pulled: bool,
}

impl Work {
    /// The work of a device with so many samples and a model of so many features and outputs.
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

    /// The same with a pull to a model other than the one that training starts from.
    #[must_use]
    pub const fn with_pull(self, is_pulled: bool) -> Self {
        Self { is_pulled, ..self }
    }
}

/// Whether training in the span of the samples takes fewer operations than training directly.
///
/// Multiplications and additions, in the symbols of [`Work`], v visits in s steps:
///
/// | direct | |
/// | --- | --- |
/// | scores and gradients | 4 v C D |
/// | a step with its norm and the model | 12 s C (D + 1) |
///
/// | in the span | |
/// | --- | --- |
/// | first scores, and again where there is a pull | 2 n C D, or 4 n C D |
/// | the update | 2 n C D |
/// | the Gram matrix | n (n + 1) D |
/// | products with its columns | 2 v n C |
/// | norms | 6 s n C |
///
/// The Gram matrix counts in full although it may have been kept: so the way, and with it the bits,
/// does not depend on memory. Operations in the span take about half the time of direct ones, which
/// is left out as well: the choice errs towards the direct way.
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
    // In floating point, where nothing overflows and a rounding does not matter.
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
        // Three epochs of three steps, and ten samples of a fourth.
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
