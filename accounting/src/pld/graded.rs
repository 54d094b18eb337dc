//! Composition without a transform, on a graded lattice: for few rounds and a tiny δ.
//!
//! In this case the relevant losses span many orders of magnitude (a sampled round has losses of
//! about τ, and with a probability of about δ one of several nats), so no lattice of equal cells is
//! both fine and short enough for `pld/compose.rs`. Here the cells grow in proportion to the loss,
//! and distributions are convolved term by term. All terms are positive, so nothing cancels, for
//! any small δ.
//!
//! **Above.** A loss between two points is split between them such that its probabilities under P
//! and under Q are unchanged, as in `pld/lattice.rs`, in each round and again after each
//! convolution: each pair is replaced by a dominating one, so the result is an upper bound. Mass
//! below the first point is raised to it. Mass above the last has infinite loss.
//!
//! **Below.** All outcomes of a cell are merged into one, with the sum of their probabilities under
//! P and under Q. This is post-processing, so the result is a lower bound.
//!
//! **Rounding errors.** A sum of two lattice points is off by an ulp: the raised share is increased
//! by the possible effect of this error. Masses are products and sums of positive numbers, accurate
//! to [`ROUNDING`]. Below, errors of the tails lower each P and raise each Q.

use super::kinds::ROUNDING;
use super::lattice::{Edge, between};
use super::pair::Pair;
use super::tail::Side;

/// Ratio of successive points, as long as cells are below the widest.
const RATIO: f64 = 1.06;
/// The widest cell, or this share of the whole lattice if that is larger.
const WIDEST: f64 = 0.2;
const WIDEST_SHARE: f64 = 1.0 / 400.0;
/// The first point above 0, relative to the losses of most outcomes.
const FINEST: f64 = 1e-3;
/// Length of the lattice relative to the largest sum of losses, since splitting spreads them.
const HEADROOM: f64 = 3.0;
/// Maximum number of points of a lattice. Above it, there is no figure.
const MAX_POINTS: f64 = 4096.0;
/// Mass that may be moved to infinite loss, or dropped, as a share of δ, over all rounds.
const NEGLIGIBLE_SHARE: f64 = 1e-6;
/// Halvings of the search for ε.
const BISECTIONS: u32 = 200;

/// Pairs with their numbers of rounds, and the lattice of their composition.
pub(super) struct Graded<'a> {
    pairs: &'a [(Pair, u64)],
    delta: f64,
    points: Vec<f64>,
    /// The index of the point 0.
    origin: usize,
    /// Masses below this are negligible.
    negligible: f64,
    /// Error of the losses of all rounds.
    loss_error: f64,
}

impl<'a> Graded<'a> {
    /// Creates the lattice for one δ. In each round at most about `below` and `above` of the mass
    /// may be out of range. `None` if it would need too many points.
    pub fn new(pairs: &'a [(Pair, u64)], delta: f64, below: f64, above: f64) -> Option<Self> {
        let (mut lowest, mut highest, mut scale) = (0.0_f64, 0.0_f64, 0.0_f64);
        let (mut loss_error, mut rounds) = (0.0, 0.0);
        for (pair, count) in pairs {
            let count = *count as f64;
            let (low, high) = pair.range(below, above);
            lowest += count * low.min(0.0);
            highest += count * high.max(0.0);
            let (left, right) = pair.range(0.25, 0.25);
            scale = scale.max(left.abs()).max(right.abs());
            let largest = low.abs().max(high.abs());
            loss_error += count * (16.0 * f64::EPSILON * (1.0 + largest) + pair.threshold_error());
            rounds += count;
        }
        let finest = FINEST * scale;
        let below = side(finest, -HEADROOM * lowest)?;
        let above = side(finest, HEADROOM * highest)?;
        let origin = below.len();
        let mut points: Vec<f64> = below.iter().rev().map(|point| -point).collect();
        points.push(0.0);
        points.extend(above);
        let negligible = NEGLIGIBLE_SHARE * delta / (rounds * points.len() as f64);
        Some(Self {
            pairs,
            delta,
            points,
            origin,
            negligible,
            loss_error,
        })
    }

