//! An update in flash: after restarts and power cuts at any byte, the same integers or none go out.

use super::{resumption::interrupted, *};
use crate::{
    personal::store::{BlockingStore, StateId, StateKind, flash::FlashStore},
    session::round::Round,
};

type Flash = Ram<8, 128>;
type Store = FlashStore<Flash>;

fn store() -> Store {
    let bytes = held_bytes(PARAMETERS, 128) as usize;
    FlashStore::new(Flash::new(vec![0xff; bytes])).unwrap()
}

fn is_blank(store: Store) -> bool {
    store.into_flash().bytes.iter().all(|byte| *byte == 0xff)
}

/// Restarts a board. Returns it and the round whose update it has.
fn restarted(ledger: Ram, store: &mut Store) -> (Board, Option<u32>) {
    let mut board = board(policy(), Ledger::open(ledger).unwrap(), 77);
    let resumed = board.resume(store).unwrap();
    assert_eq!(board.has_unsent_update(), resumed.is_some());
    (board, resumed)
}

/// Returns the flash of a board's ledger.
fn ledger_of(board: Board) -> Ram {
    board.into_ledger().into_flash()
}

/// Returns everything that a board would send of its update.
fn kept(board: &Board) -> (Vec<u32>, Vec<u8>) {
    let Conversation { device, round, .. } = &board.conversation;
    let Workspace { update, local, .. } = &device.memory.work;
    let halves = update.iter().chain(local.iter()).map(|half| half.to_bits());
    (halves.collect(), round.as_ref().unwrap().details().to_vec())
}

/// Creates a coordinator that repeats its invitation.
fn again(round: u32, asked: Invitation) -> Coordinator {
    Coordinator::new(chain(), round, asked, model())
}

#[test]
fn the_same_update_goes_out_after_a_restart() {
    for asked in [
        invitation(None),
        invitation(noise()),
        bit::adaptive(None, 0.5),
        bit::adaptive(noise(), 0.5),
    ] {
        for chunks in [0, 1] {
            let (board, mut other) = interrupted(asked, chunks);
            let mut store = store();
            assert_eq!(board.hold(&mut store), Ok(true));
            assert_eq!(board.hold(&mut store), Ok(false), "it is there");
            let (mut board, resumed) = restarted(ledger_of(board), &mut store);
            assert_eq!(resumed, Some(3));
            assert_eq!(board.release(&mut store), Ok(false), "nothing was sent yet");
            other.integers.fill(7);
            other.next = 0;
            run(&mut board, &mut other, |bytes| bytes);
            assert!(other.declined.is_none());
            assert_eq!(board.release(&mut store), Ok(false), "not acknowledged");
            turn(&mut board, &mut other, &mut |bytes| bytes);
            assert_eq!(other.integers, expected(3, &asked));
            let mut whole = again(3, asked);
            run(
                &mut super::board(policy(), ledger(), 0),
                &mut whole,
                |bytes| bytes,
            );
            assert_eq!(other.bit, whole.bit);
            assert_eq!(board.ledger().past().participations, 1);
            assert!(!board.has_unsent_update());
            assert_eq!(board.release(&mut store), Ok(true));
            assert_eq!(board.release(&mut store), Ok(false));
            assert!(is_blank(store));
        }
    }
}

/// A coordinator with a different invitation gets nothing of the update.
#[test]
fn another_invitation_is_not_answered_with_a_held_update() {
    let asked = invitation(noise());
    let (board, mut other) = interrupted(asked, 0);
    let mut store = store();
    board.hold(&mut store).unwrap();
    let (mut board, _) = restarted(ledger_of(board), &mut store);
    other.invitation = Invitation {
        noise: None,
        ..asked
    };
    run(&mut board, &mut other, |bytes| bytes);
    assert_eq!(other.declined, Some(Decline::RoundUsed));
    assert_eq!(board.release(&mut store), Ok(true), "it was given up");
    assert!(is_blank(store));
}

