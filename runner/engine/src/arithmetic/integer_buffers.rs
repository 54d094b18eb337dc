//! The memory of one thread for training in integers: rounded samples, weights, and the memory of a
//! step.

/// Samples in their format, weight vectors, and the memory of a step.
#[derive(Default)]
pub(super) struct IntegerBuffers {
    pub(super) narrow: Vec<i8>,
    pub(super) wide: Vec<i16>,
    pub(super) classes: Vec<u16>,
    pub(super) values: Vec<i32>,
    pub(super) global: Vec<i32>,
    pub(super) local: Vec<i32>,
    pub(super) update: Vec<i32>,
    pub(super) order: Vec<u32>,
    pub(super) scores: Vec<i32>,
    pub(super) row: Vec<i32>,
}
