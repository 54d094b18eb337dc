//! The memory of a session, which the firmware owns.

use crate::train::Workspace;

/// Memory of a session: three vectors as long as the model, the order of the samples, and scores.
pub struct Memory<'a> {
    /// The coordinator's model, and what may come behind it:
    /// [`Trainable::global_count`](super::Trainable::global_count) values.
    pub global: &'a mut [f32],
    /// What training needs.
    pub work: Workspace<'a>,
}
