//! Authenticated encryption with associated data: ChaCha20 and Poly1305 as in RFC 8439, section
//! 2.8.
//!
//! A nonce must be used only once under a key: two messages under one nonce reveal their difference
//! and the authenticator's key. The caller numbers its messages.

use ctutils::CtEq;
use rand_core::Rng;

use super::{
    Key,
    chacha20::{Generator, generator, half_block},
    poly1305::Poly1305,
};

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// A nonce as three little-endian words.
pub type Nonce = [u32; 3];

/// Encrypts `text` in place, and returns the tag of the ciphertext and of `associated`.
#[inline]
pub fn seal(key: &Key, nonce: &Nonce, associated: &[u8], text: &mut [u8]) -> [u8; TAG_BYTES] {
    let mut tag = [0; TAG_BYTES];
    pass(Way::Seal, key, nonce, associated, text, &mut tag);
    tag
}

/// Decrypts `text` in place if the tag is correct. Otherwise leaves it unchanged.
#[must_use]
#[inline]
pub fn open(
    key: &Key,
    nonce: &Nonce,
    associated: &[u8],
    text: &mut [u8],
    tag: &[u8; TAG_BYTES],
) -> bool {
    let mut tag = *tag;
    pass(Way::Open, key, nonce, associated, text, &mut tag)
}

/// The direction of processing.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Encrypts the text, and computes the tag of the ciphertext.
    Seal,
    /// Checks the tag of the text, and then decrypts it.
    Open,
}

/// Processes a text in both directions, so that the function is in the flash only once. Returns
/// whether the tag is correct.
#[inline(never)]
fn pass(
    way: Way,
    key: &Key,
    nonce: &Nonce,
    associated: &[u8],
    text: &mut [u8],
    tag: &mut [u8; TAG_BYTES],
) -> bool {
    // The words of the cipher from block 1 on. Block 0 is the key of the authenticator (section
    // 2.6).
    let mut words = generator(key.secret(), *nonce);
    let mut state = Poly1305::new(half_block(&mut words));
    if way == Way::Seal {
        apply(&mut words, text);
    }
    let found = authenticate(&mut state, associated, text);
    if way == Way::Seal {
        *tag = found;
        return true;
    }
    let is_right = found.ct_eq(tag).into();
    if is_right {
        apply(&mut words, text);
    }
    is_right
}

/// Combines the words with the text by XOR.
#[inline(never)]
fn apply(words: &mut Generator, text: &mut [u8]) {
    for piece in text.chunks_mut(4) {
        let word = words.next_u32().to_le_bytes();
        for (byte, pad) in piece.iter_mut().zip(word) {
            *byte ^= pad;
        }
    }
}

#[inline(never)]
fn authenticate(state: &mut Poly1305, associated: &[u8], text: &[u8]) -> [u8; TAG_BYTES] {
    state.padded(associated);
    state.padded(text);
    let mut lengths = [0; 16];
    let [a0, a1, a2, a3, _, _, _, _, t0, t1, t2, t3, ..] = &mut lengths;
    // No frame has 2³² bytes.
    [*a0, *a1, *a2, *a3] = (associated.len() as u32).to_le_bytes();
    [*t0, *t1, *t2, *t3] = (text.len() as u32).to_le_bytes();
    state.block(&lengths, 1);
    state.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    const NONCE: Nonce = [7, 0x4342_4140, 0x4746_4544];
    const ASSOCIATED: [u8; 12] = [
        0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7,
    ];

    /// RFC 8439, section 2.8.2.
    #[test]
    fn a_sealed_text_is_that_of_the_rfc() {
        let key = Key::from_secret(core::array::from_fn(|i| 0x80 + i as u8));
        let text =
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for \
            the future, sunscreen would be it.";
        let mut sealed = *text;
        let tag = seal(&key, &NONCE, &ASSOCIATED, &mut sealed);
        assert_eq!(
            sealed[..16],
            [
                0xd3, 0x1a, 0x8d, 0x34, 0x64, 0x8e, 0x60, 0xdb, 0x7b, 0x86, 0xaf, 0xbc, 0x53, 0xef,
                0x7e, 0xc2
            ]
        );
        assert_eq!(sealed[112..], [0x61, 0x16]);
        let expected = [
            0x1a, 0xe1, 0x0b, 0x59, 0x4f, 0x09, 0xe2, 0x6a, 0x7e, 0x90, 0x2e, 0xcb, 0xd0, 0x60,
            0x06, 0x91,
        ];
        assert_eq!(tag, expected);
        assert!(open(&key, &NONCE, &ASSOCIATED, &mut sealed, &tag));
        assert_eq!(&sealed, text);
    }

    proptest! {
        #[test]
        fn only_what_was_sealed_opens(
            key in any::<[u8; 32]>(), nonce in any::<Nonce>(), other in any::<Nonce>(),
            associated in vec(any::<u8>(), 0..20), text in vec(any::<u8>(), 0..300),
            bit in any::<prop::sample::Index>(),
        ) {
            let key = Key::from_secret(key);
            let mut sealed = text.clone();
            let tag = seal(&key, &nonce, &associated, &mut sealed);
            let mut opened = sealed.clone();
            prop_assert!(open(&key, &nonce, &associated, &mut opened, &tag));
            prop_assert_eq!(&opened, &text);
            // A bit of the tag, of the text or of the associated data.
            let (mut wrong, mut wrong_tag) = (sealed.clone(), tag);
            let mut wrong_data = associated.clone();
            let bit = bit.index(8 * (16 + text.len() + associated.len()));
            let mut bytes = wrong_tag.iter_mut().chain(&mut wrong).chain(&mut wrong_data);
            *bytes.nth(bit / 8).unwrap() ^= 1 << (bit % 8);
            let before = wrong.clone();
            prop_assert!(!open(&key, &nonce, &wrong_data, &mut wrong, &wrong_tag));
            prop_assert_eq!(wrong, before, "unchanged");
            let refused = nonce == other || !open(&key, &other, &associated, &mut sealed, &tag);
            prop_assert!(refused);
        }
    }
}
