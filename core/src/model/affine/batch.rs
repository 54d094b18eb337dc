//! What the scores and the gradient of a batch have in common.

/// Samples whose scores are kept at once when `scratch` has room for them.
pub const BATCH_GROUP: usize = 20;

/// Some of a device's samples.
pub(in super::super) struct Batch<'a, S> {
    pub(in super::super) samples: &'a S,
    pub(in super::super) indices: &'a [u32],
}

/// The parameters of an affine layer.
#[derive(Clone, Copy)]
pub(in super::super) struct Layer<'a> {
    pub(in super::super) weights: &'a [f32],
    pub(in super::super) biases: &'a [f32],
}

/// How many of the rows of W that are left are next, side by side with vectors: few numbers,
/// because the code for each is compiled once a model.
#[inline(always)]
pub(super) const fn next_rows(left: usize) -> usize {
    match left {
        5.. => 5,
        2.. => 2,
        _ => 1,
    }
}
