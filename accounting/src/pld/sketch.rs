//! A fast sketch of a composition: the location of the losses that determine δ, and the required
//! spacing of a lattice. Nothing here is a bound. It only chooses numbers for which the bounds are
//! sharp.

use super::pair::{Atom, Pair};
use super::tilt::{LN_OUTSIDE, MAX_POINTS, Tilt};

/// Tilts are searched between e^-SPAN and e^SPAN.
const SPAN: f64 = 22.0;
/// Steps of a golden-section search of that range, to a millionth of it.
const SECTIONS: u32 = 28;
/// Chernoff's tilts differ from the tilt by at most this over the spacing.
const MAX_TILT_GAP: f64 = 30.0;

/// Losses and masses of the rounds.
pub(super) struct Sketch {
    kinds: Vec<Kind>,
}

/// One kind of rounds, and their number.
struct Kind {
    atoms: Vec<Atom>,
    count: f64,
}

/// The ends of a tilted composition, by Chernoff's bound: the bounds on the loss, and the
/// corresponding tilts.
struct Ends {
    high: f64,
    tilt_above: f64,
    low: f64,
    tilt_below: f64,
}

/// The parameters of the composition at one δ, as derived from the sketch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub tilt: Tilt,
    pub spacing: f64,
}

impl Sketch {
    pub fn new(pairs: &[(Pair, u64)], below: f64, above: f64) -> Self {
        let kinds = pairs
            .iter()
            .map(|(pair, count)| {
                let mut atoms = pair.sketch(below, above);
                atoms.retain(|atom| atom.mass > 0.0);
                Kind {
                    atoms,
                    count: *count as f64,
                }
            })
            .collect();
        Self { kinds }
    }

    /// Returns ΣK(λ).
    fn cumulant(&self, tilt: f64) -> f64 {
        let of_one = |atoms: &[Atom]| {
            let largest = largest(atoms, tilt);
            let sum: f64 = atoms
                .iter()
                .map(|atom| atom.mass * (tilt * atom.loss - largest).exp())
                .sum();
            largest + sum.ln()
        };
        self.kinds
            .iter()
            .map(|kind| kind.count * of_one(&kind.atoms))
            .sum()
    }

    /// Returns ε at `delta` by the improved conversion at order λ + 1.
    fn epsilon(&self, tilt: f64, ln_delta: f64) -> f64 {
        self.cumulant(tilt) / tilt + (-1.0 / (1.0 + tilt)).ln_1p()
            - (ln_delta + tilt.ln_1p()) / tilt
    }

    /// Returns the tilt that moves the bulk to δ(ε) = `delta`.
    pub fn tail_tilt(&self, delta: f64) -> f64 {
        let ln_delta = delta.ln();
        minimum(|tilt| self.epsilon(tilt, ln_delta)).at
    }

    /// Returns the window around the losses at which tilt `at` has its bulk, with a spacing for a
    /// bracket of ε of about `precision`, relative, but at most `max_spacing`.
    pub fn layout(&self, at: f64, delta: f64, precision: f64, max_spacing: f64) -> Layout {
        let Ends { high, low, .. } = self.ends(at);
        let epsilon = if at > 0.0 {
            self.epsilon(at, delta.ln())
        } else {
            high
        };
        // An ε of almost 0 only needs the precision of a share of the window.
        let error = precision * epsilon.max(0.02 * (high - low));
        let min_spacing = 1.2 * (high - low) / MAX_POINTS as f64;
        let spacing = self.spacing(at, error).min(max_spacing).max(min_spacing);
        // The lattice is wider than the distribution that it represents.
        let ends = self.on_lattice(spacing).ends(at);
        // If a side has almost no mass, the search diverges to infinity.
        let max_gap = MAX_TILT_GAP / spacing;
        let tilt = Tilt {
            at,
            above: ends.tilt_above.min(at + max_gap),
            below: ends.tilt_below.max(at - max_gap),
        };
        Layout { tilt, spacing }
    }

