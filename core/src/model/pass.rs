//! Arguments of a pass over a batch: some of its samples, the losses, and an operation on each
//! complete block of the gradient. The last two are traits because closures would not be inlined
//! into code compiled for wider vectors.

use core::ops::Range;

/// Some consecutive samples of a batch: the whole batch, or a part of a gradient summed up in
/// several calls.
#[derive(Clone, Copy, Debug)]
pub struct BatchPart<'a> {
    pub(crate) indices: &'a [u32],
    /// Number of samples in the whole batch.
    pub(crate) batch: usize,
    /// Whether these samples are the first of the gradient.
    pub(crate) is_first: bool,
    is_last: bool,
    pub(super) half: Half,
}

/// The processed half of some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Half {
    /// Both halves.
    Both,
    /// The scores, turned into residuals in the scratch memory.
    Scores,
    /// The gradient from these residuals.
    Gradient,
}

impl<'a> BatchPart<'a> {
    /// Returns at most `most` samples of `batch`, from position `at` on.
    #[inline(always)]
    pub fn of(batch: &'a [u32], at: usize, most: usize) -> Self {
        let rest = batch.get(at..).unwrap_or_default();
        let indices = rest.get(..most).unwrap_or(rest);
        Self {
            indices,
            batch: batch.len(),
            is_first: at == 0,
            is_last: indices.len() == rest.len(),
            half: Half::Both,
        }
    }

    /// Returns one half of a sample of `batch`, the first if `number` is even, for a model that
    /// [has halves](super::Model::HAS_HALVES).
    #[inline(always)]
    pub(crate) fn half(batch: &'a [u32], number: usize) -> Self {
        let whole = Self::of(batch, number / 2, 1);
        let is_scores = number.is_multiple_of(2);
        Self {
            is_last: whole.is_last && !is_scores,
            half: match is_scores {
                true => Half::Scores,
                false => Half::Gradient,
            },
            ..whole
        }
    }

    /// Returns the number of samples.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.indices.len()
    }

    /// Returns whether there are no samples.
    pub const fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Returns whether these samples complete the batch.
    #[inline(always)]
    pub const fn is_last(&self) -> bool {
        self.is_last
    }

    /// Returns the factor of the loss and the gradient of a sample.
    #[inline(always)]
    pub(crate) fn mean(&self) -> f32 {
        1.0 / self.batch as f32
    }
}

/// The losses of a model, for a layer with the scores.
pub(super) trait Losses {
    /// A class or a value.
    type Target;

    /// Adds the losses of a batch to `sum`, and replaces the scores by the derivatives of the
    /// losses.
    fn add_in_place(
        &self,
        scores: &mut [f32],
        targets: impl Iterator<Item = Self::Target>,
        sum: &mut f32,
    );
}

/// The sums over the samples of a batch.
pub struct Sums<'a> {
    /// The mean gradient, as long as the model.
    pub gradient: &'a mut [f32],
    /// The sum of the losses: 0 before the first part.
    pub loss: &'a mut f32,
}

/// An operation on a gradient while it is summed up.
pub trait Then {
    /// Called once for each block of entries, when it is complete.
    ///
    /// All entries before `complete` had their call before, or have it now. Of the others, the call
    /// may only access those of `block`.
    fn complete(&mut self, gradient: &mut [f32], block: Range<usize>, complete: usize);
}

/// Does nothing.
impl Then for () {
    #[inline(always)]
    fn complete(&mut self, _: &mut [f32], _: Range<usize>, _: usize) {}
}
