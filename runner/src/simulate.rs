//! Simulated devices: the cohort of a round trains in parallel, over the code that boards run.
//!
//! Devices read the shared data through their row numbers; each worker thread has one working
//! memory and one partial sum. Sums are integers, so their order cannot matter, and every random
//! draw comes from the device's own stream: one thread and eight give the same bits.

mod accumulate;
mod evaluate;
mod worker;

use rayon::prelude::*;
use smolfed_core::lanes;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::quantize::Grid;
use smolfed_core::stream::Root;
use smolfed_core::train::{LocalTraining, TrainReport};

use crate::data::federation::Federation;
use crate::experiment::weighting;
use crate::task::Task;

pub use accumulate::Accumulator;
pub use evaluate::{Evaluation, evaluate, sample_losses};
use worker::Worker;

/// What every device of a cohort is asked to do in one round.
#[derive(Clone, Copy)]
pub struct RoundPlan<'a> {
    /// The model.
    pub task: Task,
    /// Local training, with this round's learning rate.
    pub training: LocalTraining,
    /// How updates become integers.
    pub encoding: Encoding,
    /// Samples from which on an update has weight 1; `None` if all count the same.
    pub weight_cap: Option<u32>,
    /// Noise that each device adds to its own update (local trust).
    pub device_noise: Option<&'a DiscreteGaussian>,
    /// The round of the run, from 0.
    pub round: u32,
    /// The number that names the round's random streams. That of the round, unless the devices took
    /// part in earlier runs.
    pub number: u32,
}

/// How updates become integers that can be summed exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Encoding {
    /// Clipped updates on the grid of their clip norm, `Σq² ≤ 4^b` checked.
    Clipped(Grid),
    /// Updates without a bound, in steps of 2⁻³⁰: for runs that promise nothing.
    Unbounded,
}

impl RoundPlan<'_> {
    /// Weighs the update of a device with so many samples, before it becomes integers: no weight is
    /// above 1, so that no norm grows.
    pub fn weigh(&self, update: &mut [f32], samples: usize) {
        if let Some(cap) = self.weight_cap {
            let samples = u32::try_from(samples).unwrap_or(u32::MAX);
            lanes::scale(update, weighting::of(cap, samples));
        }
    }
}

impl Encoding {
    /// One step of an unbounded update.
    const UNBOUNDED_STEP: f64 = 1.0 / (1u64 << 30) as f64;
    /// Largest entry of an unbounded update: 2²⁰ of them fit into an `i64`.
    const UNBOUNDED_LIMIT: f32 = 8192.0;

    /// One step of the integers, in units of the parameters.
    #[must_use]
    pub fn step(&self) -> f64 {
        match self {
            Self::Clipped(grid) => grid.step(),
            Self::Unbounded => Self::UNBOUNDED_STEP,
        }
    }
}

/// What came of one device of the cohort.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It trained; the report describes private data and exists in simulations only.
    Trained(TrainReport),
    /// It sat the round out: a zero update.
    LeftOut {
        /// Why, in a sentence.
        reason: String,
    },
    /// A real device answered; nothing else is known of its training.
    Answered,
    /// It was drawn and did not answer: a zero update.
    Missing,
}

/// The exact sum of a cohort's updates and what came of each device.
#[derive(Clone, Debug, PartialEq)]
pub struct CohortSum {
    /// Sum of the integers, one entry a parameter. Without central noise yet: private.
    pub sum: Vec<i64>,
    /// Outcomes in the order of the cohort.
    pub outcomes: Vec<Outcome>,
    /// Why correlation matrices were left out, a reason each, if there are any.
    pub left_out_matrices: Vec<String>,
}

/// Trains the devices of `cohort` from `global`, on the threads of the current pool.
///
/// * Shape: `global` and the sum have one entry a parameter.
/// * Memory: a few vectors of parameters a thread; nothing grows with the federation.
#[must_use]
pub fn train_cohort(
    plan: &RoundPlan<'_>,
    federation: &Federation,
    root: &Root,
    global: &[f32],
    cohort: &[u32],
) -> CohortSum {
    sum_in_pieces(cohort, global.len(), |devices| {
        let mut worker = Worker::new(plan);
        let outcomes = devices
            .iter()
            .map(|device| worker.train(plan, federation, root, global, *device))
            .collect();
        (worker.into_sum(), outcomes)
    })
}

/// The sum of a cohort's updates of `length` parameters, on the threads of the current pool; `train` sums up
/// those of a piece of the cohort, in its order.
pub fn sum_in_pieces(
    cohort: &[u32],
    length: usize,
    train: impl Fn(&[u32]) -> (Accumulator, Vec<Outcome>) + Send + Sync,
) -> CohortSum {
    // Four pieces a thread even out devices of different size without a sum for each device.
    let piece = cohort
        .len()
        .div_ceil(4 * rayon::current_num_threads())
        .max(1);
    let pieces: Vec<_> = cohort.par_chunks(piece).map(train).collect();
    let mut total = CohortSum {
        sum: vec![0; length],
        outcomes: Vec::with_capacity(cohort.len()),
        left_out_matrices: Vec::new(),
    };
    for (sum, outcomes) in pieces {
        sum.add_to(&mut total.sum);
        total.outcomes.extend(outcomes);
    }
    total
}

#[cfg(test)]
mod tests;
