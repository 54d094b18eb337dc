//! The banded coefficients with the smallest error: minimises ln(E(c) · s²(c)) by L-BFGS.
//!
//! E is the mean (or the last, which is the largest) of err_t = Σ_{s<=t} B_s², B the coefficients
//! of 1 / ((1 - x) C(x)): a weighted sum Σ w_s B_s² with w_s = (n - s)/n, or 1. s² = Σ a_j c_j² is
//! the squared sensitivity of at most b bands, a_j the number of participations whose column
//! reaches row j before the run ends. As dB/dc_j = -C⁻¹ * B shifted by j,
//! `dE/dc_j = -2 Σ_t w_t B_t (C⁻¹ * B)_{t-j}`: one correlation, in O(n log n).

use super::lbfgs::{dot, minimise};
use super::participation::Participation;
use super::series::Series;
use super::toeplitz::square_root;

/// The objective of the minimisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Objective {
    /// The mean over rounds of the squared error.
    Mean,
    /// The largest squared error, which occurs in the last round.
    Max,
}

impl Objective {
    /// Returns w for a run of `rounds` rounds.
    pub(super) fn weights(self, rounds: usize) -> Vec<f64> {
        let weight = |s: usize| match self {
            Self::Mean => (rounds - s) as f64 / rounds as f64,
            Self::Max => 1.0,
        };
        (0..rounds).map(weight).collect()
    }
}

/// Returns E and its derivatives by the coefficients c.
pub(super) fn error(series: &Series, weights: &[f64], c: &[f64]) -> (f64, Vec<f64>) {
    let b = series.prefix_weights(c);
    let weighted: Vec<f64> = b.iter().zip(weights).map(|(b, w)| b * w).collect();
    // C⁻¹ * B = (1 - x) B * B.
    let mut shifted = series.square(&b);
    let mut before = 0.0;
    for entry in &mut shifted {
        let here = *entry;
        *entry -= before;
        before = here;
    }
    let mut slope = series.correlation(&weighted, &shifted, c.len());
    slope.iter_mut().for_each(|slope| *slope *= -2.0);
    (dot(&weighted, &b), slope)
}

/// Returns c_0 = 1, c_1, .. up to b bands, starting from the square root's coefficients.
pub(super) fn banded(
    participation: Participation,
    objective: Objective,
    series: &Series,
) -> Vec<f64> {
    let problem = Problem::new(participation, objective, series);
    let mut start = square_root(participation.separation() as usize);
    start.remove(0);
    let mut c = vec![1.0];
    c.extend(minimise(start, |free| problem.evaluate(free)));
    c
}

/// Returns the objective and its gradient at c_1, c_2, .., for tests.
#[cfg(test)]
pub(super) fn evaluate(
    participation: Participation,
    objective: Objective,
    series: &Series,
    free: &[f64],
) -> (f64, Vec<f64>) {
    Problem::new(participation, objective, series).evaluate(free)
}

/// The objective as a function of c_1, c_2, ...
struct Problem<'a> {
    /// w.
    weights: Vec<f64>,
    /// a.
    columns: Vec<f64>,
    series: &'a Series,
}

impl<'a> Problem<'a> {
    fn new(participation: Participation, objective: Objective, series: &'a Series) -> Self {
        let rounds = participation.rounds() as usize;
        let reach = |j: usize| {
            let columns = participation.earliest();
            columns.take_while(|first| first + j < rounds).count() as f64
        };
        let bands = participation.separation() as usize;
        Self {
            weights: objective.weights(rounds),
            columns: (0..bands).map(reach).collect(),
            series,
        }
    }

    /// Returns the value and the gradient.
    fn evaluate(&self, free: &[f64]) -> (f64, Vec<f64>) {
        let c: Vec<f64> = [1.0].into_iter().chain(free.iter().copied()).collect();
        let (error, slope) = error(self.series, &self.weights, &c);
        let columns = || c.iter().zip(&self.columns);
        let norm: f64 = columns().map(|(c, a)| a * c * c).sum();
        let of_norm = columns().map(|(c, a)| 2.0 * a * c / norm);
        let gradient = slope.iter().zip(of_norm);
        let gradient = gradient.map(|(slope, of_norm)| of_norm + slope / error);
        ((error * norm).ln(), gradient.skip(1).collect())
    }
}
