//! One thread's working memory, and the way of one device through a round: train, clip, quantise,
//! check, add its own noise if it must, add up.

use smolfed_core::model::BATCH_GROUP;
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};
use smolfed_core::train::{TrainError, TrainReport, Workspace};
use smolfed_simd::Kernels;

use super::{Accumulator, Outcome, RoundPlan};
use crate::data::federation::Federation;
use crate::data::synthetic::DeviceBuffer;
use crate::task::Task;

/// Memory for training one device after the other, and the sum of their updates.
pub(super) struct Worker {
    local: Vec<f32>,
    update: Vec<f32>,
    order: Vec<u32>,
    scratch: Vec<f32>,
    buffer: DeviceBuffer,
    sum: Accumulator,
}

impl Worker {
    pub(super) fn new(plan: &RoundPlan<'_>) -> Self {
        let parameters = plan.task.parameter_count();
        Self {
            local: vec![0.0; parameters],
            update: vec![0.0; parameters],
            order: Vec::new(),
            scratch: vec![0.0; plan.task.scratch_count(BATCH_GROUP)],
            buffer: DeviceBuffer::default(),
            sum: Accumulator::new(parameters),
        }
    }

    /// The sum of what was trained.
    pub(super) fn into_sum(self) -> Accumulator {
        self.sum
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
        let trained = self.update(plan, federation, global, device, order);
        let report = match trained {
            Ok(report) => report,
            Err(error) => {
                self.sum
                    .add_noise_alone(plan.device_noise, 1, || stream(Purpose::DeviceNoise));
                return Outcome::LeftOut {
                    reason: error.to_string(),
                };
            }
        };
        plan.weigh(&mut self.update, federation.sample_count(device));
        let noise = plan
            .device_noise
            .map(|noise| (noise, stream(Purpose::DeviceNoise)));
        if let Err(reason) = self.sum.add(plan.encoding, &self.update, noise) {
            self.sum
                .add_noise_alone(plan.device_noise, 1, || stream(Purpose::DeviceNoise));
            return Outcome::LeftOut { reason };
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
            Task::Encoder(model) => {
                model.local_update(&view.classes(), global, settings, stream, work)
            }
        }
    }
}
