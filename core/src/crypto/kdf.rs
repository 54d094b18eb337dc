//! Derivation of keys from a long-term secret, a device's root or its chain key, by HChaCha20 or
//! HKDF-SHA-256.

use super::Key;

/// A pseudo-random function from a secret and an input to a key.
///
/// With the feature `element` there is a second one, `HkdfSha256`, for secrets in a secure element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kdf {
    /// HChaCha20, for secrets in memory. The random streams already need its code.
    #[default]
    HChaCha20,
    /// HKDF-Expand with SHA-256 (RFC 5869, section 2.3), as available in secure elements: the
    /// secret is the pseudo-random key, the input is `info`, and the key is the first 32 bytes.
    #[cfg(feature = "element")]
    HkdfSha256,
}

impl Kdf {
    /// Derives the key for these inputs: from the secret with the first one, and from each result
    /// with the next input, by HChaCha20.
    #[must_use]
    #[inline(always)]
    pub(crate) fn cascade(self, secret: &Key, inputs: &[&[u8; 16]]) -> Key {
        match self {
            Self::HChaCha20 => secret.cascade(inputs),
            #[cfg(feature = "element")]
            Self::HkdfSha256 => match inputs {
                [first, rest @ ..] => expand(secret, *first).cascade(rest),
                [] => expand(secret, &[]),
            },
        }
    }
}

/// Computes [`Kdf::HkdfSha256`] with an `info` of any length, as a secure element does.
///
/// For provisioning, coordinators and tests only: a device that calls it has the secret in RAM.
#[cfg(feature = "element")]
#[must_use]
pub fn expand(secret: &Key, info: &[u8]) -> Key {
    use hmac::{Hmac, KeyInit, Mac};

    // A secret is padded with zeros to a block of SHA-256: RFC 2104, section 2.
    let mut block = zeroize::Zeroizing::new([0; 64]);
    for (place, byte) in block.iter_mut().zip(secret.0) {
        *place = byte;
    }
    // The only block of output: T(1) of RFC 5869.
    let mut mac = Hmac::<sha2::Sha256>::new(&(*block).into());
    mac.update(info);
    mac.update(&[1]);
    Key::from_secret(mac.finalize().into_bytes().into())
}

#[cfg(test)]
#[cfg(feature = "element")]
mod tests {
    use super::*;

    fn bytes<const N: usize>(digits: &str) -> [u8; N] {
        core::array::from_fn(|i| u8::from_str_radix(&digits[2 * i..][..2], 16).unwrap())
    }

    /// RFC 5869, appendix A.1: the first 32 of its 42 bytes.
    #[test]
    fn the_function_of_elements_is_that_of_the_rfc() {
        let secret = "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5";
        let info: [u8; 10] = bytes("f0f1f2f3f4f5f6f7f8f9");
        let key = expand(&Key::from_secret(bytes(secret)), &info);
        let expected = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf";
        assert_eq!(key.secret(), &bytes(expected));
    }

    #[test]
    fn the_two_functions_differ() {
        let (secret, input) = (Key::from_secret([7; 32]), b"smolfed ratchet ");
        let [ours, theirs] =
            [Kdf::HChaCha20, Kdf::HkdfSha256].map(|kdf| kdf.cascade(&secret, &[input]));
        assert_eq!(theirs.secret(), expand(&secret, input).secret());
        assert_ne!(ours.secret(), theirs.secret());
    }
}
