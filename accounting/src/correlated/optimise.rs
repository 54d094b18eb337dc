//! The banded coefficients with the least error: minimises ln(E(c) · s²(c)) by L-BFGS.
//!
//! E is the mean (or the last, which is the largest) of err_t = Σ_{s<=t} B_s², B the coefficients
//! of 1 / ((1 - x) C(x)): a weighted sum Σ w_s B_s² with w_s = (n - s)/n, or 1. s² = Σ a_j c_j² is
//! the squared sensitivity of at most b bands, a_j the number of participations whose column
//! reaches row j before the run ends. As dB/dc_j = -C⁻¹ * B shifted by j,
//! `dE/dc_j = -2 Σ_t w_t B_t (C⁻¹ * B)_{t-j}`: one correlation, in O(n log n).
//!
//! L-BFGS is that of Nocedal, Wright 2006, Algorithm 7.5, with backtracking. Crates for it bring
//! their own vectors, line searches and errors, for sixty lines of use.

use std::collections::VecDeque;

use super::participation::Participation;
use super::series::Series;
use super::toeplitz::square_root;

/// Differences of past steps that the Hessian is estimated from.
const MEMORY: usize = 12;
const MAX_STEPS: usize = 200;
/// A step by which the objective falls by less ends the search, if so many in a row do: the
/// objective is twice the logarithm of the error, and rounding the coefficients costs 1e-4.
const TOLERANCE: f64 = 1e-7;
const MAX_SMALL_STEPS: usize = 3;
/// Sufficient decrease (Nocedal, Wright 2006, Eq. 3.4), and halvings of a step until it is met.
const DECREASE: f64 = 1e-4;
const MAX_HALVINGS: usize = 30;

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Objective {
    /// The mean over rounds of the squared error.
    Mean,
    /// The largest squared error, which is that of the last round.
    Max,
}

/// c_0 = 1, c_1, .. up to b bands, found from the square root's coefficients.
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

/// The objective and its gradient at c_1, c_2, .., for tests.
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
        let weight = |s: usize| match objective {
            Objective::Mean => (rounds - s) as f64 / rounds as f64,
            Objective::Max => 1.0,
        };
        let reach = |j: usize| {
            let columns = participation.earliest();
            columns.take_while(|first| first + j < rounds).count() as f64
        };
        let bands = participation.separation() as usize;
        Self {
            weights: (0..rounds).map(weight).collect(),
            columns: (0..bands).map(reach).collect(),
            series,
        }
    }

    /// The value and the gradient.
    fn evaluate(&self, free: &[f64]) -> (f64, Vec<f64>) {
        let c: Vec<f64> = [1.0].into_iter().chain(free.iter().copied()).collect();
        let b = self.series.prefix_weights(&c);
        let weighted: Vec<f64> = b.iter().zip(&self.weights).map(|(b, w)| b * w).collect();
        let error = dot(&weighted, &b);
        let columns = || c.iter().zip(&self.columns);
        let norm: f64 = columns().map(|(c, a)| a * c * c).sum();
        // C⁻¹ * B = (1 - x) B * B.
        let mut shifted = self.series.square(&b);
        for t in (1..shifted.len()).rev() {
            if let [before, here] = &mut shifted[t - 1..=t] {
                *here -= *before;
            }
        }
        let slope = self.series.correlation(&weighted, &shifted, c.len());
        let of_norm = columns().map(|(c, a)| 2.0 * a * c / norm);
        let gradient = slope.iter().zip(of_norm);
        let gradient = gradient.map(|(slope, of_norm)| of_norm - 2.0 * slope / error);
        ((error * norm).ln(), gradient.skip(1).collect())
    }
}

/// A difference of two steps and of their gradients.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    /// step · change, above 0.
    curvature: f64,
}

/// The point with the least value that L-BFGS finds from `x`.
fn minimise(mut x: Vec<f64>, evaluate: impl Fn(&[f64]) -> (f64, Vec<f64>)) -> Vec<f64> {
    let (mut value, mut gradient) = evaluate(&x);
    let mut pairs: VecDeque<Pair> = VecDeque::with_capacity(MEMORY);
    let mut small_steps = 0;
    for _ in 0..MAX_STEPS {
        let mut direction = descent(&gradient, &pairs);
        let mut slope = dot(&gradient, &direction);
        if slope.is_nan() || slope >= 0.0 {
            pairs.clear();
            direction = descent(&gradient, &pairs);
            slope = dot(&gradient, &direction);
        }
        let search = |halvings: usize| {
            let size = 0.5_f64.powi(halvings as i32);
            let step: Vec<f64> = direction.iter().map(|d| d * size).collect();
            let next: Vec<f64> = x.iter().zip(&step).map(|(x, s)| x + s).collect();
            let (next_value, next_gradient) = evaluate(&next);
            let is_enough = next_value <= value + DECREASE * size * slope;
            is_enough.then_some((step, next, next_value, next_gradient))
        };
        let Some((step, next, next_value, next_gradient)) = (0..MAX_HALVINGS).find_map(search)
        else {
            break;
        };
        let differences = next_gradient.iter().zip(&gradient);
        let change: Vec<f64> = differences.map(|(new, old)| new - old).collect();
        let curvature = dot(&step, &change);
        if curvature > 0.0 {
            pairs.truncate(MEMORY - 1);
            pairs.push_front(Pair {
                step,
                change,
                curvature,
            });
        }
        small_steps = match value - next_value < TOLERANCE {
            true => small_steps + 1,
            false => 0,
        };
        (x, value, gradient) = (next, next_value, next_gradient);
        if small_steps >= MAX_SMALL_STEPS {
            break;
        }
    }
    x
}

/// The direction of the next step: the negative gradient times the estimated inverse Hessian.
fn descent(gradient: &[f64], pairs: &VecDeque<Pair>) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let Some(latest) = pairs.front() else {
        // A first step of length 0.1 at most, where coefficients are about 1.
        let size = 0.1 / dot(gradient, gradient).sqrt().max(0.1);
        direction.iter_mut().for_each(|d| *d *= size);
        return direction;
    };
    let mut factors = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let factor = dot(&pair.step, &direction) / pair.curvature;
        add(&mut direction, -factor, &pair.change);
        factors.push(factor);
    }
    let scale = latest.curvature / dot(&latest.change, &latest.change);
    direction.iter_mut().for_each(|d| *d *= scale);
    for (pair, factor) in pairs.iter().zip(factors).rev() {
        let correction = factor - dot(&pair.change, &direction) / pair.curvature;
        add(&mut direction, correction, &pair.step);
    }
    direction
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], factor: f64, v: &[f64]) {
    to.iter_mut().zip(v).for_each(|(to, v)| *to += factor * v);
}
