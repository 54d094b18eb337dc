//! Buffered linear Toeplitz coefficients: c_0 = 1 and c_t = Σ w_i θ_i^(t-1), a few numbers for a
//! run of any length.
//!
//! With real-valued noise, one buffer per term replaces the history of a mechanism (Dvijotham et
//! al. 2024, arXiv:2404.16706; McMahan, Xu, Zhang 2024, arXiv:2408.08868). In exact integers the
//! server still keeps the sums of past rounds, as powers of θ are not multiples of 1/256. Here it
//! is only a parametrisation, whose coefficients [`Strategy::from_blt`](super::Strategy::from_blt)
//! uses.

use super::error::CorrelatedError;
use super::lbfgs::minimise;
use super::optimise::{Objective, error};
use super::participation::Participation;
use super::series::Series;

/// Non-negative, non-increasing coefficients: w_i and θ_i are in [0, 1), and Σ w_i is at most 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Blt {
    weights: Vec<f64>,
    decays: Vec<f64>,
}

impl Blt {
    /// Creates coefficients from the weights w and equally many decays θ.
    ///
    /// # Errors
    /// [`CorrelatedError::Blt`] for numbers outside their range, or another number of decays.
    pub fn new(weights: Vec<f64>, decays: Vec<f64>) -> Result<Self, CorrelatedError> {
        let is_share = |x: &f64| (0.0..=1.0).contains(x);
        let is_decay = |x: &f64| (0.0..1.0).contains(x);
        let is_valid = weights.len() == decays.len()
            && weights.iter().all(is_share)
            && decays.iter().all(is_decay)
            && weights.iter().sum::<f64>() <= 1.0;
        match is_valid {
            true => Ok(Self { weights, decays }),
            false => Err(CorrelatedError::Blt),
        }
    }

    /// Returns the parameters with the smallest mean squared error found by L-BFGS, for this number
    /// of buffers. Two or three are enough.
    ///
    /// # Errors
    /// [`CorrelatedError::Blt`] if the search leaves the range of the numbers.
    pub fn optimal(participation: Participation, buffers: usize) -> Result<Self, CorrelatedError> {
        let rounds = participation.rounds() as usize;
        let series = Series::new(rounds);
        let weights = Objective::Mean.weights(rounds);
        // Initial time constants between a few rounds and the separation.
        let spread = |i: usize| (i + 1) as f64 / buffers as f64;
        let reach = f64::from(participation.separation()) + 2.0;
        let start = (0..buffers).map(|_| 0.0);
        let start: Vec<f64> = start
            .chain((0..buffers).map(|i| reach.powf(spread(i)).ln()))
            .collect();
        let found = minimise(start, |free| {
            let blt = Self::of(free);
            let c = blt.coefficients(rounds);
            let (error, slope) = error(&series, &weights, &c);
            let (norm, of_norm) = norm(&c, participation);
            let slopes = slope.iter().zip(&of_norm);
            let slopes: Vec<f64> = slopes.map(|(e, s)| e / error + s / norm).collect();
            ((error * norm).ln(), blt.chain(&slopes))
        });
        let blt = Self::of(&found);
        Self::new(blt.weights, blt.decays)
    }

    /// Returns c_0, c_1, .. for `rounds` rounds.
    #[must_use]
    pub fn coefficients(&self, rounds: usize) -> Vec<f64> {
        let mut terms = self.weights.clone();
        let mut c = vec![1.0];
        while c.len() < rounds {
            c.push(terms.iter().sum());
            let decays = terms.iter_mut().zip(&self.decays);
            decays.for_each(|(term, decay)| *term *= decay);
        }
        c.truncate(rounds);
        c
    }

    /// Creates coefficients from free numbers: w_i = e^(a_i) / (1 + Σ e^(a_j)) and θ_i = e^(b_i) /
    /// (1 + e^(b_i)).
    fn of(free: &[f64]) -> Self {
        let (a, b) = free.split_at(free.len() / 2);
        let powers: Vec<f64> = a.iter().map(|a| a.exp()).collect();
        let total = 1.0 + powers.iter().sum::<f64>();
        Self {
            weights: powers.iter().map(|power| power / total).collect(),
            decays: b.iter().map(|b| 1.0 / (1.0 + (-b).exp())).collect(),
        }
    }

