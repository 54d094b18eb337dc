//! Sizes of models, known at compile time on a device and at run time on a desktop.

/// A size: [`Const<N>`](Const) or `usize`.
pub trait Dim: Copy {
    /// Largest possible size. The compiler can leave out code for larger ones.
    const LARGEST: usize;

    /// Returns the size.
    fn get(self) -> usize;
}

/// A compile-time size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Const<const N: usize>;

impl<const N: usize> Dim for Const<N> {
    const LARGEST: usize = N;

    #[inline(always)]
    fn get(self) -> usize {
        N
    }
}

impl Dim for usize {
    const LARGEST: usize = Self::MAX;

    #[inline(always)]
    fn get(self) -> usize {
        self
    }
}