    /// Returns an upper bound on ε at δ. Infinite if there is none.
    pub fn upper(&self) -> f64 {
        let rounds = self.pairs.iter().map(|(pair, count)| {
            let round = self.above(pair);
            power(round, *count, |a, b| self.convolve_above(a, b))
        });
        let Some(all) = rounds.reduce(|a, b| self.convolve_above(&a, &b)) else {
            return 0.0;
        };
        let delta = |epsilon: f64| {
            let cells = self.points.iter().zip(&all.masses);
            let finite: f64 = cells
                .map(|(loss, mass)| mass * (-(epsilon - loss).exp_m1()).max(0.0))
                .sum();
            (finite + all.infinite) * (1.0 + ROUNDING)
        };
        let last = self.points.last().copied().unwrap_or(0.0);
        if delta(last) > self.delta {
            return f64::INFINITY;
        }
        let found = bisect(last, |epsilon| delta(epsilon) <= self.delta);
        (found.1 + self.loss_error).max(0.0)
    }

    /// Returns a lower bound on ε at δ, for pairs that two federations attain.
    pub fn lower(&self) -> f64 {
        let rounds = self.pairs.iter().map(|(pair, count)| {
            let round = self.merged(pair);
            power(round, *count, |a, b| self.convolve_merged(a, b))
        });
        let Some(all) = rounds.reduce(|a, b| self.convolve_merged(&a, &b)) else {
            return 0.0;
        };
        let delta = |epsilon: f64| -> f64 {
            let scale = epsilon.exp() * (1.0 + ROUNDING);
            let surplus = |cell: &Cell| (cell.p * (1.0 - ROUNDING) - scale * cell.q).max(0.0);
            all.iter().map(surplus).sum::<f64>() * (1.0 - ROUNDING)
        };
        let last = self.points.last().copied().unwrap_or(0.0);
        bisect(last, |epsilon| delta(epsilon) < self.delta).0
    }

    /// Returns the tails at both ends of cell `index`, between two points, as seen from one side.
    fn ends(&self, pair: &Pair, index: usize) -> (Edge, Edge) {
        let (left, right) = (self.points[index], self.points[index + 1]);
        let split = pair.split();
        let left_side = if left < split {
            Side::Below
        } else {
            Side::Above
        };
        let right_side = if right <= split {
            Side::Below
        } else {
            Side::Above
        };
        let edge = |loss, side| Edge::new(pair, loss, side);
        (edge(left, left_side), edge(right, right_side))
    }

    /// Returns one round, from above.
    fn above(&self, pair: &Pair) -> Above {
        let count = self.points.len();
        let mut masses = vec![0.0; count];
        for index in 0..count - 1 {
            let (left, right) = self.ends(pair, index);
            let cell = between(&left, &right, left.loss);
            let mass = (cell.mass + cell.error).max(0.0);
            let width = -(left.loss - right.loss).exp_m1();
            let raised = ((cell.excess + cell.error) / width).clamp(0.0, mass);
            masses[index] += mass - raised;
            masses[index + 1] += raised;
        }
        masses[self.origin] += pair.atom();
        // Mass below the first point, which is at most 1 minus all other mass.
        let first = Edge::new(pair, self.points[0], Side::Below).tail;
        masses[0] += first.p + first.error;
        let last = Edge::new(pair, self.points[count - 1], Side::Above).tail;
        Above {
            masses,
            infinite: last.p + last.error,
        }
        .without(self.negligible)
    }

    fn convolve_above(&self, a: &Above, b: &Above) -> Above {
        let last = self.points.len() - 1;
        let mut masses = vec![0.0; last + 1];
        let total: f64 = b.masses.iter().sum::<f64>() + b.infinite;
        let finite: f64 = a.masses.iter().sum();
        let mut infinite = a.infinite * total + finite * b.infinite;
        // 1 / (1 - e^-width) of each cell.
        let inverse: Vec<f64> = self
            .points
            .windows(2)
            .map(|ends| -1.0 / (ends[0] - ends[1]).exp_m1())
            .collect();
        for (at_a, mass_a) in self.points.iter().zip(&a.masses) {
            if *mass_a <= 0.0 {
                continue;
            }
            let mut cell = 0;
            for (at_b, mass_b) in self.points.iter().zip(&b.masses) {
                let mass = mass_a * mass_b;
                if mass <= 0.0 {
                    continue;
                }
                let loss = at_a + at_b;
                while cell < last && self.points[cell + 1] <= loss {
                    cell += 1;
                }
                if cell == last {
                    infinite += mass;
                    continue;
                }
                let above_left = loss - self.points[cell];
                if above_left <= 0.0 {
                    masses[cell] += mass;
                    continue;
                }
                let doubt = 4.0 * f64::EPSILON * (loss.abs() + above_left);
                let share = (doubt - (-above_left).exp_m1()) * inverse[cell];
                let raised = mass * share.min(1.0);
                masses[cell] += mass - raised;
                masses[cell + 1] += raised;
            }
        }
        Above { masses, infinite }.without(self.negligible)
    }