    /// Returns derivatives by the free numbers, from derivatives by the coefficients.
    fn chain(&self, slopes: &[f64]) -> Vec<f64> {
        let (mut by_weight, mut by_b) = (Vec::new(), Vec::new());
        for (weight, decay) in self.weights.iter().zip(&self.decays) {
            // Sums for θ^(t-1) and (t-1) θ^(t-2).
            let (mut of_weight, mut of_decay) = (0.0, 0.0);
            let (mut power, mut slope) = (1.0, 0.0);
            for by_coefficient in slopes.iter().skip(1) {
                of_weight += by_coefficient * power;
                of_decay += by_coefficient * slope;
                slope = slope * decay + power;
                power *= decay;
            }
            by_weight.push(of_weight);
            by_b.push(of_decay * weight * decay * (1.0 - decay));
        }
        // dw_j / da_i = w_j (δ_ij - w_i).
        let pairs = || by_weight.iter().zip(&self.weights);
        let mean: f64 = pairs().map(|(g, w)| g * w).sum();
        let by_a = pairs().map(|(g, w)| w * (g - mean));
        by_a.chain(by_b).collect()
    }
}

/// Returns s² = || Σ_{i<k} C[:, i b] ||² and its derivatives.
fn norm(c: &[f64], participation: Participation) -> (f64, Vec<f64>) {
    let rounds = participation.rounds() as usize;
    let mut rows = vec![0.0; rounds];
    for first in participation.earliest() {
        let rows = rows.iter_mut().skip(first);
        rows.zip(c).for_each(|(row, c)| *row += c);
    }
    let mut slope = vec![0.0; c.len()];
    for first in participation.earliest() {
        let rows = rows.iter().skip(first);
        slope
            .iter_mut()
            .zip(rows)
            .for_each(|(slope, row)| *slope += 2.0 * row);
    }
    (rows.iter().map(|row| row * row).sum(), slope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlated::Strategy;

    #[test]
    fn two_buffers_come_close_to_banded_coefficients() {
        let participation = Participation::new(2052, 342, 6).unwrap();
        let rmse = |buffers| {
            let blt = Blt::optimal(participation, buffers).unwrap();
            let c = blt.coefficients(2052);
            assert!(
                c.windows(2)
                    .all(|pair| pair[0] >= pair[1] && pair[1] >= 0.0)
            );
            let strategy = Strategy::from_blt(participation, &blt).unwrap();
            assert!(strategy.is_sensitivity_exact());
            let weights = Objective::Mean.weights(2052);
            let error = error(&Series::new(2052), &weights, &c).0;
            let real = (error * norm(&c, participation).0).sqrt();
            assert!(
                (strategy.rmse() / real - 1.0).abs() < 0.01,
                "{}",
                strategy.rmse()
            );
            real
        };
        let (one, two, three) = (rmse(1), rmse(2), rmse(3));
        assert!(two <= 9.184, "{two}");
        assert!(
            one > two && two > three && three > 8.8,
            "{one} {two} {three}"
        );
    }

    #[test]
    fn other_numbers_are_refused() {
        let of = |w: &[f64], decays: &[f64]| Blt::new(w.to_vec(), decays.to_vec());
        assert!(of(&[0.5, 0.5], &[0.0, 0.99]).is_ok());
        for (w, decays) in [
            ([0.5, 0.6], [0.1, 0.1]),
            ([-0.1, 0.5], [0.1, 0.1]),
            ([0.1, 0.5], [0.1, 1.0]),
            ([f64::NAN, 0.5], [0.1, 0.1]),
        ] {
            assert_eq!(of(&w, &decays), Err(CorrelatedError::Blt));
        }
        assert_eq!(of(&[0.5], &[]), Err(CorrelatedError::Blt));
    }
}
