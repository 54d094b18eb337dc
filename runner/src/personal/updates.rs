//! A cohort of simulated devices with models of their own.

use smolfed_core::stream::{Purpose, Root, StreamId};

use super::plan::{PersonalKind, PersonalPlan};
use super::states::States;
use super::training::{DeviceError, DeviceResult, DeviceRound, PersonalRound, StepBuffers};
use crate::data::federation::Federation;
use crate::data::synthetic::DeviceBuffer;
use crate::privacy::event::Sampling;
use crate::rounds::{Draw, RoundError, Updates};
use crate::sampling::draw_cohort;
use crate::simulate::{Accumulator, CohortSum, Encoding, Outcome, RoundPlan, sum_in_pieces};

/// Simulated devices that keep models of their own from round to round.
#[derive(Debug)]
pub struct Personalised<'a> {
    /// The devices.
    pub federation: &'a Federation,
    /// The method.
    pub plan: PersonalPlan,
    /// The model before the first round.
    pub initial: Vec<f32>,
    /// Their states.
    pub states: States,
    /// Releases of a device in a round.
    pub releases: u32,
}

/// Memory of one thread, and the sum of the devices that it trained.
struct Worker {
    buffers: StepBuffers,
    samples: DeviceBuffer,
    update: Vec<f32>,
    sent: Vec<i64>,
    sum: Accumulator,
}

impl Updates for Personalised<'_> {
    fn draw(
        &mut self,
        sampling: &Sampling,
        root: &Root,
        round: u32,
    ) -> Result<Option<Draw>, RoundError> {
        let cohort = draw_cohort(sampling, root, round);
        self.states.reserve(&cohort)?;
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
        let total = sum_in_pieces(cohort, global.len(), |devices| {
            let mut worker = Worker::new(global.len());
            let outcomes = devices
                .iter()
                .map(|device| self.device(&mut worker, plan, root, global, *device))
                .collect();
            (worker.sum, outcomes)
        });
        match self.states.failure() {
            Some(failure) => Err(failure.into()),
            None => Ok(total),
        }
    }

    fn personal(&self) -> Option<(&PersonalPlan, &States)> {
        Some((&self.plan, &self.states))
    }

    fn states(&mut self) -> Option<&mut States> {
        Some(&mut self.states)
    }
}

impl Personalised<'_> {
    fn device(
        &self,
        worker: &mut Worker,
        plan: &RoundPlan<'_>,
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
        let is_each_step = self.plan.kind == PersonalKind::Split { each_step: true };
        let each_step = match plan.encoding {
            Encoding::Clipped(grid) if is_each_step => {
                Some((grid, plan.device_noise, stream(Purpose::DeviceNoise)))
            }
            _ => None,
        };
        let samples = self.federation.device(device, &mut worker.samples);
        worker.sent.fill(0);
        let round = PersonalRound {
            plan: &self.plan,
            states: &self.states,
            initial: &self.initial,
        };
        let trained = round.train(
            device,
            DeviceRound {
                task: &plan.task,
                training: &plan.training,
                shared: global,
                samples: &samples,
                order: stream(Purpose::BatchShuffle),
                each_step,
            },
            worker.buffers.of(&plan.task, samples.len()),
            &mut worker.update,
            &mut worker.sent,
        );
        let left_out = |reason: String| Outcome::LeftOut { reason };
        let releases = self.releases;
        let noise_alone = |worker: &mut Worker| {
            let stream = || stream(Purpose::DeviceNoise);
            worker
                .sum
                .add_noise_alone(plan.device_noise, releases, stream);
        };
        let DeviceResult { report, state } = match trained {
            Ok(result) => result,
            Err(DeviceError::Train(error)) => {
                noise_alone(worker);
                return left_out(error.to_string());
            }
            Err(DeviceError::State(error)) => {
                let reason = error.to_string();
                self.states.note(error);
                return left_out(reason);
            }
        };
        if is_each_step {
            // The model moves against the gradients.
            worker.sum.subtract(&worker.sent);
        } else {
            plan.weigh(&mut worker.update, samples.len());
            let noise = plan
                .device_noise
                .map(|noise| (noise, stream(Purpose::DeviceNoise)));
            if let Err(reason) = worker.sum.add(plan.encoding, &worker.update, noise) {
                noise_alone(worker);
                return left_out(reason);
            }
        }
        self.states.write(device, plan.round, &state);
        Outcome::Trained(report)
    }
}

impl Worker {
    fn new(shared: usize) -> Self {
        Self {
            buffers: StepBuffers::default(),
            samples: DeviceBuffer::default(),
            update: vec![0.0; shared],
            sent: vec![0; shared],
            sum: Accumulator::new(shared),
        }
    }
}
