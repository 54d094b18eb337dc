//! Smoothing whose running values are `f32`, for a sigma of at most [`NARROW_SIGMA`]: that of
//! gradients in local training. Nothing of it needs `f64`, which few microcontrollers have.

use super::{
    error::SmoothingError,
    factor::SmoothingFactor,
    recursion::Recursion,
    segments::{self, MAX_PLAIN, Plan},
    tensors::each_tensor,
};

/// Laplacian smoothing by at most [`NARROW_SIGMA`](super::NARROW_SIGMA): the same bits as
/// [`LaplacianSmoothing`](super::LaplacianSmoothing).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f32", into = "f32"))]
pub struct NarrowSmoothing {
    factor: SmoothingFactor,
    recursion: Recursion,
}

impl NarrowSmoothing {
    /// Smoothing by `sigma`, without unit; 0 is no smoothing, 1 to 3 is usual.
    ///
    /// # Errors
    /// [`SmoothingError::NotFinite`], [`SmoothingError::Negative`] and
    /// [`SmoothingError::TooLarge`].
    pub const fn new(sigma: f32) -> Result<Self, SmoothingError> {
        match SmoothingFactor::new(sigma) {
            Ok(factor) => Ok(Self::of(factor)),
            Err(error) => Err(error),
        }
    }

    /// Smoothing by a factor that is checked.
    pub const fn of(factor: SmoothingFactor) -> Self {
        Self {
            factor,
            recursion: Recursion::new(factor.get()),
        }
    }

    /// The smoothing factor, as it travels.
    pub const fn factor(&self) -> SmoothingFactor {
        self.factor
    }

    /// The smoothing factor.
    pub const fn sigma(&self) -> f32 {
        self.factor.get()
    }

    pub(super) const fn recursion(&self) -> &Recursion {
        &self.recursion
    }

    /// Smooths one tensor of at most `largest` elements: where the compiler knows that it is short,
    /// the path of long ones is not in the program.
    #[inline(always)]
    pub(super) fn apply(&self, v: &mut [f32], largest: usize) {
        // The identity keeps the bits.
        if v.len() < 2 || self.sigma() <= 0.0 {
            return;
        }
        let plan = (largest > MAX_PLAIN)
            .then(|| Plan::new(v.len(), self.recursion.reach))
            .flatten();
        match plan {
            Some(plan) => segments::apply(&self.recursion, v, plan),
            None => self.recursion.apply(v),
        }
    }

    /// Smooths each of several tensors of at most `largest` elements that lie in a row in `v`, as
    /// the parameters of a model do.
    ///
    /// # Errors
    /// [`SmoothingError::Length`] unless `lengths` add up to the length of `v`, which is then
    /// unchanged.
    #[inline(always)]
    pub(crate) fn apply_tensors(
        &self,
        v: &mut [f32],
        lengths: &[usize],
        largest: usize,
    ) -> Result<(), SmoothingError> {
        each_tensor(v, lengths, |tensor| self.apply(tensor, largest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smooth::{LaplacianSmoothing, NARROW_SIGMA};
    use proptest::prelude::*;

    /// The constants as `f64` has them.
    fn by_f64(sigma: f32) -> (f32, f32, usize) {
        let x = 1.0 + 4.0 * f64::from(sigma);
        let mut root = f64::from_bits((x.to_bits() + 1.0_f64.to_bits()) / 2);
        for _ in 0..5 {
            root = 0.5 * (root + x / root);
        }
        let decay = (4.0 * f64::from(sigma) / (root + 1.0) / (root + 1.0)) as f32;
        let gap = 1.0 - f64::from(decay);
        let x = 1.0 / root;
        let log_forgotten = 26.0 * core::f64::consts::LN_2;
        let reach = (0.5 * log_forgotten / (x + x * x * x / 3.0) + 1.0) as usize;
        (decay, (gap * gap) as f32, reach)
    }

    fn compare(sigma: f32) {
        let recursion = *NarrowSmoothing::new(sigma).unwrap().recursion();
        let (decay, gain, reach) = by_f64(sigma);
        assert_eq!(
            recursion.decay.to_bits(),
            decay.to_bits(),
            "decay of {sigma}"
        );
        assert_eq!(recursion.gain.to_bits(), gain.to_bits(), "gain of {sigma}");
        assert_eq!(recursion.reach, reach, "reach of {sigma}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn constants_are_those_of_f64(
            pattern in 1_u32..=NARROW_SIGMA.to_bits(),
            usual in 0.01_f32..10.0,
        ) {
            compare(f32::from_bits(pattern));
            compare(usual);
        }
    }

    #[test]
    fn constants_at_the_ends_of_the_range_are_those_of_f64() {
        let ends = [
            f32::from_bits(1),
            f32::MIN_POSITIVE,
            1e-30,
            1e-8,
            0.5,
            1.0,
            2.0,
            3.0,
            NARROW_SIGMA,
        ];
        ends.into_iter().for_each(compare);
    }

    #[test]
    fn a_sigma_that_is_none_or_too_large_is_refused() {
        assert_eq!(
            NarrowSmoothing::new(f32::NAN),
            Err(SmoothingError::NotFinite)
        );
        assert_eq!(NarrowSmoothing::new(-1.0), Err(SmoothingError::Negative));
        let above = NARROW_SIGMA.next_up();
        assert_eq!(NarrowSmoothing::new(above), Err(SmoothingError::TooLarge));
        assert!(LaplacianSmoothing::new(above).is_ok());
    }
}
