//! Dominating pairs of distributions, by the tails of their privacy loss.
//!
//! A pair (P, Q) has the privacy loss L = ln(dP/dQ). Only the probabilities of L above, or below, a
//! loss ε under P and, scaled by e^ε, under Q are needed: their difference is the profile δ(ε) =
//! P(L > ε) - e^ε Q(L > ε).

use std::sync::Arc;

use crate::normal;

use super::mixture::Mixture;
use super::tail::{Side, Tail, quantile};

/// Largest loss whose exponential is computed separately.
const LARGE_LOSS: f64 = 600.0;
/// Largest number of stds at which the normal tail is computed separately.
const FAR: f64 = 37.0;
/// Points of a sketch for each noise std.
const SKETCH_STEP: f64 = 0.125;
/// Maximum number of cells: with almost no noise the sketch is coarse.
const MAX_SKETCH_CELLS: f64 = (1 << 20) as f64;
/// Points of a sketch by tails, on each side.
const SKETCH_CELLS: u32 = 200;

/// Two distributions that every adversary distinguishes at least as well as the mechanism's outputs
/// on any two neighbouring federations, for any earlier rounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pair {
    /// N(μ, 1) against N(0, 1): a Gaussian release of sensitivity over noise std μ.
    Gaussian { mu: f64 },
    /// (1-τ)·N(0, z²) + τ·N(1, z²) against N(0, z²): Poisson sampling, a device removed. Zhu, Dong,
    /// Wang 2022 (arXiv:2106.08567), Theorem 11.
    Remove { rate: f64, noise: f64 },
    /// The reverse: a device added.
    Add { rate: f64, noise: f64 },
    /// (1-τ)·N(0, z²) + τ·N(1, z²) against (1-τ)·N(0, z²) + τ·N(-1, z²): Poisson sampling, a device
    /// replaced by another. Schuchardt et al. 2024 (arXiv:2403.04867), Theorem 3.8, for one device
    /// removed and one added. The reverse is its mirror image.
    Replace { rate: f64, noise: f64 },
    /// The symmetric pair of the profile of sampling without replacement
    /// ([`uniform_profile`](crate::uniform_profile)). Above loss 0 it equals `Remove`, below 0 it
    /// is the mirror image, and the rest is an atom at 0.
    Profile { rate: f64, noise: f64 },
    /// The mixture against N(0, z²): a user with several devices removed. Ganesh 2024
    /// (arXiv:2401.10294).
    RemoveUser(Arc<Mixture>),
    /// The reverse: a user added.
    AddUser(Arc<Mixture>),
    /// The symmetric pair of the profile for users with several devices.
    ProfileUser(Arc<Mixture>),
}

/// A loss and its mass under P, in a sketch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Atom {
    pub loss: f64,
    pub mass: f64,
}

fn above(u: f64) -> f64 {
    normal::cdf(-u)
}

/// Returns e^loss · P(N(0,1) > a), where `density` is e^loss · φ(a).
fn scaled_above(loss: f64, a: f64, density: impl Fn() -> f64) -> f64 {
    if loss > LARGE_LOSS || a > FAR {
        normal::mills_ratio(a) * density()
    } else {
        loss.exp() * above(a)
    }
}

fn density(u: f64) -> f64 {
    normal::ln_density(u).exp()
}

/// Returns the output at which the loss of `Remove` is `loss`, in noise stds: -∞ if it is larger
/// everywhere.
fn threshold(rate: f64, noise: f64, loss: f64) -> f64 {
    // ln((e^ε - 1 + τ) / τ), without overflow
    let ln_ratio = if loss > 1.0 {
        loss + (-(1.0 - rate) * (-loss).exp()).ln_1p() - rate.ln()
    } else {
        let shifted = loss.exp_m1() / rate;
        if shifted > -1.0 {
            shifted.ln_1p()
        } else {
            return f64::NEG_INFINITY;
        }
    };
    noise * ln_ratio + 0.5 / noise
}

/// Returns the loss of `Remove` at `u` noise stds: ln(1 - τ + τ e^(u/z - 1/(2z²))).
fn loss_at(rate: f64, noise: f64, u: f64) -> f64 {
    let exponent = u / noise - 0.5 / (noise * noise);
    if exponent > LARGE_LOSS {
        rate.ln() + exponent
    } else {
        (rate * exponent.exp_m1()).ln_1p()
    }
}

