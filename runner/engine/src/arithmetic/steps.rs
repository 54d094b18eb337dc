//! Local steps for every kind of task, and their memory.

use smolfed_core::personal::StepMemory;
use smolfed_core::stream::Stream;
use smolfed_core::train::{TrainError, TrainReport};
use smolfed_simd::{Kernels, Steps};

use crate::on_samples;
use crate::task::Task;
use smolfed_data::dataset::DatasetView;

/// Runs the local steps of the task's model.
///
/// # Errors
/// [`TrainError`], as [`smolfed_core::personal::descend`].
pub fn descend(
    task: &Task,
    samples: &DatasetView<'_>,
    local: &mut [f32],
    steps: Steps<'_>,
    order: &mut Stream,
    memory: StepMemory<'_>,
) -> Result<TrainReport, TrainError> {
    on_samples!(task, samples, (model, rows) => {
        model.descend(rows, local, steps, order, memory)
    })
}

/// The memory of local steps, on the heap.
#[derive(Debug, Default)]
pub struct StepBuffers {
    gradient: Vec<f32>,
    order: Vec<u32>,
    scratch: Vec<f32>,
}

impl StepBuffers {
    /// Borrows memory for devices of up to `samples` samples.
    pub fn memory_for(&mut self, task: &Task, samples: usize) -> StepMemory<'_> {
        let group = smolfed_core::model::BATCH_GROUP;
        self.gradient.resize(task.parameter_count(), 0.0);
        self.order.resize(self.order.len().max(samples), 0);
        self.scratch.resize(task.scratch_count(group), 0.0);
        StepMemory {
            gradient: &mut self.gradient,
            order: &mut self.order,
            scratch: &mut self.scratch,
        }
    }
}
