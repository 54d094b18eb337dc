//! Correlated noise: each release is a combination of the sums of several rounds with fresh noise,
//! and the sum of a round is estimated from all of them.
//!
//! With X_t the exact sum of round t in steps of the grid, and m_j the coefficients of a
//! [`Strategy`] in units of 1/256, round t releases `Y_t = Σ_j m_j X_{t-j} + Z_t` on a grid 256
//! times finer, with Z_t an exact discrete Gaussian. (The tree releases 256 times the sum of each
//! node that the round completes, plus noise.) `x̂_t = (Y_t - Σ_{j>=1} m_j x̂_{t-j}) / m_0` is
//! post-processing.
//!
//! ```text
//! private   PrivateSum X_t -> combine -> PrivateSum Σ m_j X_{t-j} -> release (+ Z_t)
//! public    Released Y_t -> decode -> Released with the estimate x̂_t
//! ```
//!
//! [`smolfed_accounting::correlated`] proves that this is private. Its assumptions are met here:
//!
//! * **The combination** is exact. Entries of X_t are clamped to the range that `S 2^g` allows
//!   before they enter the history, so that no entry can leave an `i64`. No honest sum changes, and
//!   clamping moves no two sums further apart, so the sensitivity holds for any other sum.
//! * **Noise** is fresh: all vectors of a round are one vector when [`PrivateSum::release`] adds
//!   noise to it, block by block with the streams (ServerNoise, t, 0), (ServerNoise, t, 1), ..,
//!   none of which is used twice.
//! * **A restarted history** lacks the sums of earlier rounds. Columns of C lose entries, and none
//!   grows, so the noise is sufficient for the release. (The nodes of a tree have fixed positions
//!   in the run, so a tree could lose this property, and does not restart.)
//! * **Masked sums** are combined modulo 2^w, and each helper combines the sums of their masks in
//!   the same way: the combination of masked sums is the combination of the sums with the
//!   combination of the masks. The stored sums are then uniform to anyone without a mask, and
//!   nothing is clamped.
//! * **Devices** are admitted by [`Admissions`].

use std::collections::VecDeque;
use std::sync::Arc;

use smolfed_accounting::correlated::{
    COEFFICIENT_UNIT, CorrelatedError, Decoder, Participation, Strategy, StrategyKind, Toeplitz,
    Tree,
};
use zeroize::Zeroizing;

use crate::admission::{Admissions, Admitted};
use crate::masked::combination::combined;
use crate::masking::Ring;
use crate::saved::Saved;
use crate::sum::{PrivateSum, Released};

/// The names of the entries in checkpoints.
const SUMS: &str = "mechanism.sums";
const DECODER: &str = "mechanism.decoder";
const ROUNDS: &str = "mechanism.rounds";

/// The state of a mechanism between rounds. It is empty if noise is independent and devices are
/// drawn.
pub struct History {
    /// The combined sums, with correlated noise.
    rounds: Option<Rounds>,
    /// The rounds of each device, if the number of its participations is limited.
    admissions: Option<Admissions>,
}

/// The rounds of a run so far.
struct Rounds {
    strategy: Arc<Strategy>,
    /// Entries of a sum.
    length: usize,
    /// The largest magnitude of an entry of a sum.
    limit: i64,
    /// The ring of masked sums, whose entries have no magnitude.
    ring: Option<Ring>,
    /// Rounds since the history began.
    count: u32,
    /// Toeplitz: the exact sums of the last rounds, the latest first. Tree: the exact sum of the
    /// rounds so far in the open node of each height. Private.
    sums: VecDeque<Zeroizing<Vec<i64>>>,
    /// The releases so far: public.
    decoder: Decoder,
    spread: Spread,
}

impl std::fmt::Debug for Rounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sums, length) = (self.sums.len(), self.length);
        write!(f, "{sums} sums of {length} integers")
    }
}

impl std::fmt::Debug for History {
    /// Prints only the number of sums: participation is as secret as `participation.jsonl`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("History").field(&self.rounds).finish()
    }
}