/// Returns the output at which the loss of `Replace` is `loss`, in noise stds.
///
/// With s = e^(u/z), c = e^(-1/(2z²)) and h = ε/2, `1 - τ + τcs = e^ε (1 - τ + τc/s)` is a
/// quadratic in s, whose positive root is `ln s = h + asinh((1-τ)/(τc)·sinh h)`.
fn replace_threshold(rate: f64, noise: f64, loss: f64) -> f64 {
    let half = 0.5 * loss.abs();
    let ln_scale = replace_ln_scale(rate, noise);
    let ln_sinh = if half > 1.0 {
        half + (0.5 * (-2.0 * half).exp_m1().abs()).ln()
    } else {
        half.sinh().ln()
    };
    let ln_argument = ln_scale + ln_sinh;
    // asinh(x) = ln(2x) to all digits for large x.
    let asinh = if ln_argument > 40.0 {
        ln_argument + std::f64::consts::LN_2
    } else {
        ln_argument.exp().asinh()
    };
    (noise * (half + asinh)).copysign(loss)
}

/// Returns ln((1-τ)/(τc)), c = e^(-1/(2z²)).
fn replace_ln_scale(rate: f64, noise: f64) -> f64 {
    (-rate).ln_1p() - rate.ln() + 0.5 / (noise * noise)
}

/// Returns the loss of `Replace` at `u` noise stds.
fn replace_loss_at(rate: f64, noise: f64, u: f64) -> f64 {
    loss_at(rate, noise, u) - loss_at(rate, noise, -u)
}

/// Returns the tail of `Replace`.
fn replace_tail(rate: f64, noise: f64, loss: f64, side: Side) -> Tail {
    let a = replace_threshold(rate, noise, loss);
    let shift = 1.0 / noise;
    let mix = |of: fn(f64) -> f64, at: f64| (1.0 - rate) * of(a) + rate * of(at);
    let (p, scaled_q) = match side {
        Side::Above => {
            let p = mix(above, a - shift);
            let q = if loss > LARGE_LOSS || a > FAR {
                // e^ε times the density of Q at a equals the density of P.
                let other = (1.0 - rate) / rate * (shift * (a + 0.5 * shift)).exp();
                let near = 1.0 / (1.0 + 1.0 / other);
                let mills =
                    near * normal::mills_ratio(a) + (1.0 - near) * normal::mills_ratio(a + shift);
                mills * mix(density, a - shift)
            } else {
                loss.exp() * mix(above, a + shift)
            };
            (p, q)
        }
        Side::Below => (
            mix(normal::cdf, a - shift),
            loss.exp() * mix(normal::cdf, a + shift),
        ),
    };
    Tail::new(p, scaled_q, loss, a, a.abs() + shift)
}

impl Pair {
    /// Returns the tail on `side` of `loss`. `Profile` has tails only on the outer side of 0.
    pub fn tail(&self, loss: f64, side: Side) -> Tail {
        match *self {
            Self::Gaussian { mu } => {
                let p_at = loss / mu - 0.5 * mu;
                let q_at = loss / mu + 0.5 * mu;
                let (p, scaled_q) = match side {
                    Side::Above => (above(p_at), scaled_above(loss, q_at, || density(p_at))),
                    Side::Below => (normal::cdf(p_at), loss.exp() * normal::cdf(q_at)),
                };
                Tail::new(p, scaled_q, loss, p_at, q_at)
            }
            Self::Remove { rate, noise } => {
                let a = threshold(rate, noise, loss);
                let b = a - 1.0 / noise;
                let mix = |of: fn(f64) -> f64| (1.0 - rate) * of(a) + rate * of(b);
                let (p, scaled_q) = match side {
                    Side::Above => (mix(above), scaled_above(loss, a, || mix(density))),
                    Side::Below => (mix(normal::cdf), loss.exp() * normal::cdf(a)),
                };
                Tail::new(p, scaled_q, loss, a, b)
            }
            Self::Add { rate, noise } => {
                let a = threshold(rate, noise, -loss);
                let b = a - 1.0 / noise;
                let mix = |of: fn(f64) -> f64| (1.0 - rate) * of(a) + rate * of(b);
                let (p, q) = match side {
                    Side::Above => (normal::cdf(a), mix(normal::cdf)),
                    Side::Below => (above(a), mix(above)),
                };
                Tail::new(p, loss.exp() * q, loss, a, b)
            }
            Self::Replace { rate, noise } => replace_tail(rate, noise, loss, side),
            Self::RemoveUser(ref mixture) => mixture.removed(loss, side),
            Self::AddUser(ref mixture) => mixture.added(loss, side),
            Self::ProfileUser(ref mixture) => mixture.profile(loss, side),
            Self::Profile { rate, noise } => {
                let remove = Self::Remove { rate, noise };
                match side {
                    Side::Above => remove.tail(loss, side),
                    Side::Below => {
                        // The mass under P below ε is the mass under Q above -ε, and vice versa.
                        let a = threshold(rate, noise, -loss);
                        let b = a - 1.0 / noise;
                        let q = (1.0 - rate) * above(a) + rate * above(b);
                        Tail::new(above(a), loss.exp() * q, loss, a, b)
                    }
                }
            }
        }
    }