    /// Returns one round, from below: the cells in the order of their losses.
    fn merged(&self, pair: &Pair) -> Vec<Cell> {
        let count = self.points.len();
        let mut cells = Vec::with_capacity(count + 2);
        let outer = |index: usize, side| Edge::new(pair, self.points[index], side);
        let mut put = |mass: f64, scaled_q: f64, error: f64, loss: f64| {
            let p = mass - error;
            let q = (scaled_q + error) * (-loss).exp() * (1.0 + ROUNDING);
            if p > self.negligible && q > 0.0 {
                cells.push(Cell::new(p, q));
            }
        };
        let first = outer(0, Side::Below).tail;
        put(first.p, first.scaled_q, first.error, self.points[0]);
        for index in 0..count - 1 {
            let (left, right) = self.ends(pair, index);
            let cell = between(&left, &right, left.loss);
            if index == self.origin && pair.atom() > 0.0 {
                put(pair.atom(), pair.atom(), f64::EPSILON, 0.0);
            }
            put(cell.mass, cell.mass - cell.excess, cell.error, left.loss);
        }
        let last = outer(count - 1, Side::Above).tail;
        put(last.p, last.scaled_q, last.error, self.points[count - 1]);
        cells
    }

    fn convolve_merged(&self, a: &[Cell], b: &[Cell]) -> Vec<Cell> {
        let last = self.points.len();
        let mut sums = vec![(0.0, 0.0); last + 1];
        for one in a {
            let mut place = 0;
            for other in b {
                let loss = one.loss + other.loss;
                while place < last && self.points[place] <= loss {
                    place += 1;
                }
                let sum = &mut sums[place];
                sum.0 += one.p * other.p;
                sum.1 += one.q * other.q;
            }
        }
        let is_kept = |(p, q): &&(f64, f64)| *p > self.negligible && *q > 0.0;
        sums.iter()
            .filter(is_kept)
            .map(|&(p, q)| Cell::new(p, q))
            .collect()
    }
}

/// Masses under P at the points of a lattice, and at infinite loss.
#[derive(Clone)]
struct Above {
    masses: Vec<f64>,
    infinite: f64,
}

impl Above {
    /// Moves negligible masses to infinite loss, which raises the bound.
    fn without(mut self, negligible: f64) -> Self {
        for mass in &mut self.masses {
            if *mass < negligible {
                self.infinite += *mass;
                *mass = 0.0;
            }
        }
        self
    }
}

/// Merged outcomes: at most their probability under P, and at least their probability under Q.
#[derive(Clone, Copy)]
struct Cell {
    p: f64,
    q: f64,
    loss: f64,
}

impl Cell {
    fn new(p: f64, q: f64) -> Self {
        let loss = (p / q).ln();
        Self { p, q, loss }
    }
}

/// Returns the points on one side of 0, up to at least `end`.
fn side(finest: f64, end: f64) -> Option<Vec<f64>> {
    if end <= 0.0 {
        return Some(vec![finest]);
    }
    let count = (end / finest).ln() / RATIO.ln() + 1.0 / WIDEST_SHARE;
    let is_possible = finest > 0.0 && count < MAX_POINTS && end.is_finite();
    is_possible.then(|| {
        let widest = WIDEST.max(WIDEST_SHARE * end);
        let mut points = vec![finest];
        let mut point = finest;
        while point < end {
            point += ((RATIO - 1.0) * point).min(widest);
            points.push(point);
        }
        points
    })
}

/// Convolves `count` copies of `round` by repeated squaring.
fn power<T: Clone>(round: T, count: u64, convolve: impl Fn(&T, &T) -> T) -> T {
    let mut result: Option<T> = None;
    let mut square = round.clone();
    let mut left = count;
    while left > 0 {
        if left % 2 == 1 {
            result = Some(match result {
                Some(found) => convolve(&found, &square),
                None => square.clone(),
            });
        }
        left /= 2;
        if left > 0 {
            square = convolve(&square, &square);
        }
    }
    result.unwrap_or(round)
}

/// Finds where `holds` becomes true. It must be true at `last`, and above any point where it is
/// true. Returns neighbours below and above the change. Both are 0 if it holds at 0.
fn bisect(last: f64, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    if holds(0.0) {
        return (0.0, 0.0);
    }
    let (mut low, mut high) = (0.0, last);
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    (low, high)
}
