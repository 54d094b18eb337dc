//! Mixtures of Gaussians of one std: sampled rounds of a user with several devices.
//!
//! With X the number of the user's devices in a round, P is the mixture of N(c, z²) with weights
//! P(X = c) and Q is N(0, z²): X is Binomial(k, τ) for Poisson sampling, hypergeometric for cohorts
//! of fixed size. The loss ln(dP/dQ) increases with the output, so its tails are sums of normal
//! tails, and only the output with a given loss is needed.

use std::collections::VecDeque;

use crate::event::Users;
use crate::log_space::ln_sum_exp;
use crate::normal;

use super::tail::{Side, Tail, quantile};

/// Numbers of devices with less probability than this on a side are merged into the next.
const LN_NEGLIGIBLE: f64 = -140.0;
/// Steps of Newton's method, which converges from one side on a convex function.
const NEWTON_STEPS: u32 = 60;
/// Halvings of a bracket.
const BISECTIONS: u32 = 80;
/// Relative error of the weights, for each number of devices.
const WEIGHT_ERROR: f64 = 2e-14;
/// Largest loss whose exponential is computed separately.
const LARGE_LOSS: f64 = 600.0;
/// Largest number of stds at which the normal tail is computed separately.
const FAR: f64 = 37.0;

/// One number of devices, and its probability.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Component {
    /// Sensitivity over noise std: the number of devices over z.
    mu: f64,
    weight: f64,
    ln_weight: f64,
}

/// A mixture in units of the noise std.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mixture {
    /// P(X = 0).
    none: f64,
    ln_none: f64,
    /// The components above 0.
    some: Vec<Component>,
    /// Relative error of the weights.
    weight_error: f64,
}

impl Mixture {
    /// Creates the mixture for noise of this std over the sensitivity of one device. Rare numbers
    /// of devices are merged with larger ones if `is_upper`, otherwise with smaller ones: the
    /// mixture grows with X in the usual stochastic order, and so does its loss (Ganesh 2024,
    /// arXiv:2401.10294).
    pub fn new(users: &Users, noise: f64, is_upper: bool) -> Self {
        let (first, ln_weights) = users.ln_weights();
        let total = ln_sum_exp(&ln_weights);
        let mut numbers: VecDeque<(u32, f64)> = (first..)
            .zip(ln_weights.iter().map(|ln| (ln - total).exp()))
            .collect();
        let negligible = LN_NEGLIGIBLE.exp();
        let (mut below, mut above) = (0.0, 0.0);
        let mut highest = first;
        while let Some(&(_, weight)) = numbers.front().filter(|(_, w)| below + w < negligible) {
            below += weight;
            numbers.pop_front();
        }
        while let Some(&(number, weight)) = numbers.back().filter(|(_, w)| above + w < negligible) {
            above += weight;
            highest = highest.max(number);
            numbers.pop_back();
        }
        if is_upper {
            if let Some(front) = numbers.front_mut() {
                front.1 += below;
            }
            if above > 0.0 {
                numbers.push_back((highest, above));
            }
        } else {
            if below > 0.0 {
                numbers.push_front((first, below));
            }
            if let Some(back) = numbers.back_mut() {
                back.1 += above;
            }
        }
        let none: f64 = numbers
            .iter()
            .filter(|(c, _)| *c == 0)
            .map(|(_, w)| w)
            .sum();
        let some = numbers.iter().filter(|(c, w)| *c > 0 && *w > 0.0);
        let some = some.map(|&(number, weight)| Component {
            mu: f64::from(number) / noise,
            weight,
            ln_weight: weight.ln(),
        });
        Self {
            none,
            ln_none: none.ln(),
            some: some.collect(),
            weight_error: WEIGHT_ERROR * (10.0 + ln_weights.len() as f64),
        }
    }

    /// Returns the loss at `u` noise stds.
    pub fn loss_at(&self, u: f64) -> f64 {
        let exponent = |part: &Component| part.mu * (u - 0.5 * part.mu);
        let largest = self.some.iter().map(exponent).fold(0.0, f64::max);
        if largest < 1.0 {
            let rise = |part: &Component| part.weight * exponent(part).exp_m1();
            return self.some.iter().map(rise).sum::<f64>().ln_1p();
        }
        let term = |part: &Component| part.ln_weight + exponent(part);
        let terms: Vec<f64> = self.some.iter().map(term).chain([self.ln_none]).collect();
        ln_sum_exp(&terms)
    }

