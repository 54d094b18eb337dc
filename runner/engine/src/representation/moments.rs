//! Mean, second moment and principal axes of some representations.

use super::Labelled;
use super::eigen::symmetric_eigen;

/// Share of the mean squared length below which a direction's variance is only rounding: its
/// standard deviation is 10⁻⁶ of a length, a few last bits of `f32`.
const ROUNDING: f64 = 1e-12;

/// Converts a number of a representation. Non-finite numbers count as zero.
fn number(x: &f32) -> f64 {
    if x.is_finite() { f64::from(*x) } else { 0.0 }
}

/// Computes the mean of `(z − centre)(z − centre)ᵀ`, with only the upper triangle filled. Without
/// samples, it is zero.
pub(super) fn second_moment(samples: &Labelled, centre: &[f64]) -> Vec<f64> {
    let width = samples.width;
    let mut sum = vec![0.0; width * width];
    let mut z = vec![0.0; width];
    for row in samples.rows() {
        for ((z, x), centre) in z.iter_mut().zip(row).zip(centre) {
            *z = number(x) - centre;
        }
        for (index, (row, a)) in sum.chunks_exact_mut(width).zip(&z).enumerate() {
            for (entry, b) in row.iter_mut().zip(&z).skip(index) {
                *entry += a * b;
            }
        }
    }
    let count = samples.len().max(1) as f64;
    sum.iter().map(|entry| entry / count).collect()
}

/// The principal axes of some representations, in which their coordinates are uncorrelated.
pub(super) struct Axes {
    mean: Vec<f64>,
    /// Variances along the axes in descending order, without those from rounding.
    pub(super) variances: Vec<f64>,
    /// Variance in all directions.
    pub(super) total: f64,
    /// One row of numbers per axis.
    directions: Vec<f64>,
}

impl Axes {
    pub(super) fn new(samples: &Labelled) -> Self {
        let width = samples.width;
        let count = samples.len().max(1) as f64;
        let mut mean = vec![0.0; width];
        for row in samples.rows() {
            for (mean, x) in mean.iter_mut().zip(row) {
                *mean += number(x) / count;
            }
        }
        let covariance = symmetric_eigen(&second_moment(samples, &mean), width);
        let squared_mean: f64 = mean.iter().map(|x| x * x).sum();
        let total: f64 = covariance.values.iter().sum();
        let rounding = ROUNDING * (squared_mean + total);
        let mut variances = covariance.values;
        variances.retain(|variance| *variance > rounding);
        Self {
            mean,
            variances,
            total,
            directions: covariance.vectors,
        }
    }

    /// Returns the coordinates of a representation along the axes, from the mean.
    pub(super) fn coordinates(&self, row: &[f32]) -> impl Iterator<Item = f64> {
        let axes = self.directions.chunks_exact(self.mean.len().max(1));
        axes.take(self.variances.len()).map(move |axis| {
            let centred = row.iter().zip(&self.mean).map(|(x, mean)| number(x) - mean);
            centred.zip(axis).map(|(x, a)| x * a).sum()
        })
    }
}
