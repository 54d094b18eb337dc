//! Smoothing with `f32` running values, for a sigma of at most [`NARROW_SIGMA`], as for gradients
//! in local training. It does not need `f64`, which few microcontrollers have.

use super::{
    error::SmoothingError,
    factor::SmoothingFactor,
    recursion::Recursion,
    segments::{self, MAX_PLAIN, SegmentPlan},
    tensors::each_tensor,
};

/// Laplacian smoothing by at most [`NARROW_SIGMA`](super::NARROW_SIGMA): the same bits as
/// [`LaplacianSmoothing`](super::LaplacianSmoothing).
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f32", into = "f32"))]
pub struct NarrowSmoothing {
    factor: SmoothingFactor,
    /// `None` if it is computed on use.
    recursion: Option<Recursion>,
}

impl PartialEq for NarrowSmoothing {
    fn eq(&self, other: &Self) -> bool {
        self.factor == other.factor
    }
}

impl NarrowSmoothing {
    /// Creates smoothing by `sigma`, without unit. 0 is no smoothing, 1 to 3 is usual.
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

    /// Creates smoothing by a checked factor.
    pub const fn of(factor: SmoothingFactor) -> Self {
        Self {
            factor,
            recursion: Some(Recursion::new(factor.get())),
        }
    }

    /// Creates smoothing for callers that seldom smooth. The coefficients are computed each time,
    /// which takes a Cortex-M0 as long as some 100 elements.
    pub(crate) const fn deferred(factor: SmoothingFactor) -> Self {
        Self {
            factor,
            recursion: None,
        }
    }

    /// Returns the smoothing factor as in messages.
    pub const fn factor(&self) -> SmoothingFactor {
        self.factor
    }

    /// Returns the smoothing factor.
    pub const fn sigma(&self) -> f32 {
        self.factor.get()
    }

    #[inline(always)]
    pub(super) const fn recursion(&self) -> Recursion {
        match self.recursion {
            Some(recursion) => recursion,
            None => Recursion::new(self.factor.get()),
        }
    }

    /// Smooths one tensor of at most `largest` elements. If the compiler knows that it is short, it
    /// leaves out the path of long tensors.
    #[inline(always)]
    pub(super) fn apply(&self, v: &mut [f32], largest: usize) {
        // The identity keeps the bits.
        if self.sigma() > 0.0 {
            smooth(&self.recursion(), v, largest);
        }
    }

    /// Smooths each of several consecutive tensors of at most `largest` elements in `v`, such as
    /// the parameters of a model.
    ///
    /// # Errors
    /// [`SmoothingError::Length`] unless `lengths` add up to the length of `v`. `v` is then
    /// unchanged.
    #[inline(always)]
    pub(crate) fn apply_tensors(
        &self,
        v: &mut [f32],
        lengths: &[usize],
        largest: usize,
    ) -> Result<(), SmoothingError> {
        if self.sigma() <= 0.0 {
            return each_tensor(v, lengths, |_| {});
        }
        let recursion = &self.recursion();
        each_tensor(v, lengths, |tensor| smooth(recursion, tensor, largest))
    }

    /// Runs a quarter of [`Self::apply_tensors`]. All four in order have the same result. For a
    /// long tensor, the first quarter does everything.
    ///
    /// # Errors
    /// Those of [`Self::apply_tensors`].
    #[inline(always)]
    pub(crate) fn apply_tensors_quarter(
        &self,
        v: &mut [f32],
        lengths: &[usize],
        largest: usize,
        quarter: usize,
    ) -> Result<(), SmoothingError> {
        if self.sigma() <= 0.0 {
            return each_tensor(v, lengths, |_| {});
        }
        let recursion = &self.recursion();
        each_tensor(v, lengths, |tensor| {
            match (plan(recursion, tensor, largest), quarter) {
                (None, _) if tensor.len() >= 2 => recursion.apply_quarter(tensor, quarter),
                (Some(plan), 0) => segments::apply(recursion, tensor, plan),
                _ => {}
            }
        })
    }
}

/// Smooths a tensor of at most `largest` elements by a factor above 0.
#[inline(always)]
fn smooth(recursion: &Recursion, v: &mut [f32], largest: usize) {
    if v.len() < 2 {
        return;
    }
    match plan(recursion, v, largest) {
        Some(plan) => segments::apply(recursion, v, plan),
        None => recursion.apply(v),
    }
}

/// Returns how to cut a long tensor.
#[inline(always)]
fn plan(recursion: &Recursion, v: &[f32], largest: usize) -> Option<SegmentPlan> {
    let plan = || SegmentPlan::new(v.len(), recursion.reach);
    (largest > MAX_PLAIN).then(plan).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smooth::{LaplacianSmoothing, NARROW_SIGMA};
    use proptest::{collection::vec, prelude::*};

    /// Computes the constants in `f64`.
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
        let recursion = NarrowSmoothing::new(sigma).unwrap().recursion();
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

    proptest! {
        /// Covers tensors of any length, including long ones.
        #[test]
        fn quarters_have_the_bits_of_the_whole(
            lengths in vec(prop_oneof![0_usize..40, 1_000_usize..3_000], 1..4),
            sigma in prop_oneof![Just(0.0_f32), 0.01_f32..3.0, 3.0_f32..=NARROW_SIGMA],
            salt in any::<u32>(),
        ) {
            let word = |i: u32| i.wrapping_mul(2_654_435_761) ^ salt;
            let number = |i: u32| word(i) as f32 / u32::MAX as f32 - 0.5;
            let count = lengths.iter().sum::<usize>() as u32;
            let mut whole: std::vec::Vec<f32> = (0..count).map(number).collect();
            let mut parts = whole.clone();
            let smoothing = NarrowSmoothing::new(sigma).unwrap();
            let deferred = NarrowSmoothing::deferred(smoothing.factor());
            smoothing.apply_tensors(&mut whole, &lengths, usize::MAX).unwrap();
            for quarter in 0..4 {
                let largest = usize::MAX;
                deferred.apply_tensors_quarter(&mut parts, &lengths, largest, quarter).unwrap();
            }
            let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<std::vec::Vec<_>>();
            prop_assert_eq!(bits(&parts), bits(&whole));
        }
    }
}
