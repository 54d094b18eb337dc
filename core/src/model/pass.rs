//! What goes along with a pass over a batch. Traits and not closures, which would not be inlined
//! into code that is compiled for wider vectors.

use core::ops::Range;

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
