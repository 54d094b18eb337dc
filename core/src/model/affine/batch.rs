//! The number of samples and of rows of W that the scores and the gradient of a batch process
//! together.

/// Number of samples with scores in memory at once, if `scratch` is large enough.
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

/// Returns the number of rows of W to process next, side by side with vectors. There are few
/// choices, because the code for each is compiled for each model.
#[inline(always)]
pub(super) const fn next_rows(left: usize) -> usize {
    match left {
        5.. => 5,
        2.. => 2,
        _ => 1,
    }
}
