//! The binary tree over the rounds: the released sums, the online estimate of a prefix sum, and the
//! sensitivity.
//!
//! A node of height h is the sum of 2^h consecutive rounds, the first of which is a multiple of
//! 2^h. It is released, with its own noise, in its last round. Nodes that the run does not complete
//! are never released. The sum of rounds 0 to t consists of the nodes given by the binary digits of
//! t + 1, the largest first.
//!
//! The online estimate (Honaker 2015, "from below"; Kairouz et al. 2021) weights the noisy sum of a
//! node and the estimates of its two children by their variances: with v_h the variance of the
//! estimate, `v_0 = 1` and `v_h = 2 v_{h-1} / (1 + 2 v_{h-1})`, which is also the weight of the
//! node's own sum.

use std::collections::HashMap;

use super::participation::Participation;
use super::sensitivity::{COEFFICIENT_UNIT, Sensitivity, square};

/// The sensitivity is exact up to this many blocks of rounds, and bounded above. Time grows with
/// the third power.
const MAX_BLOCKS: u32 = 256;

/// The tree of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree {
    rounds: u32,
}

impl Tree {
    pub(super) const fn new(rounds: u32) -> Self {
        Self { rounds }
    }

    /// Returns n.
    pub(super) const fn rounds(self) -> u32 {
        self.rounds
    }

    /// Returns the number of nodes that round `round` completes and releases: those of heights 0,
    /// 1, .., which all end in that round.
    #[must_use]
    pub const fn completed(self, round: u32) -> u32 {
        (round as u64 + 1).trailing_zeros() + 1
    }

    /// Returns the heights of the nodes that cover rounds 0 to `round`, the latest first.
    pub fn prefix(self, round: u32) -> impl Iterator<Item = u32> {
        let digits = u64::from(round) + 1;
        (0..=digits.ilog2()).filter(move |height| digits >> height & 1 == 1)
    }

    /// Returns the number of heights of nodes, up to the largest node that a run completes.
    #[must_use]
    pub const fn heights(self) -> u32 {
        self.rounds.ilog2() + 1
    }

    /// Returns the weight of a node's own noisy sum in the estimate of its sum. The sum of the
    /// estimates of its two children has the rest. It is also the variance of the estimate,
    /// relative to the variance of a noisy sum.
    #[must_use]
    pub fn own_weight(self, height: u32) -> f64 {
        (0..height).fold(1.0, |v, _| 2.0 * v / (1.0 + 2.0 * v))
    }

    /// Returns the largest number of rounds in a node, in units of a coefficient.
    pub(super) const fn weight(self) -> i64 {
        COEFFICIENT_UNIT << self.rounds.ilog2()
    }

    /// Returns the variance of the estimated sum of rounds 0 to t, for every t.
    pub(super) fn errors(self) -> Vec<f64> {
        let variances: Vec<f64> = (0..self.heights()).map(|h| self.own_weight(h)).collect();
        let variance = |height: u32| variances.get(height as usize).copied().unwrap_or(0.0);
        let error = |round: u32| self.prefix(round).map(variance).sum();
        (0..self.rounds).map(error).collect()
    }

    /// Returns Σ over released nodes of c², with c the number of a device's rounds in the node, for
    /// the worst rounds: u_i = u for all of them attains it.
    pub(super) fn sensitivity(self, participation: Participation) -> Sensitivity {
        let blocks = self.rounds.div_ceil(block_size(participation.separation()));
        let is_exact = blocks <= MAX_BLOCKS;
        let nodes = match is_exact {
            true => Worst::new(participation).of_run(),
            false => bound_of_levels(participation),
        };
        Sensitivity {
            squared: nodes * square(COEFFICIENT_UNIT),
            is_exact,
        }
    }
}

/// Returns the largest power of two up to `separation`: a node of that size has at most one of a
/// device's rounds.
const fn block_size(separation: u32) -> u32 {
    1 << separation.ilog2()
}

