//! The noise that a device adds to its own update and bit.
//!
//! Without the feature `local-noise` an [`OwnNoise`] has no values. What is sent comes out of a
//! [`Covering`](super::stage::Covering), and there is one only with the noise of its invitation: a
//! build without noise has none for an invitation that asks for it, so that no update can leave the
//! device without the noise that it was to have. It declines such an invitation before anything is
//! recorded ([`build`](crate::session::build)). If it did not, the round would end here.

#[cfg(feature = "local-noise")]
pub(in crate::session) use built::{NoNoise, OwnNoise};
#[cfg(not(feature = "local-noise"))]
pub(in crate::session) use left_out::{NoNoise, OwnNoise};

#[cfg(feature = "local-noise")]
mod built {
    use crate::{
        noise::{DiscreteGaussian, Sigma},
        participation::Streams,
        release::draw_noise,
        stream::Purpose,
        wire::message::Decline,
    };

    /// Noise of the device's own.
    #[derive(Clone, Copy)]
    pub(in crate::session) struct OwnNoise(DiscreteGaussian);

    /// That a build has no noise: not this one.
    #[derive(Debug)]
    pub(in crate::session) enum NoNoise {}

    impl OwnNoise {
        /// The noise that an invitation asks for.
        #[inline(always)]
        pub(in crate::session) fn of(asked: Option<Sigma>) -> Result<Option<Self>, NoNoise> {
            Ok(asked.map(|sigma| Self(DiscreteGaussian::of(sigma))))
        }

        /// Adds it to integers in two halves, as [`draw_noise`] does.
        #[inline(always)]
        pub(in crate::session) fn draw(
            &self,
            streams: &Streams<'_>,
            purpose: Purpose,
            words: &mut u64,
            low: &mut [u32],
            high: &mut [u32],
        ) {
            draw_noise(streams, purpose, words, &self.0, low, high);
        }
    }

    impl From<NoNoise> for Decline {
        fn from(never: NoNoise) -> Self {
            match never {}
        }
    }
}

#[cfg(not(feature = "local-noise"))]
mod left_out {
    use crate::{noise::Sigma, participation::Streams, stream::Purpose, wire::message::Decline};

    /// Noise of the device's own, of which there is none.
    #[derive(Clone, Copy)]
    pub(in crate::session) enum OwnNoise {}

    /// That a build has no noise, and was asked for some.
    #[derive(Debug)]
    pub(in crate::session) struct NoNoise;

    impl OwnNoise {
        /// None where an invitation asks for none, and an error where it asks for noise.
        #[inline(always)]
        pub(in crate::session) const fn of(asked: Option<Sigma>) -> Result<Option<Self>, NoNoise> {
            match asked {
                None => Ok(None),
                Some(_) => Err(NoNoise),
            }
        }

        /// Never called: there is no such noise.
        pub(in crate::session) const fn draw(
            &self,
            _: &Streams<'_>,
            _: Purpose,
            _: &mut u64,
            _: &mut [u32],
            _: &mut [u32],
        ) {
            match *self {}
        }
    }

    impl From<NoNoise> for Decline {
        fn from(NoNoise: NoNoise) -> Self {
            Self::NO_LOCAL_NOISE
        }
    }
}
