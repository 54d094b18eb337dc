//! The bit of an adaptive clip norm in an update message: [`crate::bit`].
//!
//! Without the feature `adaptive-bit` there is no bit, and the device declines a round that asks
//! for one.

#[cfg(feature = "adaptive-bit")]
pub(super) use built::SentBit;
#[cfg(not(feature = "adaptive-bit"))]
pub(super) use left_out::SentBit;

#[cfg(feature = "adaptive-bit")]
mod built {
    use core::slice;

    use super::super::own_noise::OwnNoise;
    use crate::{
        bit::clip_bit, participation::Streams, quantize::Grid, release::halves, stream::Purpose,
    };

    /// A bit, with its noise once drawn: an integer in two halves.
    #[derive(Clone, Copy)]
    pub(in super::super) struct SentBit {
        low: u32,
        high: u32,
    }

    impl SentBit {
        /// The bit of a device without an update.
        pub(in super::super) const ZERO: Self = Self { low: 0, high: 0 };

        /// Returns the bit of an update of this norm.
        #[inline(always)]
        pub(in super::super) fn of(grid: &Grid, norm: f32) -> Self {
            let (low, high) = halves(clip_bit(grid, norm));
            Self { low, high }
        }

        /// Returns the bit of a held update.
        pub(in super::super) const fn of_halves(low: u32, high: u32) -> Self {
            Self { low, high }
        }

        /// Adds the device's own noise.
        #[inline(always)]
        pub(in super::super) fn cover(&mut self, noise: &OwnNoise, streams: &Streams<'_>) {
            let Self { low, high } = self;
            let (low, high) = (slice::from_mut(low), slice::from_mut(high));
            noise.draw(streams, Purpose::DeviceBitNoise, &mut 0, low, high);
        }

        /// Returns its two halves, one entry each.
        pub(in super::super) const fn halves(&self) -> (&[u32], &[u32]) {
            (slice::from_ref(&self.low), slice::from_ref(&self.high))
        }
    }
}

#[cfg(not(feature = "adaptive-bit"))]
mod left_out {
    use super::super::own_noise::OwnNoise;
    use crate::{participation::Streams, quantize::Grid};

    /// No bit.
    #[derive(Clone, Copy)]
    pub(in super::super) struct SentBit;

    impl SentBit {
        pub(in super::super) const ZERO: Self = Self;

        pub(in super::super) const fn of(_: &Grid, _: f32) -> Self {
            Self
        }

        pub(in super::super) const fn of_halves(_: u32, _: u32) -> Self {
            Self
        }

        /// Never called: no round of the device has a bit.
        pub(in super::super) const fn cover(&mut self, _: &OwnNoise, _: &Streams<'_>) {}

        pub(in super::super) const fn halves(&self) -> (&[u32], &[u32]) {
            (&[], &[])
        }
    }
}