    /// Returns the loss at which tails change sides: tails are taken above it for larger losses,
    /// and below it for smaller ones. The tail under P is then never close to 1 only by rounding,
    /// and the scaled one is never large.
    pub fn split(&self) -> f64 {
        match *self {
            Self::Remove { rate, noise } => loss_at(rate, noise, 0.0),
            Self::RemoveUser(ref mixture) => mixture.loss_at(0.0),
            Self::Gaussian { .. }
            | Self::Add { .. }
            | Self::Replace { .. }
            | Self::Profile { .. }
            | Self::AddUser(_)
            | Self::ProfileUser(_) => 0.0,
        }
    }

    /// Returns the error of a threshold in addition to some ulps of the largest loss, as a loss: if
    /// e^ε is close to 1 - τ, an ulp of its distance from 1 is 1/(1 - τ) ulps of it.
    pub fn threshold_error(&self) -> f64 {
        match *self {
            Self::Remove { rate, .. } | Self::Add { rate, .. } => 8.0 * f64::EPSILON / (1.0 - rate),
            // The loss increases by at most 2/z per noise std, and its argument has an error of an
            // ulp.
            Self::Replace { rate, noise } => {
                8.0 * f64::EPSILON * (1.0 + replace_ln_scale(rate, noise).abs())
            }
            Self::RemoveUser(ref mixture)
            | Self::AddUser(ref mixture)
            | Self::ProfileUser(ref mixture) => mixture.threshold_error(),
            Self::Gaussian { .. } | Self::Profile { .. } => 0.0,
        }
    }

    /// Returns the mass under P of an atom at loss 0.
    pub fn atom(&self) -> f64 {
        match self {
            Self::Profile { .. } | Self::ProfileUser(_) => {
                let inner = self.tail(0.0, Side::Above).p + self.tail(0.0, Side::Below).p;
                (1.0 - inner).max(0.0)
            }
            _ => 0.0,
        }
    }

    /// Returns losses outside which at most about `below` and `above` of the mass under P lie.
    pub fn range(&self, below: f64, above: f64) -> (f64, f64) {
        let (down, up) = (quantile(below), quantile(above));
        match *self {
            Self::Gaussian { mu } => (0.5 * mu * mu - mu * down, 0.5 * mu * mu + mu * up),
            Self::Remove { rate, noise } => {
                let farthest = up.max(1.0 / noise + quantile(above / rate));
                (loss_at(rate, noise, -down), loss_at(rate, noise, farthest))
            }
            Self::Add { rate, noise } => (-loss_at(rate, noise, down), -loss_at(rate, noise, -up)),
            Self::Replace { rate, noise } => {
                let farthest = up.max(1.0 / noise + quantile(above / rate));
                (
                    replace_loss_at(rate, noise, -down),
                    replace_loss_at(rate, noise, farthest),
                )
            }
            Self::Profile { rate, noise } => {
                let (_, top) = Self::Remove { rate, noise }.range(below, above);
                (-loss_at(rate, noise, down.max(0.5 / noise)), top.max(0.0))
            }
            Self::RemoveUser(ref mixture) => {
                let (low, high) = mixture.outputs(below, above);
                (mixture.loss_at(low), mixture.loss_at(high))
            }
            Self::AddUser(ref mixture) => (-mixture.loss_at(down), -mixture.loss_at(-up)),
            Self::ProfileUser(ref mixture) => mixture.profile_range(below, above),
        }
    }

