//! The arithmetic `f32`: local training step by step, with the code and the bits of boards.

use smolfed_core::stream::Stream;
use smolfed_core::train::{LocalTraining, TrainError, TrainReport, Workspace};
use smolfed_simd::{Kernels, Steps};

use super::contract::{Arithmetic, Buffers, Device};
use crate::arithmetic::steps::descend;
use crate::on_samples;

/// Training step by step on features and parameters.
pub(super) struct Direct;

impl Arithmetic for Direct {
    fn local_update(
        &self,
        device: &Device<'_>,
        global: &[f32],
        update: &mut [f32],
        settings: &LocalTraining,
        order: &mut Stream,
        buffers: &mut Buffers,
    ) -> Result<TrainReport, TrainError> {
        let Device { task, samples, .. } = *device;
        let Buffers { local, steps, .. } = buffers;
        local.resize(task.parameter_count(), 0.0);
        let memory = steps.memory_for(task, samples.len());
        let work = Workspace {
            local,
            update,
            order: memory.order,
            scratch: memory.scratch,
        };
        on_samples!(task, samples, (model, rows) => {
            model.local_update(rows, global, settings, order, work)
        })
    }

    fn descend(
        &self,
        device: &Device<'_>,
        local: &mut [f32],
        steps: Steps<'_>,
        order: &mut Stream,
        buffers: &mut Buffers,
    ) -> Result<TrainReport, TrainError> {
        let Device { task, samples, .. } = *device;
        let memory = buffers.steps.memory_for(task, samples.len());
        descend(task, samples, local, steps, order, memory)
    }
}
