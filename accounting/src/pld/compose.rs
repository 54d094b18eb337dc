//! Composition of lattices by fast Fourier transform, with every error bounded.
//!
//! The loss S of all rounds is the sum of their losses, so its masses are a convolution power:
//! transform, raise each coefficient to the number of rounds, multiply different kinds of rounds,
//! transform back.
//!
//! **Tilting.** The relevant masses for a small δ are far below the rounding errors of a transform.
//! So each mass is first multiplied by e^(λ·loss - K(λ)), K the logarithm of the moment generating
//! function, which commutes with convolution: the tilted sum has its bulk at the required δ(ε), and
//! the mass at s is e^(ΣK - λs) times the tilted one. Errors are thus relative to δ, for any small
//! δ.
//!
//! **Window and aliasing.** A transform of n points adds up losses that differ by multiples of W =
//! n·h. With [lo, lo + W) the window, and by Chernoff's bound P(S > s) ≤ e^(K(λ') - λ's):
//! - upper bound: mass above the window appears too low, so the bound on it is added to δ as if its
//!   loss were infinite. Mass below appears too high, which only adds.
//! - lower bound: mass above the window is only lost or, scaled by e^(λW), overestimated if it was
//!   above ε + W. Mass below is counted with weight e^(-λW), or at most e^(ΣK - λε) each. Bounds on
//!   both are subtracted.
//!
//! **Rounding.** A transform of n points by split radices has a relative error in the 2-norm of at
//! most about 7 u log2(n), u = 2⁻⁵³ (Higham 2002, *Accuracy and Stability of Numerical Algorithms*,
//! Theorem 24.2). `TRANSFORM_ULPS` = 8 in units of 2u, and two stages more, is above twice that. A
//! coefficient F with error a gives F^c an error of at most c·a·(|F| + a)^(c-1). Logarithm, angle
//! and exponential add a relative 4c(1 + |ln F|) units. The sum of these over all coefficients
//! bounds the error of each mass. (The largest mass of a round, often nearly 1, is left out of the
//! transform, so its errors count only for the rest.) The error is added to (subtracted from) every
//! mass, and negative results become zero.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::fourier::{Complex, Transform};

use super::composed::{Bound, Composed};
use super::lattice::Lattice;
use super::tilt::{LN_OUTSIDE, MAX_POINTS, Tilt};

/// Error of a transform, in units of 2⁻⁵² log2(n), relative in the 2-norm.
const TRANSFORM_ULPS: f64 = 8.0;
/// Plans of transforms up to this length are cached.
const MAX_CACHED_LENGTH: usize = 1 << 17;
/// Coefficients below e^-this are set to zero, within their bound.
const NEGLIGIBLE: f64 = 60.0;
/// Larger than the sum of all masses that underflow an f64.
const UNDERFLOW: f64 = 1e-280;
/// Largest relative error for which the bounds above are intended.
const MAX_ERROR: f64 = 0.1;

fn plan(length: usize) -> Transform {
    static PLANS: Mutex<BTreeMap<usize, Transform>> = Mutex::new(BTreeMap::new());
    if length > MAX_CACHED_LENGTH {
        return Transform::new(length);
    }
    let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    plans
        .entry(length)
        .or_insert_with(|| Transform::new(length))
        .clone()
}

/// Returns a power of two, or three times one, of at least `points`.
fn fast_length(points: usize) -> usize {
    let power = points.max(16).next_power_of_two();
    if power / 4 * 3 >= points {
        power / 4 * 3
    } else {
        power
    }
}

/// A lattice with the data for its moments.
struct Part<'a> {
    lattice: &'a Lattice,
    count: f64,
    ln_masses: Vec<f64>,
}