/// A new round, or an abort by the coordinator, ends the state in flash.
#[test]
fn an_update_that_is_superseded_or_aborted_is_released() {
    let asked = invitation(noise());
    let (mut board, mut other) = interrupted(asked, 0);
    let mut store = store();
    board.hold(&mut store).unwrap();
    other.send(&Message::Abort(Abort::Late));
    for said in core::mem::take(&mut other.outgoing) {
        board.receive(&said);
    }
    assert_eq!(board.release(&mut store), Ok(true));

    let (mut board, _) = interrupted(asked, 0);
    board.hold(&mut store).unwrap();
    board.send(Answer::Hello);
    let mut next = again(4, asked);
    while board.phase() != Phase::Sending {
        turn(&mut board, &mut next, &mut |bytes| bytes);
    }
    // The previous round was not released, so the new one overwrites it.
    assert_eq!(board.hold(&mut store), Ok(true));
    let (mut board, resumed) = restarted(ledger_of(board), &mut store);
    assert_eq!(resumed, Some(4));
    run(&mut board, &mut next, |bytes| bytes);
    assert_eq!(next.integers, expected(4, &asked));
    turn(&mut board, &mut next, &mut |bytes| bytes);
    assert_eq!(board.release(&mut store), Ok(true));
    assert!(is_blank(store));
}

/// In every piece of the round.
#[test]
fn nothing_is_written_that_is_not_covered() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let mut store = store();
    let mut board = board(policy(), ledger(), 0);
    let mut other = again(3, bit::adaptive(noise(), 0.5));
    let mut phases = vec![];
    while board.phase() != Phase::Sending {
        assert!(!board.has_unsent_update());
        assert_eq!(board.hold(&mut store), Ok(false));
        phases.push(board.phase());
        match board.phase() {
            Phase::Training => drop(board.train_some(&samples, 1)),
            _ => turn_without_training(&mut board, &mut other),
        }
    }
    assert!(phases.len() > 30, "{}", phases.len());
    let mut blank = store.into_flash();
    assert!(blank.bytes.iter().all(|byte| *byte == 0xff));
    blank.power = 0;
    let mut store = FlashStore::new(blank).unwrap();
    assert!(board.hold(&mut store).is_err(), "now it is written");
    assert_eq!(board.phase(), Phase::Sending, "and sent all the same");
}

/// The tags need the model, which the device may no longer have.
#[cfg(feature = "masks")]
#[test]
fn a_masked_update_is_not_held() {
    let asked = Invitation {
        masks: crate::mask::Masking::new(2, 30),
        ..invitation(None)
    };
    let mut board = board(masked::insists_on(2), ledger(), 0);
    let mut other = again(3, asked);
    while board.phase() != Phase::Sending {
        turn(&mut board, &mut other, &mut |bytes| bytes);
    }
    let mut store = store();
    assert!(board.has_unsent_update());
    assert_eq!(board.hold(&mut store), Ok(false));
    assert!(is_blank(store));
}

/// Contents of the flash when a hold begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Nothing,
    /// The unreleased update of round 2.
    Update,
    /// The same with damaged values, as its release was cut short.
    Damaged,
}

/// Returns a board with the update of round 3 in RAM after one of round 2, and its ledger's flash.
fn third(asked: Invitation, store: &mut Store, before: Before) -> (Board, Ram) {
    let run_to = |board: &mut Board, round| {
        let mut other = again(round, asked);
        board.send(Answer::Hello);
        while board.phase() != Phase::Sending {
            turn(board, &mut other, &mut |bytes| bytes);
        }
    };
    let mut board = board(policy(), ledger(), 0);
    run_to(&mut board, 2);
    if before != Before::Nothing {
        board.hold(store).unwrap();
    }
    run_to(&mut board, 3);
    let ledger = board.ledger().past();
    assert_eq!(ledger.participations, 2);
    let mut twin = super::board(policy(), self::ledger(), 0);
    run_to(&mut twin, 2);
    run_to(&mut twin, 3);
    (board, ledger_of(twin))
}

/// Whether the device has the update after a cut. Checks that it is then complete.
fn has_whole(board: &Board, ledger: &Ram, mut store: Store, context: &str) -> bool {
    let (restarted, resumed) = restarted(ledger.clone(), &mut store);
    assert!(matches!(resumed, None | Some(3)), "{context}: {resumed:?}");
    if resumed.is_some() {
        assert_eq!(kept(&restarted), kept(board), "{context}");
    }
    resumed.is_some()
}

