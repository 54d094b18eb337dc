//! The memory of a session, which the firmware owns: three vectors as long as the model, the order
//! of the samples, and scores.

use crate::train::Workspace;

/// Memory of a session: three vectors as long as the model, the order of the samples, and scores.
pub struct Memory<'a> {
    /// The coordinator's model, and any values after it:
    /// [`Trainable::global_count`](super::Trainable::global_count) values.
    pub global: &'a mut [f32],
    /// Working memory of training.
    pub work: Workspace<'a>,
}
