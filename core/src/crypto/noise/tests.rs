//! X25519 against its RFC, and the handshake against another implementation of Noise.

use proptest::{collection::vec, prelude::*};
use snow::{Builder, HandshakeState};
use std::vec::Vec;

use super::*;

fn bytes(hex: &str) -> [u8; 32] {
    core::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
}

fn ephemeral(secret: [u8; 32]) -> Ephemeral {
    Ephemeral::from_secret(Zeroizing::new(secret))
}

/// RFC 7748, section 5.2.
#[test]
fn products_are_those_of_the_rfc() {
    let cases = [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ];
    for (secret, point, product) in cases.map(|(s, p, q)| (bytes(s), bytes(p), bytes(q))) {
        assert_eq!(*x25519(&secret, &point), product);
    }
    let (mut secret, mut point) = (BASE_POINT, BASE_POINT);
    for _ in 0..1_000 {
        let product = *x25519(&secret, &point);
        (point, secret) = (secret, product);
    }
    let after = "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51";
    assert_eq!(secret, bytes(after));
}

/// RFC 7748, section 6.1.
#[test]
fn two_sides_compute_what_the_rfc_says() {
    let alice = bytes("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
    let bob = bytes("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
    let publics = [
        "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
        "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
    ];
    let pairs = [alice, bob].map(ephemeral);
    assert_eq!(
        pairs.each_ref().map(|pair| *pair.public()),
        publics.map(bytes)
    );
    let shared = bytes("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
    assert_eq!(*pairs[0].shared(pairs[1].public()).unwrap(), shared);
    assert_eq!(*pairs[1].shared(pairs[0].public()).unwrap(), shared);
}

/// Points of small order, whose product is zero for any secret (RFC 7748, section 7), including
/// points not reduced modulo 2^255 - 19, or with the ignored bit set.
#[test]
fn points_of_small_order_are_refused() {
    let small = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ];
    let (psk, own) = (Key::from_secret([7; 32]), ephemeral([9; 32]));
    let opening = |initiator: &[u8; 32]| Opening::new(&psk, b"", initiator).0;
    for point in small.map(bytes) {
        assert!(own.shared(&point).is_none(), "{point:?}");
        // As a responder, and as an initiator.
        assert!(opening(&point).respond(&own, &point, &mut []).is_none());
        let tag = closing_tag_of_zero(opening(own.public()), &point);
        let concluded = opening(own.public()).conclude(&own, &point, &mut [], &tag);
        assert!(concluded.is_none(), "{point:?}");
    }
    assert!(own.shared(&BASE_POINT).is_some());
}

/// The tag by an attacker who knows the pre-shared key, and that the product is zero.
fn closing_tag_of_zero(mut state: Opening, responder: &[u8; 32]) -> [u8; TAG_BYTES] {
    let key = state.mix_shared(responder, &Zeroizing::new([0; 32]));
    state.encrypt(&key, &mut [])
}

/// The result of the other implementation with these keys.
struct Other<'a> {
    psk: &'a [u8; 32],
    prologue: &'a [u8],
    ephemeral: &'a [u8; 32],
}

impl Other<'_> {
    fn builder(&self) -> Builder<'_> {
        let name = core::str::from_utf8(NAME).unwrap();
        let builder = Builder::new(name.parse().unwrap())
            .psk(0, self.psk)
            .unwrap();
        let builder = builder.prologue(self.prologue).unwrap();
        builder.fixed_ephemeral_key_for_testing_only(self.ephemeral)
    }
}