/// Runs the round to its end on a restarted board.
fn assert_ends(ledger: &Ram, mut store: Store, asked: Invitation) {
    let (mut board, resumed) = restarted(ledger.clone(), &mut store);
    let mut other = again(3, asked);
    run(&mut board, &mut other, |bytes| bytes);
    match resumed {
        Some(_) => assert_eq!(other.integers, expected(3, &asked)),
        None => assert_eq!(other.declined, Some(Decline::RoundUsed)),
    }
    assert_eq!(board.ledger().past().participations, 2);
}

#[test]
fn a_power_cut_at_any_byte_of_a_hold_leaves_the_whole_update_or_none() {
    let asked = bit::adaptive(noise(), 0.5);
    for (before, is_backward) in [
        (Before::Nothing, false),
        (Before::Nothing, true),
        (Before::Update, false),
        (Before::Update, true),
        (Before::Damaged, true),
    ] {
        let mut store = store();
        let (board, ledger) = third(asked, &mut store, before);
        let mut flash = store.into_flash();
        if before == Before::Damaged {
            // The update of round 2 is in the second slot.
            let end = flash.bytes.len();
            flash.bytes[end - 128..].fill(0xff);
        }
        let mut was_whole = None;
        for power in 0.. {
            let mut cut = flash.clone();
            (cut.power, cut.is_backward) = (power, is_backward);
            let mut store = FlashStore::new(cut).unwrap();
            let held = board.hold(&mut store);
            let mut cut = store.into_flash();
            cut.power = usize::MAX;
            let store = || FlashStore::new(cut.clone()).unwrap();
            let context = format!("{before:?}, {is_backward}, {power}");
            let is_whole = has_whole(&board, &ledger, store(), &context);
            // Again, with power.
            let mut next = store();
            assert_eq!(board.hold(&mut next), Ok(!is_whole), "{context}");
            assert!(has_whole(&board, &ledger, next, &context));
            if was_whole != Some(is_whole) {
                assert_ends(&ledger, store(), asked);
                was_whole = Some(is_whole);
            }
            if held.is_ok() {
                assert!(is_whole, "{context}");
                break;
            }
        }
    }
}

#[test]
fn a_power_cut_at_any_byte_of_a_release_leaves_the_whole_update_or_none() {
    let asked = invitation(noise());
    for is_backward in [false, true] {
        let mut store = store();
        let (waiting, ledger) = third(asked, &mut store, Before::Nothing);
        waiting.hold(&mut store).unwrap();
        let flash = store.into_flash();
        // Another board with the same ledger, whose update has arrived.
        let mut store = FlashStore::new(flash.clone()).unwrap();
        let (mut done, _) = restarted(ledger.clone(), &mut store);
        let mut other = again(3, asked);
        run(&mut done, &mut other, |bytes| bytes);
        turn(&mut done, &mut other, &mut |bytes| bytes);
        let mut was_whole = None;
        for power in 0.. {
            let mut cut = flash.clone();
            (cut.power, cut.is_backward) = (power, is_backward);
            let mut store = FlashStore::new(cut).unwrap();
            let released = done.release(&mut store);
            let mut cut = store.into_flash();
            cut.power = usize::MAX;
            let store = || FlashStore::new(cut.clone()).unwrap();
            let context = format!("{is_backward}, {power}");
            let is_whole = has_whole(&waiting, &ledger, store(), &context);
            if was_whole != Some(is_whole) {
                assert_ends(&ledger, store(), asked);
                was_whole = Some(is_whole);
            }
            // A remaining header is found again. Without one the rest is already erased.
            let mut again = store();
            let is_found = done.release(&mut again).unwrap();
            let bytes = again.into_flash().bytes;
            assert!(bytes[128..].iter().all(|byte| *byte == 0xff), "{context}");
            assert!(!is_found || bytes.iter().all(|byte| *byte == 0xff));
            if released.is_ok() {
                assert!(bytes.iter().all(|byte| *byte == 0xff));
                break;
            }
        }
    }
}

#[test]
fn parts_of_an_interrupted_hold_are_erased_at_the_release() {
    let asked = invitation(noise());
    let mut has_parts = false;
    for power in (0..1_500).step_by(50) {
        let (mut board, mut other) = interrupted(asked, 0);
        let mut flash = store().into_flash();
        flash.power = power;
        let mut store = FlashStore::new(flash).unwrap();
        let held = board.hold(&mut store);
        let mut flash = store.into_flash();
        flash.power = usize::MAX;
        let is_partial = flash.bytes.iter().any(|byte| *byte != 0xff);
        has_parts |= is_partial && held.is_err();
        let mut store = FlashStore::new(flash).unwrap();
        run(&mut board, &mut other, |bytes| bytes);
        turn(&mut board, &mut other, &mut |bytes| bytes);
        assert_eq!(board.release(&mut store), Ok(is_partial), "{power}");
        assert!(is_blank(store), "{power}");
    }
    assert!(has_parts);
}

