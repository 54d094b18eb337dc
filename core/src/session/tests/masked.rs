//! Rounds with helpers: without the masks, the update is the same as that of a device without
//! helpers.

use super::*;
use crate::{
    mask::{MAX_HELPERS, MAX_WIDTH, MaskRoot, Masking, RoundKey},
    personal::{Personal, PersonalRequest},
    session::round::{
        Round, Stage,
        stage::{Covering, Source},
    },
    wire::keys::ledger_fingerprint,
};

/// Returns the policy of a device that requires `helpers` helpers.
pub(super) fn insists_on(helpers: u8) -> Policy {
    Policy {
        helpers,
        ..policy()
    }
}

fn masked(helpers: u8, width: u8) -> Invitation {
    Invitation {
        masks: Masking::new(helpers, width),
        ..invitation(None)
    }
}

fn coordinator_of(round: u32, asked: Invitation) -> Coordinator {
    Coordinator::new(chain(), round, asked, model())
}

/// Returns the key that a helper shares with the device.
fn key(helper: u8, round: u32, nonce: &[u8; 8]) -> RoundKey {
    let root = MaskRoot::new(&identity().root, identity().device);
    root.helper(helper).round(round, &ledger_fingerprint(nonce))
}

/// Reduces the values modulo 2^width, centred.
fn centred(values: &mut [i64], width: u32) {
    for value in values {
        *value = *value << (64 - width) >> (64 - width);
    }
}

/// Removes the masks of all helpers from an update.
pub(super) fn without_masks(other: &Coordinator, nonce: &[u8; 8]) -> Vec<i64> {
    let mut values = other.integers.clone();
    let width = other.invitation.width();
    for helper in 0..other.invitation.helpers() {
        let mut masks = key(helper, other.round, nonce).masks(width);
        for value in &mut values {
            *value = value.wrapping_sub(masks.next_mask() as i64);
        }
    }
    centred(&mut values, width);
    values
}

