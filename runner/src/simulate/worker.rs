//! One thread's working memory, and the way of one device through a round: train, clip, quantise,
//! check, add its own noise if it must, add up.

use smolfed_core::model::BATCH_GROUP;
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};
use smolfed_core::train::{TrainError, TrainReport, Workspace};
use smolfed_simd::Kernels;

use super::{Encoding, Outcome, RoundPlan};
use crate::data::federation::Federation;
use crate::data::synthetic::DeviceBuffer;
use crate::task::Task;

/// Memory for training one device after the other, and the sum of their updates.
pub(super) struct Worker {
    local: Vec<f32>,
    update: Vec<f32>,
    order: Vec<u32>,
    scratch: Vec<f32>,
    integers: Vec<i32>,
    noised: Vec<i64>,
    buffer: DeviceBuffer,
    sum: Vec<i64>,
}

impl Worker {
    pub(super) fn new(plan: &RoundPlan<'_>) -> Self {
        let parameters = plan.task.parameter_count();
        Self {
            local: vec![0.0; parameters],
            update: vec![0.0; parameters],
            order: Vec::new(),
            scratch: vec![0.0; BATCH_GROUP * plan.task.output_count()],
            integers: vec![0; parameters],
            noised: Vec::new(),
            buffer: DeviceBuffer::default(),
            sum: vec![0; parameters],
        }
    }

    /// The sum of what was trained so far.
    pub(super) fn sum(&self) -> &[i64] {
        &self.sum
    }

    /// Trains one device and adds its update to the sum; a device that fails adds nothing.
    pub(super) fn train(
        &mut self,
        plan: &RoundPlan<'_>,
        federation: &Federation,
        root: &Root,
        global: &[f32],
        device: u32,
    ) -> Outcome {
        let stream = |purpose| {
            root.stream(StreamId {
                purpose,
                round: plan.number,
                device,
            })
        };
        let order = &mut stream(Purpose::BatchShuffle);
        let report = match self.update(plan, federation, global, device, order) {
            Ok(report) => report,
            // As a device does: with noise of its own it does not tell that its training diverged.
            Err(TrainError::Diverged) if plan.device_noise.is_some() => {
                self.update.fill(0.0);
                TrainReport::default()
            }
            Err(error) => {
                return Outcome::LeftOut {
                    reason: error.to_string(),
                };
            }
        };
        match plan.encoding {
            Encoding::Clipped(grid) => {
                // The device's check, then the server's.
                let quantised = grid
                    .quantize_into(&self.update, &mut self.integers)
                    .and_then(|()| grid.check(&self.integers));
                if let Err(error) = quantised {
                    return Outcome::LeftOut {
                        reason: error.to_string(),
                    };
                }
                match plan.device_noise {
                    None => {
                        for (sum, q) in self.sum.iter_mut().zip(&self.integers) {
                            *sum += i64::from(*q);
                        }
                    }
                    Some(noise) => {
                        self.noised.clear();
                        self.noised
                            .extend(self.integers.iter().map(|q| i64::from(*q)));
                        noise.add_to(&mut self.noised, &mut stream(Purpose::DeviceNoise));
                        for (sum, q) in self.sum.iter_mut().zip(&self.noised) {
                            *sum += q;
                        }
                    }
                }
            }
            Encoding::Unbounded => {
                let inside = |x: &f32| x.abs() <= Encoding::UNBOUNDED_LIMIT;
                if !self.update.iter().all(inside) {
                    return Outcome::LeftOut {
                        reason: TrainError::Diverged.to_string(),
                    };
                }
                for (sum, x) in self.sum.iter_mut().zip(&self.update) {
                    *sum += (f64::from(*x) / Encoding::UNBOUNDED_STEP) as i64;
                }
            }
        }
        Outcome::Trained(report)
    }

    fn update(
        &mut self,
        plan: &RoundPlan<'_>,
        federation: &Federation,
        global: &[f32],
        device: u32,
        stream: &mut Stream,
    ) -> Result<TrainReport, TrainError> {
        let view = federation.device(device, &mut self.buffer);
        self.order.resize(self.order.len().max(view.len()), 0);
        let work = Workspace {
            local: &mut self.local,
            update: &mut self.update,
            order: &mut self.order,
            scratch: &mut self.scratch,
        };
        let settings = &plan.training;
        match plan.task {
            Task::Linear(model) => {
                model.local_update(&view.values(), global, settings, stream, work)
            }
            Task::Logistic(model) => {
                model.local_update(&view.classes(), global, settings, stream, work)
            }
            Task::Softmax(model) => {
                model.local_update(&view.classes(), global, settings, stream, work)
            }
        }
    }
}
