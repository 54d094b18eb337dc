//! `denoiser = "auto"`: filters of all that was released so far, judged by what is released next.
//!
//! With V the sum of the server's steps, each *expert* is a filter F of V; the first is V itself.
//! Devices get w₀ + Σ p F(V), a mixture of the experts. The next average A comes from devices that
//! started there, under fresh noise, and so it is an unbiased judge of the filters: the loss of an
//! expert is −⟨A, F(V) − V⟩, that of V is 0, and noise of standard deviation s on each entry of A
//! adds s² ‖F(V) − V‖² to the variance of the evidence. The weights p are those of AdaHedge (de
//! Rooij, van Erven, Grünwald, Koolen 2014, arXiv:1301.0534) with a margin of one standard
//! deviation for V, so that noise alone moves little; without evidence the model is w₀ + V.
//!
//! All of it is computed from what was released, and costs no privacy. Biases are left as they are:
//! they are few, and a shift of one is as likely as a shift of the others.
//!
//! Why not a filter of A, or the noise of V that is known: local training works against the noise
//! that devices received, so that V has less noise than was added; and what a filter of A takes
//! away in each round adds up, whereas noise averages out.

mod experts;
mod hedge;

use rayon::prelude::*;

use crate::method::state::{Dtype, Saved, SavedTensor};
use experts::{Expert, Weights, experts};
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
    hedge: Hedge,
}

/// How much an expert counts after a round.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ExpertWeight {
    /// What it does.
    pub expert: String,
    /// Its share of the model, in [0, 1].
    pub weight: f64,
}

impl Auto {
    /// Before the first round: the initial model, the lengths of its tensors, and the axes of a
    /// sample that is a grid (empty for none).
    #[must_use]
    pub fn new(start: &[f32], tensors: &[usize], axes: &[usize]) -> Self {
        let experts = experts(axes);
        Self {
            hedge: Hedge::new(experts.len()),
            experts,
            tensors: tensors.to_vec(),
            start: start.to_vec(),
            moved: vec![0.0; start.len()],
            average: vec![0.0; start.len()],
            variance: 0.0,
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
        for (v, a) in self.moved.iter_mut().zip(average) {
            *v += rate * f64::from(*a);
        }
        for (m, v) in self.average.iter_mut().zip(&self.moved) {
            *m = DECAY * *m + (1.0 - DECAY) * v;
        }
        self.variance += (rate * noise_std) * (rate * noise_std);
        let mut mixed = self.moved.clone();
        for (filtered, weight) in self.filtered().iter().zip(self.hedge.weights()) {
            if *weight > 0.0 {
                for ((y, f), v) in mixed.iter_mut().zip(filtered).zip(&self.moved) {
                    *y += weight * (f - v);
                }
            }
        }
        for ((w, start), moved) in global.iter_mut().zip(&self.start).zip(mixed) {
            *w = (f64::from(*start) + moved) as f32;
        }
    }

    /// The weight of each expert in the model.
    #[must_use]
    pub fn weights(&self) -> Vec<ExpertWeight> {
        let both = self.experts.iter().zip(self.hedge.weights());
        let named = both.map(|(expert, weight)| ExpertWeight {
            expert: expert.name.clone(),
            weight: *weight,
        });
        named.collect()
    }

    /// Lets an average judge the experts of the round before, which are computed once more rather
    /// than kept: each is as large as the model.
    fn judge(&mut self, average: &[f32], noise_std: f64) {
        let evidence: Vec<[f64; 2]> = self
            .filtered()
            .par_iter()
            .map(|filtered| {
                let (mut gain, mut squares) = (0.0, 0.0);
                for ((f, v), a) in filtered.iter().zip(&self.moved).zip(average) {
                    gain += f64::from(*a) * (f - v);
                    squares += (f - v) * (f - v);
                }
                [-gain, noise_std * noise_std * squares]
            })
            .collect();
        self.hedge.judge(&evidence);
    }

    /// F(V) of each expert.
    fn filtered(&self) -> Vec<Vec<f64>> {
        let filter = |expert: &Expert| {
            let mut out = self.moved.clone();
            let mut from = 0;
            for (index, length) in self.tensors.iter().enumerate() {
                let range = from..from + length;
                from = range.end;
                if index % 2 == 1 || range.end > out.len() {
                    continue;
                }
                let weights = Weights {
                    moved: &self.moved[range.clone()],
                    average: &self.average[range.clone()],
                    variance: self.variance,
                    outputs: self.tensors.get(index + 1).copied().unwrap_or(1),
                    has_axes: index == 0,
                };
                expert.filter.apply(&weights, &mut out[range]);
            }
            out
        };
        self.experts.par_iter().map(filter).collect()
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
        Ok(())
    }
}

#[cfg(test)]
mod tests;
