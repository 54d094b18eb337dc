//! The interface (trait) of an arithmetic of simulated devices: local training of the shared model,
//! and the local steps of a personal one.

use smolfed_core::stream::Stream;
use smolfed_core::train::{LocalTraining, TrainError, TrainReport};
use smolfed_simd::Steps;
use smolfed_simd::span::SpanBuffers;

use super::integer_buffers::IntegerBuffers;
use crate::arithmetic::steps::StepBuffers;
use crate::task::Task;
use smolfed_data::dataset::DatasetView;

/// Local training of the devices of a run.
pub trait Arithmetic: Send + Sync {
    /// Trains the shared model from `global`, as [`smolfed_core::train::local_update`], and leaves
    /// the update in `update`.
    ///
    /// # Errors
    /// [`TrainError`], as there.
    fn local_update(
        &self,
        device: &Device<'_>,
        global: &[f32],
        update: &mut [f32],
        settings: &LocalTraining,
        order: &mut Stream,
        buffers: &mut Buffers,
    ) -> Result<TrainReport, TrainError>;

    /// Runs the local steps of a personal model, as [`smolfed_core::personal::descend`].
    ///
    /// # Errors
    /// [`TrainError`], as there.
    fn descend(
        &self,
        device: &Device<'_>,
        local: &mut [f32],
        steps: Steps<'_>,
        order: &mut Stream,
        buffers: &mut Buffers,
    ) -> Result<TrainReport, TrainError>;
}

/// A device in training.
#[derive(Clone, Copy)]
pub struct Device<'a> {
    /// Device number, which identifies its samples in a run.
    pub number: u32,
    /// The model.
    pub task: &'a Task,
    /// Its samples.
    pub samples: &'a DatasetView<'a>,
}

/// Working memory of one thread.
#[derive(Default)]
pub struct Buffers {
    pub(super) local: Vec<f32>,
    pub(super) steps: StepBuffers,
    pub(super) span: SpanBuffers,
    pub(super) integer: IntegerBuffers,
}
