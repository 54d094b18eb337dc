//! A cohort of simulated devices that learn an encoder without labels (FedSC, Algorithm 1).

use rayon::prelude::*;
use smolfed_core::contrast::Representation;
use smolfed_core::contrast::correlation::packed_length;
use smolfed_core::contrast::{Objective, alpha};
use smolfed_core::samples::Samples;
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::TrainError;

use super::device::{Buffers, DeviceRound, Unlabelled};
use super::matrices::{Matrices, Total};
use super::plan::{ContrastPlan, Sharing};
use crate::config::{AlphaName, ExchangeTime};
use crate::data::federation::Federation;
use crate::data::synthetic::DeviceBuffer;
use crate::privacy::event::Sampling;
use crate::rounds::{Draw, RoundError, Updates};
use crate::sampling::draw_cohort;
use crate::simulate::{Accumulator, CohortSum, Outcome, RoundPlan, sum_in_pieces};

/// Fewest samples of a device that can learn: the loss compares samples with each other.
pub const LEAST_SAMPLES: usize = 2;

/// Simulated devices that learn an encoder without labels, and the server's matrices.
#[derive(Debug)]
pub struct Contrasting<'a> {
    federation: &'a Federation,
    plan: &'a ContrastPlan,
    /// T, over which α falls.
    rounds: u32,
    matrices: Matrices,
    /// All samples, where one device holds them.
    pooled: Option<Vec<f32>>,
    /// Samples of the device that has most.
    largest: usize,
}

impl<'a> Contrasting<'a> {
    /// Before a round, with the matrices that the earlier ones gave.
    #[must_use]
    pub fn new(
        federation: &'a Federation,
        plan: &'a ContrastPlan,
        rounds: u32,
        matrices: Matrices,
    ) -> Self {
        let pooled = plan.is_central.then(|| {
            let mut buffer = DeviceBuffer::default();
            let mut features = Vec::new();
            for device in 0..federation.device_count() {
                let view = federation.device(device, &mut buffer);
                (0..view.len()).for_each(|row| features.extend_from_slice(view.features(row)));
            }
            features
        });
        let counts = (0..federation.device_count()).map(|device| federation.sample_count(device));
        let largest = match plan.is_central {
            true => counts.sum(),
            false => counts.max().unwrap_or(0),
        };
        Self {
            federation,
            plan,
            rounds,
            matrices,
            pooled,
            largest,
        }
    }

    fn samples<'b>(&'b self, device: u32, buffer: &'b mut DeviceBuffer) -> Unlabelled<'b> {
        match &self.pooled {
            Some(features) => Unlabelled::Pooled(features, self.plan.network.feature_count()),
            None => Unlabelled::View(self.federation.device(device, buffer)),
        }
    }

    /// Devices that send a matrix: all in the first round with matrices, which counts as a release of each
    /// (papers.md F3), later the cohort. A device with too few samples has none, and one that has sent as many
    /// as it may keeps its last.
    fn senders(&self, sharing: &Sharing, round: u32, cohort: &[u32]) -> Vec<u32> {
        let all: Vec<u32> = (0..self.federation.device_count()).collect();
        let asked = if round == sharing.from { &all } else { cohort };
        let may_send = |device: &&u32| {
            self.federation.sample_count(**device) >= LEAST_SAMPLES
                && self.matrices.releases(**device) < sharing.max_releases
        };
        asked.iter().filter(may_send).copied().collect()
    }

    /// Collects matrices; the reasons of those that are left out.
    fn collect(
        &mut self,
        sharing: &Sharing,
        senders: &[u32],
        number: u32,
        root: &Root,
        global: &[f32],
    ) -> Vec<String> {
        let sums: Vec<_> = senders
            .par_iter()
            .map_init(
                || (Buffers::new(self.plan, 0), DeviceBuffer::default()),
                |(buffers, buffer), device| {
                    let round = DeviceRound {
                        plan: self.plan,
                        root,
                        number,
                        device: *device,
                        samples: self.samples(*device, buffer),
                        global,
                    };
                    (round.samples.len(), round.matrix(sharing, buffers))
                },
            )
            .collect();
        let mut left_out = Vec::new();
        for (device, (samples, sum)) in senders.iter().zip(sums) {
            let samples = u32::try_from(samples).unwrap_or(u32::MAX);
            match sum {
                Err(error) => left_out.push(format!("correlation matrix: {error}")),
                Ok(sum) => {
                    let bounds = (&sharing.grid, sharing.noise_std);
                    let accepted = self.matrices.accept(*device, samples, sum, bounds);
                    left_out.extend(accepted.err().map(|error| error.to_string()));
                }
            }
        }
        left_out
    }

    /// α of a device that knows the others' matrix.
    fn alpha(&self, sharing: &Sharing, round: u32, others: u64, samples: usize) -> f32 {
        match sharing.alpha {
            AlphaName::Decay => alpha(round, self.rounds),
            AlphaName::Share => (samples as f64 / (samples as f64 + others as f64)) as f32,
        }
    }