impl History {
    /// Creates the state before the first round, for sums of `length` parameters on a grid of
    /// `grid_bits` bits.
    #[must_use]
    pub fn new(strategy: Option<&Arc<Strategy>>, grid_bits: u32, length: usize) -> Self {
        let rounds = strategy.map(|strategy| Rounds {
            length,
            limit: limit(strategy, grid_bits),
            ring: None,
            count: 0,
            sums: VecDeque::new(),
            decoder: Decoder::new(strategy, length),
            spread: Spread::new(strategy),
            strategy: Arc::clone(strategy),
        });
        let allowed = strategy.map(|strategy| strategy.participation());
        Self {
            rounds,
            admissions: allowed.map(Admissions::new),
        }
    }

    /// Limits the rounds of a device, if noise is independent and participation is not controlled.
    /// Correlated noise has its own limit.
    #[must_use]
    pub fn admitting(self, allowed: Option<Participation>) -> Self {
        let admissions = self.admissions.or(allowed.map(Admissions::new));
        Self { admissions, ..self }
    }

    /// Combines masked sums: the stored sums are modulo 2^w, and uniform to anyone without a mask.
    #[must_use]
    pub fn of_masked(self, ring: Option<Ring>) -> Self {
        let rounds = self.rounds.map(|rounds| Rounds { ring, ..rounds });
        Self { rounds, ..self }
    }

    /// Returns the earlier rounds in a combination of round `number`, the latest first. A history
    /// without a gap covers the last rounds: it restarts after any other round.
    #[must_use]
    pub fn earlier(&self, number: u32) -> Vec<u32> {
        let kept = self.rounds.as_ref().map_or(0, Rounds::kept);
        (1..)
            .map_while(|i| number.checked_sub(i))
            .take(kept)
            .collect()
    }

    /// Admits the devices of a cohort that may take part in `round`, which counts for them.
    pub fn admit(&mut self, round: u32, cohort: &[u32]) -> Admitted {
        match &mut self.admissions {
            None => Admitted::All,
            Some(admissions) => admissions.admit(round, cohort),
        }
    }

    /// Returns whether there is any state.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.admissions.is_some()
    }

    /// Forgets the sums and their estimates, but not the participations.
    pub fn restart(&mut self) {
        if let Some(rounds) = &mut self.rounds {
            rounds.count = 0;
            rounds.sums.clear();
            rounds.decoder = Decoder::new(&rounds.strategy, rounds.length);
            rounds.spread = Spread::new(&rounds.strategy);
        }
    }

    /// Combines the sum of the next round with earlier ones, still without noise: private.
    #[must_use]
    pub fn combine(&mut self, sum: PrivateSum) -> PrivateSum {
        match &mut self.rounds {
            None => sum,
            Some(rounds) => rounds.combine(sum),
        }
    }

    /// Estimates the sum of the round from this release and earlier ones: post-processing.
    ///
    /// # Errors
    /// [`CorrelatedError::Released`] for a release of another length.
    pub fn decode(&mut self, released: Released) -> Result<Released, CorrelatedError> {
        match &mut self.rounds {
            None => Ok(released),
            Some(rounds) => rounds.decode(released),
        }
    }

    /// Adds the state to a checkpoint: the participations and, for simulated devices only, the
    /// private sums and the estimates. With real devices the sums are as secret as the noise and
    /// never leave the memory.
    pub fn save(&self, saved: &mut Saved, is_simulation: bool) {
        if let Some(admissions) = &self.admissions {
            admissions.save(saved);
        }
        if let Some(rounds) = self.rounds.as_ref().filter(|_| is_simulation) {
            rounds.save(saved);
        }
    }

    /// Restores the state of a checkpoint after `round` rounds.
    ///
    /// # Errors
    /// The reason, if the checkpoint has no valid state.
    pub fn restore(&mut self, saved: &Saved, round: u32) -> Result<(), String> {
        if let Some(admissions) = &mut self.admissions {
            admissions.restore(saved)?;
        }
        let rounds = self.rounds.as_mut();
        rounds.map_or(Ok(()), |rounds| rounds.restore(saved, round))
    }
}

/// Returns the largest magnitude of an entry of a sum with which no release leaves an `i64`.
fn limit(strategy: &Strategy, grid_bits: u32) -> i64 {
    let cohort = u8::try_from(grid_bits).map_or(0, |bits| strategy.max_cohort(bits));
    let largest = u128::from(cohort) << grid_bits.min(63);
    i64::try_from(largest).unwrap_or(i64::MAX)
}

