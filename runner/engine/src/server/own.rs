//! A server's step that a program brings along: from the noisy average to the next global model.
//!
//! It gets what was released and nothing else, so it is post-processing and costs no privacy. What
//! it adds of data that it has otherwise is not covered by any ε.

use std::fmt;
use std::sync::Arc;

/// A step of a program's own.
#[derive(Clone)]
pub struct OwnStep(Arc<dyn Fn(StepView<'_>) + Send + Sync>);

/// What a step sees and changes.
pub struct StepView<'a> {
    /// The parameters of the global model, in the order of the model: they become the next ones.
    pub global: &'a mut [f32],
    /// The noisy average; what is left of it is shown in reports.
    pub average: &'a mut [f32],
    /// Std of the noise on each entry of the average.
    pub noise_std: f64,
    /// η_g.
    pub learning_rate: f32,
}

impl OwnStep {
    /// A step by a function.
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
