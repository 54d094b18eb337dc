//! `denoiser = "auto"`: filters of all that was released so far, judged by what is released next.
//!
//! With V the sum of the server's steps, each *expert* is a filter F of V, and devices get
//! w₀ + Σ p F(V), a mixture of the experts. The next average A comes from devices that started
//! there, under fresh noise, and so it is an unbiased judge of the filters: with F₀ the first
//! expert, the loss of another one is −⟨A, F(V) − F₀(V)⟩, and noise of standard deviation s on each
//! entry of A adds s² ‖F(V) − F₀(V)‖² to its variance. The weights p are those of AdaHedge (de
//! Rooij, van Erven, Grünwald, Koolen 2014, arXiv:1301.0534) on the losses so far with a margin of
//! two standard deviations for F₀, so that noise alone moves little.
//!
//! Without evidence the model is w₀ + F₀(V), F₀ being Laplacian smoothing by 1 where all the noise
//! that was added would make it worth its bias. Where noise is weak, one average is enough to tell
//! whether that was right; where it is strong, evidence comes late, and mild smoothing is the
//! better guess.
//!
//! All of it is computed from what was released, and costs no privacy. Biases are left as they are:
//! they are few, and a shift of one is as likely as a shift of the others.
//!
//! Why not a filter of A, or the noise of V that is known: local training works against the noise
//! that devices received, so that V has less noise than was added; and what a filter of A takes
//! away in each round adds up, whereas noise averages out.

mod experts;
mod hedge;

use std::ops::Range;

use rayon::prelude::*;

use crate::method::state::{Dtype, Saved, SavedTensor};
pub use experts::ExpertSet;
use experts::{Expert, Filter, Weights};
use hedge::Hedge;

/// Decay of the average over rounds.
const DECAY: f64 = 0.8;
/// Keys of a checkpoint.
const START: &str = "auto.start";
const MOVED: &str = "auto.moved";
const AVERAGE: &str = "auto.average";
const EVIDENCE: &str = "auto.evidence";

/// The denoiser at work in a run.
#[derive(Clone, Debug)]
pub struct Auto {
    experts: Vec<Expert>,
    /// Lengths of the shared tensors; every second one is a bias.
    tensors: Vec<usize>,
    /// w₀.
    start: Vec<f32>,
    /// V.
    moved: Vec<f64>,
    /// V averaged over rounds, the last ones most.
    average: Vec<f64>,
    /// Variance of the noise on each entry of V.
    variance: f64,
    /// F(V) of each expert, for the next average to judge.
    filtered: Vec<Vec<f32>>,
    hedge: Hedge,
    kept: Vec<f64>,
}

/// How much an expert counts after a round.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ExpertWeight {
    /// What it does.
    pub expert: String,
    /// Its share of the model, in [0, 1].
    pub weight: f64,
    /// By how many standard deviations of noise the releases so far rate it above the first expert.
    #[serde(default)]
    pub evidence: f64,
}

impl Auto {
    /// Before the first round: the initial model, the lengths of its tensors, and what is mixed.
    #[must_use]
    pub fn new(start: &[f32], tensors: &[usize], set: &ExpertSet) -> Self {
        let experts = set.experts();
        Self {
            hedge: Hedge::new(experts.len()),
            filtered: vec![vec![0.0; start.len()]; experts.len()],
            experts,
            tensors: tensors.to_vec(),
            start: start.to_vec(),
            moved: vec![0.0; start.len()],
            average: vec![0.0; start.len()],
            variance: 0.0,
            kept: Vec::new(),
        }
    }

    /// The model after a round that released `average`, with noise of `noise_std` on each entry.
    pub fn step(
        &mut self,
        global: &mut [f32],
        average: &[f32],
        noise_std: f64,
        learning_rate: f32,
    ) {
        self.judge(average, noise_std);
        let rate = f64::from(learning_rate);
        let moved = self.moved.iter_mut().zip(&mut self.average).zip(average);
        for ((v, m), a) in moved {
            *v += rate * f64::from(*a);
            *m = DECAY * *m + (1.0 - DECAY) * *v;
        }
        self.variance += (rate * noise_std) * (rate * noise_std);
        self.filter();
        let mut mixed = vec![0.0; self.moved.len()];
        for (filtered, weight) in self.filtered.iter().zip(self.hedge.weights()) {
            if *weight > 0.0 {
                for (y, f) in mixed.iter_mut().zip(filtered) {
                    *y += weight * f64::from(*f);
                }
            }
        }
        self.kept = self.kept_of(&mixed);
        for ((w, start), moved) in global.iter_mut().zip(&self.start).zip(mixed) {
            *w = (f64::from(*start) + moved) as f32;
        }
    }