impl Rounds {
    fn combine(&mut self, mut sum: PrivateSum) -> PrivateSum {
        let (limit, ring) = (self.limit, self.ring);
        let entries = sum.integers_mut().iter_mut();
        entries.for_each(|x| {
            *x = match ring {
                None => (*x).clamp(-limit, limit),
                Some(ring) => ring.reduce(*x),
            }
        });
        let strategy = Arc::clone(&self.strategy);
        let combined = match strategy.kind() {
            StrategyKind::Toeplitz(toeplitz) => self.combination(toeplitz, sum.integers_mut()),
            StrategyKind::Tree(tree) => self.nodes(*tree, sum.integers_mut()),
        };
        self.count += 1;
        sum.combined(combined, COEFFICIENT_UNIT)
    }

    /// Returns Σ m_j X_{t-j}.
    fn combination(&mut self, toeplitz: &Toeplitz, latest: &mut [i64]) -> Vec<i64> {
        let coefficients = toeplitz.coefficients();
        self.sums.truncate(coefficients.len() - 1);
        self.sums.push_front(Zeroizing::new(latest.to_vec()));
        let sums: Vec<&[i64]> = self.sums.iter().map(|sum| sum.as_slice()).collect();
        combined(coefficients, &sums, latest.len())
    }

    /// Returns 256 times the sums of the nodes that the round completes, concatenated by height.
    fn nodes(&mut self, tree: Tree, latest: &mut [i64]) -> Vec<i64> {
        let empty = || Zeroizing::new(vec![0; latest.len()]);
        self.sums.resize_with(tree.heights() as usize, empty);
        for node in &mut self.sums {
            node.iter_mut().zip(&*latest).for_each(|(sum, x)| *sum += x);
        }
        let completed = tree.completed(self.count) as usize;
        let mut combined = Vec::with_capacity(completed * latest.len());
        for node in self.sums.iter_mut().take(completed) {
            combined.extend(node.iter().map(|x| COEFFICIENT_UNIT * x));
            node.fill(0);
        }
        combined
    }

    fn decode(&mut self, released: Released) -> Result<Released, CorrelatedError> {
        let values = released.values();
        let vectors = values.chunks(self.length.max(1)).map(<[f64]>::to_vec);
        let estimate = self.decoder.decode(vectors.collect())?;
        let ratio = self.spread.next()?;
        Ok(released.estimated(estimate, ratio))
    }

    fn save(&self, saved: &mut Saved) {
        let entries = self.sums.iter().flat_map(|sum| sum.iter().copied());
        saved.put(SUMS, [self.sums.len(), self.length], entries);
        // The shortest text that parses to the same numbers: it always has a JSON form.
        let decoder = serde_json::to_vec(&self.decoder).unwrap_or_default();
        saved.put(DECODER, [decoder.len()], decoder);
        let rounds = self.count.to_string();
        saved.entries.insert(ROUNDS.to_owned(), rounds);
    }

