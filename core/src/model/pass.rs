//! What goes along with a pass over a batch. Traits and not closures, which would not be inlined
//! into code that is compiled for wider vectors.

use core::ops::Range;

/// Some samples of a batch, in its order: all of it, or a piece of a gradient that is summed up in
/// several calls.
#[derive(Clone, Copy, Debug)]
pub struct BatchPart<'a> {
    pub(crate) indices: &'a [u32],
    /// Samples of the whole batch.
    pub(crate) batch: usize,
    /// Whether the gradient begins with these samples.
    pub(crate) is_first: bool,
    is_last: bool,
    pub(super) half: Half,
}

/// What is done of some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Half {
    /// All of it.
    Both,
    /// The scores, which become residuals, and stay in the scratch memory.
    Scores,
    /// The gradient from these residuals.
    Gradient,
}

impl<'a> BatchPart<'a> {
    /// The samples of `batch` from place `at` on, `most` of them at most.
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

    /// One sample of `batch` in two halves, the first of which has an even number: of a model that
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

    /// How many samples.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Whether the batch is complete with them.
    #[inline(always)]
    pub const fn is_last(&self) -> bool {
        self.is_last
    }

    /// What the loss and the gradient of a sample are multiplied by.
    #[inline(always)]
    pub(crate) fn mean(&self) -> f32 {
        1.0 / self.batch as f32
    }
}

/// The losses of a model, for a layer that has the scores.
pub(super) trait Losses {
    /// A class or a value.
    type Target;

    /// Adds the losses of a batch to `sum`; the scores become the derivatives of the losses.
    fn add_in_place(
        &self,
        scores: &mut [f32],
        targets: impl Iterator<Item = Self::Target>,
        sum: &mut f32,
    );
}

/// What the samples of a batch are summed up in.
pub struct Sums<'a> {
    /// The mean gradient, as long as the model.
    pub gradient: &'a mut [f32],
    /// The sum of the losses: 0 before the first part.
    pub loss: &'a mut f32,
}

/// What is done to a gradient while it is summed up.
pub trait Then {
    /// Called once for each block of entries, when nothing is added to them any more.
    ///
    /// All entries before `complete` have had their call, or have it now. Of the others, only those
    /// of `block` may be touched.
    fn complete(&mut self, gradient: &mut [f32], block: Range<usize>, complete: usize);
}

/// Nothing.
impl Then for () {
    #[inline(always)]
    fn complete(&mut self, _: &mut [f32], _: Range<usize>, _: usize) {}
}
