//! The tags of many devices that received the same request. They equal
//! [`RoundKey::tag`](smolfed_core::mask::RoundKey::tag), but the message is written only once, and
//! Poly1305 uses wide vectors.

use poly1305::Poly1305;
use poly1305::universal_hash::KeyInit;
use smolfed_core::mask::{RoundKey, Tag};

use super::request::HelperRequest;

/// The request to the devices of a round, as their tags cover it.
pub(super) struct Tagged(Vec<u8>);

impl Tagged {
    /// Encodes the message of a request.
    pub(super) fn new(request: &HelperRequest) -> Self {
        let (invitation, model) = (&request.invitation, &request.model);
        let mut message = Vec::with_capacity(16 * 4 + invitation.len() + 4 * model.len());
        message.extend(invitation);
        pad(&mut message);
        message.extend(model.iter().flat_map(|value| value.to_bits().to_le_bytes()));
        pad(&mut message);
        let [bytes, parameters] = [invitation.len(), model.len()].map(|length| length as u32);
        let last = [request.terms.word(), bytes, parameters, 0];
        message.extend(last.iter().flat_map(|word| word.to_le_bytes()));
        Self(message)
    }

    /// Returns whether this is the tag under a key, in constant time.
    pub(super) fn has(&self, key: &RoundKey, tag: &Tag) -> bool {
        let state = Poly1305::new(&key.tag_key().into());
        let found = state.compute_unpadded(&self.0);
        let pairs = found.iter().zip(tag);
        let differences = pairs.fold(0, |all, (x, y)| all | (x ^ y));
        std::hint::black_box(differences) == 0
    }
}

/// Appends zeros up to a whole block.
fn pad(message: &mut Vec<u8>) {
    message.resize(message.len().next_multiple_of(16), 0);
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use smolfed_core::mask::{MaskKey, Terms};

    use super::*;

    proptest! {
        #[test]
        fn tags_are_those_of_devices(
            invitation in vec(any::<u8>(), 0..100), model in vec(-1e3f32..1e3, 0..100),
            numbers: [u8; 3], secret: [u8; 32], bit in 0usize..128,
        ) {
            let [grid_bits, width, helpers] = numbers;
            let terms = Terms { grid_bits, width, helpers };
            let key = MaskKey::from_secret(secret).round(3, b"ledger 1");
            let mut tag = key.tag(&terms, &invitation, &model);
            let tagged = Tagged::new(&HelperRequest {
                round: 3,
                terms,
                invitation,
                model,
                entries: 1,
                devices: Vec::new(),
                earlier: Vec::new(),
            });
            prop_assert!(tagged.has(&key, &tag));
            tag[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!tagged.has(&key, &tag));
            // An equal difference in a second byte does not cancel the first.
            tag[(bit / 8 + 5) % 16] ^= 1 << (bit % 8);
            prop_assert!(!tagged.has(&key, &tag));
        }
    }
}
