//! L-BFGS (Nocedal, Wright 2006, Algorithm 7.5) with backtracking, for smooth functions of many
//! numbers. A crate would bring its own vectors, line searches and errors for this one use.

use std::collections::VecDeque;

/// Number of past steps from which the Hessian is estimated.
const MEMORY: usize = 12;
const MAX_STEPS: usize = 200;
/// The search ends after several successive steps that lower the objective by less than this. The
/// objective is twice the logarithm of the error, and rounding the coefficients costs 1e-4.
const TOLERANCE: f64 = 1e-7;
const MAX_SMALL_STEPS: usize = 3;
/// Sufficient decrease (Nocedal, Wright 2006, Eq. 3.4), and the number of halvings of a step to
/// reach it.
const DECREASE: f64 = 1e-4;
const MAX_HALVINGS: usize = 30;

/// The difference of two points and of their gradients.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    /// step · change, above 0.
    curvature: f64,
}

/// Returns the point with the smallest value that L-BFGS finds from `x`.
pub(super) fn minimise(mut x: Vec<f64>, evaluate: impl Fn(&[f64]) -> (f64, Vec<f64>)) -> Vec<f64> {
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

/// Returns the direction of the next step: the negative gradient times the estimated inverse
/// Hessian.
fn descent(gradient: &[f64], pairs: &VecDeque<Pair>) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let Some(latest) = pairs.front() else {
        // A first step of length at most 0.1, for coefficients of about 1.
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

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], factor: f64, v: &[f64]) {
    to.iter_mut().zip(v).for_each(|(to, v)| *to += factor * v);
}
