//! Sizes: known to the compiler on a device, at run time on a desktop.

/// A size: [`Const<N>`](Const) or `usize`.
pub trait Dim: Copy {
    /// The largest size that it can be: what cannot happen need not be in the flash.
    const LARGEST: usize;

    /// The size.
    fn get(self) -> usize;
}

/// A size known to the compiler.
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