    /// The weight of each expert in the model.
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

    /// ‖mixture‖ / ‖V‖ of each tensor of weights after the last step; 1 where V is 0.
    #[must_use]
    pub fn kept(&self) -> &[f64] {
        &self.kept
    }

    /// Lets an average judge the experts of the round before.
    fn judge(&mut self, average: &[f32], noise_std: f64) {
        let Some(first) = self.filtered.first() else {
            return;
        };
        let evidence = |filtered: &Vec<f32>| {
            let (mut gain, mut squares) = (0.0, 0.0);
            for ((f, first), a) in filtered.iter().zip(first).zip(average) {
                let change = f64::from(*f) - f64::from(*first);
                gain += f64::from(*a) * change;
                squares += change * change;
            }
            [-gain, noise_std * noise_std * squares]
        };
        let evidence: Vec<[f64; 2]> = self.filtered.par_iter().map(evidence).collect();
        self.hedge.judge(&evidence);
    }

    /// Computes F(V) of each expert.
    fn filter(&mut self) {
        let tensors = spans(&self.tensors, self.moved.len());
        let both = self.experts.par_iter().zip(&mut self.filtered);
        both.for_each(|(expert, out)| {
            for (index, span) in tensors.iter().enumerate() {
                let weights = Weights {
                    moved: &self.moved[span.clone()],
                    average: &self.average[span.clone()],
                    variance: self.variance,
                    outputs: self.tensors.get(index + 1).copied().unwrap_or(1),
                    has_axes: index == 0,
                };
                let filter = match index % 2 {
                    0 => &expert.filter,
                    _ => &Filter::None,
                };
                filter.apply(&weights, &mut out[span.clone()]);
            }
        });
    }

    fn kept_of(&self, mixed: &[f64]) -> Vec<f64> {
        let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let share = |span: Range<usize>| {
            let whole = norm(&self.moved[span.clone()]);
            match whole > 0.0 {
                true => norm(&mixed[span]) / whole,
                false => 1.0,
            }
        };
        let weights = spans(&self.tensors, mixed.len()).into_iter().step_by(2);
        weights.map(share).collect()
    }

    /// Adds what goes into a checkpoint.
    pub fn save(&self, saved: &mut Saved) {
        let start: Vec<f64> = self.start.iter().map(|x| f64::from(*x)).collect();
        let mut evidence = self.hedge.state();
        evidence.push(self.variance);
        for (name, values) in [
            (START, &start),
            (MOVED, &self.moved),
            (AVERAGE, &self.average),
            (EVIDENCE, &evidence),
        ] {
            let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            let tensor = SavedTensor {
                dtype: Dtype::F64,
                shape: vec![values.len()],
                bytes,
            };
            saved.tensors.insert(name.to_owned(), tensor);
        }
    }

    /// Goes on with a checkpoint, from which it takes what is its own.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn restore(&mut self, saved: &mut Saved) -> Result<(), String> {
        let mut take = |name: &str, length: usize| {
            let tensor = saved.tensors.remove(name);
            let tensor = tensor.ok_or(format!("it has no `{name}` of the denoiser \"auto\""))?;
            let (words, _) = tensor.bytes.as_chunks::<8>();
            let values: Vec<f64> = words.iter().map(|word| f64::from_le_bytes(*word)).collect();
            match tensor.dtype == Dtype::F64
                && values.len() == length
                && values.iter().all(|x| x.is_finite())
            {
                true => Ok(values),
                false => Err(format!("`{name}` is not {length} finite numbers")),
            }
        };
        let length = self.start.len();
        let start = take(START, length)?;
        self.moved = take(MOVED, length)?;
        self.average = take(AVERAGE, length)?;
        let mut evidence = take(EVIDENCE, self.hedge.state().len() + 1)?;
        self.start = start.into_iter().map(|x| x as f32).collect();
        self.variance = evidence.pop().unwrap_or(0.0);
        self.hedge.restore(&evidence);
        self.filter();
        Ok(())
    }
}

/// Where each tensor lies in a model of `length` parameters.
fn spans(tensors: &[usize], length: usize) -> Vec<Range<usize>> {
    let mut end = 0;
    let span = |tensor: &usize| {
        let start = end;
        end = (start + tensor).min(length);
        start..end
    };
    tensors.iter().map(span).collect()
}

#[cfg(test)]
mod tests;
