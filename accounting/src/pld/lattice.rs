//! One round's privacy loss on a lattice of losses k·h: rounded up or down by moving mass, with
//! second-order accuracy in h.
//!
//! **Up** ("connect the dots": Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022,
//! arXiv:2207.04380). The mass of each cell between lattice points is split between its two ends,
//! such that its probabilities under P and under Q are unchanged. Under Q this is a mean-preserving
//! spread of e^L, so the expectation of every convex function of it, and with it each δ(ε) =
//! E_Q[(e^L - e^ε)₊], can only grow: the new pair dominates the old. Geometrically, the profile,
//! convex in e^ε, is replaced by its chords.
//!
//! **Down.** Intervals of losses are merged into one outcome each. This is post-processing, so the
//! new pair is dominated. The ends of the intervals are chosen such that the merged loss
//! ln(P(interval)/Q(interval)) is a lattice point (or slightly above it, then lowered to it): the
//! profile is replaced by tangents that meet on the lattice.
//!
//! **Rounding errors.** Moving mass under P to higher losses raises every composed δ, and vice
//! versa, as (1 - e^(ε - L))₊ grows with L. So errors of the split are covered by moving mass, the
//! bound on the error, up (down). Errors of the tails themselves are relative ones,
//! [`Lattice::mass_error`]. The cells have their exact positions up to [`Lattice::loss_error`].

use super::pair::Pair;
use super::tail::{Side, Tail};

/// Merged losses may end this share of h² above their lattice point.
const MERGE_SLACK: f64 = 0.01;
/// Steps of the search for the end of an interval.
const MERGE_STEPS: u32 = 24;

/// Masses under P at the losses (first + k) · spacing + offset.
#[derive(Debug, Clone)]
pub(super) struct Lattice {
    pub spacing: f64,
    pub first: i64,
    /// 0 upwards. Downwards, the shift that puts the lowest interval's loss on the lattice.
    pub offset: f64,
    pub masses: Vec<f64>,
    /// Mass at infinite loss.
    pub infinite: f64,
    /// Relative error of a tail of the masses.
    pub mass_error: f64,
    /// Error of the losses.
    pub loss_error: f64,
}

impl Lattice {
    fn new(spacing: f64, first: i64, masses: Vec<f64>) -> Self {
        let last = first + masses.len() as i64;
        let largest = spacing * first.abs().max(last.abs()) as f64;
        Self {
            spacing,
            first,
            offset: 0.0,
            masses,
            infinite: 0.0,
            mass_error: 0.0,
            // k·h is rounded, and the threshold of a loss is found to a few ulps of the largest.
            loss_error: 16.0 * f64::EPSILON * (1.0 + largest),
        }
    }

    fn note_error(&mut self, tail: &Tail) {
        if tail.p > 0.0 {
            self.mass_error = self.mass_error.max(4.0 * tail.error / tail.p);
        }
    }

    /// Returns the loss of mass number `index`.
    pub fn loss(&self, index: usize) -> f64 {
        (self.first + index as i64) as f64 * self.spacing + self.offset
    }
}

/// Returns the first and the last lattice index of losses, with at most about `below` and `above`
/// of the mass outside.
fn indices(pair: &Pair, spacing: f64, below: f64, above: f64) -> (i64, i64) {
    let (low, high) = pair.range(below, above);
    let split = split_index(pair, spacing);
    let first = (low / spacing).floor() as i64;
    let last = (high / spacing).ceil() as i64;
    (first.min(split - 1), last.max(split + 1))
}

fn split_index(pair: &Pair, spacing: f64) -> i64 {
    (pair.split() / spacing).ceil() as i64
}

/// Returns the pair rounded up. At most about `below` of its mass is raised to the first lattice
/// point, and at most about `above` of it to infinite loss.
pub(super) fn upward(pair: &Pair, spacing: f64, below: f64, above: f64) -> Lattice {
    let (first, last) = indices(pair, spacing, below, above);
    let split = split_index(pair, spacing);
    let mut lattice = Lattice::new(spacing, first, vec![0.0; (last - first) as usize + 1]);
    lattice.loss_error += pair.threshold_error();
    let shrink = (-spacing).exp();
    let width = -(-spacing).exp_m1();
    let at = |index: i64, side| pair.tail(index as f64 * spacing, side);
    // Each cell: its mass under P, e^(its lower loss) times its mass under Q, and their error.
    let put = |lattice: &mut Lattice, cell: i64, p: f64, q: f64, error: f64| {
        let p = p.max(0.0);
        let raised = ((p - q + error) / width).clamp(0.0, p);
        let place = (cell - first) as usize;
        lattice.masses[place] += p - raised;
        lattice.masses[place + 1] += raised;
    };
    let mut left = at(first, Side::Below);
    lattice.masses[0] += left.p;
    for cell in first..split {
        let right = at(cell + 1, Side::Below);
        let q = right.scaled_q * shrink - left.scaled_q;
        put(
            &mut lattice,
            cell,
            right.p - left.p,
            q,
            left.error + right.error,
        );
        left = right;
    }
    let mut left = at(split, Side::Above);
    lattice.note_error(&left);
    for cell in split..last {
        let right = at(cell + 1, Side::Above);
        let q = left.scaled_q - right.scaled_q * shrink;
        put(
            &mut lattice,
            cell,
            left.p - right.p,
            q,
            left.error + right.error,
        );
        left = right;
        lattice.note_error(&left);
    }
    lattice.infinite = left.p;
    let atom = pair.atom();
    if atom > 0.0 {
        lattice.masses[(-first) as usize] += atom;
    }
    lattice
}