impl Part<'_> {
    /// Returns K(λ) = ln Σ mass e^(λ·loss).
    fn cumulant(&self, tilt: f64) -> f64 {
        let exponent = |index: usize| self.ln_masses[index] + tilt * self.lattice.loss(index);
        let largest = (0..self.ln_masses.len())
            .map(exponent)
            .fold(f64::NEG_INFINITY, f64::max);
        if !largest.is_finite() {
            return largest;
        }
        let sum: f64 = (0..self.ln_masses.len())
            .map(|index| (exponent(index) - largest).exp())
            .sum();
        largest + sum.ln()
    }
}

fn total_cumulant(parts: &[Part<'_>], tilt: f64) -> f64 {
    parts
        .iter()
        .map(|part| part.count * part.cumulant(tilt))
        .sum()
}

/// The coefficients of the composition, and a bound on the error of each resulting mass.
struct Spectrum {
    coefficients: Vec<Complex>,
    mass_error: f64,
    /// Sum of the lattice indices of the largest masses, which residue 0 represents.
    shift: i128,
    /// Relative error of the tilted masses themselves.
    tilt_error: f64,
}

/// Returns the bound on the profile of the composition of `lattices`, each repeated. It is sharp
/// around the losses given by `tilt`. `None` if it needs too many points or rounds.
pub(super) fn compose(lattices: &[(Lattice, u64)], tilt: &Tilt, bound: Bound) -> Option<Composed> {
    let spacing = lattices.first()?.0.spacing;
    let parts: Vec<Part<'_>> = lattices
        .iter()
        .map(|(lattice, count)| Part {
            lattice,
            count: *count as f64,
            ln_masses: lattice.masses.iter().map(|mass| mass.ln()).collect(),
        })
        .collect();
    let window = Window::new(&parts, tilt, spacing)?;
    let spectrum = spectrum(&parts, tilt.at, &window);
    let sum_error = |of: fn(&Lattice) -> f64| -> f64 {
        parts.iter().map(|part| part.count * of(part.lattice)).sum()
    };
    let relative = sum_error(|lattice| lattice.mass_error)
        + spectrum.tilt_error
        + 8.0 * f64::EPSILON * (1e3 + window.points as f64 + 2.0 * window.cumulant.abs());
    let is_bounded = relative < MAX_ERROR && spectrum.mass_error < MAX_ERROR;
    if !is_bounded {
        return None;
    }
    let mut coefficients = spectrum.coefficients;
    let mut masses = plan(window.points).inverse(&mut coefficients);
    let norm = masses.iter().map(|mass| mass * mass).sum::<f64>().sqrt();
    let mass_error = spectrum.mass_error + 1.1 * transform_error(window.points) * norm;
    // From residues to the window.
    let start = i128::from(window.first) - spectrum.shift;
    masses.rotate_left(start.rem_euclid(window.points as i128) as usize);
    let infinite: f64 = sum_error(|lattice| lattice.infinite);
    let loss_error = sum_error(|lattice| lattice.loss_error);
    let (deltas, rest, first) = match bound {
        Bound::Upper => {
            let rest = infinite + window.above + UNDERFLOW;
            let factor = relative.exp();
            let deltas = window.profile(&masses, |mass| mass.max(0.0) + mass_error);
            let lifted = deltas
                .into_iter()
                .map(|found| (found * factor + rest).min(1.0));
            (lifted.collect(), rest, window.low() + loss_error)
        }
        Bound::Lower => {
            let factor = (-relative).exp();
            let deltas = window.profile(&masses, |mass| (mass - mass_error).max(0.0));
            let lowered = deltas.into_iter().enumerate().map(|(index, found)| {
                // One cell earlier, so that it holds for the whole cell that starts here.
                let loss = window.low() + (index as f64 - 1.0) * spacing;
                (found * factor - window.wrapped(loss)).max(0.0)
            });
            (lowered.collect(), 0.0, window.low() - loss_error)
        }
    };
    Some(Composed {
        bound,
        first,
        spacing,
        deltas,
        rest,
    })
}

/// The part of the line covered by the transform.
struct Window {
    spacing: f64,
    /// Lattice index of the first point.
    first: i64,
    /// Loss of index 0.
    offset: f64,
    points: usize,
    tilt: Tilt,
    /// ΣK at the three tilts.
    cumulant: f64,
    cumulant_above: f64,
    cumulant_below: f64,
    /// Bound on the mass above, with a margin for rounding.
    above: f64,
}

impl Window {
    fn new(parts: &[Part<'_>], tilt: &Tilt, spacing: f64) -> Option<Self> {
        let cumulant = total_cumulant(parts, tilt.at);
        let cumulant_above = total_cumulant(parts, tilt.above);
        let cumulant_below = total_cumulant(parts, tilt.below);
        let high = (cumulant_above - cumulant - LN_OUTSIDE) / (tilt.above - tilt.at);
        let low = (cumulant - cumulant_below + LN_OUTSIDE) / (tilt.at - tilt.below);
        // A loss of 0 is in the window if it may be the answer.
        let (low, high) = (low.min(high), high.max(spacing));
        let above = (cumulant_above - tilt.above * high).exp();
        let width = (high - low) / spacing + 4.0;
        let is_possible = width < MAX_POINTS as f64 && low.abs() / spacing < 1e15;
        if !is_possible {
            return None;
        }
        let offset = parts
            .iter()
            .map(|part| part.count * part.lattice.offset)
            .sum::<f64>();
        let first = ((low - offset) / spacing).floor() as i64;
        let points = fast_length(width as usize + 1);
        Some(Self {
            spacing,
            first,
            offset,
            points,
            tilt: *tilt,
            cumulant,
            cumulant_above,
            cumulant_below,
            above: 1.001 * above,
        })
    }

    fn low(&self) -> f64 {
        self.first as f64 * self.spacing + self.offset
    }

    fn width(&self) -> f64 {
        self.points as f64 * self.spacing
    }

    /// Returns δ at each point of the window, with masses transformed by `weigh`: with the mass m
    /// at s and x = e^-h, D(s) = x·D(s + h) + (1 - x)·(mass above s), a sum of positive terms only.
    fn profile(&self, masses: &[f64], weigh: impl Fn(f64) -> f64) -> Vec<f64> {
        let shrink = (-self.spacing).exp();
        let width = -(-self.spacing).exp_m1();
        let mut deltas = vec![0.0; masses.len()];
        let (mut mass_above, mut delta) = (0.0, 0.0);
        for index in (0..masses.len()).rev() {
            delta = shrink * delta + width * mass_above;
            deltas[index] = delta;
            let loss = self.low() + index as f64 * self.spacing;
            let weight = (self.cumulant - self.tilt.at * loss).min(600.0).exp();
            mass_above += weigh(masses[index]) * weight;
        }
        deltas
    }

    /// Returns a bound on the contribution of aliasing to δ at `loss`.
    fn wrapped(&self, loss: f64) -> f64 {
        let tilt = &self.tilt;
        let series = |exponent: f64, ratio: f64| {
            // Σ_{n≥0} e^(exponent - n·ratio)
            exponent.exp() / -(-ratio).exp_m1()
        };
        let from_below_by_weight = series(-tilt.at * self.width(), tilt.at * self.width());
        let below = self.cumulant_below - self.cumulant + (tilt.at - tilt.below) * self.low();
        let from_below_by_mass = (self.cumulant - tilt.at * loss + below).exp();
        let gap = (tilt.above - tilt.at) * self.width();
        let from_above = series(self.cumulant_above - tilt.above * loss - gap, gap);
        let from_below = from_below_by_weight.min(from_below_by_mass);
        let sum = from_below + from_above;
        if sum.is_nan() { 1.0 } else { 1.001 * sum }
    }
}

fn transform_error(points: usize) -> f64 {
    TRANSFORM_ULPS * f64::EPSILON * ((points as f64).log2() + 2.0)
}

fn spectrum(parts: &[Part<'_>], tilt: f64, window: &Window) -> Spectrum {
    let points = window.points;
    let (mut tilt_error, mut shift) = (0.0, 0);
    let mut transforms = Vec::with_capacity(parts.len());
    for part in parts {
        let mut tilted = tilted(part, tilt, points);
        tilt_error += part.count * tilted.error;
        shift += i128::from(tilted.place) * part.count as i128;
        let norm = tilted.rest.iter().map(|mass| mass * mass).sum::<f64>();
        let mut coefficients = plan(points).forward(&mut tilted.rest);
        for coefficient in &mut coefficients {
            coefficient.re += tilted.largest;
        }
        let error = 1.1 * transform_error(points) * (points as f64 * norm).sqrt();
        transforms.push((coefficients, error + 4.0 * f64::EPSILON, part.count));
    }
    let mut sum_of_errors = 0.0;
    let coefficients = (0..points / 2 + 1)
        .map(|index| {
            let (mut ln_modulus, mut angle, mut ln_max) = (0.0, 0.0, 0.0);
            let mut relative = 0.0;
            for (coefficients, error, count) in &transforms {
                let coefficient = coefficients[index];
                let modulus = coefficient.norm();
                ln_max += count * (modulus + error).ln();
                if ln_max <= -NEGLIGIBLE {
                    break;
                }
                let ln = modulus.ln();
                ln_modulus += count * ln;
                let turn = coefficient.arg();
                angle += count * turn;
                relative += count * error / (modulus + error);
                relative += 4.0 * f64::EPSILON * count * (1.0 + turn.abs() + ln.abs());
            }
            let max = ln_max.exp();
            // All except the first and the last coefficient represent two.
            let times = if index == 0 || 2 * index == points {
                1.0
            } else {
                2.0
            };
            if ln_max <= -NEGLIGIBLE {
                sum_of_errors += times * 2.0 * max;
                return Complex::new(0.0, 0.0);
            }
            sum_of_errors += times * (max * relative.min(2.0)) * 1.1;
            Complex::from_polar(ln_modulus.exp(), angle)
        })
        .collect();
    Spectrum {
        coefficients,
        mass_error: sum_of_errors / points as f64,
        shift,
        tilt_error,
    }
}

/// The tilted masses of a lattice, folded to residues of their index minus `place`.
struct Tilted {
    /// The lattice index of the largest mass.
    place: i64,
    /// The largest mass. Its coefficients are known without a transform.
    largest: f64,
    /// All other masses.
    rest: Vec<f64>,
    /// Relative error of the masses.
    error: f64,
}

fn tilted(part: &Part<'_>, tilt: f64, points: usize) -> Tilted {
    let lattice = part.lattice;
    let cumulant = part.cumulant(tilt);
    let mut largest = (0, f64::NEG_INFINITY);
    let mut size = 0.0_f64;
    for (index, ln_mass) in part.ln_masses.iter().enumerate() {
        if ln_mass.is_finite() {
            let shift = tilt * lattice.loss(index);
            size = size.max(ln_mass.abs() + shift.abs());
            if ln_mass + shift > largest.1 {
                largest = (index, ln_mass + shift);
            }
        }
    }
    let mut rest = vec![0.0; points];
    let mut residue = (-(largest.0 as i64)).rem_euclid(points as i64) as usize;
    for (index, ln_mass) in part.ln_masses.iter().enumerate() {
        if index != largest.0 {
            rest[residue] += (ln_mass + tilt * lattice.loss(index) - cumulant).exp();
        }
        residue += 1;
        if residue == points {
            residue = 0;
        }
    }
    Tilted {
        place: lattice.first + largest.0 as i64,
        largest: (largest.1 - cumulant).exp(),
        rest,
        error: 4.0 * f64::EPSILON * (4.0 + size + cumulant.abs()),
    }
}