/// Returns an upper bound: in each level separately, as many nodes as possible are as full as
/// possible.
pub(super) fn bound_of_levels(participation: Participation) -> u128 {
    let rounds = participation.rounds();
    let levels = (0..=rounds.ilog2()).map(|height| {
        let size = 1_u32 << height;
        let k = participation.participations();
        let full = k.min(size.div_ceil(participation.separation()));
        let (nodes, count) = (k / full, k % full);
        let complete = rounds >> height;
        if nodes >= complete {
            return u128::from(complete) * square(i64::from(full));
        }
        u128::from(nodes) * square(i64::from(full)) + square(i64::from(count))
    });
    levels.sum()
}

/// A possible state of a device at the end of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    /// The number of its rounds in the node.
    count: u32,
    /// The number of rounds after the node in which it may not take part yet.
    wait: u32,
    /// Σ c² of the nodes inside.
    squares: u128,
}

/// The search for the worst rounds, by dynamic programming over nodes. Within a block, an earlier
/// round is as costly as a later one and leaves more room after it, so a device takes part in a
/// block as early as possible, or not at all. The only relevant state is its remaining wait.
struct Worst {
    participation: Participation,
    block_height: u32,
    known: HashMap<(u32, u32), Vec<Outcome>>,
}

impl Worst {
    fn new(participation: Participation) -> Self {
        Self {
            participation,
            block_height: participation.separation().ilog2(),
            known: HashMap::new(),
        }
    }

    /// Returns the largest Σ c² over the released nodes: the trees given by the binary digits of
    /// the number of rounds.
    fn of_run(mut self) -> u128 {
        let rounds = self.participation.rounds();
        let start = Outcome {
            count: 0,
            wait: 0,
            squares: 0,
        };
        let mut outcomes = vec![start];
        let digits = (0..=rounds.ilog2()).rev();
        for height in digits.filter(|height| rounds >> height & 1 == 1) {
            outcomes = self.after(&outcomes, height);
        }
        let squares = outcomes.iter().map(|outcome| outcome.squares);
        squares.max().unwrap_or(0)
    }

    /// Returns the possible outcomes after a node of this height that follows `before`.
    fn after(&mut self, before: &[Outcome], height: u32) -> Vec<Outcome> {
        let mut found = Vec::new();
        for first in before {
            for second in self.of_node(height, first.wait) {
                found.push(Outcome {
                    count: first.count + second.count,
                    squares: first.squares + second.squares,
                    ..second
                });
            }
        }
        self.worst(found)
    }

    /// Returns the possible outcomes of a node at whose start a device must wait.
    fn of_node(&mut self, height: u32, wait: u32) -> Vec<Outcome> {
        if let Some(known) = self.known.get(&(height, wait)) {
            return known.clone();
        }
        let outcomes = if height <= self.block_height {
            self.of_block(height, wait)
        } else {
            let left = self.of_node(height - 1, wait);
            let mut outcomes = self.after(&left, height - 1);
            for outcome in &mut outcomes {
                outcome.squares += square(i64::from(outcome.count));
            }
            self.worst(outcomes)
        };
        self.known.insert((height, wait), outcomes.clone());
        outcomes
    }

    /// Returns the outcomes of a block with its nodes, in which a device takes part at most once.
    fn of_block(&self, height: u32, wait: u32) -> Vec<Outcome> {
        let size = 1 << height;
        let absent = Outcome {
            count: 0,
            wait: wait.saturating_sub(size),
            squares: 0,
        };
        if wait >= size {
            return vec![absent];
        }
        let present = Outcome {
            count: 1,
            wait: (wait + self.participation.separation()).saturating_sub(size),
            squares: u128::from(height) + 1,
        };
        vec![absent, present]
    }

    /// Removes outcomes that are dominated by others with as many rounds and no longer wait, and
    /// outcomes with too many rounds.
    fn worst(&self, mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
        outcomes.retain(|outcome| outcome.count <= self.participation.participations());
        outcomes.sort_by(|a, b| {
            let by_squares = b.squares.cmp(&a.squares);
            (a.count, a.wait).cmp(&(b.count, b.wait)).then(by_squares)
        });
        let mut best: Vec<Outcome> = Vec::new();
        for outcome in outcomes {
            let is_matched = best
                .last()
                .is_some_and(|last| last.count == outcome.count && last.squares >= outcome.squares);
            if !is_matched {
                best.push(outcome);
            }
        }
        best
    }
}
