//! Weights by the number of samples.
//!
//! The update of a device with n samples has the weight `min(n, cap) / cap`. No weight exceeds 1,
//! so the sensitivity of the sum is the same as with uniform weights, and the noise is calibrated
//! to the largest weight. The cap must not be chosen from the data.

/// Returns the weight of a device with `samples` samples.
pub(super) fn capped(cap: u32, samples: usize) -> f32 {
    of_count(cap, u32::try_from(samples).unwrap_or(u32::MAX))
}

/// Returns the mean weight of devices with these numbers of samples.
#[must_use]
pub fn mean(cap: u32, samples: impl ExactSizeIterator<Item = u32>) -> f64 {
    let devices = samples.len() as f64;
    let weights = samples.map(|count| f64::from(of_count(cap, count)));
    weights.sum::<f64>() / devices
}

fn of_count(cap: u32, samples: u32) -> f32 {
    samples.min(cap) as f32 / cap as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_weight_is_above_one() {
        assert_eq!(
            [0, 5, 10, 1000].map(|samples| capped(10, samples)),
            [0.0, 0.5, 1.0, 1.0]
        );
    }

    #[test]
    fn the_mean_weight_is_that_of_the_devices() {
        assert_eq!(mean(10, [0, 5, 10, 1_000].into_iter()), 0.625);
    }
}