/// An end of an interval of losses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub loss: f64,
    side: Side,
    pub tail: Tail,
}

impl Edge {
    fn at(pair: &Pair, loss: f64) -> Self {
        let side = if loss < pair.split() {
            Side::Below
        } else {
            Side::Above
        };
        Self::new(pair, loss, side)
    }

    /// Creates an edge as seen from `side`.
    pub fn new(pair: &Pair, loss: f64, side: Side) -> Self {
        Self {
            loss,
            side,
            tail: pair.tail(loss, side),
        }
    }

    /// Returns e^`loss` times the tail under Q.
    fn q_scaled_to(&self, loss: f64) -> f64 {
        if self.tail.scaled_q > 0.0 {
            self.tail.scaled_q * (loss - self.loss).exp()
        } else {
            0.0
        }
    }
}

/// The mass between two edges.
pub(super) struct Between {
    /// Its mass under P.
    pub mass: f64,
    /// The excess of the mass under P over e^loss times the mass under Q, for some loss.
    pub excess: f64,
    /// The error of the excess.
    pub error: f64,
}

pub(super) fn between(left: &Edge, right: &Edge, loss: f64) -> Between {
    let (a, b) = (left.q_scaled_to(loss), right.q_scaled_to(loss));
    let (p, q) = match (left.side, right.side) {
        (Side::Below, Side::Below) => (right.tail.p - left.tail.p, b - a),
        (Side::Below, Side::Above) => (1.0 - left.tail.p - right.tail.p, loss.exp() - a - b),
        (Side::Above, _) => (left.tail.p - right.tail.p, a - b),
    };
    let rounding = 16.0 * f64::EPSILON * (p.abs() + q.abs());
    // The part of the error that is scaled to `loss` grows with it. Beyond `loss` it shrinks.
    let grown = if left.tail.error > 0.0 {
        left.tail.error * (loss - left.loss).max(0.0).exp()
    } else {
        0.0
    };
    let error = grown + right.tail.error + rounding;
    Between {
        mass: p,
        excess: p - q,
        error,
    }
}

/// Returns the pair rounded down, for pairs without atoms. Losses are merged until about `above` of
/// the mass is left.
pub(super) fn downward(pair: &Pair, spacing: f64, below: f64, above: f64) -> Lattice {
    let (low, high) = pair.range(below, above);
    // The lowest interval ends a spacing above the lowest loss. Its own loss is the first point.
    let nothing = Edge {
        loss: f64::NEG_INFINITY,
        side: Side::Below,
        tail: Tail::default(),
    };
    let mut left = Edge::at(pair, low + spacing);
    let Between {
        mass,
        excess,
        error,
    } = between(&nothing, &left, left.loss);
    // P/Q is at least e^loss · P/(P - excess). A mass within its rounding error is dropped.
    let merged = left.loss - (-(excess - error) / (mass - error)).ln_1p();
    let is_sure = mass > 2.0 * error && merged.is_finite() && merged <= left.loss;
    let (lowest, mass) = if is_sure { (merged, mass) } else { (low, 0.0) };
    let first = (lowest / spacing).floor() as i64;
    let last = ((high / spacing).ceil() as i64).max(first + 1);
    let mut lattice = Lattice::new(spacing, first, vec![0.0; (last - first) as usize + 1]);
    lattice.offset = lowest - first as f64 * spacing;
    lattice.loss_error += pair.threshold_error();
    lattice.masses[0] = mass;
    for index in first + 1..=last {
        let loss = index as f64 * spacing + lattice.offset;
        if loss <= left.loss {
            continue;
        }
        let Some(merged) = merge(pair, &left, loss, spacing) else {
            continue;
        };
        if merged.right.side == Side::Above {
            lattice.note_error(&merged.right.tail);
        }
        // Across a gap in the masses the merged loss may be many points higher.
        let more = (merged.more / spacing) as i64;
        let place = index.saturating_add(more.max(0)).min(last) - first;
        lattice.masses[place as usize] += merged.mass;
        left = merged.right;
    }
    // The remaining mass has losses above its edge.
    let rest = match left.side {
        Side::Above => left.tail.p,
        Side::Below => 1.0 - left.tail.p,
    };
    let place = ((left.loss - lattice.offset) / spacing).floor() as i64 - first;
    if let Some(mass) = usize::try_from(place)
        .ok()
        .and_then(|i| lattice.masses.get_mut(i))
    {
        *mass += rest;
    }
    lattice
}