    /// Returns the output with this loss, in noise stds. -∞ if the loss is larger everywhere.
    fn threshold(&self, loss: f64) -> f64 {
        // ln(e^loss - P(X = 0)) is a convex, increasing function of u, above each of its terms.
        let target = if self.none > 0.0 {
            if loss <= self.ln_none {
                return f64::NEG_INFINITY;
            }
            loss + (-(self.ln_none - loss).exp_m1()).ln()
        } else {
            loss
        };
        let reached = |part: &Component| (target - part.ln_weight) / part.mu + 0.5 * part.mu;
        let mut u = self.some.iter().map(reached).fold(f64::INFINITY, f64::min);
        for _ in 0..NEWTON_STEPS {
            let exponent = |part: &Component| part.ln_weight + part.mu * (u - 0.5 * part.mu);
            let largest = self.some.iter().map(exponent);
            let largest = largest.fold(f64::NEG_INFINITY, f64::max);
            let (mut sum, mut slope) = (0.0, 0.0);
            for part in &self.some {
                let term = (exponent(part) - largest).exp();
                sum += term;
                slope += part.mu * term;
            }
            let step = (largest + sum.ln() - target) * sum / slope;
            u -= step;
            let is_found = step.abs() <= 4.0 * f64::EPSILON * u.abs();
            if is_found || step <= 0.0 {
                break;
            }
        }
        u
    }

    /// Returns the error of a threshold in addition to some ulps of the largest loss, as a loss.
    pub fn threshold_error(&self) -> f64 {
        let ln_weights = self.some.iter().map(|part| part.ln_weight.abs());
        let farthest = self.some.iter().map(|part| part.mu).fold(0.0, f64::max);
        let size = ln_weights.fold(self.ln_none.abs().min(1e3), f64::max);
        let size = 1.0 + size + farthest * (2.0 * farthest + 2.0 * FAR);
        32.0 * f64::EPSILON * size + self.weight_error
    }

    /// Returns Σ weight · of(u - mu) over all numbers, and a bound on its error if `of` is a normal
    /// tail.
    fn mix(&self, of: fn(f64) -> f64, u: f64) -> (f64, f64) {
        let (mut sum, mut error) = (0.0, 0.0);
        let none = Component {
            mu: 0.0,
            weight: self.none,
            ln_weight: self.ln_none,
        };
        for part in self.some.iter().chain([&none]) {
            let at = u - part.mu;
            let value = part.weight * of(at);
            if value > 0.0 {
                sum += value;
                error += value * (6.0 + at * at);
            }
        }
        (sum, error)
    }

    /// Returns the tail of the loss of a removed user: P against Q.
    pub fn removed(&self, loss: f64, side: Side) -> Tail {
        let a = self.threshold(loss);
        let (p, error) = match side {
            Side::Above => self.mix(above, a),
            Side::Below => self.mix(normal::cdf, a),
        };
        let scaled_q = match side {
            Side::Above if loss > LARGE_LOSS || a > FAR => {
                normal::mills_ratio(a) * self.mix(density, a).0
            }
            Side::Above => loss.exp() * above(a),
            Side::Below => loss.exp() * normal::cdf(a),
        };
        self.tail(p, scaled_q, error, a, loss)
    }

    /// Returns the tail of the loss of an added user: Q against P.
    pub fn added(&self, loss: f64, side: Side) -> Tail {
        let a = self.threshold(-loss);
        let (p, (q, error)) = match side {
            Side::Above => (normal::cdf(a), self.mix(normal::cdf, a)),
            Side::Below => (above(a), self.mix(above, a)),
        };
        let scale = loss.exp();
        self.tail(p, scale * q, scale * error, a, loss)
    }

    /// Returns the tail of the pair of the profile above a loss of at least 0, and the tail of its
    /// mirror image below: see [`uniform_profile`](crate::uniform_profile).
    pub fn profile(&self, loss: f64, side: Side) -> Tail {
        let inner = loss.abs();
        let a = self.profile_threshold(inner);
        let at = |part: &Component| a.max(inner / part.mu + 0.5 * part.mu);
        let (mut p, mut q) = (self.none * above(a), self.none * above(a));
        let mut scaled_q = self.none * scaled_above(inner, a);
        let mut size = a * a;
        for part in &self.some {
            let place = at(part);
            size = size.max(place * place);
            p += part.weight * above(place - part.mu);
            q += part.weight * above(place);
            scaled_q += part.weight * scaled_above(inner, place);
        }
        match side {
            Side::Above => self.tail(p, scaled_q, (6.0 + size) * (p + scaled_q), a, loss),
            // The mass under P below ε is the mass under Q above -ε, and vice versa.
            Side::Below => {
                let scaled_p = loss.exp() * p;
                self.tail(q, scaled_p, (6.0 + size) * (q + scaled_p), a, loss)
            }
        }
    }

