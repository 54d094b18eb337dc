//! `denoiser = "auto"`: filters of all releases so far, judged by the next release.
//!
//! With V the sum of the server's steps, each *expert* is a filter F of V, and devices get
//! w₀ + Σ p F(V), a mixture of the experts. The next average A comes from devices that started
//! there, under fresh noise, and so it is an unbiased judge of the filters: with F₀ the first
//! expert, the loss of another one is −⟨A, F(V) − F₀(V)⟩, and noise of standard deviation s on each
//! entry of A adds s² ‖F(V) − F₀(V)‖² to its variance. The weights p are those of AdaHedge (de
//! Rooij, van Erven, Grünwald, Koolen 2014, arXiv:1301.0534) on the losses so far with a margin of
//! two standard deviations for F₀, so that noise alone moves little.
//!
//! Without evidence the model is w₀ + F₀(V). F₀ is Laplacian smoothing by 1 wherever the total
//! noise would make it worth its bias. Where noise is weak, one average is enough to tell whether
//! that was right. Where it is strong, evidence comes late, and mild smoothing is the better guess.
//!
//! All of it is computed from releases, and costs no privacy. Biases are not filtered: they are
//! few, and a shift of one is as likely as a shift of the others.
//!
//! Why not filter A, or use the known noise of V? Local training works against the noise that
//! devices received, so V has less noise than was added. The losses from filtering A in each round
//! add up, whereas noise averages out.

mod blocks;
mod experts;
mod hedge;

use rayon::prelude::*;
use smolfed_simd::mixture;

use super::flattening::Flattenings;
use crate::layout::TensorLayout;
use blocks::{Block, Tensors};
pub use experts::ExpertSet;
use experts::{Expert, Filter, Weights};
use hedge::Hedge;
use smolfed_release::saved::{Number, Saved};

/// Decay of the average over rounds.
const DECAY: f32 = 0.8;
/// Keys of a checkpoint.
const START: &str = "auto.start";
const MOVED: &str = "auto.moved";
const AVERAGE: &str = "auto.average";
const EVIDENCE: &str = "auto.evidence";

/// The denoiser in a run.
///
/// Vectors are in single precision, like the model. Sums over them are in double precision, block
/// by block in one order, whichever thread computes a block.
#[derive(Clone, Debug)]
pub struct Auto {
    experts: Vec<Expert>,
    /// The shared tensors.
    tensors: Tensors,
    /// Axes for smoothing each tensor.
    flattenings: Flattenings,
    /// w₀.
    start: Vec<f32>,
    /// V.
    moved: Vec<f32>,
    /// V averaged over rounds, with the most weight on the last ones. Biases are taken from V.
    average: Vec<f32>,
    /// Variance of the noise on each entry of V.
    variance: f64,
    /// F(V) of each expert that is neither V nor its average, for the next average to judge.
    filtered: Vec<Vec<f32>>,
    hedge: Hedge,
    kept: Vec<f64>,
}

/// Weight of an expert after a round.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ExpertWeight {
    /// Description of the expert.
    pub expert: String,
    /// Its share of the model, in [0, 1].
    pub weight: f64,
    /// Advantage over the first expert according to the releases so far, in standard deviations of
    /// noise.
    #[serde(default)]
    pub evidence: f64,
}

impl Auto {
    /// Creates the denoiser before the first round, from the initial model, its tensors, and the
    /// experts to mix.
    #[must_use]
    pub fn new(start: &[f32], tensors: &[TensorLayout], set: &ExpertSet) -> Self {
        let auto = Self::from_experts(start, tensors, set.experts());
        let flattenings = set.flattenings();
        Self {
            flattenings,
            ..auto
        }
    }

    fn from_experts(start: &[f32], tensors: &[TensorLayout], experts: Vec<Expert>) -> Self {
        let zeros = vec![0.0; start.len()];
        let filtered = experts
            .iter()
            .map(|expert| match expert.filter.is_stored() {
                true => zeros.clone(),
                false => Vec::new(),
            });
        Self {
            hedge: Hedge::new(experts.len()),
            filtered: filtered.collect(),
            experts,
            tensors: Tensors::new(tensors, start.len()),
            flattenings: Flattenings::default(),
            start: start.to_vec(),
            moved: zeros.clone(),
            average: zeros,
            variance: 0.0,
            kept: Vec::new(),
        }
    }

    /// Updates the model after a round that released `average`, with noise of `noise_std` on each
    /// entry.
    pub fn step(
        &mut self,
        global: &mut [f32],
        average: &[f32],
        noise_std: f64,
        learning_rate: f32,
    ) {
        self.judge(average, noise_std);
        self.accumulate(average, learning_rate);
        let step_std = f64::from(learning_rate) * noise_std;
        self.variance += step_std * step_std;
        self.filter();
        self.mix(global);
    }

    /// Returns the weight of each expert in the model.
    #[must_use]
    pub fn weights(&self) -> Vec<ExpertWeight> {
        let judged = self.hedge.weights().iter().zip(self.hedge.evidence());
        let named = self.experts.iter().zip(judged);
        let named = named.map(|(expert, (weight, evidence))| ExpertWeight {
            expert: expert.name.clone(),
            weight: *weight,
            evidence,
        });
        named.collect()
    }

    /// Returns ‖mixture‖ / ‖V‖ of each tensor of weights after the last step, or 1 where V is 0.
    #[must_use]
    pub fn kept(&self) -> &[f64] {
        &self.kept
    }

