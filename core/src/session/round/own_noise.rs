//! The noise that a device adds to its own update and bit.
//!
//! Without the feature `local-noise` the type [`OwnNoise`] has no values. Every update passes
//! through a [`Covering`](super::stage::Covering), which can be made only with the noise of its
//! invitation. A build without noise cannot make one for an invitation that asks for noise, so no
//! update can leave the device without its required noise. The device declines such an invitation
//! before anything is recorded ([`build`](crate::session::build)). If it did not, the round would
//! end here.

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

    /// The device's own noise.
    #[derive(Clone, Copy)]
    pub(in crate::session) struct OwnNoise(DiscreteGaussian);

    /// The error of a build without noise. This build cannot produce it.
    #[derive(Debug)]
    pub(in crate::session) enum NoNoise {}

    impl OwnNoise {
        /// Returns the noise that an invitation asks for.
        #[inline(always)]
        pub(in crate::session) fn of(asked: Option<Sigma>) -> Result<Option<Self>, NoNoise> {
            Ok(asked.map(|sigma| Self(DiscreteGaussian::of(sigma))))
        }

        /// Adds the noise to integers in two halves, as [`draw_noise`] does.
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

    /// The device's own noise, which this build lacks.
    #[derive(Clone, Copy)]
    pub(in crate::session) enum OwnNoise {}

    /// The error of a build without noise that was asked for some.
    #[derive(Debug)]
    pub(in crate::session) struct NoNoise;

    impl OwnNoise {
        /// Returns no noise if an invitation asks for none, and an error if it asks for noise.
        #[inline(always)]
        pub(in crate::session) const fn of(asked: Option<Sigma>) -> Result<Option<Self>, NoNoise> {
            match asked {
                None => Ok(None),
                Some(_) => Err(NoNoise),
            }
        }

        /// Never called: the type has no values.
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