    /// Creates a tail. `error` is the error of the mixed tail, in thirds of an ulp. The other tail
    /// was computed at `a`.
    fn tail(&self, p: f64, scaled_q: f64, error: f64, a: f64, loss: f64) -> Tail {
        let square = if a.is_finite() { a * a } else { 0.0 };
        let size = 6.0 + square + loss.abs();
        let rounding = 3.0 * f64::EPSILON * (error + size * (p + scaled_q));
        Tail {
            p,
            scaled_q,
            error: rounding + self.weight_error * (p + scaled_q),
        }
    }

    /// Returns a with Σ weight · (e^(mu·a - mu²/2 - ε) - 1)₊ = P(X = 0) (1 - e^-ε).
    fn profile_threshold(&self, loss: f64) -> f64 {
        let target = -self.none * (-loss).exp_m1();
        let surplus = |u: f64| {
            let rise = |part: &Component| {
                let exponent = (part.mu * (u - 0.5 * part.mu) - loss).max(0.0);
                part.weight * exponent.exp_m1()
            };
            self.some.iter().map(rise).sum::<f64>()
        };
        // The first term becomes positive there.
        let start = |part: &Component| loss / part.mu + 0.5 * part.mu;
        let mut low = self.some.iter().map(start).fold(f64::INFINITY, f64::min);
        let mut high = 2.0 * low + 1.0;
        while surplus(high) < target {
            high *= 2.0;
        }
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if surplus(middle) < target {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// Returns outputs, in noise stds, outside which at most about `below` and `above` of P lie.
    pub fn outputs(&self, below: f64, above: f64) -> (f64, f64) {
        let parts = (self.some.len() + 1) as f64;
        let mut numbers: Vec<(f64, f64)> = vec![(0.0, self.none)];
        numbers.extend(self.some.iter().map(|part| (part.mu, part.weight)));
        let end = |mass: f64, sign: f64| {
            let reach = |(mu, weight): &(f64, f64)| {
                let share = 0.5 * mass / (parts * weight);
                (share < 0.5).then(|| sign * mu + quantile(share))
            };
            numbers
                .iter()
                .filter_map(reach)
                .fold(f64::NEG_INFINITY, f64::max)
        };
        let (low, high) = (-end(below, -1.0), end(above, 1.0));
        // For large masses, a point in the middle.
        let low = if low.is_finite() { low } else { 0.0 };
        (low, if high.is_finite() { high.max(low) } else { low })
    }

    /// Returns the corresponding losses of the pair of the profile.
    pub fn profile_range(&self, below: f64, above: f64) -> (f64, f64) {
        let farthest = |part: &Component| part.mu * (FAR + part.mu);
        let end = self.some.iter().map(farthest).fold(1.0, f64::max);
        let last = |is_enough: &dyn Fn(f64) -> bool| {
            let (mut low, mut high) = (0.0, end);
            for _ in 0..BISECTIONS / 2 {
                let middle = 0.5 * (low + high);
                if is_enough(middle) {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            high
        };
        let top = last(&|loss| self.profile(loss, Side::Above).p <= above);
        let bottom = last(&|loss| self.profile(-loss, Side::Below).p <= below);
        (-bottom, top)
    }

    /// Returns the mass of P between two outputs, accurate in both tails.
    pub fn mass(&self, left: f64, right: f64) -> f64 {
        let between = |mu: f64| normal::mass(left - mu, right - mu);
        let some = self.some.iter().map(|part| part.weight * between(part.mu));
        self.none * between(0.0) + some.sum::<f64>()
    }
}

fn above(u: f64) -> f64 {
    normal::cdf(-u)
}

fn density(u: f64) -> f64 {
    normal::ln_density(u).exp()
}

/// Returns e^loss · P(N(0,1) > a).
fn scaled_above(loss: f64, a: f64) -> f64 {
    if loss > LARGE_LOSS || a > FAR {
        (loss + normal::ln_cdf(-a)).exp()
    } else {
        loss.exp() * above(a)
    }
}