    /// Returns F(V) of expert `index`.
    fn filtered(&self, index: usize) -> &[f32] {
        match self.experts.get(index).map(|expert| &expert.filter) {
            Some(Filter::None) => &self.moved,
            Some(Filter::Average) => &self.average,
            _ => self.filtered.get(index).map_or(&[], Vec::as_slice),
        }
    }

    /// Judges the experts of the previous round by an average.
    fn judge(&mut self, average: &[f32], noise_std: f64) {
        let first = self.filtered(0);
        let of_block = |block: &Block| {
            let range = || block.range.clone();
            let of_expert = |index| {
                mixture::evidence(
                    &average[range()],
                    &self.filtered(index)[range()],
                    &first[range()],
                )
            };
            // The first expert has a loss of 0.
            (1..self.experts.len()).map(of_expert).collect()
        };
        let blocks: Vec<Vec<[f64; 2]>> = self.tensors.blocks().par_iter().map(of_block).collect();
        let mut evidence = vec![[0.0; 2]; self.experts.len()];
        for block in blocks {
            for ([loss, variance], [gain, squares]) in evidence.iter_mut().skip(1).zip(block) {
                *loss -= gain;
                *variance += noise_std * noise_std * squares;
            }
        }
        self.hedge.judge(&evidence);
    }

    /// Adds a step to V.
    fn accumulate(&mut self, average: &[f32], learning_rate: f32) {
        let moved = self.tensors.pieces(&mut self.moved);
        let averages = self.tensors.pieces(&mut self.average);
        let all = moved.into_par_iter().zip(averages);
        let all = all.zip(self.tensors.blocks());
        all.for_each(|((moved, mean), block)| {
            // A bias is its own average.
            let decay = if block.is_bias { 0.0 } else { DECAY };
            let steps = &average[block.range.clone()];
            mixture::accumulate(moved, mean, steps, learning_rate, decay);
        });
    }

    /// Computes F(V) of each stored expert.
    fn filter(&mut self) {
        let (moved, variance) = (&self.moved, self.variance);
        let (tensors, experts) = (&self.tensors, &self.experts);
        let flattenings = &self.flattenings;
        let stored = self.filtered.par_iter_mut().zip(experts);
        let stored = stored.filter(|(_, expert)| expert.filter.is_stored());
        stored.for_each(|(out, expert)| {
            for (index, tensor) in tensors.tensors().iter().enumerate() {
                let span = || tensor.span.clone();
                let (moved, out) = (&moved[span()], &mut out[span()]);
                if tensor.is_bias {
                    out.copy_from_slice(moved);
                    continue;
                }
                let weights = Weights {
                    moved,
                    variance,
                    outputs: tensor.outputs,
                    flattening: flattenings.of_tensor(index),
                };
                expert.filter.apply(&weights, out);
            }
        });
    }

    /// Sets the model to w₀ + Σ p F(V).
    fn mix(&mut self, global: &mut [f32]) {
        let weights = self.hedge.weights().iter().enumerate();
        let weights: Vec<(&[f32], f32)> = weights
            .filter(|(_, weight)| **weight > 0.0)
            .map(|(index, weight)| (self.filtered(index), *weight as f32))
            .collect();
        let pieces = self.tensors.pieces(global).into_par_iter();
        let squares = pieces.zip(self.tensors.blocks()).map(|(mixed, block)| {
            let range = || block.range.clone();
            mixed.fill(0.0);
            for (filtered, weight) in &weights {
                mixture::add_weighted(mixed, &filtered[range()], *weight);
            }
            let squares = [&*mixed, &self.moved[range()]].map(mixture::squares);
            mixture::add_weighted(mixed, &self.start[range()], 1.0);
            squares
        });
        let squares: Vec<[f64; 2]> = squares.collect();
        self.kept = self.tensors.kept(&squares);
    }

    /// Adds its state to a checkpoint.
    pub fn save(&self, saved: &mut Saved) {
        let mut evidence = self.hedge.state();
        evidence.push(self.variance);
        saved.put(EVIDENCE, [evidence.len()], evidence);
        for (name, values) in [
            (START, &self.start),
            (MOVED, &self.moved),
            (AVERAGE, &self.average),
        ] {
            saved.put(name, [values.len()], values.iter().copied());
        }
    }

    /// Resumes from a checkpoint.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn restore(&mut self, saved: &Saved) -> Result<(), String> {
        let start = numbers(saved, START, self.start.len())?;
        let moved = numbers(saved, MOVED, self.start.len())?;
        let average = numbers(saved, AVERAGE, self.start.len())?;
        let mut evidence = numbers(saved, EVIDENCE, self.hedge.state().len() + 1)?;
        (self.start, self.moved, self.average) = (start, moved, average);
        self.variance = evidence.pop().unwrap_or(0.0);
        self.hedge.restore(&evidence);
        self.filter();
        Ok(())
    }
}

/// Returns the numbers of a checkpoint if there are `length`.
fn numbers<T: Number>(saved: &Saved, name: &str, length: usize) -> Result<Vec<T>, String> {
    let numbers = saved.get(name)?;
    match numbers.len() == length {
        true => Ok(numbers),
        false => Err(format!(
            "`{name}` does not match this version: it has {} numbers, not {length}",
            numbers.len()
        )),
    }
}

#[cfg(test)]
mod tests;