/// A power cut interrupts the record of the participation: nothing is held, and at the next wake
/// the round can begin or is used.
#[test]
fn a_power_cut_at_any_byte_of_the_ledger_leaves_nothing_to_hold() {
    let asked = invitation(noise());
    let (mut ends, mut store) = (std::collections::BTreeSet::new(), store());
    for power in 0.. {
        let mut flash = ledger().into_flash();
        flash.power = power;
        let mut board = board(policy(), Ledger::open(flash).unwrap(), 0);
        let mut other = again(3, asked);
        while board.phase() != Phase::Sending && other.declined.is_none() {
            turn(&mut board, &mut other, &mut |bytes| bytes);
        }
        if board.phase() == Phase::Sending {
            break;
        }
        assert_eq!(board.hold(&mut store), Ok(false));
        let mut flash = ledger_of(board);
        flash.power = usize::MAX;
        let (mut board, resumed) = restarted(flash, &mut store);
        assert_eq!(resumed, None);
        let mut other = again(3, asked);
        run(&mut board, &mut other, |bytes| bytes);
        match other.declined {
            None => assert_eq!(other.integers, expected(3, &asked)),
            declined => assert_eq!(declined, Some(Decline::RoundUsed)),
        }
        ends.insert(other.declined.is_none());
        assert_eq!(board.ledger().past().participations, 1);
    }
    assert!(ends.contains(&true));
    assert!(is_blank(store));
}

#[test]
fn a_damaged_update_is_none() {
    let asked = bit::adaptive(noise(), 0.5);
    let mut store = store();
    let (board, ledger) = third(asked, &mut store, Before::Nothing);
    board.hold(&mut store).unwrap();
    let whole = store.into_flash();
    let used = whole.bytes.iter().rposition(|byte| *byte != 0xff).unwrap();
    let mut skipped = 0;
    for byte in 0..=used {
        let mut flash = whole.clone();
        flash.bytes[byte] ^= 0x10;
        let mut store = FlashStore::new(flash).unwrap();
        let (resumed, round) = restarted(ledger.clone(), &mut store);
        match round {
            None => skipped += 1,
            // Padding of a part.
            Some(_) => assert_eq!(kept(&resumed), kept(&board), "{byte}"),
        }
    }
    assert!(skipped > 2 * 4 * PARAMETERS, "{skipped}");
}

#[test]
fn an_update_of_another_ledger_shape_or_round_is_none() {
    let asked = invitation(noise());
    let mut store = store();
    let (board, _) = interrupted(asked, 0);
    board.hold(&mut store).unwrap();
    let flash = ledger_of(board);
    let resumed = |ledger, store: &mut Store| restarted(ledger, store).1;

    let other = Ledger::create(erased(), [8; 8], Key::from_secret(KEY)).unwrap();
    assert_eq!(resumed(other.into_flash(), &mut store), None);
    // The ledger before the round, as from a backup.
    assert_eq!(resumed(ledger().into_flash(), &mut store), None);
    // The same number of parameters.
    let narrow = Softmax::new(Const::<41>, Const::<3>);
    let nonces = stream(Purpose::Initialisation, 5);
    let ledger = Ledger::open(flash.clone()).unwrap();
    let session = Session::new(
        identity(),
        policy(),
        narrow,
        memory(PARAMETERS, 10, 6),
        ledger,
        nonces,
    );
    assert_eq!(session.unwrap().resume(&mut store), Ok(None));

    // Not once the session has begun.
    let mut begun = super::board(policy(), Ledger::open(flash.clone()).unwrap(), 1);
    begun.timeout();
    assert_eq!(begun.resume(&mut store), Ok(None));
    assert_eq!(resumed(flash.clone(), &mut store), Some(3));

    // A later round is in the ledger.
    let mut later = super::board(policy(), Ledger::open(flash).unwrap(), 1);
    run(&mut later, &mut again(4, asked), |bytes| bytes);
    assert_eq!(resumed(ledger_of(later), &mut store), None);
}

