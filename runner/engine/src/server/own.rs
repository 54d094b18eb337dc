//! A custom server's step of a program: from the noisy average to the next global model.
//!
//! It gets only the releases, so it is post-processing and costs no privacy. No ε covers other data
//! that it adds.

use std::fmt;
use std::sync::Arc;

/// A program's custom step.
#[derive(Clone)]
pub struct OwnStep(Arc<dyn Fn(StepView<'_>) + Send + Sync>);

/// The inputs and outputs of a step.
pub struct StepView<'a> {
    /// The parameters of the global model, in the order of the model. The step turns them into the
    /// next ones.
    pub global: &'a mut [f32],
    /// The noisy average. Reports show its value after the step.
    pub average: &'a mut [f32],
    /// Std of the noise on each entry of the average.
    pub noise_std: f64,
    /// η_g.
    pub learning_rate: f32,
}

impl OwnStep {
    /// Creates a step from a function.
    pub fn new(step: impl Fn(StepView<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(step))
    }

    pub(super) fn apply(&self, view: StepView<'_>) {
        (self.0)(view);
    }
}

impl fmt::Debug for OwnStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnStep")
    }
}