/// An interval of losses, merged.
struct Merged {
    right: Edge,
    mass: f64,
    /// Lower bound on the distance of its loss above the lattice point.
    more: f64,
}

/// A tested end, given by the square of its distance from the lattice point.
#[derive(Clone, Copy)]
struct Trial {
    square: f64,
    surplus: f64,
}

/// Returns the interval from `left` whose merged loss is `loss` or slightly above. `None` if no
/// interval has such a large loss.
fn merge(pair: &Pair, left: &Edge, loss: f64, spacing: f64) -> Option<Merged> {
    // The excess of P over e^loss Q between the edges is -deficit up to the lattice point, and
    // grows beyond it approximately as the square of the distance.
    let Between { excess, .. } = between(left, &Edge::at(pair, loss), loss);
    let reach = (loss - left.loss).min(spacing);
    let mut square = reach * reach;
    let mut low = Trial {
        square: 0.0,
        surplus: excess.min(0.0),
    };
    let mut high: Option<Trial> = None;
    let mut best = None;
    for step in 0..MERGE_STEPS {
        let right = Edge::at(pair, loss + square.sqrt());
        let Between {
            mass: p,
            excess,
            error,
        } = between(left, &right, loss);
        let surplus = excess - error;
        if surplus >= 0.0 {
            high = Some(Trial { square, surplus });
            // P/Q is at least e^loss · P/(P - excess).
            let more = -(-surplus / (p + error)).ln_1p();
            best = Some(Merged {
                right,
                mass: p.max(0.0),
                more: if more > 0.0 { more } else { 0.0 },
            });
            if surplus <= (MERGE_SLACK * spacing * spacing * p).max(error) {
                break;
            }
        } else {
            low = Trial { square, surplus };
        }
        square = match high {
            None => 4.0 * square,
            Some(high) => {
                let chord = low.surplus / (low.surplus - high.surplus);
                let is_usable = chord.is_finite() && step % 4 != 3;
                // Slightly beyond the chord, as only the upper side is acceptable.
                let share = if is_usable { chord + 1e-4 } else { 0.5 };
                low.square + (high.square - low.square) * share.clamp(0.05, 0.95)
            }
        };
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs() -> Vec<Pair> {
        let mut pairs = vec![Pair::Gaussian { mu: 0.3 }, Pair::Gaussian { mu: 3.0 }];
        for (rate, noise) in [(0.05, 1.0), (0.3, 0.4), (1e-4, 2.0), (0.9, 5.0)] {
            pairs.push(Pair::Remove { rate, noise });
            pairs.push(Pair::Add { rate, noise });
            pairs.push(Pair::Profile { rate, noise });
        }
        pairs
    }

    fn exact(pair: &Pair, loss: f64) -> f64 {
        if loss >= pair.split() {
            let tail = pair.tail(loss, Side::Above);
            tail.p - tail.scaled_q
        } else {
            let tail = pair.tail(loss, Side::Below);
            1.0 - loss.exp() - (tail.p - tail.scaled_q)
        }
    }

    fn delta(lattice: &Lattice, loss: f64) -> f64 {
        let finite: f64 = lattice
            .masses
            .iter()
            .enumerate()
            .map(|(index, mass)| mass * (-(loss - lattice.loss(index)).exp_m1()).max(0.0))
            .sum();
        finite + lattice.infinite
    }

    #[test]
    fn the_true_profile_lies_between_both_lattices_and_close_to_them() {
        for pair in pairs() {
            let (low, high) = pair.range(1e-3, 1e-6);
            let spacing = (high - low) / 300.0;
            let up = upward(&pair, spacing, 1e-14, 1e-12);
            let total: f64 = up.masses.iter().sum::<f64>() + up.infinite;
            assert!((total - 1.0).abs() < 1e-12, "{pair:?} {total}");
            // Only these two are ever rounded down.
            let is_plain = matches!(pair, Pair::Gaussian { .. } | Pair::Remove { .. });
            let down = is_plain.then(|| downward(&pair, spacing, 1e-14, 1e-12));
            for step in 0..97 {
                let loss = low + (high - low) * f64::from(step) / 97.0;
                let truth = exact(&pair, loss);
                let over = delta(&up, loss) - truth;
                assert!(over >= -1e-14, "{pair:?} {loss} {truth} {over}");
                assert!(
                    over <= spacing * 0.1 + 1e-12,
                    "{pair:?} {loss} {truth} {over}"
                );
                if let Some(down) = &down {
                    let under = truth - delta(down, loss);
                    assert!(under >= -1e-14, "{pair:?} {loss} {truth} {under}");
                    assert!(
                        under <= spacing * 0.1 + 1e-11,
                        "{pair:?} {loss} {truth} {under}"
                    );
                }
            }
        }
    }
}