    /// Restores the sums of a checkpoint after `round` rounds, or starts with an empty history if
    /// it has none.
    fn restore(&mut self, saved: &Saved, round: u32) -> Result<(), String> {
        let Some(rounds) = saved.entries.get(ROUNDS) else {
            return match self.strategy.kind() {
                StrategyKind::Toeplitz(_) => Ok(()),
                // Its nodes would restart during the run, which the sensitivity does not cover.
                StrategyKind::Tree(_) => Err(format!("it has no `{ROUNDS}`")),
            };
        };
        let rounds: u32 = rounds
            .parse()
            .map_err(|_| format!("`{ROUNDS}` is not a number"))?;
        // Fewer, if the history has restarted. The history of a tree does not.
        let is_possible = match self.strategy.kind() {
            StrategyKind::Toeplitz(_) => rounds <= round,
            StrategyKind::Tree(_) => rounds == round,
        };
        if !is_possible {
            return Err(format!("`{ROUNDS}` is {rounds} after {round} rounds"));
        }
        let (words, decoder) = (saved.get::<i64>(SUMS)?, saved.get::<u8>(DECODER)?);
        let is_whole =
            words.len() == self.kept_after(rounds) * self.length && self.are_inside(&words);
        if !is_whole {
            return Err(format!("`{SUMS}` does not contain the sums of rounds"));
        }
        let decoder: Decoder = serde_json::from_slice(&decoder)
            .map_err(|error| format!("`{DECODER}` is not readable: {error}"))?;
        if !decoder.continues(&self.strategy, self.length, rounds) {
            return Err(format!("`{DECODER}` does not match {rounds} rounds"));
        }
        self.decoder = decoder;
        let vectors = words.chunks(self.length.max(1));
        self.sums = vectors.map(|sum| Zeroizing::new(sum.to_vec())).collect();
        self.count = rounds;
        for _ in 0..rounds {
            self.spread.next().map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

impl Rounds {
    /// Returns the number of earlier sums in the next combination.
    fn kept(&self) -> usize {
        match self.strategy.kind() {
            StrategyKind::Toeplitz(toeplitz) => {
                let earlier = toeplitz.coefficients().len() - 1;
                earlier.min(self.count as usize)
            }
            // The nodes of a tree are not the last rounds, and never masked.
            StrategyKind::Tree(_) => 0,
        }
    }

    /// Returns the number of sums that are stored after `rounds` rounds.
    fn kept_after(&self, rounds: u32) -> usize {
        match self.strategy.kind() {
            StrategyKind::Toeplitz(toeplitz) => toeplitz.coefficients().len().min(rounds as usize),
            StrategyKind::Tree(tree) if rounds > 0 => tree.heights() as usize,
            StrategyKind::Tree(_) => 0,
        }
    }

    /// Returns whether no entry exceeds the largest entry of an exact sum, or of the sum of as many
    /// rounds as a node of the tree adds up.
    fn are_inside(&self, sums: &[i64]) -> bool {
        if let Some(ring) = self.ring {
            return sums.iter().all(|x| ring.reduce(*x) == *x);
        }
        let is_tree = matches!(self.strategy.kind(), StrategyKind::Tree(_));
        let mut sums = (0u32..).zip(sums.chunks(self.length.max(1)));
        sums.all(|(height, sum)| {
            let rounds = if is_tree { 1i64 << height.min(62) } else { 1 };
            let largest = self.limit.saturating_mul(rounds);
            sum.iter().all(|x| (-largest..=largest).contains(x))
        })
    }
}

/// The std of the noise in each round's estimate, relative to the noise in a release.
#[derive(Debug)]
struct Spread {
    tree: Option<Tree>,
    round: u32,
    /// Decodes 1, 0, 0, ..: the coefficients of C⁻¹.
    impulse: Decoder,
    /// The sum of their squares.
    variance: f64,
}

impl Spread {
    fn new(strategy: &Strategy) -> Self {
        Self {
            tree: match strategy.kind() {
                StrategyKind::Tree(tree) => Some(*tree),
                StrategyKind::Toeplitz(_) => None,
            },
            round: 0,
            impulse: Decoder::new(strategy, 1),
            variance: 0.0,
        }
    }

    /// Returns the std of the next round.
    fn next(&mut self) -> Result<f64, CorrelatedError> {
        let round = self.round;
        self.round += 1;
        if let Some(tree) = self.tree {
            return Ok(spread_of_tree(tree, round).sqrt());
        }
        let impulse = if round == 0 { 1.0 } else { 0.0 };
        for weight in self.impulse.decode(vec![vec![impulse]])? {
            self.variance += weight * weight;
        }
        Ok(self.variance.sqrt())
    }
}

/// Returns the variance of the difference of two successive prefix sums.
///
/// Round t completes the node of height h, whose estimate replaces the estimates of its left
/// descendants L_{h-1}, .., L_0: `w_h own_h + (1 - w_h) (L_{h-1} + R_{h-1}) - Σ L_i`. R_{h-1}
/// expands in the same way one level below, down to the leaf. The terms are independent: `own` and
/// the leaf have variance 1, and L_i has the variance of its estimate, which is its `w_i`.
fn spread_of_tree(tree: Tree, round: u32) -> f64 {
    let height = tree.completed(round) - 1;
    let (mut variance, mut weight) = (0.0, 1.0);
    for level in (1..=height).rev() {
        let own = tree.own_weight(level);
        variance += (weight * own) * (weight * own);
        weight *= 1.0 - own;
        variance += (weight - 1.0) * (weight - 1.0) * tree.own_weight(level - 1);
    }
    variance + weight * weight
}

#[cfg(test)]
mod tests;
