//! The frames of a link: transport messages of the Noise Protocol Framework, revision 34.
//!
//! ```text
//! length u16 | ciphertext | tag (16)        length = that of the two behind it
//! ```
//!
//! ChaCha20-Poly1305 without associated data. The nonce counts the frames of a direction from 0
//! (section 12.3). A message is a series of frames, all full except the last: a frame of less than
//! [`MAX_TEXT`] bytes ends it, if necessary an empty one.

use smolfed_core::crypto::Key;
use smolfed_core::crypto::aead::{self, Nonce, TAG_BYTES};

/// Maximum bytes of a frame without its length, as limited by Noise.
const MAX_FRAME: usize = 65_535;

/// Maximum bytes of text in a frame.
pub const MAX_TEXT: usize = MAX_FRAME - TAG_BYTES;

/// Bytes of a frame's length field.
pub const LENGTH_BYTES: usize = 2;

/// One direction of a link.
#[derive(Debug)]
pub struct Cipher {
    key: Key,
    /// Number of frames so far.
    count: u64,
}

impl Cipher {
    /// Returns a direction before its first frame.
    #[must_use]
    pub const fn new(key: Key) -> Self {
        Self { key, count: 0 }
    }

    /// Returns the frames of a message.
    #[must_use]
    pub fn seal(&mut self, message: &[u8]) -> Vec<u8> {
        let frames = message.len() / MAX_TEXT + 1;
        let overhead = frames * (LENGTH_BYTES + TAG_BYTES);
        let mut sealed = Vec::with_capacity(message.len() + overhead);
        for index in 0..frames {
            let rest = message.get(index * MAX_TEXT..).unwrap_or_default();
            let text = rest.get(..MAX_TEXT).unwrap_or(rest);
            // At most `MAX_FRAME`.
            let length = (text.len() + TAG_BYTES) as u16;
            sealed.extend(length.to_le_bytes());
            let start = sealed.len();
            sealed.extend(text);
            let nonce = self.next_nonce();
            let text = sealed.get_mut(start..).unwrap_or_default();
            let tag = aead::seal(&self.key, &nonce, &[], text);
            sealed.extend(tag);
        }
        sealed
    }

    /// Returns the text of the next frame, given without its length. `None` if it was not sealed as
    /// the next one under this key.
    #[must_use]
    pub fn open(&mut self, mut frame: Vec<u8>) -> Option<Vec<u8>> {
        let text = frame.len().checked_sub(TAG_BYTES)?;
        let (text, tag) = frame.split_at_mut(text);
        let tag = tag.first_chunk().copied()?;
        let nonce = self.next_nonce();
        if !aead::open(&self.key, &nonce, &[], text, &tag) {
            return None;
        }
        frame.truncate(frame.len() - TAG_BYTES);
        Some(frame)
    }

    /// 32 zero bits, then a 64-bit count, which no link exhausts.
    const fn next_nonce(&mut self) -> Nonce {
        let count = self.count;
        self.count += 1;
        [0, count as u32, (count >> 32) as u32]
    }
}

#[cfg(test)]
mod tests {
    use chacha20poly1305::aead::AeadInOut;
    use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
    use proptest::prelude::*;

    use super::*;

    fn cipher() -> Cipher {
        Cipher::new(Key::from_secret([7; 32]))
    }

    fn frames(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let Some((length, rest)) = bytes.split_first_chunk() {
            let (frame, rest) = rest.split_at(u16::from_le_bytes(*length).into());
            frames.push(frame.to_vec());
            bytes = rest;
        }
        frames
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn what_is_sealed_opens_in_its_order(length in 0usize..200_000) {
            let message: Vec<u8> = (0..length).map(|x| x as u8).collect();
            let sealed = cipher().seal(&message);
            let mut other = cipher();
            let frames = frames(&sealed);
            prop_assert_eq!(frames.len(), length / MAX_TEXT + 1);
            let opened: Vec<Vec<u8>> =
                frames.iter().map(|frame| other.open(frame.clone()).unwrap()).collect();
            let lengths: Vec<usize> = opened.iter().map(Vec::len).collect();
            let (last, full) = lengths.split_last().unwrap();
            prop_assert!(full.iter().all(|length| *length == MAX_TEXT) && *last < MAX_TEXT);
            prop_assert_eq!(opened.concat(), message);
            // Once, and not in another order.
            prop_assert!(other.open(frames[0].clone()).is_none());
        }
    }

    /// The second frame as sealed by another implementation.
    #[test]
    fn frames_are_those_of_noise() {
        let mut cipher = cipher();
        drop(cipher.seal(b"first"));
        let sealed = cipher.seal(b"second");
        let mut expected = b"second".to_vec();
        let mut nonce = [0; 12];
        nonce[4] = 1;
        let other = ChaCha20Poly1305::new(&[7; 32].into());
        other
            .encrypt_in_place(&nonce.into(), &[], &mut expected)
            .unwrap();
        assert_eq!(sealed[2..], expected);
        assert_eq!(sealed[..2], 22u16.to_le_bytes());
    }

    #[test]
    fn a_frame_that_is_cut_or_changed_is_refused() {
        let sealed = cipher().seal(b"text").split_off(LENGTH_BYTES);
        for length in 0..sealed.len() {
            assert!(cipher().open(sealed[..length].to_vec()).is_none());
        }
        for bit in 0..8 * sealed.len() {
            let mut wrong = sealed.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(cipher().open(wrong).is_none());
        }
        assert_eq!(cipher().open(sealed).unwrap(), b"text");
    }
}
