use std::vec::Vec;

use proptest::prelude::*;

use serde_json::Value;

use super::*;
use crate::pack;
use crate::wire::tests::vectors::{array, hex};

const LEDGER: Fingerprint = *b"ledger 1";

fn key() -> MaskKey {
    MaskRoot::new(&Root::from_secret([9; 32]), 42).helper(0)
}

fn masks(key: &MaskKey, round: u32, ledger: &Fingerprint, width: u32) -> [u64; 16] {
    let mut masks = key.round(round, ledger).masks(width);
    core::array::from_fn(|_| masks.next_mask())
}

fn terms() -> Terms {
    Terms {
        grid_bits: 8,
        width: 19,
        helpers: 1,
    }
}

proptest! {
    /// The masks are the key stream, cut into pieces like a packed update.
    #[test]
    fn masks_are_the_key_stream_as_packed_entries(width in 1u32..=MAX_WIDTH) {
        const COUNT: usize = 100;
        let key = key().round(3, &LEDGER);
        let mut found = key.masks(width);
        let found: Vec<u64> = (0..COUNT).map(|_| found.next_mask()).collect();
        let mut words = generator(key.0.secret(), MASKS);
        let words = (0..COUNT * 2 + 1).flat_map(|_| words.next_u32().to_le_bytes());
        let bytes: Vec<u8> = words.collect();
        let used = pack::packed_bytes(width, COUNT);
        let mut packed = bytes[..used].to_vec();
        // The rest of the last byte belongs to the next entry.
        let rest = (COUNT * width as usize) % 8;
        if rest > 0 {
            packed[used - 1] &= (1 << rest) - 1;
        }
        let mut values = [0; COUNT];
        pack::unpack(&packed, width, &mut values).unwrap();
        let expected = values.map(|value| value as u64 & ((1 << width) - 1));
        prop_assert_eq!(found, expected);
    }

    /// Adding and subtracting masks restores any entries that fit.
    #[test]
    fn a_mask_is_taken_off_modulo_two_to_the_width(
        width in 2u32..=MAX_WIDTH,
        values in proptest::collection::vec(any::<i64>(), 1..40),
    ) {
        let unused = 64 - width;
        let (mut on, mut off) = {
            let key = key().round(3, &LEDGER);
            (key.masks(width), key.masks(width))
        };
        for value in values.iter().map(|value| value >> unused) {
            let masked = (value as u64).wrapping_add(on.next_mask()) & ((1 << width) - 1);
            let found = masked.wrapping_sub(off.next_mask());
            prop_assert_eq!((found << unused).cast_signed() >> unused, value);
        }
    }
}

#[test]
fn helpers_devices_rounds_and_ledgers_have_masks_of_their_own() {
    let root = Root::from_secret([9; 32]);
    let of = |root: &Root, device, helper, round, ledger: &Fingerprint| {
        let key = MaskRoot::new(root, device).helper(helper);
        masks(&key, round, ledger, 32)
    };
    let found = [
        of(&root, 42, 0, 3, &LEDGER),
        of(&root, 42, 1, 3, &LEDGER),
        of(&root, 43, 0, 3, &LEDGER),
        of(&root, 42, 0, 4, &LEDGER),
        of(&root, 42, 0, 3, b"ledger 2"),
        of(&Root::from_secret([8; 32]), 42, 0, 3, &LEDGER),
    ];
    let distinct: std::collections::BTreeSet<_> = found.iter().flatten().collect();
    assert_eq!(distinct.len(), 6 * 16, "and none is used twice");
    assert_eq!(found[0], of(&root, 42, 0, 3, &LEDGER));
}

/// Every bit of the round number matters, even for rounds 65,536 apart.
#[test]
fn masks_of_rounds_at_any_distance_differ() {
    let rounds = (0..32).map(|bit| 5 ^ (1 << bit)).chain([5]);
    let found: Vec<[u64; 16]> = rounds
        .map(|round| masks(&key(), round, &LEDGER, 32))
        .collect();
    let distinct: std::collections::BTreeSet<_> = found.iter().flatten().collect();
    assert_eq!(distinct.len(), 33 * 16, "and none is used twice");
}