    /// Returns a sketch: losses and their masses under P. It is not a bound.
    pub fn sketch(&self, below: f64, above_mass: f64) -> Vec<Atom> {
        let (down, up) = (quantile(below), quantile(above_mass));
        let atom = |loss: f64, mass: f64| Atom { loss, mass };
        match *self {
            Self::Gaussian { mu } => cells(-down, up)
                .map(|(left, right)| {
                    let loss = mu * 0.5 * (left + right) + 0.5 * mu * mu;
                    atom(loss, normal::mass(left, right))
                })
                .collect(),
            Self::Remove { rate, noise } => {
                let farthest = up.max(1.0 / noise + quantile(above_mass / rate));
                cells(-down, farthest)
                    .map(|(left, right)| {
                        let loss = loss_at(rate, noise, 0.5 * (left + right));
                        atom(loss, mixture_mass(rate, noise, left, right))
                    })
                    .collect()
            }
            Self::Add { rate, noise } => cells(-up, down)
                .map(|(left, right)| {
                    let loss = -loss_at(rate, noise, 0.5 * (left + right));
                    atom(loss, normal::mass(left, right))
                })
                .collect(),
            Self::Replace { rate, noise } => {
                let farthest = up.max(1.0 / noise + quantile(above_mass / rate));
                cells(-down, farthest)
                    .map(|(left, right)| {
                        let loss = replace_loss_at(rate, noise, 0.5 * (left + right));
                        atom(loss, mixture_mass(rate, noise, left, right))
                    })
                    .collect()
            }
            Self::Profile { rate, noise } => {
                let start = 0.5 / noise;
                let farthest = up.max(1.0 / noise + quantile(above_mass / rate)).max(start);
                let mut atoms: Vec<Atom> = cells(start, farthest)
                    .flat_map(|(left, right)| {
                        let loss = loss_at(rate, noise, 0.5 * (left + right));
                        [
                            atom(loss, mixture_mass(rate, noise, left, right)),
                            atom(-loss, normal::mass(left, right)),
                        ]
                    })
                    .collect();
                atoms.push(atom(0.0, self.atom()));
                atoms
            }
            Self::RemoveUser(ref mixture) => {
                let (low, high) = mixture.outputs(below, above_mass);
                cells(low, high)
                    .map(|(left, right)| {
                        let loss = mixture.loss_at(0.5 * (left + right));
                        atom(loss, mixture.mass(left, right))
                    })
                    .collect()
            }
            Self::AddUser(ref mixture) => cells(-up, down)
                .map(|(left, right)| {
                    let loss = -mixture.loss_at(0.5 * (left + right));
                    atom(loss, normal::mass(left, right))
                })
                .collect(),
            Self::ProfileUser(_) => self.sketch_of_tails(below, above_mass),
        }
    }
}

impl Pair {
    /// Returns a sketch of a pair whose losses on both sides of 0 are known only by their tails.
    fn sketch_of_tails(&self, below: f64, above: f64) -> Vec<Atom> {
        let (low, high) = self.range(below, above);
        let mut atoms = vec![Atom {
            loss: 0.0,
            mass: self.atom(),
        }];
        for (end, side) in [(low, Side::Below), (high, Side::Above)] {
            let at = |step: u32| end * f64::from(step) / f64::from(SKETCH_CELLS);
            let tail = |step: u32| self.tail(at(step), side).p;
            atoms.extend((0..SKETCH_CELLS).map(|step| Atom {
                loss: 0.5 * (at(step) + at(step + 1)),
                mass: (tail(step) - tail(step + 1)).max(0.0),
            }));
        }
        atoms
    }
}

/// Iterates over neighbouring edges from `first` to `last`.
fn cells(first: f64, last: f64) -> impl Iterator<Item = (f64, f64)> {
    let count = ((last - first) / SKETCH_STEP).ceil();
    let count = count.clamp(1.0, MAX_SKETCH_CELLS);
    let step = (last - first) / count;
    (0..count as u32).map(move |index| {
        let left = first + step * f64::from(index);
        (left, left + step)
    })
}

fn mixture_mass(rate: f64, noise: f64, left: f64, right: f64) -> f64 {
    let shift = 1.0 / noise;
    (1.0 - rate) * normal::mass(left, right) + rate * normal::mass(left - shift, right - shift)
}