fn assert_same(ours: &Closing, theirs: &mut HandshakeState) {
    assert!(theirs.is_handshake_finished());
    assert_eq!(theirs.get_handshake_hash(), ours.hash);
    let (first, second) = theirs.dangerously_get_raw_split();
    assert_eq!(
        ours.keys.each_ref().map(|key| *key.secret()),
        [first, second]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn our_initiator_and_their_responder_agree(
        psk in any::<[u8; 32]>(), secrets in any::<[[u8; 32]; 2]>(),
        prologue in vec(any::<u8>(), 0..80), payload in vec(any::<u8>(), 0..80),
    ) {
        let own = ephemeral(secrets[0]);
        let other = Other { psk: &psk, prologue: &prologue, ephemeral: &secrets[1] };
        let mut theirs = other.builder().build_responder().unwrap();
        let (opening, tag) = Opening::new(&Key::from_secret(psk), &prologue, own.public());
        let mut buffer = [0; 200];
        let read = theirs.read_message(&[&own.public()[..], &tag].concat(), &mut buffer);
        prop_assert_eq!(read.unwrap(), 0);
        let length = theirs.write_message(&payload, &mut buffer).unwrap();
        let (public, rest) = buffer[..length].split_first_chunk().unwrap();
        let (sealed, tag) = rest.split_last_chunk().unwrap();
        let mut opened = sealed.to_vec();
        let closing = opening.conclude(&own, public, &mut opened, tag).unwrap();
        prop_assert_eq!(opened, payload);
        assert_same(&closing, &mut theirs);
    }

    #[test]
    fn their_initiator_and_our_responder_agree(
        psk in any::<[u8; 32]>(), secrets in any::<[[u8; 32]; 2]>(),
        prologue in vec(any::<u8>(), 0..80), payload in vec(any::<u8>(), 0..80),
    ) {
        let own = ephemeral(secrets[1]);
        let other = Other { psk: &psk, prologue: &prologue, ephemeral: &secrets[0] };
        let mut theirs = other.builder().build_initiator().unwrap();
        let mut buffer = [0; 200];
        let length = theirs.write_message(&[], &mut buffer).unwrap();
        let (public, tag) = buffer[..length].split_first_chunk().unwrap();
        let (opening, expected) = Opening::new(&Key::from_secret(psk), &prologue, public);
        prop_assert_eq!(tag, expected);
        let mut sealed = payload.clone();
        let (tag, closing) = opening.respond(&own, public, &mut sealed).unwrap();
        let message = [&own.public()[..], &sealed, &tag].concat();
        let length = theirs.read_message(&message, &mut buffer).unwrap();
        prop_assert_eq!(&buffer[..length], payload);
        assert_same(&closing, &mut theirs);
    }

    /// Neither side continues after a changed bit of the pre-shared key, the prologue, a public
    /// key, the ciphertext or a tag.
    #[test]
    fn a_changed_bit_ends_a_handshake(
        psk in any::<[u8; 32]>(), secrets in any::<[[u8; 32]; 2]>(),
        prologue in vec(any::<u8>(), 1..40), payload in vec(any::<u8>(), 1..40),
        bit in any::<prop::sample::Index>(),
    ) {
        let [initiator, responder] = secrets.map(ephemeral);
        let flipped = |parts: &mut [&mut [u8]]| {
            let mut bytes: Vec<_> = parts.iter_mut().flat_map(|part| part.iter_mut()).collect();
            let at = bit.index(8 * bytes.len());
            // The highest bit of a point is ignored, but hashed.
            *bytes[at / 8] ^= 1 << (at % 8);
        };
        let (_, tag) = Opening::new(&Key::from_secret(psk), &prologue, initiator.public());
        let (mut wrong_psk, mut wrong_prologue) = (psk, prologue.clone());
        let (mut wrong_public, mut wrong_tag) = (*initiator.public(), tag);
        flipped(&mut [&mut wrong_psk, &mut wrong_prologue, &mut wrong_public, &mut wrong_tag]);
        let wrong_psk = Key::from_secret(wrong_psk);
        let (_, found) = Opening::new(&wrong_psk, &wrong_prologue, &wrong_public);
        prop_assert_ne!(found, wrong_tag);

        let opening = || Opening::new(&Key::from_secret(psk), &prologue, initiator.public()).0;
        let mut sealed = payload;
        let answered = opening().respond(&responder, initiator.public(), &mut sealed);
        let (mut tag, _) = answered.unwrap();
        let mut public = *responder.public();
        flipped(&mut [&mut public, &mut sealed, &mut tag]);
        prop_assert!(opening().conclude(&initiator, &public, &mut sealed, &tag).is_none());
    }

    /// With the same pre-shared key, each session has other keys, so the keys of one are useless
    /// for another.
    #[test]
    fn keys_depend_on_both_secrets(secrets in any::<[[u8; 32]; 3]>()) {
        let [a, b, c] = secrets.map(ephemeral);
        let psk = Key::from_secret([1; 32]);
        let keys = |initiator: &Ephemeral, responder: &Ephemeral| {
            let (opening, _) = Opening::new(&psk, b"", initiator.public());
            let (_, closing) = opening.respond(responder, initiator.public(), &mut []).unwrap();
            closing.keys
        };
        prop_assert!(keys(&a, &b) != keys(&a, &c));
        prop_assert!(keys(&a, &c) != keys(&b, &c));
    }
}

#[test]
fn pairs_show_nothing_and_leave_nothing() {
    let pair = ephemeral([5; 32]);
    assert_eq!(std::format!("{pair:?}"), "Ephemeral(..)");
    const { assert!(core::mem::needs_drop::<Ephemeral>()) }
    const { assert!(core::mem::needs_drop::<Opening>()) }
}