/// Returns the tags that helpers expect for this coordinator's invitation.
pub(super) fn tags(other: &Coordinator, nonce: &[u8; 8]) -> Vec<Tag> {
    let asked = &other.invitation;
    let terms = asked.masks.unwrap().terms(&asked.grid);
    let tagged = PackedInvitation::from(asked).tagged();
    (0..asked.helpers())
        .map(|helper| {
            key(helper, other.round, nonce).tag(&terms, tagged.bytes().as_slice(), &other.model)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Over a line that loses some frames, so that chunks are repeated.
    #[test]
    fn with_the_masks_taken_off_an_update_is_that_without_helpers(
        round in 0u32..=100, helpers in 1..=MAX_HELPERS, width in 22u8..=MAX_WIDTH as u8,
        lost in 2usize..12, window in 1u8..4,
    ) {
        let mut board = board(insists_on(helpers), ledger(), 0);
        board.set_window(window);
        let mut other = coordinator_of(round, masked(helpers, width));
        let mut frames = 0;
        run(&mut board, &mut other, |bytes| {
            frames += 1;
            if frames % (2 * lost + 1) == 0 { vec![] } else { bytes }
        });
        // A session lost in the middle spends the round.
        prop_assert!(other.done || other.declined == Some(Decline::RoundUsed));
        if other.done {
            let expected = expected(round, &invitation(None));
            prop_assert_ne!(&other.integers, &expected);
            prop_assert_eq!(without_masks(&other, &NONCE), expected);
            prop_assert_eq!(&other.tags, &tags(&other, &NONCE));
        }
    }
}

/// The device fixes the number of helpers, whatever a coordinator asks for.
#[test]
fn another_number_of_helpers_is_declined() {
    for insisted in 0..4 {
        for asked in 0..4 {
            let mut other = coordinator_of(1, masked(asked, 30));
            let mut board = board(insists_on(insisted), ledger(), 0);
            run(&mut board, &mut other, |bytes| bytes);
            let expected = (insisted != asked).then_some(Decline::Helpers);
            assert_eq!(
                other.declined, expected,
                "{asked} in the place of {insisted}"
            );
            let participations = u32::from(insisted == asked);
            assert_eq!(board.ledger().past().participations, participations);
        }
    }
}

#[test]
fn rounds_and_ledgers_have_masks_of_their_own() {
    let sent = |round, nonce| {
        let ledger = Ledger::create(erased::<4, 64>(), nonce, Key::from_secret(KEY)).unwrap();
        let mut board = board(insists_on(1), ledger, 0);
        let mut other = coordinator_of(round, masked(1, 57));
        run(&mut board, &mut other, |bytes| bytes);
        assert_eq!(
            without_masks(&other, &nonce),
            expected(round, &invitation(None))
        );
        let mut masks = other.integers.clone();
        for (mask, q) in masks.iter_mut().zip(expected(round, &invitation(None))) {
            *mask -= q;
        }
        centred(&mut masks, 57);
        masks
    };
    // An erased flash has another nonce.
    let all = [sent(3, NONCE), sent(4, NONCE), sent(3, [8; 8])].concat();
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    // Two of 378 uniform values of 57 bits are equal with probability 5e-13.
    assert_eq!(distinct.len(), 3 * PARAMETERS);
}

/// Whatever the flash does at any time, two updates never have the same mask.
#[test]
fn a_device_that_restarts_masks_no_second_update_of_a_round() {
    let mut first_ones = 0;
    // A record takes 256 bytes, erased and written.
    for power in (0..270).step_by(3) {
        let mut flash = ledger().into_flash();
        flash.power = power;
        let Ok(opened) = Ledger::open(flash) else {
            panic!("reading takes no power");
        };
        let mut first = board(insists_on(1), opened, 0);
        let mut other = coordinator_of(5, masked(1, 30));
        // Up to the first chunk, or the refusal.
        for _ in 0..200 {
            if other.next > 0 || other.declined.is_some() {
                break;
            }
            turn(&mut first, &mut other, &mut |bytes| bytes);
        }
        let was_masked = other.next > 0;
        let mut flash = first.into_ledger().into_flash();
        flash.power = usize::MAX;
        let mut second = board(insists_on(1), Ledger::open(flash).unwrap(), 1);
        let mut again = coordinator_of(5, masked(1, 30));
        again.chain = other.chain.clone();
        again.model.fill(0.25);
        run(&mut second, &mut again, |bytes| bytes);
        assert!(!(was_masked && again.next > 0), "power for {power} bytes");
        assert!(again.done || again.declined == Some(Decline::RoundUsed));
        first_ones += u32::from(was_masked);
    }
    assert!(first_ones > 0, "with enough power there is an update");
}

/// Everyone knows the attendance, so it must not depend on the data.
#[test]
fn without_usable_data_a_masked_device_sends_zeros() {
    let mut diverging = coordinator_of(3, masked(2, 30));
    diverging.model.fill(f32::MAX);
    run(
        &mut board(insists_on(2), ledger(), 0),
        &mut diverging,
        |bytes| bytes,
    );
    let mut empty = coordinator_of(3, masked(2, 30));
    let mut device = board(insists_on(2), ledger(), 0);
    for _ in 0..200 {
        if device.phase() == Phase::Receiving && device.conversation.round.is_some() {
            device.conversation.phase = Phase::Training;
            device
                .conversation
                .device
                .memory
                .global
                .copy_from_slice(&model());
            device.train(&SampleSlice::new(&[], &[], FEATURES).unwrap());
        }
        if empty.done {
            break;
        }
        turn(&mut device, &mut empty, &mut |bytes| bytes);
    }
    for other in [diverging, empty] {
        assert!(other.done, "{:?}", other.declined);
        assert_eq!(without_masks(&other, &NONCE), [0; PARAMETERS]);
        assert_eq!(other.tags, tags(&other, &NONCE));
    }
}

/// The largest possible update needs no flag under masks.
#[test]
fn an_update_at_the_bound_is_not_negated_under_masks() {
    let mut device = board(insists_on(1), ledger(), 0);
    let asked = masked(1, 22);
    let device = &mut device.conversation.device;
    device.memory.work.update.fill(0.0);
    device.memory.work.update[7] = asked.grid.clip_norm().get();
    let repair = asked.grid.round_in_place(device.memory.work.update);
    let mut round = Round::new(3, asked, (&asked).into(), 0);
    let covering = Covering::new(Source::Update(repair.unwrap()), &asked);
    round.stage = Stage::Covering(covering.unwrap());
    while !round.is_covered() {
        round.cover(device, 1).unwrap();
    }
    let mut values = vec![];
    for chunk in 0.. {
        round.chunk = chunk;
        let sent = round.update_chunk(device);
        assert!(!sent.negated);
        let crate::wire::message::Packed::Halves { low, high, .. } = sent.packed else {
            break;
        };
        let halves = low.iter().zip(high);
        values.extend(halves.map(|(low, high)| crate::release::whole(*low, *high)));
    }
    let mut masks = key(0, 3, &NONCE).masks(22);
    for value in &mut values {
        *value -= masks.next_mask() as i64;
    }
    centred(&mut values, 22);
    let mut expected = [0; PARAMETERS];
    expected[7] = 1 << 20;
    assert_eq!(values, expected);
}

/// Invitations to devices with personal models differ only in the last round.
#[test]
fn the_last_round_of_a_device_is_not_tagged() {
    let personal = |last| {
        let request = PersonalRequest {
            personal: Personal::Rest,
            steps: None,
            shared: 120,
            last,
        };
        PackedInvitation::from(&Invitation {
            request: Some(Request::Personal(request)),
            ..masked(1, 30)
        })
    };
    let tagged = personal(None).tagged();
    assert_eq!(tagged, personal(None));
    for last in [Some(0), Some(7), Some(u32::MAX - 1)] {
        assert_ne!(personal(last), tagged);
        assert_eq!(personal(last).tagged(), tagged);
    }
    let shared = PackedInvitation::from(&masked(1, 30));
    assert_eq!(shared.tagged(), shared, "nothing else is left out");
}
