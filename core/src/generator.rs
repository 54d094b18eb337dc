//! Adapters for random number generators of HALs with older versions of `rand_core`. This crate
//! needs version 0.10, for the nonces of sessions and for secrets generated on a device.
//!
//! An adapter returns the words of the generator, with their quality.

/// Defines the adapter of one version: a generator that cannot fail.
macro_rules! adapter {
    ($(#[$doc:meta])* $name:ident, $version:ident, $feature:literal) => {
        $(#[$doc])*
        #[cfg(feature = $feature)]
        #[derive(Clone, Debug)]
        pub struct $name<R>(pub R);

        #[cfg(feature = $feature)]
        impl<R: $version::RngCore> rand_core::TryRng for $name<R> {
            type Error = rand_core::Infallible;

            fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
                Ok(self.0.next_u32())
            }

            fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
                Ok(self.0.next_u64())
            }

            fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
                self.0.fill_bytes(bytes);
                Ok(())
            }
        }

        #[cfg(feature = $feature)]
        impl<R: $version::RngCore + $version::CryptoRng> rand_core::TryCryptoRng for $name<R> {}
    };
}

adapter! {
    /// A generator of `rand_core` 0.6, with the feature `rand_core_06`.
    ///
    /// The `fill_bytes` of 0.6 panics if the generator fails, so use one that does not fail.
    Rng06, rand_core_06, "rand_core_06"
}

adapter! {
    /// A generator of `rand_core` 0.9, with the feature `rand_core_09`.
    Rng09, rand_core_09, "rand_core_09"
}

#[cfg(all(test, feature = "rand_core_06", feature = "rand_core_09"))]
mod tests {
    use rand_core::CryptoRng;

    use super::*;

    /// Counts up, a byte or a word at a time.
    struct Counter(u8);

    impl Counter {
        const fn next(&mut self) -> u8 {
            self.0 += 1;
            self.0
        }
    }

    impl rand_core_06::RngCore for Counter {
        fn next_u32(&mut self) -> u32 {
            self.next().into()
        }

        fn next_u64(&mut self) -> u64 {
            self.next().into()
        }

        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            bytes.fill_with(|| self.next());
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand_core_06::Error> {
            self.fill_bytes(bytes);
            Ok(())
        }
    }

    impl rand_core_06::CryptoRng for Counter {}

    impl rand_core_09::RngCore for Counter {
        fn next_u32(&mut self) -> u32 {
            self.next().into()
        }

        fn next_u64(&mut self) -> u64 {
            self.next().into()
        }

        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            bytes.fill_with(|| self.next());
        }
    }

    impl rand_core_09::CryptoRng for Counter {}

    fn draws(mut rng: impl CryptoRng) -> (u32, u64, [u8; 3]) {
        let (word, double) = (rng.next_u32(), rng.next_u64());
        let mut bytes = [0; 3];
        rng.fill_bytes(&mut bytes);
        (word, double, bytes)
    }

    #[test]
    fn the_words_are_those_of_the_generator() {
        let expected = (1, 2, [3, 4, 5]);
        assert_eq!(draws(Rng06(Counter(0))), expected);
        assert_eq!(draws(Rng09(Counter(0))), expected);
    }
}
