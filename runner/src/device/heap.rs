//! A model of run-time size with the memory of its training, on the heap.

use rand_core::Rng;
use smolfed_core::client::Trainer;
use smolfed_core::model::{BATCH_GROUP, Model, ModelKind};
use smolfed_core::samples::Samples;
use smolfed_core::train::{LocalTraining, TrainError, TrainReport, Workspace, local_update};
use smolfed_core::wire::message::Shape;

/// What [`smolfed_core::client::Client`] is on a board, for sizes that only the run knows.
pub struct HeapClient<M> {
    model: M,
    kind: ModelKind,
    local: Vec<f32>,
    update: Vec<f32>,
    order: Vec<u32>,
    scratch: Vec<f32>,
}

impl<M: Model> HeapClient<M> {
    /// A client without a past. `kind` is what the model is called on the wire.
    #[must_use]
    pub fn new(model: M, kind: ModelKind) -> Self {
        let parameters = model.parameter_count();
        Self {
            kind,
            local: vec![0.0; parameters],
            update: vec![0.0; parameters],
            order: Vec::new(),
            scratch: vec![0.0; BATCH_GROUP * model.output_count()],
            model,
        }
    }
}

impl<M: Model> Trainer for HeapClient<M> {
    type Target = M::Target;
    type Parameters = Vec<f32>;

    fn shape(&self) -> Option<Shape> {
        Some(Shape {
            kind: self.kind,
            features: self.model.feature_count().try_into().ok()?,
            outputs: self.model.output_count().try_into().ok()?,
        })
    }

    fn zeros(&self) -> Vec<f32> {
        vec![0.0; self.update.len()]
    }

    fn train<S: Samples<Target = M::Target>>(
        &mut self,
        samples: &S,
        global: &Vec<f32>,
        settings: &LocalTraining,
        rng: &mut impl Rng,
    ) -> Result<TrainReport, TrainError> {
        self.order.resize(self.order.len().max(samples.len()), 0);
        let work = Workspace {
            local: &mut self.local,
            update: &mut self.update,
            order: &mut self.order,
            scratch: &mut self.scratch,
        };
        let result = local_update(&self.model, samples, global, settings, rng, work);
        if result.is_err() {
            self.update.fill(0.0);
        }
        result
    }

    fn update(&self) -> &[f32] {
        &self.update
    }
}

impl<M> std::fmt::Debug for HeapClient<M> {
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HeapClient({} parameters)", self.update.len())
    }
}