#[test]
fn flash_that_is_too_small_holds_nothing() {
    let (board, _) = interrupted(invitation(None), 0);
    let bytes = held_bytes(PARAMETERS, 128) as usize;
    for length in [0, 128, 512, bytes - 256] {
        let mut store = FlashStore::new(Flash::new(vec![0xff; length])).unwrap();
        assert!(board.hold(&mut store).is_err(), "{length}");
        assert_eq!(board.release(&mut store), Ok(false));
        let (_, resumed) = restarted(ledger().into_flash(), &mut store);
        assert_eq!(resumed, None);
        assert!(is_blank(store));
    }
}

/// A valid header, with details of an update that the device cannot send.
#[test]
fn details_of_others_are_none() {
    let (board, _) = interrupted(invitation(None), 0);
    let ledger = ledger_of(board);
    for length in [0, 70, 255] {
        let mut store = store();
        let (id, mut details) = (
            StateId {
                kind: StateKind::Held(5),
                owner: NONCE,
                round: 3,
            },
            vec![0; 128],
        );
        details[0] = length;
        store.write_held(&id, 0, [&details, &[], &[]]).unwrap();
        assert_eq!(restarted(ledger.clone(), &mut store).1, None);
    }
    let mut store = store();
    let id = StateId {
        kind: StateKind::Held(5),
        owner: NONCE,
        round: 3,
    };
    store.save(&id, &[0.0; 8], None).unwrap();
    assert_eq!(restarted(ledger, &mut store).1, None);
}

/// An update of one entry at the end of the grid stays negated.
#[test]
fn the_details_of_a_round_come_back() {
    for (negated, noise) in [(true, noise()), (false, None)] {
        let asked = bit::adaptive(noise, 0.5);
        let tagged = masks::tagged_whole(PackedInvitation::from(&asked).bytes());
        let mut round = Round::<()>::new(9, asked, tagged, 77);
        (round.negated, round.stage) = (negated, crate::session::round::Stage::Covered);
        let id = round.held_id(&NONCE).unwrap();
        assert_eq!(id.kind, StateKind::Held(77));
        let again = Round::<()>::from_details(&id, &round.details()).unwrap();
        assert_eq!((again.negated, again.number), (negated, 9));
        assert!(again.resumes(9, 77) && !again.resumes(9, 78));
        assert_eq!(again.details(), round.details());
    }
}

/// The bytes are the same. A drop at any await has the effect of a power cut.
#[cfg(feature = "async")]
#[test]
fn flash_that_is_awaited_holds_the_same() {
    use crate::ledger::tests::awaited::{Awaited, ENOUGH, polled};

    let asked = invitation(noise());
    let flash = || Ram::<4, 64>::new(vec![0xff; held_bytes(PARAMETERS, 64) as usize]);
    let mut store = FlashStore::new(flash()).unwrap();
    let (waiting, _) = interrupted(asked, 0);
    waiting.hold(&mut store).unwrap();
    let expected_bytes = store.into_flash().bytes;
    let (twin, _) = interrupted(asked, 0);
    let ledger = ledger_of(twin);
    for polls in 1.. {
        let mut awaited = flash();
        let mut store = FlashStore::new_async(Awaited(&mut awaited)).unwrap();
        let held = polled(waiting.hold_async(&mut store), polls);
        let mut board = board(policy(), Ledger::open(ledger.clone()).unwrap(), 1);
        let resumed = polled(board.resume_async(&mut store), ENOUGH).unwrap();
        assert_eq!(resumed, Ok(held.map(|_| 3)), "{polls}");
        if held.is_none() {
            continue;
        }
        assert_eq!(kept(&board), kept(&waiting));
        let mut other = again(3, asked);
        run(&mut board, &mut other, |bytes| bytes);
        turn(&mut board, &mut other, &mut |bytes| bytes);
        assert_eq!(other.integers, expected(3, &asked));
        assert_eq!(awaited.bytes, expected_bytes);
        let mut store = FlashStore::new_async(Awaited(&mut awaited)).unwrap();
        let released = polled(board.release_async(&mut store), ENOUGH);
        assert_eq!(released, Some(Ok(true)));
        assert!(awaited.bytes.iter().all(|byte| *byte == 0xff));
        break;
    }
}