    fn device(
        &self,
        worker: &mut Worker,
        (plan, total): (&RoundPlan<'_>, Option<&Total>),
        root: &Root,
        global: &[f32],
        device: u32,
    ) -> Outcome {
        let mut buffer = std::mem::take(&mut worker.buffer);
        let round = DeviceRound {
            plan: self.plan,
            root,
            number: plan.number,
            device,
            samples: self.samples(device, &mut buffer),
            global,
        };
        let count = round.samples.len();
        let sharing = self.plan.sharing.as_ref();
        let others = sharing.zip(total).and_then(|(sharing, total)| {
            let has_noise = sharing.noise.is_some();
            let (others, samples) = self.matrices.of_others(total, device, has_noise)?;
            Some((self.alpha(sharing, plan.round, samples, count), others))
        });
        // Alone, as long as no other device has sent a matrix.
        let (alpha, others) =
            others.unwrap_or_else(|| (1.0, vec![0.0; packed_length(self.matrices.width())]));
        let objective = Objective {
            alpha,
            others: &others,
            norm_bound: self.plan.norm_bound,
        };
        let trained = if count < LEAST_SAMPLES {
            Err(format!(
                "{count} sample: without labels a device compares samples, and needs {LEAST_SAMPLES}"
            ))
        } else {
            round
                .train(
                    &plan.training,
                    &objective,
                    &mut worker.memory,
                    &mut worker.update,
                )
                .map_err(|error| match (error, self.plan.norm_bound) {
                    (TrainError::Diverged, None) => {
                        format!("{error}; `contrast.norm_bound` keeps representations in bounds")
                    }
                    _ => error.to_string(),
                })
        };
        let noise = || {
            root.stream(StreamId {
                purpose: Purpose::DeviceNoise,
                round: plan.number,
                device,
            })
        };
        let sent = trained.and_then(|report| {
            plan.weigh(&mut worker.update, count);
            let own_noise = plan.device_noise.map(|sampler| (sampler, noise()));
            worker.sum.add(plan.encoding, &worker.update, own_noise)?;
            Ok(report)
        });
        worker.buffer = buffer;
        match sent {
            Ok(report) => Outcome::Trained(report),
            Err(reason) => {
                worker.sum.add_noise_alone(plan.device_noise, 1, noise);
                Outcome::LeftOut { reason }
            }
        }
    }
}

/// Memory of one thread, and the sum of the devices that it trained.
struct Worker {
    memory: Buffers,
    buffer: DeviceBuffer,
    update: Vec<f32>,
    sum: Accumulator,
}

impl Updates for Contrasting<'_> {
    fn draw(
        &mut self,
        sampling: &Sampling,
        root: &Root,
        round: u32,
    ) -> Result<Option<Draw>, RoundError> {
        let cohort = match self.plan.is_central {
            true => vec![0],
            false => draw_cohort(sampling, root, round),
        };
        Ok(Some(Draw {
            number: round,
            cohort,
        }))
    }

    fn sum(
        &mut self,
        plan: &RoundPlan<'_>,
        root: &Root,
        global: &[f32],
        cohort: &[u32],
    ) -> Result<CohortSum, RoundError> {
        // No batch is larger than the largest device.
        let batch_size = self.largest.min(plan.training.batch_size.get() as usize);
        let contrast = self.plan;
        let due = contrast.sharing.as_ref();
        let due = due.filter(|sharing| sharing.is_in(plan.round));
        let mut left_out = Vec::new();
        let mut exchange = |devices: &mut Self, time| {
            if let Some(sharing) = due.filter(|sharing| sharing.exchange == time) {
                let senders = devices.senders(sharing, plan.round, cohort);
                left_out.extend(devices.collect(sharing, &senders, plan.number, root, global));
            }
        };
        exchange(self, ExchangeTime::BeforeTraining);
        let total = contrast.sharing.as_ref();
        let total = total.map(|sharing| self.matrices.total(&sharing.grid));
        let mut sum = sum_in_pieces(cohort, global.len(), |devices| {
            let mut worker = Worker {
                memory: Buffers::new(contrast, batch_size),
                buffer: DeviceBuffer::default(),
                update: vec![0.0; global.len()],
                sum: Accumulator::new(global.len()),
            };
            let outcomes = devices
                .iter()
                .map(|device| {
                    self.device(&mut worker, (plan, total.as_ref()), root, global, *device)
                })
                .collect();
            (worker.sum, outcomes)
        });
        exchange(self, ExchangeTime::WithUpdate);
        sum.left_out_matrices = left_out;
        Ok(sum)
    }

    fn matrices(&self) -> Option<&Matrices> {
        self.plan.sharing.as_ref().map(|_| &self.matrices)
    }
}