    fn ends(&self, at: f64) -> Ends {
        let cumulant = self.cumulant(at);
        let above = minimum(|gap| (self.cumulant(at + gap) - cumulant - LN_OUTSIDE) / gap);
        let below = minimum(|gap| (self.cumulant(at - gap) - cumulant - LN_OUTSIDE) / gap);
        Ends {
            high: above.value,
            tilt_above: at + above.at,
            low: -below.value,
            tilt_below: at - below.at,
        }
    }

    /// Splits each loss between the neighbouring lattice points.
    fn on_lattice(&self, spacing: f64) -> Self {
        let split = |&Atom { loss, mass }: &Atom| {
            let low = (loss / spacing).floor() * spacing;
            let raised = ((low - loss).exp_m1() / (-spacing).exp_m1()).clamp(0.0, 1.0);
            [
                Atom {
                    loss: low,
                    mass: mass * (1.0 - raised),
                },
                Atom {
                    loss: low + spacing,
                    mass: mass * raised,
                },
            ]
        };
        let kinds = self
            .kinds
            .iter()
            .map(|kind| {
                let mut atoms: Vec<Atom> = kind.atoms.iter().flat_map(split).collect();
                atoms.retain(|atom| atom.mass > 0.0);
                Kind {
                    atoms,
                    count: kind.count,
                }
            })
            .collect();
        Self { kinds }
    }

    /// Returns the spacing h at which rounding up and down moves ε apart by about `error`.
    ///
    /// Splitting a loss at a share θ between two lattice points adds a variance of h²θ(1 - θ) to
    /// it, on average h²/6, and less for losses closer to 0 than h. It raises K(λ) by λ(λ + 1)/2
    /// times that, so ε by (λ + 1)/2. Merging lowers it by half as much.
    fn spacing(&self, tilt: f64, error: f64) -> f64 {
        let weighted: Vec<Atom> = self
            .kinds
            .iter()
            .flat_map(|kind| tilted(kind, tilt))
            .collect();
        let spread = |spacing: f64| {
            let variance: f64 = weighted
                .iter()
                .map(|atom| atom.mass * spacing * (spacing / 6.0).min(atom.loss.abs()))
                .sum();
            0.75 * (tilt + 1.0) * variance
        };
        let mut spacing = 1.0;
        for _ in 0..64 {
            // The spread grows with h, and at most with its square.
            let ratio = (error / spread(spacing)).sqrt();
            spacing *= ratio.clamp(1e-6, 1e6);
            if (ratio - 1.0).abs() < 1e-9 {
                break;
            }
        }
        spacing
    }
}

/// Returns the losses with their tilted masses, which sum to the number of rounds.
fn tilted(kind: &Kind, tilt: f64) -> Vec<Atom> {
    let largest = largest(&kind.atoms, tilt);
    let weight = |atom: &Atom| atom.mass * (tilt * atom.loss - largest).exp();
    let sum: f64 = kind.atoms.iter().map(weight).sum();
    kind.atoms
        .iter()
        .map(|atom| Atom {
            loss: atom.loss,
            mass: kind.count * weight(atom) / sum,
        })
        .collect()
}

fn largest(atoms: &[Atom], tilt: f64) -> f64 {
    atoms
        .iter()
        .map(|atom| tilt * atom.loss)
        .fold(f64::NEG_INFINITY, f64::max)
}

/// The minimum of a function, and its location.
struct Minimum {
    at: f64,
    value: f64,
}

/// Returns the minimum of a quasi-convex function on (0, ∞).
fn minimum(of: impl Fn(f64) -> f64) -> Minimum {
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let value = |ln: f64| {
        let found = of(ln.exp());
        if found.is_nan() { f64::INFINITY } else { found }
    };
    let (mut low, mut high) = (-SPAN, SPAN);
    let mut left = high - golden * (high - low);
    let mut right = low + golden * (high - low);
    let (mut at_left, mut at_right) = (value(left), value(right));
    for _ in 0..SECTIONS {
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - golden * (high - low);
            at_left = value(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + golden * (high - low);
            at_right = value(right);
        }
    }
    let best = 0.5 * (low + high);
    Minimum {
        at: best.exp(),
        value: value(best),
    }
}
