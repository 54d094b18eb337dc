//! Decoding noisy releases into an estimate of each round's sum: post-processing without privacy
//! cost.
//!
//! Toeplitz: x̂_t = Y_t - Σ_{j>=1} c_j x̂_{t-j}, the inverse power series applied to Y. Tree: the
//! difference of the estimated sums of rounds 0 to t and of rounds 0 to t - 1.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::error::CorrelatedError;
use super::sensitivity::COEFFICIENT_UNIT;
use super::strategy::{Strategy, StrategyKind};
use super::tree::Tree;

/// Entries that are updated together, so that they stay in the first-level cache.
const BLOCK: usize = 1024;

/// Decodes the releases of one run, round by round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decoder {
    /// Number of entries of a sum.
    dimension: usize,
    /// The next round.
    round: u32,
    state: State,
}

/// The state from earlier rounds, all of it public.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum State {
    Toeplitz {
        /// c_1, c_2, ..
        coefficients: Vec<f64>,
        /// x̂ of the last rounds, the latest first.
        past: VecDeque<Vec<f64>>,
    },
    Tree {
        /// n.
        rounds: u32,
        /// The estimates of the nodes that cover the rounds so far, by height.
        nodes: Vec<Option<Vec<f64>>>,
        /// Their sum.
        prefix: Vec<f64>,
    },
}

impl Decoder {
    /// Creates a decoder of `strategy`'s releases, from round 0. Sums have `dimension` entries.
    #[must_use]
    pub fn new(strategy: &Strategy, dimension: usize) -> Self {
        let unit = COEFFICIENT_UNIT as f64;
        let state = match strategy.kind() {
            StrategyKind::Toeplitz(toeplitz) => {
                let later = toeplitz.coefficients().iter().skip(1);
                State::Toeplitz {
                    coefficients: later.map(|m| *m as f64 / unit).collect(),
                    past: VecDeque::new(),
                }
            }
            StrategyKind::Tree(tree) => State::Tree {
                rounds: tree.rounds(),
                nodes: vec![None; tree.heights() as usize],
                prefix: vec![0.0; dimension],
            },
        };
        Self {
            dimension,
            round: 0,
            state,
        }
    }

    /// Returns whether this can be a decoder of `strategy`'s releases after `round` rounds, with
    /// sums of `dimension` entries. A decoder from a file may be invalid.
    #[must_use]
    pub fn continues(&self, strategy: &Strategy, dimension: usize, round: u32) -> bool {
        let has_entries = |vector: &Vec<f64>| vector.len() == dimension;
        let fits = match (&self.state, Self::new(strategy, dimension).state) {
            (
                State::Toeplitz { coefficients, past },
                State::Toeplitz {
                    coefficients: expected,
                    ..
                },
            ) => {
                let kept = expected.len().min(round as usize);
                *coefficients == expected && past.len() == kept && past.iter().all(has_entries)
            }
            (
                State::Tree {
                    rounds,
                    nodes,
                    prefix,
                },
                State::Tree {
                    rounds: expected,
                    nodes: all,
                    ..
                },
            ) => {
                let mut vectors = nodes.iter().flatten().chain([prefix]);
                *rounds == expected && nodes.len() == all.len() && vectors.all(has_entries)
            }
            _ => false,
        };
        fits && self.dimension == dimension && self.round == round
    }

    /// Returns the estimate of the next round's sum.
    ///
    /// * `released`: the vectors released in the round ([`Strategy::releases`]), in units of the
    ///   update: Σ m_j X_{t-j} + Z divided by 256 and by the steps of the grid. For the tree, its
    ///   completed nodes by height. Used as working memory.
    /// * Cost: for Toeplitz, one multiplication for each coefficient and entry.
    ///
    /// # Errors
    /// [`CorrelatedError::Released`] for another number of vectors or entries. The decoder is then
    /// unchanged.
    pub fn decode(&mut self, released: Vec<Vec<f64>>) -> Result<Vec<f64>, CorrelatedError> {
        let (dimension, round) = (self.dimension, self.round);
        let vectors = match &self.state {
            State::Toeplitz { .. } => 1,
            State::Tree { rounds, .. } => Tree::new(*rounds).completed(round) as usize,
        };
        let is_expected =
            released.len() == vectors && released.iter().all(|vector| vector.len() == dimension);
        if !is_expected {
            return Err(CorrelatedError::Released {
                round,
                expected: vectors * dimension,
                found: released.iter().map(Vec::len).sum(),
            });
        }
        self.round += 1;
        let mut released = released.into_iter();
        let first = released.next().unwrap_or_default();
        Ok(match &mut self.state {
            State::Toeplitz { coefficients, past } => {
                let sum = divided(first, coefficients, past);
                past.truncate(coefficients.len().saturating_sub(1));
                if !coefficients.is_empty() {
                    past.push_front(sum.clone());
                }
                sum
            }
            State::Tree {
                rounds,
                nodes,
                prefix,
            } => {
                let tree = Tree::new(*rounds);
                complete(tree, nodes, first, released);
                let before = std::mem::replace(prefix, vec![0.0; dimension]);
                for node in nodes.iter().flatten() {
                    prefix.iter_mut().zip(node).for_each(|(to, x)| *to += x);
                }
                prefix
                    .iter()
                    .zip(before)
                    .map(|(new, old)| new - old)
                    .collect()
            }
        })
    }
}

/// Returns y - Σ c_j x̂_{t-j}.
fn divided(mut y: Vec<f64>, coefficients: &[f64], past: &VecDeque<Vec<f64>>) -> Vec<f64> {
    for (block, entries) in y.chunks_mut(BLOCK).enumerate() {
        let first = block * BLOCK;
        for (c, x) in coefficients.iter().zip(past) {
            let x = x.get(first..).unwrap_or_default();
            entries.iter_mut().zip(x).for_each(|(y, x)| *y -= c * x);
        }
    }
    y
}

/// Joins a round's leaf with the nodes that it completes.
fn complete(
    tree: Tree,
    nodes: &mut [Option<Vec<f64>>],
    leaf: Vec<f64>,
    sums: impl Iterator<Item = Vec<f64>>,
) {
    let mut estimate = leaf;
    let mut height = 0;
    for own in sums {
        // The left child was completed earlier. The estimate so far belongs to the right child.
        let left = nodes.get_mut(height).and_then(Option::take);
        height += 1;
        let weight = tree.own_weight(height as u32);
        let left = left.unwrap_or_default();
        for ((right, left), own) in estimate.iter_mut().zip(left).zip(own) {
            *right = weight * own + (1.0 - weight) * (left + *right);
        }
    }
    if let Some(node) = nodes.get_mut(height) {
        *node = Some(estimate);
    }
}