#[test]
fn a_tag_covers_terms_invitation_and_model_and_their_lengths() {
    let key = key().round(3, &LEDGER);
    let tag = key.tag(&terms(), &[1, 2, 3], &[0.5, -0.25]);
    assert_eq!(tag, key.tag(&terms(), &[1, 2, 3], &[0.5, -0.25]));
    let others = [
        key.tag(
            &Terms {
                width: 20,
                ..terms()
            },
            &[1, 2, 3],
            &[0.5, -0.25],
        ),
        key.tag(
            &Terms {
                grid_bits: 9,
                ..terms()
            },
            &[1, 2, 3],
            &[0.5, -0.25],
        ),
        key.tag(
            &Terms {
                helpers: 2,
                ..terms()
            },
            &[1, 2, 3],
            &[0.5, -0.25],
        ),
        key.tag(&terms(), &[1, 2, 4], &[0.5, -0.25]),
        key.tag(&terms(), &[1, 2, 3, 0], &[0.5, -0.25]),
        key.tag(&terms(), &[1, 2, 3], &[0.5, -0.5]),
        key.tag(&terms(), &[1, 2, 3], &[0.5, -0.25, 0.0]),
        self::key()
            .round(4, &LEDGER)
            .tag(&terms(), &[1, 2, 3], &[0.5, -0.25]),
        self::key()
            .round(3, b"ledger 2")
            .tag(&terms(), &[1, 2, 3], &[0.5, -0.25]),
    ];
    assert!(others.iter().all(|other| *other != tag));
}

/// `tests/vectors/masks.py`: keys, masks, masked entries and tags.
#[test]
fn masks_and_tags_agree_with_an_independent_reading() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/masks.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let all = |value: &Value| value.as_array().unwrap().clone();
    for case in all(&file["cases"]) {
        let root = MaskRoot::new(
            &Root::from_secret(array(&case["root"])),
            number(&case["device"]) as u32,
        );
        let (round, ledger) = (number(&case["round"]) as u32, array(&case["ledger"]));
        let width = number(&case["width"]) as u32;
        let helpers = all(&case["helpers"]);
        let terms = Terms {
            grid_bits: number(&case["grid_bits"]) as u8,
            width: width as u8,
            helpers: helpers.len() as u8,
        };
        let model: Vec<f32> = all(&case["model"])
            .iter()
            .map(|bits| f32::from_bits(number(bits) as u32))
            .collect();
        let update = all(&case["update"]);
        let mut masked: Vec<i64> = update.iter().map(|q| q.as_i64().unwrap()).collect();
        for (helper, expected) in (0..).zip(&helpers) {
            let key = root.helper(helper);
            assert_eq!(*key.secret(), array(&expected["key"]));
            let key = key.round(round, &ledger);
            let mut masks = key.masks(width);
            for (entry, mask) in masked.iter_mut().zip(all(&expected["masks"])) {
                let found = masks.next_mask();
                assert_eq!(found, number(&mask), "width {width}");
                *entry = entry.wrapping_add(found as i64);
            }
            let tag = key.tag(&terms, &hex(&case["invitation"]), &model);
            assert_eq!(tag, array(&expected["tag"]), "width {width}");
        }
        let expected = hex(&case["masked"]);
        let mut packed = std::vec![0; expected.len()];
        let used = pack::pack(masked.iter().copied(), width, &mut packed);
        assert_eq!((used, packed), (Some(expected.len()), expected));
    }
}

#[test]
fn debug_prints_no_masks() {
    let masks = key().round(3, &LEDGER).masks(19);
    assert_eq!(
        std::format!("{masks:?} {:?}", key()),
        "Masks(19 bits) MaskKey(Key(..))"
    );
}
